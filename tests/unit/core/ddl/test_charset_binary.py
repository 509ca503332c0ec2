# SPDX-License-Identifier: Apache-2.0
"""Test which columns are bytes since the character set of their table or database is binary.

The expectations were read from ``information_schema.columns`` of MySQL 5.7.22 and 8.0.15, MariaDB 10.11.19 and 11.4.5.
"""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import SchemaChange, TableTimeline

BYTES = "CREATE TABLE t (id INT) DEFAULT CHARSET=binary"
TEXT = "CREATE TABLE t (id INT, c VARCHAR(10)) DEFAULT CHARSET=utf8mb4"


def last_table(*statements: str) -> TableTimeline:
    """Return the last table that statements in the database ``q`` made."""
    changes = [SchemaChange(f"{n:02d}", n, "q", text, time=n) for n, text in enumerate(statements, 1)]
    return list(build_timeline(changes).tables.values())[-1]


@pytest.mark.parametrize(
    ("statements", "types"),
    [
        ((BYTES, "ALTER TABLE t ADD c VARCHAR(10), ADD d CHAR(3), ADD e TEXT, ADD f ENUM('a')"),
         "int varbinary(10) binary(3) blob enum('a')"),
        ((BYTES, "ALTER TABLE t ADD h JSON, ADD i VARCHAR(5) CHARACTER SET utf8mb4, ADD j CHAR(2) COLLATE utf8mb4_bin"),
         "int json varchar(5) char(2)"),
        ((TEXT, "ALTER TABLE t DEFAULT CHARSET=binary, ADD d VARCHAR(3)"), "int varchar(10) varbinary(3)"),
        ((TEXT, "ALTER TABLE t DEFAULT CHARSET=binary", "ALTER TABLE t ADD d VARCHAR(3)"),
         "int varchar(10) varbinary(3)"),
        ((TEXT, "ALTER TABLE t ADD d VARCHAR(3), CHARACTER SET binary, MODIFY c VARCHAR(10)"),
         "int varbinary(10) varbinary(3)"),
        ((TEXT, "ALTER TABLE t COLLATE binary, ADD d CHAR(3)"), "int varchar(10) binary(3)"),
        (("CREATE TABLE t (c VARCHAR(10), x TEXT, y VARCHAR(5) CHARACTER SET latin1, e ENUM('a'), j JSON)",
          "ALTER TABLE t CONVERT TO CHARACTER SET binary"), "varbinary(10) blob varbinary(5) enum('a') json"),
        ((BYTES, "ALTER TABLE t ADD c VARCHAR(9)", "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4, ADD d VARCHAR(3)"),
         "int varbinary(9) varchar(3)"),
        (("CREATE TABLE t (id INT, c VARCHAR(10)) COLLATE=binary", "ALTER TABLE t CHANGE c c2 CHAR(4)"),
         "int binary(4)"),
        (("CREATE TABLE o (id INT) COLLATE=binary", "CREATE TABLE t LIKE o", "ALTER TABLE t ADD d VARCHAR(3)"),
         "int varbinary(3)"),
        (("CREATE DATABASE b CHARACTER SET binary", "CREATE TABLE b.t (c VARCHAR(10))",
          "ALTER TABLE b.t ADD d VARCHAR(3)"), "varbinary(10) varbinary(3)"),
        (("CREATE DATABASE b CHARACTER SET utf8mb4", "ALTER DATABASE b COLLATE binary", "CREATE TABLE b.t (c CHAR(9))",
          "ALTER DATABASE b CHARACTER SET utf8mb4", "ALTER TABLE b.t ADD d VARCHAR(3)"), "binary(9) varbinary(3)"),
        (("CREATE DATABASE b CHARSET binary", "CREATE TABLE b.t (c CHAR(9)) DEFAULT CHARSET=utf8mb4"), "char(9)"),
        (("ALTER DATABASE CHARACTER SET binary", "CREATE TABLE t (c CHAR(1))"), "binary(1)"),
        (("CREATE DATABASE b CHARSET binary", "CREATE TABLE b.t (c CHAR(9))", "ALTER TABLE b.t RENAME TO q.t",
          "ALTER TABLE t ADD d VARCHAR(3)"), "binary(9) varbinary(3)"),
        (("CREATE DATABASE b CHARSET binary", "CREATE TABLE o (id INT)", "CREATE TABLE b.t LIKE o",
          "ALTER TABLE b.t ADD d VARCHAR(3)"), "int varchar(3)"),
        (("CREATE DATABASE b CHARSET binary", "DROP DATABASE b", "CREATE DATABASE b", "CREATE TABLE b.t (d CHAR(3))"),
         "char(3)"),
        (("CREATE DATABASE b", "CREATE DATABASE IF NOT EXISTS b CHARSET binary", "CREATE TABLE b.t (d CHAR(3))"),
         "char(3)"),
    ],
)  # fmt: skip
def test_text_in_a_table_of_bytes_is_bytes(statements: tuple[str, ...], types: str) -> None:
    table = last_table(*statements)
    assert table.blocked == []
    assert " ".join(str(column.type) for column in table.schema.columns) == types


def test_a_text_default_of_bytes_that_is_not_ascii_is_not_certain() -> None:
    assert last_table(BYTES, "ALTER TABLE t ADD c VARCHAR(9) DEFAULT 'a'").blocked == []
    assert last_table(BYTES, "ALTER TABLE t ADD c VARCHAR(9) DEFAULT 'é'").blocked


def test_a_statement_that_fails_changes_no_character_set() -> None:
    failing = "ALTER TABLE t DEFAULT CHARSET=binary, DROP COLUMN nothing"
    table = last_table(TEXT, failing, "ALTER TABLE t ADD d VARCHAR(3)")
    assert [str(column.type) for column in table.schema.columns] == ["int", "varchar(10)", "varchar(3)"]
