# SPDX-License-Identifier: Apache-2.0
"""Test which statements make rows or columns of which tables unknown, and which statements end that."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableName, TableSchema
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import Block, SchemaChange, TableTimeline, Timeline

CREATED = tuple(f"CREATE TABLE {name} (a INT, b INT)" for name in ("t", "u", "at", "other.t"))


def timeline(*statements: str) -> Timeline:
    """Build a timeline of statements at positions 01, 02, ... in the database ``shop``."""
    return build_timeline([SchemaChange(f"{n:02d}", n, "shop", text, time=0) for n, text in enumerate(statements, 1)])


def table(built: Timeline, name: str) -> TableTimeline:
    """Return the table that has a name at the end."""
    database, _, short = name.rpartition(".")
    table_id = built.owner(TableName(database or "shop", short), "99")
    assert table_id is not None
    return built.tables[table_id]


def blocked(*statements: str) -> set[str]:
    """Return the names of the tables that are blocked in the end, of those that :data:`CREATED` makes."""
    built = timeline(*CREATED, *statements)
    return {name for name in ("t", "u", "at", "other.t") if table(built, name).unknown_since() is not None}


def test_an_exchange_of_a_partition_changes_the_rows_of_both_tables() -> None:
    assert blocked("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u") == {"t", "u"}
    assert blocked("ALTER TABLE u EXCHANGE PARTITION p WITH TABLE other.t WITHOUT VALIDATION") == {"u", "other.t"}


def test_rows_of_a_partition_that_becomes_a_table_are_unknown() -> None:
    built = timeline(*CREATED, "ALTER TABLE t CONVERT PARTITION p TO TABLE v")
    assert table(built, "t").unknown_since() is not None
    assert table(built, "v").unknown_since() is not None
    assert [column.name for column in table(built, "v").schema.columns] == ["a", "b"]


def test_a_table_that_becomes_a_partition_is_dropped() -> None:
    built = timeline(*CREATED, "ALTER TABLE t CONVERT TABLE u TO PARTITION p VALUES LESS THAN (9)")
    assert table(built, "t").unknown_since() is not None
    assert built.owner(TableName("shop", "u"), "99") is None


@pytest.mark.parametrize(
    ("statement", "parked"),
    [
        ("ALTER IGNORE TABLE t ADD UNIQUE (a)", {"t"}),
        ("ALTER IGNORE TABLE t ADD PRIMARY KEY (a)", {"t"}),
        ("ALTER IGNORE TABLE t MODIFY a INT UNIQUE", {"t"}),
        ("ALTER IGNORE TABLE t ADD c INT UNIQUE", {"t"}),
        ("ALTER IGNORE TABLE t ADD INDEX (a), ADD c INT", set()),
        ("ALTER TABLE t ADD UNIQUE (a)", set()),
    ],
)
def test_alter_ignore_removes_duplicates_without_row_events(statement: str, parked: set[str]) -> None:
    assert blocked(statement) == parked


def test_alter_ignore_may_make_values_of_a_key_equal() -> None:
    built = timeline("CREATE TABLE t (a VARCHAR(9) PRIMARY KEY)", "ALTER IGNORE TABLE t MODIFY a VARCHAR(1) NOT NULL")
    assert table(built, "t").unknown_since() is not None


@pytest.mark.parametrize(
    ("statement", "parked"),
    [
        ("ALTER TABLE u FROBNICATE ATTRIBUTES = 'x'", {"u"}),
        ("ALTER TABLE u FROBNICATE b 'at t'", {"u"}),
        ("ALTER TABLE other.t FROBNICATE a", {"other.t"}),
        ("ALTER TABLE `shop`.`t` FROBNICATE a", {"t"}),
        ("ALTER TABLE IF EXISTS t FROBNICATE", {"t"}),
        ("RENAME TABLE t TO x, u TO y FROBNICATE", {"t", "u"}),
        ("ALTER TABLE u RENAME COLUMN a TO at, FROBNICATE", {"u"}),
        ("ALTER TABLE u ADD COLUMN IF NOT EXISTS at INT FROBNICATE", {"u"}),
        ("DROP TABLE t, u FROBNICATE", {"t", "u"}),
        ("FROBNICATE t", {"t"}),
        ("ALTER TABLE attributes FROBNICATE", set()),
        ("/* about at */ ALTER TABLE u FROBNICATE -- t", {"u"}),
        ("ALTER TABLE u FROBNICATE 'no end", {"u"}),
    ],
)
def test_a_statement_that_is_not_understood_parks_the_tables_it_names(statement: str, parked: set[str]) -> None:
    assert blocked(statement) == parked


def test_without_a_database_a_name_means_every_table_that_has_it() -> None:
    changes = [SchemaChange(f"{n:02d}", n, "shop", text) for n, text in enumerate(CREATED)]
    built = build_timeline([*changes, SchemaChange("50", 50, "", "ALTER TABLE t FROBNICATE a")])
    parked = {name for name in ("t", "u", "at", "other.t") if table(built, name).blocked}
    assert parked == {"t", "other.t"}


def test_a_truncate_makes_rows_known_again() -> None:
    built = table(timeline(*CREATED, "ALTER TABLE t DROP PARTITION p", "TRUNCATE TABLE t"), "t")
    assert built.unknown_since() is None
    again = table(timeline(*CREATED, "TRUNCATE TABLE t", "ALTER TABLE t DROP PARTITION p"), "t")
    assert again.unknown_since() == Block("06", "DROP PARTITION changes rows without row events")


def test_a_truncate_that_came_as_a_row_also_counts() -> None:
    built = table(timeline(*CREATED, "ALTER TABLE t DROP PARTITION p"), "t")
    assert built.unknown_since(["04"]) is not None
    assert built.unknown_since(["06"]) is None


def test_columns_that_are_not_known_stay_so_until_the_table_is_created_again() -> None:
    statements = (*CREATED, "ALTER TABLE t FROBNICATE a", "TRUNCATE TABLE t")
    block = table(timeline(*statements), "t").unknown_since()
    assert block is not None
    assert "DROP TABLE and CREATE TABLE" in str(block)
    assert table(timeline(*statements, "DROP TABLE t", CREATED[0]), "t").unknown_since() is None


def test_the_tools_own_account_of_the_columns_leaves_only_the_rows_unknown() -> None:
    stated = TableSchema((Column(1, "a", ColumnType("int")), Column(2, "c", ColumnType("date"))))
    created = SchemaChange("01", 1, "shop", CREATED[0])
    change = SchemaChange("02", 2, "shop", "ALTER TABLE t FROBNICATE b", (("shop", "t", stated),))
    emptied = SchemaChange("03", 3, "shop", "TRUNCATE TABLE t")
    built = table(build_timeline([created, change]), "t")
    assert built.unknown_since() is not None
    assert [column.name for column in built.schema.columns] == ["a", "c"]
    assert table(build_timeline([created, change, emptied]), "t").unknown_since() is None
