# SPDX-License-Identifier: Apache-2.0
"""Mode history with ``track``: only another value of some columns makes a version, wherever batches are cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.histories.debezium_records import row
from tests.histories.log import Log
from tests.histories.moded_table import at_each_cut, gone, snapshot, statement, versions_of
from tests.histories.records import Record
from tests.histories.scripted import Script

CREATE = statement("CREATE TABLE shop.t (id int NOT NULL, v varchar(20), n int, w int, PRIMARY KEY (id))", 10)
RULE: dict[str, Any] = {"mode": "history", "track": ["v", "w*"]}


def put(pos: int, v: str, n: int, w: int, op: str = "u", **more: Any) -> Record:
    return row(op, "t", pos, {"id": 1, "v": v, "n": n, "w": w}, key=("id",), time=pos, **more)


BEGIN = [CREATE, put(20, "a", 1, 0, "c")]
EVENTS: dict[str, tuple[list[Record], list[tuple[Any, ...]]]] = {
    "other columns change, then a tracked one": (
        [put(30, "a", 2, 0), put(40, "x", 3, 0), put(50, "x", 4, 0), put(60, "x", 4, 1)],
        [(1, "a", 2, 0, 20, 40), (1, "x", 4, 0, 40, 60), (1, "x", 4, 1, 60, None)],
    ),
    "a row that comes back": (
        [gone(30, 1, "a", n=1, w=0), put(40, "a", 2, 0, "c"), put(50, "a", 3, 0)],
        [(1, "a", 1, 0, 20, 30), (1, "a", 3, 0, 40, None)],
    ),
    "a change that comes again": (
        [put(30, "a", 2, 0), put(40, "x", 3, 0), put(30, "a", 2, 0), put(50, "x", 4, 0)],
        [(1, "a", 2, 0, 20, 40), (1, "x", 4, 0, 40, None)],
    ),
    "a tracked column goes": (
        [put(30, "a", 1, 5), statement("ALTER TABLE shop.t DROP COLUMN w", 40)],
        [(1, "a", 1, 20, 30), (1, "a", 1, 30, None)],
    ),
    "a column gets a name that is tracked": (
        [put(30, "a", 2, 0), statement("ALTER TABLE shop.t RENAME COLUMN n TO w2", 40)],
        [(1, "a", 2, 0, 20, None)],
    ),
    "a new snapshot": (
        [*snapshot(50, {1: "a"}, {"id": "int", "v": "varchar", "n": "int", "w": "int"}, n=2, w=0)],
        [(1, "a", 2, 0, 20, None)],
    ),
}


@pytest.mark.parametrize("name", EVENTS)
def test_only_tracked_columns_make_versions(name: str, log: Log, lake: Path) -> None:
    records, expected = EVENTS[name]
    for script in at_each_cut(log, lake, [*BEGIN, *records], RULE):
        assert versions_of(script) == expected


LATE = {
    "nothing tracked": (put(35, "a", 9, 0, partition=1), [(1, "a", 9, 0, 20, 40), (1, "x", 4, 0, 40, None)]),
    "a tracked column": (
        put(45, "y", 9, 0, partition=1),
        [(1, "a", 2, 0, 20, 40), (1, "x", 3, 0, 40, 45), (1, "y", 9, 0, 45, 50), (1, "x", 4, 0, 50, None)],
    ),
}


@pytest.mark.parametrize("batches", [3, 4])
@pytest.mark.parametrize(("late", "expected"), LATE.values(), ids=LATE)
def test_a_late_change_is_as_one_in_time(
    late: Record, expected: list[tuple[Any, ...]], batches: int, log: Log, lake: Path
) -> None:
    script = Script(log, lake, tables={"shop.t": RULE})
    for some in ([*BEGIN, put(30, "a", 2, 0)], [put(40, "x", 3, 0), put(50, "x", 4, 0)], [late], [late])[:batches]:
        script.send(*some)
        script.sync()
    assert versions_of(script) == expected


def test_a_change_from_before_a_tracked_column_went_counts_what_it_was(log: Log, lake: Path) -> None:
    script = Script(log, lake, tables={"shop.t": RULE})
    script.send(*BEGIN, statement("ALTER TABLE shop.t DROP COLUMN w", 40))
    script.sync()
    script.send(put(30, "a", 1, 5))
    script.sync()
    assert versions_of(script) == [(1, "a", 1, 20, 30), (1, "a", 1, 30, None)]


def test_a_name_that_the_table_never_had_parks_it(log: Log, lake: Path) -> None:
    script = Script(log, lake, tables={"shop.t": {"mode": "history", "track": ["v", "vv"]}})
    script.send(*BEGIN)
    script.sync()
    (state,) = script.states.values()
    assert (state.state, state.code) == ("parked", "shape.column_unknown")
    assert "vv" in state.reason
