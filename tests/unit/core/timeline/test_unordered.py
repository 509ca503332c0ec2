# SPDX-License-Identifier: Apache-2.0
"""Test that tables are in doubt if their state depends on the order of statements of one instant."""

from __future__ import annotations

from airflow_provider_cdc.core.model.clock_position import WIDTHS, partition_number
from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableName, TableSchema
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import SchemaChange, Timeline


def at(tool: int, topic: str, batch: int, partition: int = 0) -> str:
    numbers = (tool, 1, partition_number(topic, partition), 0, 0, batch)
    return ".".join(["c", *(f"{n:0{width}d}" for n, width in zip(numbers, WIDTHS, strict=True))])


def said(tool: int, topic: str, statement: str, batch: int = 0) -> SchemaChange:
    return SchemaChange(at(tool, topic, batch), 0, "d", statement)


def shown(tool: int, topic: str, table: str, batch: int = 0, partition: int = 1) -> SchemaChange:
    schema = TableSchema((Column(1, "id", ColumnType("int")),))
    return SchemaChange(at(tool, topic, batch, partition), 0, "d", "", (("d", table, schema),), fallback=True)


def blocked(timeline: Timeline) -> set[str]:
    """Return the present names of tables that do not know their state."""
    tables = timeline.tables.values()
    return {t.last_name.table for t in tables if any("order_unknown" in block.reason for block in t.blocked)}


A, B = (said(number, name, f"CREATE TABLE {name} (id INT)") for number, name in ((1, "a"), (2, "b")))
SWAP = ("RENAME TABLE a TO x", "RENAME TABLE b TO a", "RENAME TABLE x TO b")


def test_a_swap_in_three_statements_of_one_batch_of_the_tool_is_in_doubt() -> None:
    """Each is on the topic of the table that it names first (docs/wire/canal.md 5.3)."""
    changes = [said(100 + n, topic, text, 7) for n, (topic, text) in enumerate(zip("abx", SWAP, strict=True))]
    assert blocked(build_timeline([A, B, *changes])) == {"x", "b"}


def test_a_swap_in_three_statements_of_three_batches_is_known() -> None:
    changes = [said(100 + n, topic, text, 7 + n) for n, (topic, text) in enumerate(zip("abx", SWAP, strict=True))]
    timeline = build_timeline([A, B, *changes])
    assert blocked(timeline) == set()
    assert timeline.owner(TableName("d", "a"), "~") == timeline.owner(TableName("d", "b"), B.position)


def test_statements_about_other_tables_are_not_in_doubt() -> None:
    changes = [said(100, "a", "ALTER TABLE a ADD c INT", 7), said(101, "b", "ALTER TABLE b ADD c INT", 7)]
    assert blocked(build_timeline([A, B, *changes])) == set()


def test_a_table_made_after_another_is_in_doubt_if_that_one_changed_at_the_same_time() -> None:
    changes = [said(100, "c", "CREATE TABLE c LIKE a", 7), said(101, "a", "ALTER TABLE a ADD c INT", 7)]
    assert blocked(build_timeline([A, B, *changes])) == {"c"}


def test_doubt_follows_the_name_until_a_table_of_that_name_is_created() -> None:
    changes = [said(100 + n, topic, text, 7) for n, (topic, text) in enumerate(zip("abx", SWAP, strict=True))]
    later = [said(200, "a", "RENAME TABLE a TO c", 8), said(300, "a", "CREATE TABLE a (id INT)", 9)]
    timeline = build_timeline([A, B, *changes, *later])
    assert timeline.doubtful.keys() == {TableName("d", name) for name in ("x", "b", "c")}
    owner = timeline.owner(TableName("d", "a"), "~")
    assert owner is not None
    assert not timeline.tables[owner].blocked


def test_rows_of_the_instant_in_which_their_table_went_do_not_make_another() -> None:
    gone = said(100, "a", "RENAME TABLE a TO c")
    for row in (shown(100, "a", "a", partition=1), shown(100, "a", "a", partition=2)):
        assert len(build_timeline([A, gone, row]).tables) == 1
    assert len(build_timeline([A, gone, shown(101, "a", "a")]).tables) == 2


def test_rows_of_the_instant_in_which_their_table_got_its_name_do_not_make_another() -> None:
    named = said(100, "a", "RENAME TABLE a TO c", 7)
    assert len(build_timeline([A, shown(99, "c", "c", 7), named]).tables) == 1
    assert len(build_timeline([A, shown(99, "c", "c", 6), named]).tables) == 2
