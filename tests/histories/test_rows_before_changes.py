# SPDX-License-Identifier: Apache-2.0
"""Mode append with ``before``: each change has the row before it, too, wherever batches are cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.histories.debezium_records import row
from tests.histories.log import Log
from tests.histories.moded_table import BEGIN, at_each_cut, gone, put, statement, truncated
from tests.histories.records import Record
from tests.histories.scripted import Script

RULE: dict[str, Any] = {"mode": "append", "before": True}
FIRST = [("insert", 1, "a", None, None), ("insert", 2, "b", None, None)]


def stored(script: Script) -> list[tuple[Any, ...]]:
    """Return operation, row and row before of each change, in the order of the source."""
    assert script.states_of("shop", "t") == ["ok"], [state.reason for state in script.states.values()]
    table = DeltaTable(str(script.root / "shop" / "t")).to_pyarrow_table().sort_by("_cdc_position")
    return [
        (one.pop("_cdc_op"), *one.values()) for one in table.drop_columns(["_cdc_position", "_cdc_time"]).to_pylist()
    ]


EVENTS: dict[str, tuple[list[Record], list[tuple[Any, ...]]]] = {
    "update, delete, truncate": (
        [put(40, 1, "x", "a"), gone(50, 1, "x"), truncated(60), put(70, 1, None)],
        [
            *FIRST,
            ("update", 1, "x", 1, "a"),
            ("delete", 1, "x", 1, "x"),
            ("truncate", None, None, None, None),
            ("insert", 1, None, None, None),
        ],
    ),
    "a column is added, and one gets another name": (
        [
            put(40, 1, "x", "a"),
            statement("ALTER TABLE shop.t ADD COLUMN n int", 50),
            statement("ALTER TABLE shop.t RENAME COLUMN v TO w", 55),
            row("u", "t", 60, {"id": 1, "w": "y", "n": 7}, before={"id": 1, "w": "x", "n": None}, key=("id",), time=60),
        ],
        [
            ("insert", 1, "a", None, None, None, None),
            ("insert", 2, "b", None, None, None, None),
            ("update", 1, "x", None, 1, "a", None),
            ("update", 1, "y", 7, 1, "x", None),
        ],
    ),
    "another type, and no NULL": (
        [put(40, 3, "3"), put(50, 3, "4", "3"), statement("ALTER TABLE shop.t MODIFY v varchar(1) NOT NULL", 60)],
        [*FIRST, ("insert", 3, "3", None, None), ("update", 3, "4", 3, "3")],
    ),
    "a column goes": (
        [put(40, 1, "x", "a"), statement("ALTER TABLE shop.t DROP COLUMN v", 50)],
        [("insert", 1, None), ("insert", 2, None), ("update", 1, 1)],
    ),
}


@pytest.mark.parametrize("name", EVENTS)
def test_each_change_has_the_row_before_it(name: str, log: Log, lake: Path) -> None:
    records, expected = EVENTS[name]
    for script in at_each_cut(log, lake, [*BEGIN, *records], RULE):
        assert stored(script) == expected


def test_rules_for_columns_count_for_the_row_before_too(log: Log, lake: Path) -> None:
    rule = {**RULE, "columns": {"mask": {"v": "truncate(1)"}, "rename": {"v": "w"}}, "filter": "v <> 'no'"}
    script = Script(log, lake, tables={"shop.t": rule})
    script.send(*BEGIN, put(40, 1, "xy", "ab"), put(50, 2, "no", "b"), put(60, 2, "yes", "no"))
    script.sync()
    rows = DeltaTable(str(script.root / "shop" / "t")).to_pyarrow_table().to_pylist()
    updates = sorted(
        (one["id"], one["w"], one["before_id"], one["before_w"]) for one in rows if one["_cdc_op"] == "update"
    )
    assert updates == [(1, "x", 1, "a"), (2, "y", 2, "n")]


def test_an_update_without_its_row_before_is_put_aside(log: Log, lake: Path) -> None:
    script = Script(log, lake, tables={"shop.t": RULE}, policy={"quarantine_limit": 5})
    script.send(*BEGIN, row("u", "t", 40, {"id": 1, "v": "x"}, key=("id",), time=40), gone(50, 1, "x"))
    script.sync()
    assert stored(script) == [*FIRST, ("delete", 1, "x", 1, "x")]
    (entry,) = script.open_records()
    assert "image_missing" in str(entry)


def test_a_name_that_is_taken_parks_the_table(log: Log, lake: Path) -> None:
    script = Script(log, lake, tables={"shop.t": RULE})
    script.send(statement("CREATE TABLE shop.t (id int PRIMARY KEY, before_id int)", 10))
    script.send(row("c", "t", 20, {"id": 1, "before_id": 2}, key=("id",), time=20))
    script.sync()
    (state,) = script.states.values()
    assert state.code == "shape.name_taken"
