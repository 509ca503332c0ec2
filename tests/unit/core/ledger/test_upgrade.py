# SPDX-License-Identifier: Apache-2.0
"""A ledger of an earlier version is upgraded in place; ``version_<n>`` holds the tables as that version made them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, inspect, text

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.ledger import Ledger, ProgressSample, TaskTry

NOON = "2026-11-21T12:00:00.000000Z"
_VERSIONS = {
    1: "INSERT INTO cdc_version (version) VALUES (1)",
    2: "INSERT INTO cdc_version (version, ledger_id) VALUES (2, '0123456789abcdef0123456789abcdef')",
    3: "INSERT INTO cdc_version (version, ledger_id) VALUES (3, '0123456789abcdef0123456789abcdef')",
    4: "INSERT INTO cdc_version (version, ledger_id) VALUES (4, '0123456789abcdef0123456789abcdef')",
    5: "INSERT INTO cdc_version (version, ledger_id) VALUES (5, '0123456789abcdef0123456789abcdef')",
}
_ROWS = [
    "INSERT INTO cdc_pipelines (name, fingerprint, lease_token) VALUES ('shop', 'f', 7)",
    'INSERT INTO cdc_batches (pipeline, seq, kind, status, start, "end", until, planned_at, committed_at, result)'
    """ VALUES ('shop', 1, 'sync', 'committed', '{"t": {"0": 0}}', '{"t": {"0": 5}}', :noon, :noon, :noon,"""
    """ '{"r": 5}')""",
    'INSERT INTO cdc_batches (pipeline, seq, kind, status, start, "end", planned_at)'
    """ VALUES ('shop', 2, 'sync', 'planned', '{"t": {"0": 5}}', '{"t": {"0": 9}}', :noon)""",
    """INSERT INTO cdc_tables (pipeline, table_id, seq, document) VALUES ('shop', 'a.b', 1, '{"v": 1}')""",
    """INSERT INTO cdc_tables (pipeline, table_id, seq, document) VALUES ('shop', 'a.c', 1, '{"state": "parked"}')""",
]


@pytest.fixture(params=_VERSIONS)
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def old(url: str, version: int) -> str:
    """Return a database that an earlier version made, with a batch committed and one planned."""
    folder = Path(__file__).parent / f"version_{version}"

    def fill(connection: Connection) -> None:
        statements = (folder / f"{connection.dialect.name}.sql").read_text().split(";")
        for statement in [*(s for s in statements if s.strip()), _VERSIONS[version], *_ROWS]:
            connection.execute(text(statement), {"noon": NOON} if ":noon" in statement else {})

    _on(url, fill)
    return url


def _on(url: str, work: Callable[[Connection], None]) -> None:
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        work(connection)
    engine.dispose()


def test_what_the_earlier_version_recorded_is_kept(old: str, version: int) -> None:
    ledger = Ledger(old)
    first, second = ledger.batches("shop")
    assert (first.seq, first.start, first.end, first.result) == (1, {"t": {0: 0}}, {"t": {0: 5}}, {"r": 5})
    assert first.until == first.committed_at == datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert (first.topics, first.lost, ledger.announced("shop")) == (None, [], 0 if version >= 3 else 1)
    assert (first.task, first.engine, first.application_id, first.started_at, first.cut_at) == (None,) * 5
    assert ledger.open("shop") == second and second.end == {"t": {0: 9}} and second.result is None
    assert ledger.tables("shop") == {"a.b": {"v": 1}, "a.c": {"state": "parked"}}


def test_an_upgraded_ledger_is_worked_with_as_a_new_one(old: str) -> None:
    ledger = Ledger(old)
    owner = TaskTry("shop", "r", "sync")
    with ledger.lease("shop", owner, 30) as lease:
        assert lease.token == 8
        ledger.abandon(lease, 2)
        batch = ledger.plan(lease, {"t": {0: 7}}, {"t": {0: 9}}, None, topics={"t": "AbC"})
        ledger.commit(lease, batch.seq, {"r": 2})
    assert [b.status for b in Ledger(old).batches("shop")] == ["committed", "abandoned", "committed"]
    assert Ledger(old).batches("shop")[-1].topics == {"t": "AbC"}
    assert Ledger(old).batches("shop")[-1].task == owner
    sample = ProgressSample(datetime(2026, 11, 21, 12, tzinfo=UTC), lag_records=3)
    ledger.record_progress("shop", sample)
    assert Ledger(old).progress("shop") == [sample]


def test_the_id_is_made_once(old: str, version: int) -> None:
    first = Ledger(old).id
    assert len(first) == 32 and Ledger(old).id == first
    assert (first == "0123456789abcdef0123456789abcdef") == (version > 1)


def test_the_states_of_tables_are_indexed(old: str) -> None:
    Ledger(old).last("shop")

    def look(connection: Connection) -> None:
        states = connection.execute(text("SELECT table_id, state FROM cdc_tables ORDER BY table_id")).all()
        assert states == [("a.b", None), ("a.c", "parked")]
        assert [index["name"] for index in inspect(connection).get_indexes("cdc_tables")] == ["cdc_tables_state"]

    _on(old, look)


def test_many_that_start_at_once_upgrade_once(old: str) -> None:
    ids: list[str] = []
    threads = [threading.Thread(target=lambda: ids.append(Ledger(old).id)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 8 and len(set(ids)) == 1
    assert len(Ledger(old).batches("shop")) == 2


def test_an_upgrade_that_fails_leaves_the_earlier_version(
    old: str, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_provider_cdc.core.ledger import database

    def fail(connection: Connection) -> None:
        raise ConfigurationError(["the power went"])

    with monkeypatch.context() as patch:
        patch.setattr(database, "_mark", fail)
        with pytest.raises(ConfigurationError, match="the power went"):
            Ledger(old).last("shop")

    def look(connection: Connection) -> None:
        assert connection.execute(text("SELECT version FROM cdc_version")).scalars().all() == [version]
        assert connection.execute(text("SELECT count(*) FROM cdc_batches")).scalar() == 2

    _on(old, look)
    assert len(Ledger(old).batches("shop")) == 2


def test_a_batch_that_is_not_known_as_a_status_is_refused_by_the_database(old: str) -> None:
    Ledger(old).last("shop")
    with pytest.raises(Exception, match="cdc_batches_status"):
        _on(old, lambda connection: connection.execute(text("UPDATE cdc_batches SET status = 'x'")))  # type: ignore[arg-type,return-value]
