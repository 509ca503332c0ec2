# SPDX-License-Identifier: Apache-2.0
"""Mode soft_delete: what each event does to the rows that stay, wherever batches are cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.histories import canal_rows as clocked
from tests.histories.debezium_records import row
from tests.histories.log import Log
from tests.histories.moded_table import BEGIN, at, at_each_cut, gone, put, snapshot, statement, synced, truncated
from tests.histories.records import Record
from tests.histories.scripted import Script

RULE: dict[str, Any] = {"mode": "soft_delete"}


def stored(script: Script) -> dict[int, tuple[Any, ...]]:
    """Return the other columns of each row, by its key; the table is as it should be."""
    assert script.states_of("shop", "t") == ["ok"], [state.reason for state in script.states.values()]
    table = DeltaTable(str(script.root / "shop" / "t")).to_pyarrow_table()
    assert table.column_names[-2:] == ["_cdc_deleted", "_cdc_deleted_at"]
    rows = [tuple(each.values()) for each in table.to_pylist()]
    assert len({each[0] for each in rows}) == len(rows)
    return {each[0]: each[1:] for each in rows}


THERE = (False, None)
EVENTS: dict[str, tuple[list[Record], dict[int, tuple[Any, ...]]]] = {
    "delete": ([gone(40, 1, "a")], {1: ("a", True, at(40)), 2: ("b", *THERE)}),
    "delete after an update": (
        [put(40, 1, "x", "a"), gone(50, 1, "x")],
        {1: ("x", True, at(50)), 2: ("b", *THERE)},
    ),
    "insert of a deleted key": ([gone(40, 1, "a"), put(50, 1, "c")], {1: ("c", *THERE), 2: ("b", *THERE)}),
    "deleted twice": (
        [gone(40, 1, "a"), put(50, 1, "c"), gone(60, 1, "c")],
        {1: ("c", True, at(60)), 2: ("b", *THERE)},
    ),
    "a delete that comes again": (
        [gone(40, 1, "a"), put(45, 2, "y", "b"), gone(40, 1, "a")],
        {1: ("a", True, at(40)), 2: ("y", *THERE)},
    ),
    "key change": (
        [gone(40, 1, "a"), put(40, 3, "z")],
        {1: ("a", True, at(40)), 2: ("b", *THERE), 3: ("z", *THERE)},
    ),
    "truncate": (
        [gone(40, 1, "a"), truncated(50), put(60, 2, "c"), put(70, 3, "d")],
        {1: ("a", True, at(40)), 2: ("c", *THERE), 3: ("d", *THERE)},
    ),
    "truncate of rows of the same batch": (
        [put(40, 3, "d"), truncated(50), put(60, 4, "e"), truncated(70)],
        {
            1: ("a", True, at(50)),
            2: ("b", True, at(50)),
            3: ("d", True, at(50)),
            4: ("e", True, at(70)),
        },
    ),
    "a new snapshot": (
        [gone(40, 1, "a"), put(45, 3, "c"), *snapshot(50, {2: "b", 4: "d"}), gone(60, 4, "d"), put(70, 3, "e")],
        {1: ("a", True, at(40)), 2: ("b", *THERE), 3: ("e", *THERE), 4: ("d", True, at(60))},
    ),
    "a column that is added": (
        [
            gone(40, 1, "a"),
            statement("ALTER TABLE shop.t ADD COLUMN n int NOT NULL DEFAULT 7", 50),
            put(60, 3, "c", n=8),
        ],
        {1: ("a", 7, True, at(40)), 2: ("b", 7, *THERE), 3: ("c", 8, *THERE)},
    ),
    "a column that changes its type": (
        [put(40, 3, "3"), gone(50, 3, "3"), statement("ALTER TABLE shop.t MODIFY v varchar(20) NOT NULL", 60)],
        {1: ("a", *THERE), 2: ("b", *THERE), 3: ("3", True, at(50))},
    ),
    "a key that no other type has": (
        [
            *(put(40, -1, "x"), gone(50, -1, "x"), put(60, 0, "y")),
            statement("ALTER TABLE shop.t MODIFY id int unsigned NOT NULL", 70),
        ],
        {0: ("y", *THERE), 1: ("a", *THERE), 2: ("b", *THERE)},
    ),
    "a column that goes": (
        [gone(40, 1, "a"), statement("ALTER TABLE shop.t DROP COLUMN v", 50)],
        {1: (True, at(40)), 2: THERE},
    ),
}


@pytest.mark.parametrize("name", EVENTS)
def test_each_event_does_the_same_wherever_a_batch_ends(name: str, log: Log, lake: Path) -> None:
    records, expected = EVENTS[name]
    records = [*BEGIN, *records]
    for script in at_each_cut(log, lake, records, RULE):
        assert stored(script) == expected


def test_a_row_that_leaves_the_filter_is_flagged_as_it_was_when_it_passed(log: Log, lake: Path) -> None:
    records = [*BEGIN, put(40, 1, None, "a"), put(50, 3, None), gone(60, 1, None), gone(70, 3, None), gone(80, 2, "b")]
    rule = {**RULE, "filter": "v IS NOT NULL"}
    for script in at_each_cut(log, lake, records, rule):
        assert stored(script) == {1: ("a", True, at(40)), 2: ("b", True, at(80))}


def test_a_row_that_passes_the_filter_again_is_there_again(log: Log, lake: Path) -> None:
    records = [*BEGIN, put(40, 1, None, "a"), row("u", "t", 50, {"id": 1, "v": "c"}, key=("id",), time=50)]
    for script in at_each_cut(log, lake, records, {**RULE, "filter": "v IS NOT NULL"}):
        assert stored(script) == {1: ("c", *THERE), 2: ("b", *THERE)}


def test_a_new_key_leaves_the_flagged_rows_that_can_have_it(log: Log, lake: Path) -> None:
    create = "CREATE TABLE shop.t (id int NOT NULL, v varchar(20), PRIMARY KEY (id))"
    alter = "ALTER TABLE shop.t DROP PRIMARY KEY, MODIFY v varchar(20) NOT NULL, ADD PRIMARY KEY (v)"
    records = [
        statement(create, 10),
        *(put(20 + key, key, value) for key, value in enumerate(["a", "a", "b", None, "c"], 1)),
        gone(40, 1, "a"),  # its new key is that of a row which is there
        gone(41, 3, "b"),
        gone(42, 4, None),  # it gets that of its type, as rows do without strict mode
        statement(alter, 50),
        row("c", "t", 60, {"id": 6, "v": "d"}, key=("v",), time=60),
    ]
    for script in at_each_cut(log, lake, records, RULE):
        rows = DeltaTable(str(script.root / "shop" / "t")).to_pyarrow_table().to_pylist()
        there = {(each["id"], each["v"], each["_cdc_deleted"]) for each in rows}
        assert there == {(2, "a", False), (3, "b", True), (4, "", True), (5, "c", False), (6, "d", False)}


def test_a_table_without_a_key_waits_until_it_has_another_mode(log: Log, lake: Path) -> None:
    create = statement("CREATE TABLE shop.t (id int, v varchar(20))", 10)
    script = synced(log, lake, [create, row("c", "t", 20, {"id": 1, "v": "a"}, time=20)], 1, RULE)
    assert script.states_of("shop", "t") == ["parked"]
    (state,) = script.states.values()
    assert "mode.needs_key" in state.reason
    script.tables = {}
    script.send(row("c", "t", 30, {"id": 2, "v": "b"}, time=30))
    script.sync()
    assert script.states_of("shop", "t") == ["ok"]


def test_a_mirror_that_is_to_keep_deleted_rows_is_made_again(log: Log, lake: Path) -> None:
    script = Script(log, lake)
    script.send(*BEGIN, gone(40, 1, "a"))
    script.sync()
    script.tables, script.policy = {"shop.t": RULE}, {"on_rule_change": "apply"}
    script.send(put(50, 3, "c"))
    script.sync()
    assert stored(script) == {1: ("a", True, at(40)), 2: ("b", *THERE), 3: ("c", *THERE)}


def test_a_column_of_the_source_with_the_flags_name_parks_the_table(log: Log, lake: Path) -> None:
    create = statement("CREATE TABLE shop.t (id int NOT NULL, _CDC_deleted int, PRIMARY KEY (id))", 10)
    script = synced(log, lake, [create, row("c", "t", 20, {"id": 1, "_CDC_deleted": 1}, key=("id",), time=20)], 1, RULE)
    (state,) = script.states.values()
    assert state.state == "parked"
    assert "shape.name_taken" in state.reason


@pytest.mark.parametrize("partition", [0, 1], ids=["before", "behind"])
@pytest.mark.parametrize("cut", [1, 2, 4])
@pytest.mark.parametrize("metadata", [{}, {"metadata": {"op": "_op"}}], ids=["plain", "with metadata"])
def test_of_one_instant_the_row_that_moved_away_is_as_the_move_says(
    metadata: dict[str, Any], cut: int, partition: int, log: Log, lake: Path
) -> None:
    """The move says which row went, and the change that made it may stand behind the move."""
    records = [
        clocked.ddl(0, clocked.T),
        clocked.row(1_000, "INSERT", 1, 5, partition=partition),
        clocked.row(60_000, "UPDATE", 1, 6, old=5, partition=partition, second=60),
        clocked.moved(60_000, 1, 2, 6, partition=1 - partition, second=60),
    ]
    rule = {**RULE, **({"columns": metadata} if metadata else {})}
    script = Script(log, lake, format="canal-json", schema_topic=None, tables={"shop.t": rule})
    for some in (records[:cut], records[cut:]):
        script.send(*some)
        script.sync()
    rows = {key: values[0] for key, values in stored(script).items()}
    assert rows == {1: 6, 2: 6}
