# SPDX-License-Identifier: Apache-2.0
"""Test the deduplication of a batch's schema changes against those already known."""

from __future__ import annotations

from dataclasses import replace

from airflow_provider_cdc.core.model.clock_position import WIDTHS
from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.new_changes import new_changes
from airflow_provider_cdc.core.timeline.timeline import SchemaChange

ADD = "ALTER TABLE t ADD c INT"


def said(position: str, statement: str, time: int = 0) -> SchemaChange:
    return SchemaChange(position, 0, "d", statement, time=time)


def shown(position: str, *names: str, fallback: bool = False) -> SchemaChange:
    columns = tuple(Column(number, name, ColumnType("int")) for number, name in enumerate(names, 1))
    return SchemaChange(position, 0, "d", "", (("d", "t", TableSchema(columns)),), fallback=fallback)


def test_a_repeated_known_change_is_dropped() -> None:
    assert new_changes([said("5", ADD)], [said("5", ADD), said("6", ADD)], [], exact=True) == [said("6", ADD)]


def test_duplicate_ddl_keeps_the_first_by_log_order() -> None:
    """A snapshot that was started twice: DROP, CREATE, DROP, CREATE, all at one position."""
    drop, create = "DROP TABLE IF EXISTS t", "CREATE TABLE t (id INT)"
    log = [SchemaChange("5", order, "d", text) for order, text in enumerate((drop, create, drop, create))]
    assert [(c.order, c.statement) for c in new_changes([], [*log[1:], log[0]], [], exact=True)] == [
        (0, drop),
        (1, create),
    ]


def test_a_repaired_statement_is_new_where_another_one_stands_before_its_known_copy() -> None:
    first, second = "RENAME TABLE t TO old", "RENAME TABLE u TO t"
    known = [SchemaChange("5", 2, "d", second), SchemaChange("5", 3, "d", first)]
    repaired = SchemaChange("5", 1, "d", first)
    assert new_changes(known, [repaired], [], exact=True) == [repaired]
    assert new_changes(known[1:], [repaired], [], exact=True) == []


def test_a_repaired_description_is_new_where_its_known_copy_stands_behind_later_statements() -> None:
    create, rename = "CREATE TABLE t (id INT)", SchemaChange("7", 2, "d", "RENAME TABLE t TO u")
    known = [rename, SchemaChange("5", 3, "d", create, snapshot=9)]
    repaired = SchemaChange("5", 1, "d", create, snapshot=9)
    assert new_changes(known, [repaired], [], exact=True) == [repaired]
    assert new_changes(known[1:], [repaired], [], exact=True) == []


def test_without_positions_a_copy_is_recognized_by_time_and_text() -> None:
    copy, other = said("9", ADD, time=1), said("9", ADD, time=2)
    assert new_changes([said("5", ADD, time=1)], [copy, other], [], exact=False) == [other]


def test_without_positions_two_copies_in_one_batch_are_one_change() -> None:
    first, copy = by_clock(8, ADD), by_clock(9, ADD, partition=1)
    assert new_changes([], [copy, first], [], exact=False) == [first, replace(copy, copy_of=first.position)]


def test_without_positions_a_truncate_counts_each_time() -> None:
    again = [by_clock(8, "TRUNCATE t"), by_clock(9, "TRUNCATE t")]
    assert new_changes([], again, [], exact=False) == again


def test_without_positions_a_statement_behind_a_later_one_of_its_partition_was_sent_again() -> None:
    """Else a TRUNCATE of before a change of the key empties the table behind it."""
    known = [by_clock(1, "CREATE TABLE t (id INT PRIMARY KEY)", time=1), by_clock(2, "TRUNCATE t", time=5)]
    later = by_clock(3, "ALTER TABLE t DROP PRIMARY KEY", time=7)
    again = by_clock(4, "TRUNCATE t", time=5)
    assert new_changes(known, [later, again], [], exact=False) == [later]
    assert new_changes([*known, later], [again], [], exact=False) == []
    elsewhere = by_clock(3, later.statement, partition=1, time=7)
    assert new_changes([*known, elsewhere], [again], [], exact=False) == [again]


def test_rows_state_the_structure_of_a_table_once() -> None:
    first = shown("5", "a")
    assert new_changes([], [], [first, shown("6", "a")], exact=True) == [first]
    assert new_changes([first], [], [shown("7", "a")], exact=True) == []


def test_rows_with_other_columns_change_a_table_if_the_tool_carries_no_ddl() -> None:
    assert new_changes([shown("5", "a")], [], [shown("7", "a", "b")], exact=True) == [shown("7", "a", "b")]


def test_rows_with_other_columns_wait_for_their_ddl_if_the_tool_carries_it() -> None:
    known = [shown("5", "a", fallback=True)]
    assert new_changes(known, [], [shown("7", "a", "b", fallback=True)], exact=True) == []


def test_late_rows_show_that_a_table_is_older_than_it_was_known_to_be() -> None:
    late = shown("3", "a", fallback=True)
    assert new_changes([shown("5", "a", fallback=True)], [], [late], exact=True) == [late]


def by_clock(tool: int, statement: str, partition: int = 0, time: int = 0) -> SchemaChange:
    numbers = (tool, 1, partition, tool, 0, 0)
    text = ".".join(["c", *(f"{n:0{width}d}" for n, width in zip(numbers, WIDTHS, strict=True))])
    return SchemaChange(text, tool, "d", statement, time=time)


def test_a_statement_that_came_twice_on_its_partition_is_in_doubt_if_it_could_be_executed_twice() -> None:
    """ADD, DROP, ADD inside one second, or ADD, DROP and the first of them sent again."""
    known = [by_clock(1, "CREATE TABLE t (id INT)"), by_clock(2, ADD), by_clock(3, "ALTER TABLE t DROP c")]
    (again,) = new_changes(known, [by_clock(4, ADD)], [], exact=False)
    assert (again.statement, again.twice) == (ADD, True)
    tables = build_timeline([*known, again]).tables
    assert ["apply.order_unknown" in block.reason for table in tables.values() for block in table.blocked] == [True]


def test_a_statement_that_cannot_be_executed_twice_was_sent_again() -> None:
    known = [by_clock(1, "CREATE TABLE t (id INT)"), by_clock(2, ADD)]
    assert new_changes(known, [by_clock(3, known[0].statement), by_clock(4, ADD)], [], exact=False) == []


def test_a_copy_on_another_partition_is_a_copy() -> None:
    known = [by_clock(1, "CREATE TABLE t (id INT)"), by_clock(2, ADD), by_clock(3, "ALTER TABLE t DROP c")]
    copy = by_clock(4, ADD, partition=1)
    assert new_changes(known, [copy], [], exact=False) == [replace(copy, copy_of=known[1].position)]


def test_a_statement_that_came_twice_about_a_doubtful_table_is_in_doubt_too() -> None:
    create, drop = "CREATE TABLE t (id INT)", "ALTER TABLE t DROP c"
    known = [by_clock(1, create), by_clock(2, ADD), by_clock(3, drop), replace(by_clock(4, ADD), twice=True)]
    assert [one.twice for one in new_changes(known, [by_clock(5, drop)], [], exact=False)] == [True]
