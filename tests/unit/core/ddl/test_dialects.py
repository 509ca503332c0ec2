# SPDX-License-Identifier: Apache-2.0
"""Test statements of TiDB, MariaDB and old MySQL servers that other servers reject."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.ddl.alter_actions import NoEffect, RenameTo
from airflow_provider_cdc.core.ddl.parser import parse
from airflow_provider_cdc.core.ddl.statement import AlterTable, CreateTable, Other, Statement
from airflow_provider_cdc.core.ddl.table_parts import Name
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import SchemaChange
from tests.unit.core.ddl.single_statements import create, one


@pytest.mark.parametrize(
    "options",
    [
        "TTL = created + INTERVAL 3 MONTH TTL_ENABLE = 'ON' TTL_JOB_INTERVAL = '24h'",
        "TTL = `created` + INTERVAL '1' DAY",
        "PLACEMENT POLICY=p1",
        "PLACEMENT POLICY `p1`",
        "ATTRIBUTES 'merge_option=allow'",
        "AUTO_ID_CACHE 1 SHARD_ROW_ID_BITS=4 PRE_SPLIT_REGIONS=3",
        "ENGINE=InnoDB, DEFAULT CHARSET=utf8, COMMENT='x'",
        "ENGINE=InnoDB, ROW_FORMAT=DYNAMIC PARTITION BY HASH (a)",
    ],
)
def test_options_of_a_created_table(options: str) -> None:
    plain = create("CREATE TABLE t (a INT, created DATETIME)")
    created = create(f"CREATE TABLE t (a INT, created DATETIME) {options}")
    assert [column.name for column in created.columns] == [column.name for column in plain.columns]


def test_the_character_set_among_options_with_commas_counts() -> None:
    assert create("CREATE TABLE t (a CHAR(9)) ENGINE=InnoDB, CHARSET=latin1").charset == "latin1"


@pytest.mark.parametrize(
    "clause",
    [
        "TTL = created + INTERVAL 1 MONTH",
        "REMOVE TTL",
        "TTL_ENABLE = 'OFF'",
        "PLACEMENT POLICY = default",
        "PLACEMENT POLICY p1",
        "PARTITION p0 PLACEMENT POLICY = p1",
        "ATTRIBUTES = 'merge_option=allow'",
        "ATTRIBUTES DEFAULT",
        "PARTITION p0 ATTRIBUTES 'merge_option=allow'",
        "CACHE",
        "NOCACHE",
        "SET TIFLASH REPLICA 2 LOCATION LABELS 'rack', 'host'",
        "FORCE AUTO_INCREMENT = 5",
        "ADD INDEX i (a) WHERE b IS NOT NULL",
        "ADD UNIQUE INDEX i (a) WHERE b = 1",
    ],
)
def test_clauses_that_change_neither_columns_nor_rows(clause: str) -> None:
    statement = one(f"ALTER TABLE t {clause}")
    assert isinstance(statement, AlterTable)
    assert statement.actions
    assert all(isinstance(action, NoEffect) for action in statement.actions)


@pytest.mark.parametrize(
    "text",
    [
        'CREATE PLACEMENT POLICY p1 PRIMARY_REGION="us-east-1" REGIONS="us-east-1,us-west-1"',
        "ALTER PLACEMENT POLICY p1 FOLLOWERS=4",
        "DROP PLACEMENT POLICY p1",
        "ALTER DATABASE d PLACEMENT POLICY=p1",
        "CREATE UNIQUE INDEX i ON t (a) WHERE b > 3",
        "CREATE GLOBAL TEMPORARY TABLE t (a INT) ON COMMIT DELETE ROWS",
    ],
)
def test_statements_that_change_no_table(text: str) -> None:
    assert one(text) == Other(text)


def test_a_partial_unique_index_is_not_a_key() -> None:
    created = create("CREATE TABLE t (a INT NOT NULL, b INT, UNIQUE i (a) WHERE b > (3), UNIQUE j (b))")
    assert [unique.index for unique in created.unique] == ["j"]


def test_random_numbers_of_tidb_are_generated_by_the_server() -> None:
    (column,) = create("CREATE TABLE t (id BIGINT AUTO_RANDOM(5) PRIMARY KEY)").columns
    assert column.auto_increment


def test_a_rename_after_an_option_without_comma() -> None:
    # gh-ost's own tests have it
    statement = one("alter table d.t engine=innodb rename as d.u")
    assert isinstance(statement, AlterTable)
    assert statement.actions[-1] == RenameTo(Name("d", "u"))


def test_a_database_loses_the_prefix_of_its_old_encoding() -> None:
    changes = [
        SchemaChange("1", 1, "#mysql50#a-b", "CREATE TABLE t (a INT)"),
        SchemaChange("2", 2, "", "ALTER DATABASE `#mysql50#a-b` UPGRADE DATA DIRECTORY NAME"),
    ]
    (table,) = build_timeline(changes).tables.values()
    assert table.name == TableName("a-b", "t")


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE t (a INT) WITH SYSTEM VERSIONING"],
        ["CREATE TABLE t (a INT WITH SYSTEM VERSIONING, b INT WITHOUT SYSTEM VERSIONING) ENGINE=InnoDB"],
        [
            "CREATE TABLE t (a INT, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, e TIMESTAMP(6) AS ROW END, "
            "PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING "
            "PARTITION BY SYSTEM_TIME (PARTITION p0 HISTORY, PARTITION p1 CURRENT)"
        ],
        ["CREATE TABLE t (a INT)", "ALTER TABLE t ADD SYSTEM VERSIONING"],
        ["CREATE TABLE t (a INT)", "ALTER TABLE t DROP SYSTEM VERSIONING"],
    ],
)
def test_a_table_with_system_versioning_is_understood_and_parked(statements: list[str]) -> None:
    changes = [SchemaChange(f"{n}", n, "d", text) for n, text in enumerate(statements)]
    (table,) = build_timeline(changes).tables.values()
    assert table.schema.columns[0].name == "a"
    (block,) = table.blocked
    assert "SYSTEM VERSIONING" in block.reason


def kinds(text: str) -> list[type[Statement]]:
    """Return the kinds of a text's statements."""
    return [type(statement) for statement in parse(text)]


def test_system_versioning_is_not_an_option_of_a_plain_table() -> None:
    assert kinds("CREATE TABLE t (a INT) ENGINE=InnoDB") == [CreateTable]
    assert not create("CREATE TABLE t (a INT) ENGINE=InnoDB").versioned
