# SPDX-License-Identifier: Apache-2.0
"""Test CREATE TABLE: columns, keys, and the source of its columns."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.ddl.alter_actions import AddUnique
from airflow_provider_cdc.core.ddl.parser import DdlError, parse
from airflow_provider_cdc.core.ddl.statement import CreateTable
from airflow_provider_cdc.core.ddl.table_parts import Name
from airflow_provider_cdc.core.errors import DataError
from tests.unit.core.ddl.single_statements import create, one


def test_create_table_with_keys() -> None:
    statement = create(
        """CREATE TABLE IF NOT EXISTS `shop`.orders (
            id INT, a INT UNIQUE, b VARCHAR(20), g POINT NOT NULL, d TEXT,
            CONSTRAINT pk PRIMARY KEY USING BTREE (b(5) DESC, id),
            UNIQUE KEY u (a, b) COMMENT 'x' USING HASH,
            UNIQUE (a),
            CONSTRAINT sym UNIQUE (id),
            UNIQUE ((lower(b))),
            KEY a_4 (a), INDEX (b) KEY_BLOCK_SIZE=4 INVISIBLE, FULLTEXT KEY ft (d) WITH PARSER ngram, SPATIAL INDEX (g),
            CONSTRAINT fk FOREIGN KEY (a) REFERENCES p (id) ON DELETE CASCADE,
            CHECK (a > 0), CONSTRAINT ck CHECK (b <> ')') ENFORCED,
            PERIOD FOR app (x, y)
        ) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
        COMMENT='t; -- c' ROW_FORMAT=DYNAMIC
        PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)"""
    )
    assert statement.name == Name("shop", "orders")
    assert statement.if_not_exists
    assert [c.name for c in statement.columns] == ["id", "a", "b", "g", "d"]
    assert statement.key == ("b", "id")
    assert statement.unique == (
        AddUnique("a", ("a",)),
        AddUnique("u", ("a", "b")),
        AddUnique("a_2", ("a",)),
        AddUnique("sym", ("id",)),
    )
    assert statement.charset == "utf8mb4"


def test_inline_keys_are_the_tables_keys() -> None:
    statement = create("CREATE TABLE t (a INT PRIMARY KEY, b INT UNIQUE)")
    assert (statement.key, statement.unique) == (("a",), (AddUnique("b", ("b",)),))


@pytest.mark.parametrize("text", ["CREATE TABLE a.t LIKE b.s", "create /* gh-ost */ table a.t (like b.s)"])
def test_create_table_like(text: str) -> None:
    assert one(text) == CreateTable(Name("a", "t"), like=Name("b", "s"))


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("CREATE TABLE t SELECT 1", 0),
        ("CREATE TABLE t AS SELECT * FROM s WHERE x IN (1, 2)", 0),
        ("CREATE TABLE t (SELECT 1)", 0),
        ("CREATE TABLE t (a INT) ENGINE=MEMORY IGNORE AS SELECT 1 AS a", 1),
        ("CREATE TABLE t (a INT) PARTITION BY HASH (a) PARTITIONS 4 REPLACE SELECT 1 AS a", 1),
        ("CREATE TABLE t AS WITH x AS (SELECT 1) SELECT * FROM x", 0),
    ],
)
def test_create_table_as_select(text: str, columns: int) -> None:
    statement = create(text)
    assert statement.as_select
    assert len(statement.columns) == columns


def test_a_create_table_that_starts_a_transaction_has_all_its_columns() -> None:
    assert not create("CREATE TABLE t (a INT) START TRANSACTION").as_select


def test_or_replace() -> None:
    assert create("CREATE OR REPLACE TABLE t (a INT)").or_replace


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t",
        "CREATE TABLE t (a INT",
        "CREATE TABLE t (a INT))",
        "CREATE TABLE t (a INT,)",
        "CREATE TABLE t (a INT PRIMARY KEY, PRIMARY KEY (a))",
        "CREATE TABLE t (PRIMARY KEY ((a + 1)))",
        "CREATE TABLE t (id INT, PRIMARY KEY (id, p WITHOUT OVERLAPS))",
        "CREATE TABLE t (a INT) FOO",
        "CREATE TABLE select (a INT)",
        "CREATE TABLE `` (a INT)",
    ],
)
def test_create_table_that_is_not_understood_raises(text: str) -> None:
    with pytest.raises(DdlError) as caught:
        parse(text)
    assert isinstance(caught.value, DataError)
    assert caught.value.code == "ddl.not_understood"
