# SPDX-License-Identifier: Apache-2.0
"""Test statements that vendors of the MySQL family document: what has no effect on rows, what has, and what is refused.

Written from the manuals of MySQL (HeatWave, JavaScript programs), MariaDB, Percona Server, TiDB, OceanBase, PolarDB-X
and TDSQL.
"""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.ddl.alter_actions import (
    AddColumn,
    AddPrimaryKey,
    AddUnique,
    DropColumn,
    NoEffect,
    PartitionRows,
)
from airflow_provider_cdc.core.ddl.parser import DdlError, parse
from airflow_provider_cdc.core.ddl.statement import AlterTable, CreateTable, DropTable, Other
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import SchemaChange

NO_EFFECT = """
ALTER TABLE o SECONDARY_ENGINE = NULL
ALTER TABLE o SECONDARY_ENGINE NULL
ALTER TABLE o SECONDARY_ENGINE=RAPID, SECONDARY_LOAD
ALTER TABLE o SECONDARY_LOAD
ALTER TABLE o SECONDARY_LOAD PARTITION (p0, p1)
ALTER TABLE o SECONDARY_LOAD GUIDED OFF
ALTER TABLE o SECONDARY_UNLOAD
ALTER TABLE o SECONDARY_UNLOAD PARTITION (p0)
CREATE OR REPLACE JSON RELATIONAL DUALITY VIEW v AS SELECT JSON_DUALITY_OBJECT('_id': id, 'v': v) FROM o
CREATE JSON DUALITY VIEW v AS SELECT JSON_DUALITY_OBJECT(WITH(INSERT, UPDATE) '_id': id) FROM o
ALTER JSON DUALITY VIEW v AS SELECT JSON_DUALITY_OBJECT('_id': id) FROM o
CREATE MATERIALIZED VIEW mv AS SELECT * FROM o
CREATE DEFINER = 'a'@'%' SQL SECURITY INVOKER MATERIALIZED VIEW mv AS SELECT * FROM o
DROP MATERIALIZED VIEW IF EXISTS mv
CREATE MATERIALIZED VIEW LOG ON o WITH SEQUENCE, ROWID (v)
CREATE VIEW v AS TABLE o
CREATE FUNCTION f(o INT) RETURNS INT LANGUAGE JAVASCRIPT AS $$ let x = "it's"; return o; $$
CREATE FUNCTION f(o INT) RETURNS INT LANGUAGE JAVASCRIPT AS $js$ `; DROP TABLE o; ${o} $$ /* ' $js$
CREATE PROCEDURE p() LANGUAGE JAVASCRIPT USING (db.lib AS l) AS $$ /* unclosed " $$
CREATE LIBRARY IF NOT EXISTS db.lib LANGUAGE JAVASCRIPT COMMENT 'c' AS $$ export function f(o) { return o } $$
ALTER LIBRARY lib COMMENT 'x'
DROP LIBRARY lib
CREATE COMPRESSION_DICTIONARY IF NOT EXISTS numbers ('one' 'two')
DROP COMPRESSION_DICTIONARY numbers
CREATE SEQUENCE s START WITH 1 INCREMENT BY 1
ALTER SEQUENCE s RESTART 50
CREATE PACKAGE BODY p AS PROCEDURE q AS BEGIN NULL; END; END
CREATE PLACEMENT POLICY p PRIMARY_REGION="a" REGIONS="a,b"
ALTER PLACEMENT POLICY p FOLLOWERS=4
ALTER TABLE o PLACEMENT POLICY = p
ALTER TABLE o PARTITION p0 PLACEMENT POLICY = p
ALTER DATABASE d PLACEMENT POLICY = p
ALTER DATABASE d SET TIFLASH REPLICA 2
ALTER TABLE o SET TIFLASH REPLICA 2 LOCATION LABELS "rack"
ALTER TABLE o SET TIFLASH MODE FAST
ALTER TABLE o COMPACT TIFLASH REPLICA
ALTER TABLE o CACHE
ALTER TABLE o NOCACHE
ALTER TABLE o TTL = c + INTERVAL 3 MONTH TTL_ENABLE = 'OFF'
ALTER TABLE o REMOVE TTL
ALTER TABLE o ADD COLUMNAR INDEX i (v) USING INVERTED
ALTER TABLE o ADD VECTOR INDEX i ((VEC_COSINE_DISTANCE(v))) USING HNSW
CREATE COLUMNAR INDEX i ON o (v) USING INVERTED
ALTER TABLE o ADD STATS_EXTENDED IF NOT EXISTS s1 CORRELATION(a, b)
ALTER TABLE o ADD STATS_EXTENDED s1 dependency(a, b)
ALTER TABLE o DROP STATS_EXTENDED s1
ALTER TABLE o DROP STATS_EXTENDED IF EXISTS s1
ALTER TABLE o LAST PARTITION LESS THAN ('2024-01-01')
ALTER TABLE o SPLIT MAXVALUE PARTITION LESS THAN ('2024-01-01')
ALTER TABLE o MERGE FIRST PARTITION LESS THAN (10)
CREATE RESOURCE GROUP rg RU_PER_SEC = 500 PRIORITY = HIGH
CREATE GLOBAL BINDING FOR SELECT * FROM o USING SELECT * FROM o USE INDEX (i)
CREATE SESSION BINDING FOR DELETE FROM o WHERE a = 1 USING DELETE FROM o WHERE a = 1
DROP GLOBAL BINDING FOR SELECT * FROM o
DROP BINDING FOR SQL DIGEST '4ea0618129ffc6a7effbc0eff4bbcb41a7f5d4c53a6fa0b2e9be81c7010915b0'
DROP STATS o
ALTER TABLE o SET TABLEGROUP tg
ALTER TABLE o TABLEGROUP = 'tg'
ALTER TABLE o SET BLOCK_SIZE 16384 COMPRESSION 'zstd_1.3.8'
ALTER TABLE o ADD COLUMN GROUP(all columns, each column)
ALTER TABLE o DROP COLUMN GROUP(each column)
ALTER TABLE o RENAME PARTITION p0 TO p1
ALTER TABLE o READ ONLY
ALTER TABLE o ENABLE ALL TRIGGERS
ALTER TABLE o ADD INDEX i (v) BLOCK_SIZE 16384 LOCAL
ALTER TABLE o ADD INDEX i (v) GLOBAL STORING (a) WITH COLUMN GROUP(each column)
CREATE OUTLINE ol ON SELECT * FROM o TO SELECT * FROM o
ALTER OUTLINE ol ADD SELECT * FROM o
DROP OUTLINE ol
CREATE EXTERNAL TABLE e (a INT) LOCATION = 'file:///x' FORMAT = (TYPE = 'CSV')
ALTER EXTERNAL TABLE e REFRESH
DROP EXTERNAL TABLE e
CREATE TABLEGROUP tg SHARDING = 'ADAPTIVE'
ALTER TABLEGROUP tg ADD o
DROP TABLEGROUP IF EXISTS tg
ALTER TABLE o dbpartition by hash(id) tbpartition by hash(id) tbpartitions 4
ALTER TABLE o BROADCAST
ALTER TABLE o SINGLE
ALTER TABLE o ADD GLOBAL INDEX g (v) COVERING (a, b) dbpartition by hash(v)
ALTER TABLE o ADD CLUSTERED INDEX g (v) PARTITION BY KEY(v) PARTITIONS 16
CREATE GLOBAL INDEX g ON o (v) COVERING (a) PARTITION BY KEY(v) PARTITIONS 4
CREATE CLUSTERED COLUMNAR INDEX g ON o (v) PARTITION BY HASH(id)
ALTER TABLE o ADD CLUSTERING KEY k (v)
CREATE CLUSTERING INDEX k ON o (v)
""".strip().splitlines()


