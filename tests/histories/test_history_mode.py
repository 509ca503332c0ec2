# SPDX-License-Identifier: Apache-2.0
"""Mode history: a row for each version of a row, with the span in which it was the row, wherever batches are cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.histories.debezium_records import row
from tests.histories.log import Log
from tests.histories.moded_table import (
    BEGIN,
    at_each_cut,
    gone,
    put,
    snapshot,
    statement,
    synced,
    truncated,
    versions_of,
)
from tests.histories.records import Record
from tests.histories.scripted import Script

RULE: dict[str, Any] = {"mode": "history"}


EVENTS: dict[str, tuple[list[Record], list[tuple[Any, ...]]]] = {
    "update, delete, insert again": (
        [put(40, 1, "x", "a"), gone(50, 1, "x"), put(60, 1, "c")],
        [(1, "a", 20, 40), (2, "b", 30, None), (1, "x", 40, 50), (1, "c", 60, None)],
    ),
    "a change that comes again": (
        [put(40, 1, "x", "a"), put(45, 3, "c"), put(40, 1, "x", "a"), put(50, 1, "y", "x")],
        [(1, "a", 20, 40), (2, "b", 30, None), (1, "x", 40, 50), (3, "c", 45, None), (1, "y", 50, None)],
    ),
    "truncate": (
        [gone(35, 1, "a"), put(38, 3, "c"), truncated(40), put(50, 1, "d"), truncated(60)],
        [(1, "a", 20, 35), (2, "b", 30, 40), (3, "c", 38, 40), (1, "d", 50, 60)],
    ),
    "a key that is given to another row": (
        [gone(40, 1, "a"), put(40, 3, "a"), put(50, 1, "n")],
        [(1, "a", 20, 40), (2, "b", 30, None), (3, "a", 40, None), (1, "n", 50, None)],
    ),
    "a new snapshot": (
        [put(35, 1, "x", "a"), gone(38, 2, "b"), put(40, 3, "c"), *snapshot(50, {1: "x", 4: "d"}), put(60, 3, "e")],
        [
            (1, "a", 20, 35),
            (2, "b", 30, 38),
            (1, "x", 35, None),
            (3, "c", 40, 50),
            (4, "d", 50, None),
            (3, "e", 60, None),
        ],
    ),
    "a column that is added": (
        [
            put(35, 1, "x", "a"),
            statement("ALTER TABLE shop.t ADD COLUMN n int NOT NULL DEFAULT 7", 40),
            put(50, 3, "c", n=8),
        ],
        [(1, "a", 7, 20, 35), (2, "b", 7, 30, None), (1, "x", 7, 35, None), (3, "c", 8, 50, None)],
    ),
    "a column that goes": (
        [put(35, 1, "x", "a"), statement("ALTER TABLE shop.t DROP COLUMN v", 40)],
        [(1, 20, 35), (2, 30, None), (1, 35, None)],
    ),
}


@pytest.mark.parametrize("name", EVENTS)
def test_each_event_does_the_same_wherever_a_batch_ends(name: str, log: Log, lake: Path) -> None:
    records, expected = EVENTS[name]
    records = [*BEGIN, *records]
    for script in at_each_cut(log, lake, records, RULE):
        assert sorted(versions_of(script), key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize("late", [25, 35, 45, 55, 65])
def test_a_change_that_comes_late_splits_the_version_that_it_falls_in(late: int, log: Log, lake: Path) -> None:
    records = [*BEGIN, put(40, 1, "x", "a"), gone(50, 1, "x"), put(60, 1, "c"), put(61, 5, "e")]
    change = row("u", "t", late, {"id": 1, "v": "late"}, key=("id",), partition=1, time=late)
    script = Script(log, lake / "late", tables={"shop.t": RULE}, policy={"verify": "off"})
    script.send(*records)
    script.sync()
    script.send(change)
    script.sync()
    actual = versions_of(script)
    log.partitions.clear()
    script = Script(log, lake / "once", tables={"shop.t": RULE}, policy={"verify": "off"})
    script.send(*records, change)
    script.sync()
    assert actual == versions_of(script)
    assert (1, "late") in {version[:2] for version in actual}


def test_a_row_that_leaves_the_filter_ends(log: Log, lake: Path) -> None:
    records = [*BEGIN, put(40, 1, None, "a"), put(50, 1, "c"), gone(60, 2, "b")]
    for script in at_each_cut(log, lake, records, {**RULE, "filter": "v IS NOT NULL"}):
        assert versions_of(script) == [(1, "a", 20, 40), (2, "b", 30, 60), (1, "c", 50, None)]


def test_a_table_without_a_key_is_parked(log: Log, lake: Path) -> None:
    create = statement("CREATE TABLE shop.t (id int, v varchar(20))", 10)
    script = synced(log, lake, [create, row("c", "t", 20, {"id": 1, "v": "a"}, time=20)], 1, RULE)
    (state,) = script.states.values()
    assert (state.state, "mode.needs_key" in state.reason) == ("parked", True)
