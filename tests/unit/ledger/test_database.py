# SPDX-License-Identifier: Apache-2.0
"""Databases that are not there, not ours, or not reachable; never with the password in the answer."""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import insert, select

from airflow_provider_cdc.core.errors import (
    CdcError,
    ConfigurationError,
    KnownValuesError,
    LedgerError,
    UnavailableError,
)
from airflow_provider_cdc.ledger import Ledger, schema
from airflow_provider_cdc.ledger.database import Database


def test_nothing_is_opened_before_the_first_call(tmp_path: Path) -> None:
    ledger = Ledger(f"sqlite:///{tmp_path / 'sub' / 'ledger.db'}")
    assert not (tmp_path / "sub").exists()
    assert ledger.last("shop") is None
    assert (tmp_path / "sub" / "ledger.db").exists()


def test_an_unreachable_server_is_worth_another_try_and_the_password_stays_secret() -> None:
    pytest.importorskip("psycopg", reason="the PostgreSQL driver psycopg is not installed")
    with pytest.raises(UnavailableError) as refused:
        Ledger("postgresql://user:s3cret@127.0.0.1:1/cdc").last("shop")
    text = f"{refused.value!s} {refused.value!r} {refused.value.document()}"
    assert "s3cret" not in text and "127.0.0.1" in text
    assert refused.value.__cause__ is None


def test_a_wrong_password_is_no_outage(request: pytest.FixtureRequest) -> None:
    pytest.importorskip("psycopg", reason="the PostgreSQL driver psycopg is not installed")
    server = request.getfixturevalue("postgres")
    wrong = server.url.replace(":cdc@", ":s3cret@")
    with pytest.raises(ConfigurationError, match="password authentication failed") as refused:
        Ledger(wrong).last("shop")
    assert "s3cret" not in f"{refused.value!s} {refused.value!r}"


def test_a_path_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UnavailableError, match="unable to open"):
        Ledger(f"sqlite:///{tmp_path / 'file' / 'ledger.db'}").last("shop")


def test_a_file_that_is_not_a_database_is_reported(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_text("this is not a database, but it is long enough to be read" * 50)
    with pytest.raises(CdcError, match="not a database"):
        Ledger(f"sqlite:///{tmp_path / 'ledger.db'}").last("shop")


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "sqlite:///file:x?mode=memory&uri=true"])
def test_a_ledger_in_memory_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="must be a file"):
        Ledger(url)


def test_other_databases_are_refused_with_the_known_ones() -> None:
    with pytest.raises(KnownValuesError, match=r"postgresql, sqlite"):
        Ledger("mysql://user:s3cret@host/db")


def test_text_that_is_no_url_is_refused_without_repeating_it() -> None:
    with pytest.raises(ConfigurationError) as refused:
        Ledger("user:s3cret@host")
    assert "s3cret" not in str(refused.value)


def test_tables_of_a_later_release_are_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    Ledger(url).last("shop")
    with sqlite3.connect(tmp_path / "ledger.db") as connection:
        connection.execute("UPDATE cdc_version SET version = 99")
    connection.close()
    with pytest.raises(ConfigurationError, match="version 99"):
        Ledger(url).last("shop")


def test_a_ledger_pickles_and_shows_no_password() -> None:
    ledger = Ledger("postgresql://user:s3cret@host/db")
    assert "s3cret" not in repr(ledger)
    assert repr(pickle.loads(pickle.dumps(ledger))) == repr(ledger)


def _damaged(url: str, damage: Callable[[bytes], bytes]) -> CdcError:
    """Return the error of a ledger with one planned batch whose file was damaged."""
    file = Path(url.removeprefix("sqlite:///"))
    ledger = Ledger(url)
    with ledger.lease("shop", "me") as lease:
        ledger.plan(lease, {"t": {0: 0}}, {"t": {0: 10}}, None)
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(CdcError) as refused:
        Ledger(url).batches("shop")
    return refused.value