@pytest.mark.parametrize("sql", NO_EFFECT)
def test_a_statement_without_effect_on_rows_changes_no_table(sql: str) -> None:
    for statement in parse(sql):
        actions = statement.actions if isinstance(statement, AlterTable) else ()
        assert isinstance(statement, Other) or (actions and all(isinstance(item, NoEffect) for item in actions))
    changes = [
        SchemaChange("1", 0, "d", "CREATE TABLE o (id INT PRIMARY KEY, v VARCHAR(9), a INT, b INT)"),
        SchemaChange("2", 1, "d", sql),
    ]
    (table,) = build_timeline(changes).tables.values()
    assert table.blocked == []
    assert len(table.versions) == 1


# definition | number of columns | key | number of unique keys
CREATED = """
(id INT PRIMARY KEY, v INT) dbpartition by hash(id) tbpartition by UNI_HASH(id, v) tbpartitions 4 | 2 | id | 0
(id INT PRIMARY KEY, v INT) ENGINE=InnoDB BROADCAST | 2 | id | 0
(id INT PRIMARY KEY) SINGLE | 1 | id | 0
(id INT PRIMARY KEY, v INT, UNIQUE GLOBAL INDEX g (v) COVERING (id) dbpartition by hash(v)) | 2 | id | 1
(id INT AUTO_INCREMENT BY GROUP, PRIMARY KEY (id), CLUSTERED INDEX c (id) PARTITION BY KEY(id)) | 1 | id | 0
(a INT, PRIMARY KEY (a)) TDSQL_DISTRIBUTED BY RANGE(a) (s1 values less than (6), s2 values less than (9)) | 1 | a | 0
(a INT, PRIMARY KEY (a)) shardkey=a | 1 | a | 0
(a INT PRIMARY KEY) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (6)) TDSQL_DISTRIBUTED BY HASH(a) | 1 | a | 0
(id INT PRIMARY KEY, d TEXT COLUMN_FORMAT COMPRESSED WITH COMPRESSION_DICTIONARY n NOT NULL) | 2 | id | 0
(id INT PRIMARY KEY, x XMLTYPE) | 2 | id | 0
(id INT, s DATE, e DATE, PERIOD FOR p (s, e), UNIQUE (id, p WITHOUT OVERLAPS)) | 3 | | 0
(id INT PRIMARY KEY, v INT, CLUSTERING KEY k (v)) ENGINE=TokuDB | 2 | id | 0
(id INT, PRIMARY KEY (id) BLOCK_SIZE 16384, UNIQUE KEY u (id) BLOCK_SIZE 16384 LOCAL) REPLICA_NUM = 1 | 1 | id | 1
(id INT) USE_BLOOM_FILTER = FALSE TABLET_SIZE = 134217728 PCTFREE = 0 WITH COLUMN GROUP(each column) | 1 | | 0
(clustering INT, `global` INT, vector VECTOR(3), local INT) | 4 | | 0
""".strip().splitlines()


