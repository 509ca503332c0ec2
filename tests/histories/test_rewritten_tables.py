# SPDX-License-Identifier: Apache-2.0
"""Compare changes with the rows that they find in a batch that makes the table again, too."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.documents import Proof, TableState
from spark_jobs.sinks.registry import open_sink
from tests.histories.debezium_records import ddl, row
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script
from tests.sinks.kinds import options_of

CREATE = ddl(
    "CREATE TABLE t (id INT PRIMARY KEY, v INT)", 100, table="t", columns={"id": "int", "v": "int"}, key=("id",)
)
TO_TEXT = ddl("ALTER TABLE t MODIFY v VARCHAR(20)", 200, table="t", columns={"id": "int", "v": "varchar"}, key=("id",))
NEW_KEY = ddl(
    "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (v)", 200, table="t", columns={"id": "int", "v": "int"}, key=("v",)
)


def insert(pos: int, key: int, value: Any) -> Record:
    return row("c", "t", pos, {"id": key, "v": value}, key=("id",))


def update(pos: int, key: int, before: Any, after: Any) -> Record:
    return row("u", "t", pos, {"id": key, "v": after}, before={"id": key, "v": before}, key=("id",))


@pytest.fixture(params=["delta", "iceberg"])
def script(request: pytest.FixtureRequest, log: Log, tmp_path: Path) -> Script:
    """Return a pipeline that has synced a table with three rows."""
    script = Script(log, tmp_path, sink_type=request.param)
    script.sink_options = options_of("iceberg", tmp_path) if request.param == "iceberg" else {}
    script.send(CREATE, *(insert(100 + key, key, key) for key in (1, 2, 3)))
    script.sync()
    return script


def state_of(script: Script) -> TableState:
    (state,) = script.states.values()
    return state


def rows_of(script: Script) -> Counter[tuple[Any, ...]]:
    stored = open_sink(script._job({}), {}).open(f"{script.root}/{state_of(script).location}").rows()
    return Counter((one["id"], one["v"]) for one in stored.to_pylist())


def test_changes_on_both_sides_of_an_alter_agree_with_what_they_find(script: Script) -> None:
    script.send(update(150, 1, 1, 10), TO_TEXT, update(250, 1, "10", "11"), update(260, 2, "2", "x"))
    script.sync()
    state = state_of(script)
    assert state.proof == Proof(state.applied_position, agreed_rows=3)
    assert rows_of(script) == {(1, "11"): 1, (2, "x"): 1, (3, "3"): 1}


@pytest.mark.parametrize(
    ("records", "kind"),
    [
        ((update(150, 2, -2, 20), TO_TEXT), "row_differs"),
        ((TO_TEXT, update(250, 2, "-2", "20")), "row_differs"),
        ((update(150, 2, 2, 20), TO_TEXT, update(250, 2, "2", "21")), "row_differs"),
        ((TO_TEXT, update(250, 9, "9", "x")), "key_missing"),
        ((TO_TEXT, insert(250, 3, "3")), "key_there"),
        ((insert(150, 4, 4), TO_TEXT, insert(250, 4, "4")), "key_there"),
        ((NEW_KEY, row("u", "t", 250, {"id": 9, "v": 2}, before={"id": 7, "v": 2}, key=("v",))), "row_differs"),
    ],
)
def test_a_change_that_does_not_find_what_it_says_parks_the_table(
    script: Script, records: tuple[Record, ...], kind: str
) -> None:
    before = rows_of(script)
    script.send(*records)
    (line,) = script.sync().tables
    state = state_of(script)
    assert (state.state, state.code) == ("parked", "apply.contradicted")
    assert line.contradictions == {kind: 1}
    assert rows_of(script) == before


def test_it_is_counted_where_the_policy_says_so(script: Script) -> None:
    script.policy["on_contradiction"] = "count"
    until = state_of(script).applied_position
    script.send(TO_TEXT, update(250, 2, "-2", "20"), update(260, 1, "1", "10"))
    (line,) = script.sync().tables
    state = state_of(script)
    assert (state.state, line.contradictions) == ("ok", {"row_differs": 1})
    assert state.proof == Proof(until, agreed_rows=1, contradictions={"row_differs": 1}, contradicted=True)
    assert rows_of(script) == {(1, "10"): 1, (2, "20"): 1, (3, "3"): 1}