def test_a_damaged_page_is_reported_with_a_code_and_is_not_tried_again(tmp_path: Path) -> None:
    """Every page but the first is overwritten, as a disk's fault or a copy cut short leaves it."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    error = _damaged(url, lambda content: content[:4096] + b"\xff" * (len(content) - 4096))
    assert isinstance(error, LedgerError) and error.code == "ledger.damaged"
    assert error.where == {"ledger": url} and "backup" in error.hint


def test_a_damaged_document_is_reported_without_repeating_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    error = _damaged(url, lambda content: content.replace(b'{"t":', b'{"s3:'))
    assert isinstance(error, LedgerError) and error.code == "ledger.damaged"
    assert "s3" not in str(error).removeprefix(url)


def test_a_table_that_somebody_removed_is_damage(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    ledger = Ledger(url)
    assert ledger.last("shop") is None
    with sqlite3.connect(tmp_path / "ledger.db") as connection:
        connection.execute("DROP TABLE cdc_batches")
    connection.close()
    with pytest.raises(LedgerError, match="no such table") as refused:
        ledger.last("shop")
    assert refused.value.code == "ledger.damaged"


@pytest.mark.parametrize("name", ["?shop.a\0b", "?shop.\ud800"], ids=["NUL", "lone surrogate"])
def test_a_name_that_the_database_cannot_hold_is_an_error_and_leaves_the_batch_open(url: str, name: str) -> None:
    """NUL is refused by PostgreSQL (its manual, 8.3), a lone surrogate has no UTF-8."""
    ledger = Ledger(url)
    with ledger.lease("shop", "me") as lease:
        batch = ledger.plan(lease, {"t": {0: 0}}, {"t": {0: 10}}, None)
        try:
            ledger.commit(lease, batch.seq, {"status": "done"}, {name: {"state": "ok"}})
        except LedgerError as error:
            assert error.code == "ledger.value_refused" and error.hint
            assert ledger.open("shop") == batch
        else:
            assert "\0" in name and url.startswith("sqlite")
            assert list(ledger.tables("shop")) == [name]


# ---- reading only


def _database_of(url: str) -> Database:
    return Database(url, read_only=True)


def _names(database: Database) -> list[str]:
    with database.reading() as connection:
        return sorted(connection.execute(select(schema.pipelines.c.name)).scalars())


def test_a_reader_sees_what_a_writer_commits_and_changes_nothing(url: str) -> None:
    with Ledger(url).lease("shop", "me"):
        reader = _database_of(url)
        assert _names(reader) == ["shop"]
        with pytest.raises(CdcError), reader.writing() as connection:
            connection.execute(insert(schema.pipelines).values(name="other", lease_token=0))
        with Ledger(url).lease("later", "me"):
            assert _names(reader) == ["later", "shop"]


def test_a_reader_creates_no_file_and_no_folder(tmp_path: Path) -> None:
    for file in ("ledger.db", "airflow/cdc/ledger.db"):
        with pytest.raises(LedgerError, match=r"ledger\.missing.*the first batch creates it"):
            _names(_database_of(f"sqlite:///{tmp_path / file}"))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_a_reader_may_not_look_into_is_no_missing_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", refused)  # root may look into every folder
    with pytest.raises(UnavailableError):
        _names(_database_of(f"sqlite:///{tmp_path / 'ledger.db'}"))


def test_a_reader_creates_no_tables(url: str) -> None:
    if url.startswith("sqlite"):
        Path(url.removeprefix("sqlite:///")).touch()
    for _ in range(2):
        with pytest.raises(LedgerError, match=r"ledger\.missing"):
            _names(_database_of(url))


def test_tables_of_another_release_are_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a b#c.db'}"
    Ledger(url).last("shop")
    reader = _database_of(url)
    for version in (schema.VERSION - 1, schema.VERSION):
        connection = sqlite3.connect(tmp_path / "a b#c.db")
        with connection:
            connection.execute("UPDATE cdc_version SET version = ?", (version,))
        connection.close()
        if version == schema.VERSION:
            assert _names(reader) == []
        else:
            with pytest.raises(LedgerError, match=rf"ledger\.version.* version {version}"):
                _names(reader)
            with pytest.raises(ConfigurationError, match="state an empty database"):
                Ledger(url).last("shop")


def test_a_reader_pickles_as_a_reader(url: str) -> None:
    Ledger(url).last("shop")
    reader = pickle.loads(pickle.dumps(_database_of(url)))
    with pytest.raises(CdcError), reader.writing() as connection:
        connection.execute(insert(schema.pipelines).values(name="other", lease_token=0))