@pytest.mark.parametrize("line", CREATED)
def test_create_table_of_distributed_databases(line: str) -> None:
    definition, columns, key, unique = (part.strip() for part in line.split("|"))
    (created,) = parse(f"CREATE TABLE o {definition}")
    assert isinstance(created, CreateTable)
    assert (len(created.columns), ",".join(created.key), len(created.unique)) == (int(columns), key, int(unique))


def test_what_only_looks_like_a_clause_is_a_column() -> None:
    (altered,) = parse("ALTER TABLE o ADD stats_extended VARCHAR(10), DROP STATS_EXTENDED, ADD columnar INT")
    assert isinstance(altered, AlterTable)
    assert [type(action) for action in altered.actions] == [AddColumn, DropColumn, AddColumn]
    (partition,) = parse("CREATE PARTITION TABLE o (a INT)")
    assert isinstance(partition, CreateTable)
    (unique,) = parse("CREATE UNIQUE GLOBAL INDEX g ON o (a) COVERING (b) PARTITION BY KEY(a)")
    assert isinstance(unique, AlterTable)
    assert unique.actions == (AddUnique("g", ("a",)),)
    (key,) = parse("ALTER TABLE o ADD UNIQUE CLUSTERING KEY k (a), ADD PRIMARY KEY (b) LOCAL")
    assert isinstance(key, AlterTable)
    assert key.actions == (AddUnique("k", ("a",)), AddPrimaryKey(("b",)))


def test_drop_tablegroup_drops_a_column_only_where_the_table_has_one() -> None:
    (dropped,) = parse("ALTER TABLE o DROP TABLEGROUP")
    assert isinstance(dropped, AlterTable)
    assert dropped.actions == (DropColumn("TABLEGROUP", if_exists=True),)


@pytest.mark.parametrize(
    "clause",
    [
        "FIRST PARTITION LESS THAN ('2020-01-01')",
        "DROP SUBPARTITION p0sp0",
        "TRUNCATE SUBPARTITION p0sp0",
        "TRUNCATE PARTITION p0 UPDATE GLOBAL INDEXES",
    ],
)
def test_clauses_that_remove_rows_say_so(clause: str) -> None:
    (altered,) = parse(f"ALTER TABLE o {clause}")
    assert isinstance(altered, AlterTable)
    assert isinstance(altered.actions[0], PartitionRows)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE DUPLICATE TABLE o (a INT)",  # a kind of table that is not known
        "CREATE SOME OTHER TABLE o (a INT)",
        "DROP REMOTE TABLE o",
        "ALTER REMOTE DATABASE d",
        "DROP CATALOG c",
        "CREATE STRANGE INDEX i ON o (a)",
        "ALTER TABLE o EXPIRE LOCAL PARTITION p1",  # PolarDB-X: removes rows
        "ALTER TABLE o SET",
        "ALTER TABLE o SECONDARY_LOAD PARTITION",
        "ALTER TABLE o ADD COLUMN GROUP",
        "CREATE TABLE o (id INT, s DATE, e DATE, PERIOD FOR p (s, e), PRIMARY KEY (id, p WITHOUT OVERLAPS))",
        "CREATE 'x'",
        "DROP `view` v",
        "CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT AS $a$ it's $$",  # the quote has no end
    ],
)
def test_what_may_concern_a_table_in_an_unknown_way_is_refused(sql: str) -> None:
    with pytest.raises(DdlError):
        parse(sql)


def test_a_name_with_dollars_is_a_name() -> None:
    (created,) = parse("CREATE TABLE o AS SELECT 1 AS $a, 2 AS b$$")
    assert isinstance(created, CreateTable)
    (dropped,) = parse("DROP TABLE $$, $a$")
    assert isinstance(dropped, DropTable)
    assert [name.table for name in dropped.names] == ["$$", "$a$"]
