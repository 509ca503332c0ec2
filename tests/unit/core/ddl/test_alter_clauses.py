# SPDX-License-Identifier: Apache-2.0
"""Test that all clauses of one ALTER TABLE refer to the table as it was before the statement.

Recorded on MySQL 8.0, 5.7 and MariaDB 10.11: a swap and a chain of names in one statement. MySQL's manual gives the
swap as an example of RENAME COLUMN and of CHANGE.
"""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import SchemaChange, TableTimeline


def table(*statements: str) -> TableTimeline:
    """Return the only table that statements leave; those are at positions 01, 02, ..."""
    changes = [SchemaChange(f"{n:02d}", n, "shop", text, time=0) for n, text in enumerate(statements, 1)]
    (built,) = build_timeline(changes).tables.values()
    return built


def altered(create: str, alter: str) -> tuple[TableSchema, TableSchema]:
    """Return the table before and after an ALTER that is understood."""
    built = table(create, alter)
    assert built.blocked == []
    return built.versions[0].schema, built.schema


def origins(before: TableSchema, after: TableSchema) -> list[tuple[str, str | None]]:
    """Return each column's name and the name that its values had before, None for an added column."""
    names = {column.id: column.name for column in before.columns}
    return [(column.name, names.get(column.id)) for column in after.columns]


@pytest.mark.parametrize(
    ("clauses", "columns"),
    [
        ("RENAME COLUMN a TO b, RENAME COLUMN b TO a", [("b", "a"), ("a", "b"), ("c", "c")]),
        ("CHANGE a b INT, CHANGE b a INT", [("b", "a"), ("a", "b"), ("c", "c")]),
        ("RENAME COLUMN a TO b, CHANGE b a INT", [("b", "a"), ("a", "b"), ("c", "c")]),
        ("RENAME COLUMN a TO b, RENAME COLUMN b TO c, RENAME COLUMN c TO a", [("b", "a"), ("c", "b"), ("a", "c")]),
        ("RENAME COLUMN a TO b, DROP COLUMN b", [("b", "a"), ("c", "c")]),
        ("DROP COLUMN b, RENAME COLUMN a TO b", [("b", "a"), ("c", "c")]),
        ("RENAME COLUMN a TO x, ADD COLUMN a INT", [("x", "a"), ("b", "b"), ("c", "c"), ("a", None)]),
        ("ADD COLUMN a INT, RENAME COLUMN a TO x", [("x", "a"), ("b", "b"), ("c", "c"), ("a", None)]),
        ("ADD COLUMN a INT, DROP COLUMN a", [("b", "b"), ("c", "c"), ("a", None)]),
    ],
)
def test_names_mean_the_columns_before_the_statement(clauses: str, columns: list[tuple[str, str | None]]) -> None:
    before, after = altered("CREATE TABLE t (a INT, b INT, c INT)", f"ALTER TABLE t {clauses}")
    assert origins(before, after) == columns


@pytest.mark.parametrize(
    ("clauses", "columns"),
    [
        # AFTER names a column of the table that results, as the server's own list of new columns has it
        ("CHANGE a x INT, ADD n INT AFTER x", ["x", "n", "b", "c"]),
        ("RENAME COLUMN a TO b, RENAME COLUMN b TO a, ADD n INT AFTER b", ["b", "n", "a", "c"]),
        # zendesk/maxwell issue 1216, on a server: also before the clause that gives the name
        ("ADD n INT AFTER x, CHANGE a x INT", ["x", "n", "b", "c"]),
        ("CHANGE a a INT AFTER y, CHANGE c y INT", ["b", "y", "a"]),
        ("ADD n INT AFTER a, ADD m INT AFTER n", ["a", "n", "m", "b", "c"]),
        ("ADD n INT FIRST, ADD m INT FIRST", ["m", "n", "a", "b", "c"]),
        ("MODIFY c INT FIRST, MODIFY a INT AFTER b", ["c", "b", "a"]),
        ("CHANGE a b INT AFTER c, CHANGE b a INT FIRST", ["a", "c", "b"]),
    ],
)
def test_positions_mean_the_columns_that_result(clauses: str, columns: list[str]) -> None:
    _, after = altered("CREATE TABLE t (a INT, b INT, c INT)", f"ALTER TABLE t {clauses}")
    assert [column.name for column in after.columns] == columns


def test_a_key_stays_with_its_column_when_names_are_swapped() -> None:
    before, after = altered(
        "CREATE TABLE t (a INT, b INT NOT NULL, PRIMARY KEY (a))",
        "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a",
    )
    assert after.key == before.key
    assert [column.name for column in after.key_columns] == ["b"]


def test_a_key_that_is_added_names_the_columns_that_result() -> None:
    before, after = altered(
        "CREATE TABLE t (a INT, b INT, PRIMARY KEY (a))",
        "ALTER TABLE t ADD PRIMARY KEY (b), RENAME COLUMN a TO b, RENAME COLUMN b TO a, DROP PRIMARY KEY",
    )
    assert [column.name for column in after.key_columns] == ["b"]
    assert after.key == before.key


def test_a_unique_key_is_dropped_by_the_name_it_was_given() -> None:
    created = "CREATE TABLE t (a INT NOT NULL, b INT NOT NULL, UNIQUE k (a))"
    _, after = altered(created, "ALTER TABLE t ADD UNIQUE k (b), DROP KEY k")
    assert [column.name for column in after.key_columns] == ["b"]
    renamed = table(created, "ALTER TABLE t RENAME KEY k TO l", "ALTER TABLE t DROP KEY l")
    assert renamed.schema.key == ()


def test_a_default_is_set_for_the_column_that_had_the_name() -> None:
    before, after = altered(
        "CREATE TABLE t (a INT, b INT)",
        "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a, ALTER a SET DEFAULT 7",
    )
    (defaulted,) = (column for column in after.columns if column.default is not None and column.default.text == "7")
    assert defaulted.id == before.columns[0].id


@pytest.mark.parametrize(
    "clauses",
    [
        "RENAME COLUMN a TO b",
        "ADD n INT AFTER x",
        "CHANGE a y INT, ADD n INT AFTER a",
        "DROP a, ADD n INT AFTER a",
        "ADD PRIMARY KEY (x)",
    ],
)
def test_a_statement_that_the_server_would_reject_is_not_applied_in_part(clauses: str) -> None:
    built = table("CREATE TABLE t (a INT, b INT)", f"ALTER TABLE t ADD m INT, {clauses}")
    assert len(built.blocked) == 1
    assert [column.name for column in built.schema.columns] == ["a", "b"]
