# SPDX-License-Identifier: Apache-2.0
"""Test each clause of ALTER TABLE."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.ddl.alter_actions import (
    AddColumn,
    AddPrimaryKey,
    AddUnique,
    AlterAction,
    ChangeColumn,
    ConvertCharset,
    DropColumn,
    DropIndex,
    DropPrimaryKey,
    NoEffect,
    PartitionRows,
    RenameColumn,
    RenameIndex,
    RenameTo,
    SetCharset,
    SetComment,
    SetDefault,
)
from airflow_provider_cdc.core.ddl.parser import DdlError
from airflow_provider_cdc.core.ddl.statement import AlterTable
from airflow_provider_cdc.core.ddl.table_parts import ColumnDefinition, Name
from tests.unit.core.ddl.single_statements import INT, one

A, B = ColumnDefinition("a", INT), ColumnDefinition("b", INT)


def actions(clauses: str) -> tuple[AlterAction, ...]:
    """Return the clauses of an ALTER TABLE."""
    statement = one(f"ALTER TABLE t {clauses}")
    assert isinstance(statement, AlterTable)
    assert statement.name == Name(None, "t")
    return statement.actions


def effects(clauses: str) -> list[AlterAction]:
    """Return the clauses of an ALTER TABLE that have an effect."""
    return [action for action in actions(clauses) if not isinstance(action, NoEffect)]


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("ADD a INT", [AddColumn(A)]),
        ("ADD COLUMN a INT FIRST", [AddColumn(A, first=True)]),
        ("ADD COLUMN IF NOT EXISTS a INT AFTER `x y`", [AddColumn(A, after="x y", if_not_exists=True)]),
        ("ADD COLUMN (a INT, b INT)", [AddColumn(A), AddColumn(B)]),
        ("ADD (a INT, UNIQUE u (a), KEY (a))", [AddColumn(A), AddUnique("u", ("a",))]),
        ("DROP a", [DropColumn("a")]),
        ("DROP COLUMN IF EXISTS a CASCADE, DROP b", [DropColumn("a", if_exists=True), DropColumn("b")]),
        ("MODIFY a INT", [ChangeColumn("a", A)]),
        ("MODIFY COLUMN IF EXISTS a INT FIRST", [ChangeColumn("a", A, first=True, if_exists=True)]),
        ("CHANGE x a INT AFTER y", [ChangeColumn("x", A, after="y")]),
        ("CHANGE COLUMN IF EXISTS x a INT", [ChangeColumn("x", A, if_exists=True)]),
        ("RENAME COLUMN a TO b, RENAME COLUMN b TO a", [RenameColumn("a", "b"), RenameColumn("b", "a")]),
        ("ALTER a SET DEFAULT 'x'", [SetDefault("a", "'x'")]),
        ("ALTER COLUMN a SET DEFAULT (uuid())", [SetDefault("a", "(uuid())")]),
        ("ALTER COLUMN a SET DEFAULT NULL", [SetDefault("a", "NULL")]),
        ("ALTER COLUMN a DROP DEFAULT", [SetDefault("a", None)]),
        ("ADD PRIMARY KEY (a, b(3))", [AddPrimaryKey(("a", "b"))]),
        ("ADD CONSTRAINT PRIMARY KEY (a)", [AddPrimaryKey(("a",))]),
        ("ADD CONSTRAINT pk PRIMARY KEY USING BTREE (a), DROP INDEX x", [AddPrimaryKey(("a",)), DropIndex("x")]),
        ("DROP PRIMARY KEY", [DropPrimaryKey()]),
        ("DROP INDEX `PRIMARY`", [DropPrimaryKey()]),
        ("ADD UNIQUE (a, b)", [AddUnique("a", ("a", "b"))]),
        ("ADD UNIQUE INDEX IF NOT EXISTS u (a)", [AddUnique("u", ("a",))]),
        ("ADD CONSTRAINT s UNIQUE KEY (a)", [AddUnique("s", ("a",))]),
        ("DROP KEY IF EXISTS u", [DropIndex("u")]),
        ("DROP CONSTRAINT u", [DropIndex("u")]),
        ("RENAME INDEX u TO v, RENAME KEY v TO w", [RenameIndex("u", "v"), RenameIndex("v", "w")]),
        ("RENAME TO b.u", [RenameTo(Name("b", "u"))]),
        ("RENAME AS u", [RenameTo(Name(None, "u"))]),
        ("RENAME = u", [RenameTo(Name(None, "u"))]),
        ("RENAME u, ADD a INT", [RenameTo(Name(None, "u")), AddColumn(A)]),
        ("CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", [ConvertCharset("utf8mb4")]),
        ("DEFAULT CHARACTER SET = utf8mb4 COLLATE utf8mb4_bin", [SetCharset("utf8mb4")]),
        ("CONVERT TO CHARSET 'latin1'", [ConvertCharset("latin1")]),
        ("ADD a INT, ALGORITHM=INPLACE, LOCK=NONE", [AddColumn(A)]),
        ("ALGORITHM = INSTANT, ADD a INT", [AddColumn(A)]),
        ("ENGINE=InnoDB ROW_FORMAT=COMPACT, ADD a INT", [AddColumn(A)]),
        ("COMMENT='it''s'", [SetComment("it's")]),
        ('COMMENT "", CHARSET latin1, ENGINE = x', [SetComment(""), SetCharset("latin1")]),
        ("DEFAULT CHARSET latin1 COMMENT 'x'", [SetCharset("latin1"), SetComment("x")]),
        ("ADD a INT PARTITION BY HASH (a) PARTITIONS 4", [AddColumn(A)]),
        ("ORDER BY a DESC, b, ADD a INT", [AddColumn(A)]),
        ("WAIT 10 ADD a INT", [AddColumn(A)]),
        ("NOWAIT ADD a INT", [AddColumn(A)]),
        ("DROP PARTITION p0, p1", [PartitionRows("drop")]),
        ("DROP PARTITION IF EXISTS p0", [PartitionRows("drop")]),
        ("TRUNCATE PARTITION ALL", [PartitionRows("truncate")]),
        ("EXCHANGE PARTITION p WITH TABLE b.o WITHOUT VALIDATION", [PartitionRows("exchange", Name("b", "o"))]),
        ("DISCARD PARTITION p0 TABLESPACE", [PartitionRows("discard")]),
        ("IMPORT PARTITION ALL TABLESPACE", [PartitionRows("import")]),
        ("DISCARD TABLESPACE", [PartitionRows("discard")]),
        ("CONVERT PARTITION p TO TABLE o", [PartitionRows("detach", Name(None, "o"))]),
    ],
)
def test_alter_table_clauses(clauses: str, expected: list[AlterAction]) -> None:
    assert effects(clauses) == expected


@pytest.mark.parametrize(
    "clause",
    [
        "ADD INDEX i (a DESC)",
        "ADD KEY IF NOT EXISTS (a) USING BTREE COMMENT 'a'",
        "ADD FULLTEXT INDEX (a)",
        "ADD SPATIAL KEY (g)",
        "ADD VECTOR INDEX v (e) M=8 DISTANCE=cosine",
        "ADD CONSTRAINT ck CHECK (a > 0)",
        "ADD UNIQUE f ((lower(a)))",
        "DROP CHECK ck",
        "ALTER INDEX i INVISIBLE",
        "ALTER INDEX i NOT IGNORED",
        "ALTER CHECK ck NOT ENFORCED",
        "ALTER COLUMN a SET INVISIBLE",
        "DEFAULT CHARACTER SET = DEFAULT",
        "AUTO_INCREMENT=500",
        "COMMENT=5",
        "STATS_PERSISTENT=0 UNION=(a,b) DATA DIRECTORY='/x'",
        "`PAGE_COMPRESSED`='ON'",
        "ENABLE KEYS",
        "DISABLE KEYS",
        "FORCE",
        "ORDER BY a, b DESC",
        "LOCK SHARED",
        "ADD PARTITION (PARTITION p2 VALUES LESS THAN (30))",
        "ADD PARTITION PARTITIONS 2",
        "REORGANIZE PARTITION p0, p1 INTO (PARTITION p VALUES LESS THAN (20))",
        "COALESCE PARTITION 2",
        "REBUILD PARTITION ALL",
        "ANALYZE PARTITION p0, p1",
        "CHECK PARTITION p0 FOR UPGRADE",
        "REMOVE PARTITIONING",
        "PARTITION BY LINEAR KEY ALGORITHM=2 (a) PARTITIONS 8",
        "SECONDARY_LOAD",
        "WITHOUT VALIDATION",
    ],
)
def test_alter_table_clauses_without_effect(clause: str) -> None:
    assert actions(clause) != ()
    assert effects(clause) == []


@pytest.mark.parametrize("head", ["ALTER ONLINE TABLE", "ALTER IGNORE TABLE", "alter /* c */ table if exists"])
def test_alter_table_heads(head: str) -> None:
    assert one(f"{head} s.t DROP a") == AlterTable(
        Name("s", "t"), (DropColumn("a"),), ignore="IGNORE" in head, if_exists="exists" in head.lower()
    )


def test_alter_table_without_a_clause_does_nothing() -> None:
    assert one("ALTER TABLE t") == AlterTable(Name(None, "t"), ())


@pytest.mark.parametrize(
    "clauses",
    [
        "ADD",
        "ADD a",
        "ADD a INT,",
        "ADD a INT ADD b INT",
        "DROP",
        "MODIFY a",
        "FOO",
        "CONVERT TO CHARACTER SET DEFAULT",
        "DROP PARTITION",
        "ALTER a",
        "RENAME COLUMN a",
        "ADD PRIMARY KEY ((a))",
    ],
)
def test_alter_table_that_is_not_understood(clauses: str) -> None:
    with pytest.raises(DdlError):
        actions(clauses)
