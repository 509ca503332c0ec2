# SPDX-License-Identifier: Apache-2.0
"""A table for which the store fails again and again does not stop the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_provider_cdc.core.errors import UnavailableError
from spark_jobs.tasks.apply import TableApply
from tests.histories.debezium_records import TOPIC
from tests.histories.log import Log
from tests.histories.open_records import create, insert, outcome
from tests.histories.scripted import Script

TABLES = [f"t{number}" for number in range(8)]


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return what lets the store fail for some tables, from then on."""
    run = TableApply.run

    def fail(*tables: str, code: str = "sink.unavailable") -> None:
        def failing(self: TableApply) -> object:
            if self.task.table in tables:
                raise UnavailableError(code, "the store failed")
            return run(self)

        monkeypatch.setattr(TableApply, "run", failing)

    return fail


def _script(log: Log, lake: Path) -> Script:
    script = Script(log, lake, schema_topic=TOPIC)
    for number, table in enumerate(TABLES):
        script.send(create(table, 100 + number), insert(table, 1, 200 + number))
    return script


def _attempts(script: Script) -> int:
    """Return how many attempts at a batch failed before it was carried out."""
    for attempt in range(6):
        try:
            script.sync()
        except UnavailableError:
            continue
        return attempt
    raise AssertionError("the batch is never carried out")


def test_a_table_that_fails_twice_in_the_same_way_is_parked(log: Log, lake: Path, fail: Callable[..., None]) -> None:
    script = _script(log, lake)
    fail("t3")
    assert _attempts(script) == 1
    assert outcome(script) == {**dict.fromkeys(TABLES, "ok"), "t3": "parked"}
    (state,) = [state for state in script.states.values() if state.table == "t3"]
    assert state.code == "sink.unavailable" and "the store failed" in state.reason
    # it stays parked without a second attempt, and goes on with the first batch that reaches it
    script.send(insert("t1", 2, 300))
    assert _attempts(script) == 0
    fail()
    script.send(insert("t1", 3, 310))
    assert _attempts(script) == 0
    assert outcome(script) == dict.fromkeys(TABLES, "ok")
    assert script.rows("shop", "t3") == {(1, "v1"): 1}


def test_many_tables_that_fail_do_not_keep_the_others_from_being_tried(
    log: Log, lake: Path, fail: Callable[..., None]
) -> None:
    script = _script(log, lake)
    fail(*TABLES[:5])
    assert _attempts(script) <= 4
    assert outcome(script) == {table: "parked" if table in TABLES[:5] else "ok" for table in TABLES}


def test_a_table_that_fails_otherwise_is_no_repeat(log: Log, lake: Path, fail: Callable[..., None]) -> None:
    script = _script(log, lake)
    fail("t3")
    with pytest.raises(UnavailableError):
        script.sync()
    fail("t3", code="sink.commit_unavailable")
    with pytest.raises(UnavailableError):
        script.sync()
    fail()
    script.sync()
    assert outcome(script) == dict.fromkeys(TABLES, "ok")


def test_a_store_that_is_away_parks_no_table(log: Log, lake: Path, fail: Callable[..., None]) -> None:
    script = _script(log, lake)
    fail(*TABLES)
    for _ in range(3):
        with pytest.raises(UnavailableError):
            script.sync()
    fail()
    script.sync()
    assert outcome(script) == dict.fromkeys(TABLES, "ok")
