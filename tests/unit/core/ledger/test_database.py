"""Databases that are not there, not ours, or not reachable; never with the password in the answer."""

from __future__ import annotations

import pickle
import sqlite3
from pathlib import Path

import pytest

from airflow_provider_cdc.core.errors import CdcError, ConfigurationError, KnownValuesError, UnavailableError
from airflow_provider_cdc.core.ledger import Ledger


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


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UnavailableError, match="unable to open"):
        Ledger(f"sqlite:///{tmp_path / 'file' / 'ledger.db'}").last("shop")


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_text("this is no database, but it is long enough to be looked at" * 50)
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
