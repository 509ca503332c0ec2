# SPDX-License-Identifier: Apache-2.0
"""Mode append: one row for each change, wherever batches are cut."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from airflow_provider_cdc.core.apply import later_rows
from airflow_provider_cdc.core.apply.modes import append
from tests.histories.debezium_records import row
from tests.histories.log import Log
from tests.histories.moded_table import BEGIN, at_each_cut, gone, put, snapshot, statement, truncated
from tests.histories.records import Record
from tests.histories.scripted import Script

RULE: dict[str, Any] = {"mode": "append"}
FIRST_LETTER = {**RULE, "before": True, "columns": {"mask": {"v": "truncate(1)"}}}
FIRST = [(1, "a", "insert", 20), (2, "b", "insert", 30)]


def stored(script: Script) -> list[tuple[Any, ...]]:
    """Return the rows, with the place of each change in milliseconds, in its order; the table is as it should be."""
    assert script.states_of("shop", "t") == ["ok"], [state.reason for state in script.states.values()]
    table = DeltaTable(str(script.root / "shop" / "t")).to_pyarrow_table()
    table = table.sort_by([("_cdc_position", "ascending"), ("_cdc_op", "descending"), ("id", "ascending")])
    assert table.column_names[-3:] == ["_cdc_op", "_cdc_position", "_cdc_time"]
    rows = table.drop_columns(["_cdc_position", "_cdc_time"]).to_pylist()
    times = [int(time.timestamp() * 1000) for time in table.column("_cdc_time").to_pylist()]
    return [(*each.values(), time) for each, time in zip(rows, times, strict=True)]


EVENTS: dict[str, tuple[list[Record], list[tuple[Any, ...]]]] = {
    "update and delete": (
        [put(40, 1, "x", "a"), gone(50, 1, "x"), put(60, 1, "c")],
        [*FIRST, (1, "x", "update", 40), (1, "x", "delete", 50), (1, "c", "insert", 60)],
    ),
    "a change that comes again": (
        [put(40, 1, "x", "a"), put(45, 3, "c"), put(40, 1, "x", "a"), put(45, 3, "c"), put(50, 4, "d")],
        [*FIRST, (1, "x", "update", 40), (3, "c", "insert", 45), (4, "d", "insert", 50)],
    ),
    "truncate": (
        [truncated(40), put(50, 1, "c"), truncated(60)],
        [*FIRST, (None, None, "truncate", 40), (1, "c", "insert", 50), (None, None, "truncate", 60)],
    ),
    "a new snapshot": (
        [put(40, 3, "c"), *snapshot(50, {2: "b", 4: "d"}), put(60, 3, "e")],
        [
            *FIRST,
            (3, "c", "insert", 40),
            (None, None, "snapshot_begin", 50),
            (2, "b", "snapshot", 50),
            (4, "d", "snapshot", 50),
            (3, "e", "insert", 60),
        ],
    ),
    "a column that is added": (
        [statement("ALTER TABLE shop.t ADD COLUMN n int NOT NULL DEFAULT 7", 40), put(50, 3, "c", n=8)],
        [(1, "a", 7, "insert", 20), (2, "b", 7, "insert", 30), (3, "c", 8, "insert", 50)],
    ),
    "another key": (
        [
            statement("ALTER TABLE shop.t DROP PRIMARY KEY, MODIFY v varchar(20) NOT NULL, ADD PRIMARY KEY (v)", 40),
            row("u", "t", 50, {"id": 9, "v": "a"}, before={"id": 1, "v": "a"}, key=("v",), time=50),
        ],
        [*FIRST, (9, "a", "update", 50)],
    ),
}


@pytest.mark.parametrize("name", EVENTS)
def test_each_change_adds_a_row_wherever_a_batch_ends(name: str, log: Log, lake: Path) -> None:
    records, expected = EVENTS[name]
    records = [*BEGIN, *records]
    for script in at_each_cut(log, lake, records, RULE):
        assert stored(script) == expected


def test_a_change_that_comes_late_is_added_once(log: Log, lake: Path) -> None:
    script = Script(log, lake, tables={"shop.t": RULE})
    late = row("c", "t", 25, {"id": 7, "v": "late"}, key=("id",), partition=1, time=25)
    script.send(*BEGIN, put(40, 3, "c"))
    script.sync()
    script.send(late)
    script.sync()
    script.send(late)
    script.sync()
    expected = [(1, "a", "insert", 20), (7, "late", "insert", 25), (2, "b", "insert", 30), (3, "c", "insert", 40)]
    assert stored(script) == expected


def test_a_filter_chooses_changes_by_the_row_that_they_leave(log: Log, lake: Path) -> None:
    records = [*BEGIN, put(40, 1, None, "a"), gone(50, 1, None), gone(60, 2, "b")]
    for script in at_each_cut(log, lake, records, {**RULE, "filter": "v IS NOT NULL"}):
        assert stored(script) == [*FIRST, (2, "b", "delete", 60)]


def test_a_table_without_a_key_has_its_changes_too(log: Log, lake: Path) -> None:
    create = statement("CREATE TABLE shop.t (id int, v varchar(20))", 10)
    same = {"id": 1, "v": "a"}
    records = [create, *(row("c", "t", pos, same, time=pos) for pos in (20, 30))]
    records += [row("d", "t", 40, None, before=same, time=40)]
    for script in at_each_cut(log, lake, records, RULE):
        assert stored(script) == [(1, "a", "insert", 20), (1, "a", "insert", 30), (1, "a", "delete", 40)]


def test_the_row_before_a_delete_has_what_the_other_columns_have_of_a_column_that_is_added(
    log: Log, lake: Path
) -> None:
    add = "ALTER TABLE shop.t ADD COLUMN n int NOT NULL DEFAULT 7"
    records = [*BEGIN, put(35, 2, "x", "b"), gone(40, 1, "a"), statement("ALTER TABLE shop.t MODIFY v text", 50)]
    for script in at_each_cut(log, lake, [*records, statement(add, 60)], {**RULE, "before": True}):
        rows = DeltaTable(str(script.root / "shop" / "t")).to_pyarrow_table().sort_by("_cdc_position").to_pylist()
        assert [(row["_cdc_op"], row["n"], row["before_v"], row["before_n"]) for row in rows] == [
            ("insert", 7, None, None),
            ("insert", 7, None, None),
            ("update", 7, "b", 7),
            ("delete", 7, "a", 7),
        ]


def changed_columns(script: Script) -> list[tuple[Any, ...]]:
    """Return what each change was, and the other columns, of a table that is as it should be."""
    assert script.states_of("shop", "t") == ["ok"], [state.reason for state in script.states.values()]
    table = DeltaTable(str(script.root / "shop" / "t")).to_pyarrow_table().sort_by("_cdc_position")
    ops = table.column("_cdc_op").to_pylist()
    rows = table.drop_columns(["id", "before_id", "_cdc_op", "_cdc_position", "_cdc_time"]).to_pylist()
    return list(zip(ops, rows, strict=True))


TWO = [
    statement("CREATE TABLE shop.t (id int NOT NULL, v varchar(20), w varchar(20), PRIMARY KEY (id))", 10),
    row("c", "t", 20, {"id": 1, "v": "abc", "w": "xyz"}, key=("id",), time=20),
    row(
        "u", "t", 30, {"id": 1, "v": "def", "w": "xyz"}, before={"id": 1, "v": "abc", "w": "xyz"}, key=("id",), time=30
    ),
]


def test_the_row_before_a_change_is_masked_by_every_name_that_a_column_had(log: Log, lake: Path) -> None:
    swap = "ALTER TABLE shop.t MODIFY id bigint NOT NULL, CHANGE v w char(20), CHANGE w v char(20)"
    for script in at_each_cut(log, lake, [*TWO, statement(swap, 40)], FIRST_LETTER):
        assert changed_columns(script) == [
            ("insert", {"w": "a", "v": "x", "before_w": None, "before_v": None}),  # what had the name stays masked
            ("update", {"w": "d", "v": "x", "before_w": "a", "before_v": "x"}),
        ]


def test_a_masked_column_that_is_added_has_its_masked_default_before_a_change(log: Log, lake: Path) -> None:
    drop = "ALTER TABLE shop.t DROP COLUMN v, DROP COLUMN w"
    add = "ALTER TABLE shop.t ADD COLUMN v varchar(9) NOT NULL DEFAULT 'nine'"
    for script in at_each_cut(log, lake, [*TWO, statement(drop, 40), statement(add, 50)], FIRST_LETTER):
        rows = [(op, columns["v"], columns["before_v"]) for op, columns in changed_columns(script)]
        assert rows == [("insert", "n", None), ("update", "n", "n")], changed_columns(script)


def test_rows_before_changes_are_read_from_the_log_where_the_feed_did_not_have_them(log: Log, lake: Path) -> None:
    script = Script(log, lake, tables={"shop.t": RULE}, policy={"on_rule_change": "apply"})
    script.send(*TWO)
    script.sync()
    script.tables = {"shop.t": {**RULE, "before": True}}
    script.send(row("d", "t", 40, None, before={"id": 1, "v": "def", "w": "xyz"}, key=("id",), time=40))
    script.sync()
    assert [(op, columns["v"], columns["before_v"]) for op, columns in changed_columns(script)] == [
        ("insert", "abc", None),
        ("update", "def", "abc"),
        ("delete", "def", "def"),
    ]


def test_a_feed_that_is_to_be_a_mirror_is_made_again_and_back(log: Log, lake: Path) -> None:
    script = Script(log, lake, tables={"shop.t": RULE})
    script.send(*BEGIN, gone(40, 1, "a"))
    script.sync()
    script.tables, script.policy = {}, {"on_rule_change": "apply"}
    script.send(put(50, 3, "c"))
    script.sync()
    table = DeltaTable(str(script.root / "shop" / "t")).to_pyarrow_table().sort_by("id")
    assert table.to_pylist() == [{"id": 2, "v": "b"}, {"id": 3, "v": "c"}]
    script.tables = {"shop.t": RULE}
    script.send(put(60, 4, "d"))
    script.sync()
    assert stored(script) == [*FIRST, (1, "a", "delete", 40), (3, "c", "insert", 50), (4, "d", "insert", 60)]


def test_rows_that_are_too_many_for_memory_are_typed_while_they_are_written(log: Log, lake: Path) -> None:
    records = [BEGIN[0], *(put(20 + number, number, "v" * 100) for number in range(200)), truncated(900)]
    script = Script(log, lake, tables={"shop.t": RULE}, policy={"apply_bytes": 1000})
    script.send(*records)
    with pytest.MonkeyPatch.context() as patch:
        typed = list[int]()
        real = later_rows.typed_later
        patch.setattr(append, "typed_later", lambda *args, **named: typed.append(1) or real(*args, **named))
        script.sync()
    assert typed, "not all at once"
    assert Counter(row[2] for row in stored(script)) == {"insert": 200, "truncate": 1}
