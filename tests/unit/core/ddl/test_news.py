"""What a batch says of schema changes beyond what is known."""

from __future__ import annotations

from airflow_provider_cdc.core.ddl.news import new_changes
from airflow_provider_cdc.core.ddl.timeline import SchemaChange
from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema

ADD = "ALTER TABLE t ADD c INT"


def said(position: str, statement: str, time: int = 0) -> SchemaChange:
    return SchemaChange(position, 0, "d", statement, time=time)


def shown(position: str, *names: str, fallback: bool = False) -> SchemaChange:
    columns = tuple(Column(number, name, ColumnType("int")) for number, name in enumerate(names, 1))
    return SchemaChange(position, 0, "d", "", (("d", "t", TableSchema(columns)),), fallback=fallback)


def test_a_known_change_that_comes_again_is_no_news() -> None:
    assert new_changes([said("5", ADD)], [said("5", ADD), said("6", ADD)], [], exact=True) == [said("6", ADD)]


def test_of_copies_the_first_in_the_log_counts_whatever_was_read_first() -> None:
    """A snapshot that was started twice: DROP, CREATE, DROP, CREATE, all at one position."""
    drop, create = "DROP TABLE IF EXISTS t", "CREATE TABLE t (id INT)"
    log = [SchemaChange("5", order, "d", text) for order, text in enumerate((drop, create, drop, create))]
    assert [(c.order, c.statement) for c in new_changes([], [*log[1:], log[0]], [], exact=True)] == [
        (0, drop),
        (1, create),
    ]


def test_without_positions_a_copy_is_told_by_time_and_text() -> None:
    copy, other = said("9", ADD, time=1), said("9", ADD, time=2)
    assert new_changes([said("5", ADD, time=1)], [copy, other], [], exact=False) == [other]


def test_without_positions_two_copies_in_one_batch_are_one_change() -> None:
    assert new_changes([], [said("8", ADD), said("9", ADD)], [], exact=False) == [said("8", ADD)]


def test_without_positions_a_truncate_counts_each_time() -> None:
    again = [said("8", "TRUNCATE t"), said("9", "TRUNCATE t")]
    assert new_changes([], again, [], exact=False) == again


def test_rows_tell_a_tables_structure_once() -> None:
    first = shown("5", "a")
    assert new_changes([], [], [first, shown("6", "a")], exact=True) == [first]
    assert new_changes([first], [], [shown("7", "a")], exact=True) == []


def test_rows_with_other_columns_change_a_table_where_no_ddl_comes_with_them() -> None:
    assert new_changes([shown("5", "a")], [], [shown("7", "a", "b")], exact=True) == [shown("7", "a", "b")]


def test_rows_with_other_columns_wait_for_their_ddl_where_it_comes_among_them() -> None:
    known = [shown("5", "a", fallback=True)]
    assert new_changes(known, [], [shown("7", "a", "b", fallback=True)], exact=True) == []


def test_late_rows_show_that_a_table_is_older_than_it_was_known_to_be() -> None:
    late = shown("3", "a", fallback=True)
    assert new_changes([shown("5", "a", fallback=True)], [], [late], exact=True) == [late]
