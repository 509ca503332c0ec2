# SPDX-License-Identifier: Apache-2.0
"""Test Oracle's statements; expected values are of Oracle's SQL Language Reference."""

from __future__ import annotations

import contextlib
import random
import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from airflow_provider_cdc.core.ddl.alter_actions import (
    AddColumn,
    AddForeignKey,
    AddPrimaryKey,
    AddUnique,
    AlterAction,
    DropColumn,
    DropConstraint,
    DropPrimaryKey,
    NoEffect,
    PartitionRows,
    RenameColumn,
    RenameTo,
)
from airflow_provider_cdc.core.ddl.parser import DdlError, parse
from airflow_provider_cdc.core.ddl.statement import (
    AlterTable,
    CommentOn,
    CreateTable,
    DropDatabase,
    DropTable,
    Other,
    RenameTable,
    Statement,
    TruncateTable,
)
from airflow_provider_cdc.core.ddl.table_parts import ForeignKey, Name
from airflow_provider_cdc.core.model.schema import Column, Default, TableName
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import SchemaChange, TableTimeline, Timeline

TEXT = "longtext"


def one(text: str) -> Statement:
    """Return the only statement of a text."""
    (statement,) = parse(text, "oracle")
    return statement


def create(text: str) -> CreateTable:
    """Return the CREATE TABLE that a text is."""
    statement = one(text)
    assert isinstance(statement, CreateTable)
    return statement


def actions(clauses: str) -> tuple[AlterAction, ...]:
    """Return what the clauses of an ALTER TABLE do."""
    statement = one(f"ALTER TABLE t {clauses}")
    assert isinstance(statement, AlterTable)
    return statement.actions


def timeline(*statements: str, dialect: str | None = "oracle") -> Timeline:
    """Return the timeline of statements of the schema SHOP, in this order."""
    changes = [SchemaChange(f"{n:03}", n, "SHOP", text, dialect=dialect) for n, text in enumerate(statements)]
    return build_timeline(changes)


def table(*statements: str) -> TableTimeline:
    """Return the only table that these statements leave."""
    (built,) = (item for item in timeline(*statements).tables.values() if item.name is not None)
    return built


def columns(*statements: str) -> dict[str, Column]:
    """Return the columns of the only table, by name."""
    return {column.name: column for column in table(*statements).schema.columns}


# -- names -------------------------------------------------------------------------------------------------------------


def test_names_without_quotes_are_in_upper_case_and_quoted_ones_as_they_are() -> None:
    created = create('create table shop."Orders" (id number(9) primary key, "note" clob, grösse# number(3), a$b date)')
    assert created.name == Name("SHOP", "Orders")
    assert [column.name for column in created.columns] == ["ID", "note", "GRÖSSE#", "A$B"]


@pytest.mark.parametrize("name", ["key", "limit", "keys", "change", "if", "replace", "database", "lock_", "interval"])
def test_words_that_only_mysql_reserves_are_names(name: str) -> None:
    (column,) = create(f"CREATE TABLE t ({name} VARCHAR2(5))").columns
    assert column.name == name.upper()


# -- types -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NUMBER(9,0)", "decimal(9,0)"),
        ("NUMBER(9)", "decimal(9,0)"),
        ("NUMBER(38,2)", "decimal(38,2)"),
        ("NUMBER(*,2)", "decimal(38,2)"),
        ("NUMBER(2,4)", "decimal(4,4)"),  # 0.0012
        ("NUMBER(5,-2)", "decimal(7,0)"),  # 1234500
        ("NUMBER(38,-2)", TEXT),  # 40 digits
        ("NUMBER(20,50)", TEXT),
        ("NUMBER", TEXT),  # any scale
        ("NUMBER(*)", TEXT),
        ("INTEGER", "decimal(38,0)"),
        ("INT", "decimal(38,0)"),
        ("SMALLINT", "decimal(38,0)"),
        ("NUMERIC", "decimal(38,0)"),
        ("DECIMAL(10,2)", "decimal(10,2)"),
        ("DEC(4)", "decimal(4,0)"),
        ("FLOAT", TEXT),  # decimal in Oracle
        ("FLOAT(126)", TEXT),
        ("REAL", TEXT),
        ("DOUBLE PRECISION", TEXT),
        ("BINARY_FLOAT", "float"),
        ("BINARY_DOUBLE", "double"),
        ("VARCHAR2(20 BYTE)", TEXT),
        ("VARCHAR2(20 CHAR)", TEXT),
        ("NVARCHAR2(20)", TEXT),
        ("VARCHAR(20)", TEXT),
        ("CHAR", TEXT),
        ("CHAR(3 CHAR)", TEXT),
        ("NCHAR(3)", TEXT),
        ("CHARACTER VARYING(5)", TEXT),
        ("NATIONAL CHARACTER VARYING (5)", TEXT),
        ("CLOB", TEXT),
        ("NCLOB", TEXT),
        ("LONG", TEXT),
        ("LONG RAW", "longblob"),
        ("RAW(16)", "longblob"),
        ("BLOB", "longblob"),
        ("BFILE", "longblob"),
        ("DATE", "datetime"),  # has a time of day
        ("TIMESTAMP", "datetime(6)"),
        ("TIMESTAMP(3)", "datetime(3)"),
        ("TIMESTAMP(9)", "datetime(6)"),
        ("TIMESTAMP(3) WITH TIME ZONE", TEXT),
        ("TIMESTAMP WITH LOCAL TIME ZONE", "timestamp(6)"),
        ("INTERVAL YEAR(4) TO MONTH", TEXT),
        ("INTERVAL DAY(2) TO SECOND(6)", TEXT),
        ("ROWID", TEXT),
        ("UROWID(4000)", TEXT),
        ("XMLTYPE", TEXT),
        ('"MDSYS"."SDO_GEOMETRY"', "geometry"),
        ("SDO_GEOMETRY", "geometry"),
    ],
)
def test_types_hold_what_oracle_documents(text: str, expected: str) -> None:
    created = create(f"CREATE TABLE t (id NUMBER(9) PRIMARY KEY, c {text} NOT NULL)")
    assert created.unknown is None
    assert str(created.columns[1].type) == expected


@pytest.mark.parametrize("text", ["address_typ", "INT UNSIGNED", "hr.address_typ", "TEXT", "ENUM('a')", "NUMBER(9,"])
def test_a_table_with_a_type_that_is_not_known_is_known_by_name_only(text: str) -> None:
    created = create(f"CREATE TABLE t (id NUMBER(9) PRIMARY KEY, c {text})")
    assert (created.name, created.columns) == (Name(None, "T"), ())
    assert "state its columns under tables.<name>.create" in (created.unknown or "")
    (block,) = table(f"CREATE TABLE t (id NUMBER(9) PRIMARY KEY, c {text})").blocked
    assert block.columns


def test_a_stated_table_replaces_a_statement_that_is_not_understood() -> None:
    stated = SchemaChange("", 0, "SHOP", "CREATE TABLE T (ID BIGINT PRIMARY KEY, C LONGTEXT)")
    read = SchemaChange("1", 1, "SHOP", "CREATE TABLE t (id NUMBER PRIMARY KEY, c address_typ)", dialect="oracle")
    (built,) = build_timeline([stated, read]).tables.values()
    assert [column.name for column in built.schema.columns] == ["ID", "C"]
    assert built.blocked == []


@pytest.mark.parametrize(
    "body",
    [
        "id NUMBER PRIMARY KEY, a NUMBER(3)",
        "id NUMBER, a NUMBER(3), CONSTRAINT pk PRIMARY KEY (a, id)",
        "id NUMBER, a NUMBER(3)",  # no key: all columns tell rows apart
        "id FLOAT NOT NULL UNIQUE, a NUMBER(3)",
    ],
)
def test_numbers_of_any_scale_do_not_identify_rows(body: str) -> None:
    (block,) = table(f"CREATE TABLE t ({body})").blocked
    assert "'ID' without a scale cannot tell rows apart" in block.reason
    assert block.columns


@pytest.mark.parametrize(
    ("body", "alter"),
    [
        ("a NUMBER(3)", "ADD id NUMBER"),  # no key: all columns tell rows apart
        ("a NUMBER(3) PRIMARY KEY, id NUMBER", "DROP PRIMARY KEY"),
        ("a NUMBER(3), c NUMBER(3) PRIMARY KEY", "ADD id NUMBER DROP PRIMARY KEY"),
        ("id NUMBER(3) PRIMARY KEY", "MODIFY id NUMBER"),
        ("a NUMBER(3), id NUMBER(5)", "MODIFY (id FLOAT)"),
    ],
)
def test_an_alter_that_makes_a_number_of_any_scale_identify_rows_blocks(body: str, alter: str) -> None:
    block = table(f"CREATE TABLE t ({body})", f"ALTER TABLE t {alter}").blocked[-1]
    assert "'ID' without a scale cannot tell rows apart" in block.reason
    assert block.columns


@pytest.mark.parametrize("alter", ["ADD b NUMBER", "MODIFY id NUMBER(5)", "ADD d CLOB"])
def test_an_alter_that_leaves_the_key_exact_blocks_nothing(alter: str) -> None:
    assert table("CREATE TABLE t (id NUMBER(3) PRIMARY KEY)", f"ALTER TABLE t {alter}").blocked == []


def _reasons(*statements: str) -> dict[str, list[str]]:
    """Return by table why its rows are unknown."""
    changes = [
        SchemaChange(f"{index:03}", index, "SHOP", text, dialect="oracle") for index, text in enumerate(statements)
    ]
    built = build_timeline(changes)
    return {timeline.last_name.table: [b.reason for b in timeline.blocked] for timeline in built.tables.values()}


CHILDREN = (
    "CREATE TABLE p (id NUMBER(3) PRIMARY KEY)",
    "CREATE TABLE c (id NUMBER(3) PRIMARY KEY, p NUMBER(3) CONSTRAINT f REFERENCES p ON DELETE CASCADE)",
    "CREATE TABLE d (id NUMBER(3) PRIMARY KEY, c NUMBER(3))",
    "ALTER TABLE d ADD CONSTRAINT g FOREIGN KEY (c) REFERENCES shop.c (id) ON DELETE CASCADE",
    "CREATE TABLE e (id NUMBER(3) PRIMARY KEY, p NUMBER(3) REFERENCES p ON DELETE SET NULL)",
    "CREATE TABLE h (id NUMBER(3) PRIMARY KEY, p NUMBER(3) REFERENCES p ON DELETE CASCADE DISABLE)",
)


def test_truncate_cascade_blocks_the_tables_below() -> None:
    reasons = _reasons(*CHILDREN, "TRUNCATE TABLE p CASCADE")
    reason = "TRUNCATE TABLE SHOP.P CASCADE empties this table, too"
    assert reasons == {"P": [], "C": [reason], "D": [reason], "E": [], "H": []}


def test_truncate_cascade_uses_the_foreign_keys_of_its_position() -> None:
    dropped = "ALTER TABLE c DROP CONSTRAINT f"
    assert not any(_reasons(*CHILDREN, dropped, "TRUNCATE TABLE p CASCADE").values())
    reasons = _reasons(*CHILDREN, "RENAME p TO q", "TRUNCATE TABLE q CASCADE")
    assert reasons["C"] == ["TRUNCATE TABLE SHOP.Q CASCADE empties this table, too"]
    assert not any(_reasons(*CHILDREN, "TRUNCATE TABLE p").values())


def test_a_number_of_any_scale_outside_the_key_is_stored_as_text() -> None:
    assert table("CREATE TABLE t (id NUMBER(9) PRIMARY KEY, a NUMBER)").blocked == []


# -- CREATE TABLE ------------------------------------------------------------------------------------------------------


def test_constraints_and_storage_of_a_created_table() -> None:
    created = create(
        """CREATE TABLE "SHOP"."ORDERS" (
             "ID" NUMBER(12,0) GENERATED BY DEFAULT ON NULL AS IDENTITY MINVALUE 1 START WITH 101 CACHE 20 NOORDER
               NOT NULL ENABLE,
             "STATE" VARCHAR2(10 CHAR) DEFAULT q'[it's]' NOT NULL ENABLE,
             "PLACED" DATE DEFAULT SYSDATE, -- when
             "TOTAL" NUMBER(12,2) CHECK ("TOTAL" >= 0) DISABLE,
             "GROSS" NUMBER(12,2) GENERATED ALWAYS AS (ROUND("TOTAL" * 1.19, 2)) VIRTUAL,
             CONSTRAINT "ORDERS_PK" PRIMARY KEY ("ID") USING INDEX (CREATE UNIQUE INDEX i ON "ORDERS" ("ID"))
               TABLESPACE "USERS" ENABLE,
             CONSTRAINT "ORDERS_UQ" UNIQUE ("STATE", "PLACED") DISABLE,
             UNIQUE ("TOTAL") USING INDEX PCTFREE 10 STORAGE (INITIAL 64K) ENABLE NOVALIDATE,
             CONSTRAINT "FK" FOREIGN KEY ("STATE") REFERENCES "SHOP"."STATES" ("ID") ON DELETE CASCADE,
             SUPPLEMENTAL LOG GROUP "G" ("ID", "STATE") ALWAYS,
             SUPPLEMENTAL LOG DATA (ALL) COLUMNS
           ) SEGMENT CREATION IMMEDIATE PCTFREE 10 NOCOMPRESS LOGGING STORAGE (INITIAL 65536 NEXT 1048576)
           TABLESPACE "USERS" LOB ("X") STORE AS SECUREFILE "X_SEG" (ENABLE STORAGE IN ROW)
           PARTITION BY RANGE ("PLACED") (PARTITION p0 VALUES LESS THAN (TO_DATE('2024-01-01', 'YYYY-MM-DD')))"""
    )
    assert created.unknown is None
    by_name = {column.name: column for column in created.columns}
    assert list(by_name) == ["ID", "STATE", "PLACED", "TOTAL", "GROSS"]
    assert (created.key, created.key_name) == (("ID",), "ORDERS_PK")
    assert created.unique == (AddUnique("(TOTAL)", ("TOTAL",)),)  # a disabled constraint tells no rows apart
    assert by_name["ID"].auto_increment
    assert by_name["STATE"].default == Default("constant", "it's")
    assert by_name["PLACED"].default == Default("expression", "SYSDATE")
    assert by_name["GROSS"].generated
    assert [name for name, column in by_name.items() if column.nullable is False] == ["ID", "STATE"]
    assert created.references == (
        ForeignKey(("FK",), ("STATE",), Name("SHOP", "STATES"), ("ID",), cascades=False, empties=True),
    )


def test_columns_of_a_query_are_unknown() -> None:
    (block,) = table("CREATE TABLE t NOLOGGING PARALLEL (DEGREE 1) AS SELECT a FROM b").blocked
    assert block.columns


@pytest.mark.parametrize("kind", ["GLOBAL TEMPORARY", "PRIVATE TEMPORARY"])
def test_a_temporary_table_is_ignored(kind: str) -> None:
    assert timeline(f"CREATE {kind} TABLE t (id NUMBER(9)) ON COMMIT DELETE ROWS").tables == {}


# -- ALTER TABLE -------------------------------------------------------------------------------------------------------

CREATED = "CREATE TABLE t (id NUMBER(9) CONSTRAINT pk PRIMARY KEY, a VARCHAR2(5) DEFAULT 'x' NOT NULL, b NUMBER(5))"


def test_columns_are_added_modified_and_dropped_in_lists() -> None:
    by_name = columns(
        CREATED,
        "ALTER TABLE t ADD (c DATE, d TIMESTAMP(3) DEFAULT TIMESTAMP '2024-01-02 03:04:05') "
        "MODIFY (b NUMBER(7,2) NOT NULL, a DEFAULT 'y') DROP (id) CASCADE CONSTRAINTS",
        "ALTER TABLE t ADD e CLOB",
        "ALTER TABLE shop.t DROP COLUMN c",
    )
    assert list(by_name) == ["A", "B", "D", "E"]
    assert str(by_name["B"].type) == "decimal(7,2)"
    assert not by_name["A"].nullable  # NOT NULL stays
    assert not by_name["B"].nullable


def test_modify_keeps_what_it_does_not_state_and_the_columns_identity() -> None:
    before = columns(CREATED)["A"]
    after = columns(CREATED, "ALTER TABLE t MODIFY a VARCHAR2(50)")["A"]
    assert after == before


def test_columns_and_tables_are_renamed() -> None:
    built = timeline(CREATED, 'ALTER TABLE t RENAME COLUMN a TO "b c"', "ALTER TABLE t RENAME TO u", "RENAME u TO v")
    (item,) = built.tables.values()
    assert item.name == TableName("SHOP", "V")
    assert [column.name for column in item.schema.columns] == ["ID", "b c", "B"]


def test_a_renamed_table_stays_in_its_schema() -> None:
    assert one("ALTER TABLE other.t RENAME TO u") == AlterTable(Name("OTHER", "T"), (RenameTo(Name("OTHER", "U")),))


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ('ADD CONSTRAINT pk PRIMARY KEY (a, "b") USING INDEX', AddPrimaryKey(("A", "b"), "PK")),
        ("ADD (CONSTRAINT uq UNIQUE (a))", AddUnique("UQ", ("A",))),
        (
            "ADD CONSTRAINT fk FOREIGN KEY (a) REFERENCES p",
            AddForeignKey(ForeignKey(("FK",), ("A",), Name(None, "P"))),
        ),
        ("ADD CHECK (a > 0)", NoEffect("ADD CONSTRAINT")),
        ("ADD PRIMARY KEY (a) DISABLE", NoEffect("ADD CONSTRAINT")),
        ("DROP PRIMARY KEY CASCADE DROP INDEX", DropPrimaryKey()),
        ("DROP CONSTRAINT x KEEP INDEX", DropConstraint("X")),
        ("SET UNUSED (a)", DropColumn("A")),
        ("SET UNUSED COLUMN a CASCADE CONSTRAINTS", DropColumn("A", with_keys=True)),
        ("RENAME COLUMN a TO b", RenameColumn("A", "B")),
        ("TRUNCATE PARTITION p", PartitionRows("truncate")),
        ("DROP PARTITION p UPDATE GLOBAL INDEXES", PartitionRows("drop")),
        ("EXCHANGE PARTITION p WITH TABLE s.o INCLUDING INDEXES", PartitionRows("exchange", Name("S", "O"))),
        ("ADD PARTITION p VALUES LESS THAN (5)", NoEffect("PARTITION")),
        ("MOVE PARTITION p COMPRESS TABLESPACE x", NoEffect("MOVE")),
        ("ENABLE ROW MOVEMENT", NoEffect("ENABLE")),
        ("DISABLE ALL TRIGGERS", NoEffect("DISABLE")),
        ("ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS", NoEffect("ADD CONSTRAINT")),
        ("DROP SUPPLEMENTAL LOG GROUP g", NoEffect("DROP SUPPLEMENTAL LOG")),
    ],
)
def test_clauses(clause: str, expected: AlterAction) -> None:
    assert actions(clause) == (expected,)


def test_clauses_of_oceanbase_are_separated_by_commas() -> None:
    clauses = actions("COMPRESS FOR OLTP, ADD c DATE, DROP COLUMN d")
    assert [type(action).__name__ for action in clauses] == ["NoEffect", "AddColumn", "DropColumn"]


def test_a_key_that_loses_a_column_is_dropped_whole() -> None:
    two = "CREATE TABLE t (a NUMBER(3), b NUMBER(3), PRIMARY KEY (a, b))"
    assert table(two, "ALTER TABLE t DROP COLUMN b CASCADE CONSTRAINTS").schema.key == ()


def test_a_constraint_is_dropped_by_its_name() -> None:
    constraints = "CONSTRAINT pk PRIMARY KEY (a), CONSTRAINT uq UNIQUE (b)"
    keyed = f"CREATE TABLE t (a NUMBER(3), b NUMBER(3) NOT NULL, {constraints})"
    without_key = table(keyed, "ALTER TABLE t DROP CONSTRAINT pk")
    assert [column.name for column in without_key.schema.key_columns] == ["B"]
    assert table(keyed, "ALTER TABLE t DROP CONSTRAINT pk", "ALTER TABLE t DROP CONSTRAINT uq").schema.key == ()
    unchanged = table(keyed, "ALTER TABLE t DROP CONSTRAINT some_check")
    assert [column.name for column in unchanged.schema.key_columns] == ["A"]
    assert unchanged.blocked == []


def test_a_dropped_constraint_that_may_be_the_key_parks_the_table() -> None:
    unnamed = "CREATE TABLE t (a NUMBER(3) PRIMARY KEY)"
    (block,) = table(unnamed, "ALTER TABLE t DROP CONSTRAINT SYS_C0012345").blocked
    assert block.columns


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ("NUMBER(5,2) DEFAULT 1.50", Default("constant", "1.5")),
        ("NUMBER(5,2) DEFAULT -1", Default("constant", "-1")),
        ("NUMBER(5,2) DEFAULT '7'", Default("constant", "7")),
        ("NUMBER(5) DEFAULT (0)", Default("expression", "(0)")),
        ("NUMBER DEFAULT 1e3", Default("constant", "1000")),
        ("NUMBER(5) DEFAULT 1.5", Default("expression", "1.5")),  # rounded by the server
        ("VARCHAR2(5) DEFAULT ''", Default("constant", None)),  # the empty text is NULL
        ("VARCHAR2(5) DEFAULT 7", Default("constant", "7")),
        ("CHAR(3) DEFAULT 'a'", Default("constant", "a  ")),
        ("CHAR(3) DEFAULT 'ä'", Default("expression", "'ä'")),  # in bytes or in characters
        ("DATE DEFAULT DATE '2024-01-02'", Default("constant", "2024-01-02 00:00:00")),
        ("DATE DEFAULT SYSDATE", Default("expression", "SYSDATE")),  # in the server's time zone
        ("DATE DEFAULT '02-JAN-24'", Default("expression", "'02-JAN-24'")),
        ("DATE", None),
        ("VARCHAR2(9) DEFAULT ON NULL 'x'", Default("constant", "x")),
        ("VARCHAR2(9) DEFAULT NULL NULL", Default("constant", None)),
        ("VARCHAR2(9) DEFAULT USER || 'x' NOT NULL", Default("expression", "USER || 'x'")),
    ],
)
def test_defaults_are_what_oracle_stores(definition: str, expected: Default | None) -> None:
    (action,) = actions(f"ADD c {definition}")
    assert isinstance(action, AddColumn)
    assert action.definition.default == expected


def test_rows_get_the_default_of_an_added_column() -> None:
    built = table(CREATED, "ALTER TABLE t ADD (c CHAR(3) DEFAULT 'a', d DATE, e DATE DEFAULT SYSDATE)")
    names = {column.id: column.name for column in built.schema.columns}
    fills = {names[column]: fill for column, fill in built.fills.items()}
    assert fills["C"] == Default("constant", "a  ")
    assert fills["D"] == Default("constant", None)
    (block,) = built.blocked
    assert "'E' is an expression" in block.reason


@pytest.mark.parametrize(
    "clause",
    [
        "MODIFY a CHAR(20)",  # pads stored rows
        "MODIFY CONSTRAINT pk DISABLE",
        "ADD c address_typ",
        "CHANGE a b INT",
        "ADD c INT FIRST",
        "ADD c DATE,",
    ],
)
def test_clauses_that_are_not_understood_park_their_table_only(clause: str) -> None:
    built = timeline(CREATED, "CREATE TABLE other (a NUMBER(3) PRIMARY KEY)", f"ALTER TABLE t {clause}")
    blocked = {item.name: [block.columns for block in item.blocked] for item in built.tables.values()}
    assert blocked == {TableName("SHOP", "T"): [True], TableName("SHOP", "OTHER"): []}


# -- other statements --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TRUNCATE TABLE t", TruncateTable(Name(None, "T"))),
        ("TRUNCATE TABLE t CASCADE", TruncateTable(Name(None, "T"), cascade=True)),
        ('TRUNCATE TABLE s."t" DROP ALL STORAGE', TruncateTable(Name("S", "t"))),
        ("TRUNCATE TABLE t PURGE MATERIALIZED VIEW LOG REUSE STORAGE;", TruncateTable(Name(None, "T"))),
        ("DROP TABLE t CASCADE CONSTRAINTS PURGE", DropTable((Name(None, "T"),))),
        ('drop table t AS "BIN$yv+1ra/roTjgUwEBAH+ByQ==$0"', DropTable((Name(None, "T"),))),
        ("DROP TABLE t\n/\n", DropTable((Name(None, "T"),))),
        ("RENAME a TO b", RenameTable(((Name(None, "A"), Name(None, "B")),))),
        ("DROP USER shop CASCADE", DropDatabase("SHOP")),
    ],
)
def test_statements_about_whole_tables(text: str, expected: Statement) -> None:
    assert one(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "COMMENT ON INDEXTYPE t IS 'x'",
        "COMMENT ON TABLE a.b.c IS 'x'",
        "COMMENT ON COLUMN t IS 'x'",
        "COMMENT ON TABLE t IS x",
        "GRANT SELECT ON t TO u",
        "CREATE UNIQUE INDEX i ON t (a) TABLESPACE x",
        "CREATE OR REPLACE FORCE EDITIONABLE VIEW v AS SELECT * FROM t",
        "CREATE SEQUENCE s START WITH 1",
        "CREATE OR REPLACE TRIGGER r BEFORE INSERT ON t FOR EACH ROW BEGIN :new.a := q'{;}'; DELETE FROM t; END;",
        "ALTER INDEX i REBUILD ONLINE",
        "ALTER SESSION SET CURRENT_SCHEMA = x",
        "DROP PUBLIC SYNONYM t",
        "CREATE DATABASE LINK l CONNECT TO u IDENTIFIED BY p",
        "ANALYZE TABLE t COMPUTE STATISTICS",
        "PURGE RECYCLEBIN",
        "BEGIN DBMS_STATS.GATHER_TABLE_STATS('S', 'T'); END;",
    ],
)
def test_statements_that_change_no_table(text: str) -> None:
    (statement,) = parse(text, "oracle")
    assert isinstance(statement, Other)


@pytest.mark.parametrize(
    "text",
    [
        "TRUNCATE CLUSTER c",
        "ALTER TABLE `t` ADD c INT",
        "DROP TABLE 't'",
        "DROP TABLE t /* no end",
        "DROP TABLESPACE x INCLUDING CONTENTS",
    ],
)
def test_statements_that_are_not_understood(text: str) -> None:
    with pytest.raises(DdlError):
        parse(text, "oracle")


# -- dialects ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["NUMBER(9,0)", "NUMBER", "VARCHAR2(5)", "RAW(5)", "CLOB"])
def test_type_names_of_oracle_are_unknown_to_mysql(kind: str) -> None:
    with pytest.raises(DdlError):
        parse(f"CREATE TABLE t (c {kind})", "mysql")
    assert parse(f"CREATE TABLE t (c {kind})")  # MariaDB has them in its Oracle mode


def test_a_statement_of_another_server_parks_the_tables_that_it_names() -> None:
    stated = [
        SchemaChange("", n, "SHOP", f"CREATE TABLE {name} (A INT PRIMARY KEY)") for n, name in enumerate(("T", "U"))
    ]
    read = SchemaChange("1", 9, "SHOP", "ALTER TABLE shop.t ALTER COLUMN a SET DATA TYPE BIGINT", dialect="db2")
    blocked = {str(item.name): len(item.blocked) for item in build_timeline([*stated, read]).tables.values()}
    assert blocked == {"SHOP.T": 1, "SHOP.U": 0}


def test_the_ledger_keeps_the_dialect() -> None:
    change = SchemaChange("1", 1, "SHOP", "TRUNCATE TABLE t", dialect="oracle")
    assert SchemaChange.from_document(change.document()) == change
    assert "dialect" not in SchemaChange("1", 1, "shop", "TRUNCATE TABLE t").document()


# -- any text ----------------------------------------------------------------------------------------------------------

STATEMENTS = (
    """CREATE TABLE s."T" (id NUMBER(9,0) GENERATED ALWAYS AS IDENTITY (START WITH 1) NOT NULL ENABLE,
       a CHAR(3 BYTE) DEFAULT ON NULL q'[x]' CONSTRAINT c CHECK (a > 'b'), b DATE DEFAULT DATE '2024-01-01',
       n NUMBER(*,-2) DEFAULT -1e3,
       CONSTRAINT pk PRIMARY KEY (id, a) USING INDEX TABLESPACE x ENABLE, SUPPLEMENTAL LOG DATA (ALL) COLUMNS)
       LOB (a) STORE AS SECUREFILE (ENABLE STORAGE IN ROW) PARTITION BY RANGE (b) (PARTITION p VALUES LESS THAN (5))""",
    """ALTER TABLE t ADD (a NUMBER(3), CONSTRAINT u UNIQUE (a)) MODIFY (b VARCHAR2(5) NOT NULL, c DEFAULT 5)
       DROP (d, e) CASCADE CONSTRAINTS""",
    "ALTER TABLE t EXCHANGE PARTITION p WITH TABLE o.u; RENAME a TO b; TRUNCATE TABLE t REUSE STORAGE",
    "CREATE OR REPLACE TRIGGER r BEFORE INSERT ON t BEGIN NULL; END;\n/\n",
)
NOISE = (*"'\"(),;/.*-\x00é", "/*", "--", "q'[", "]'", "NULL", "DEFAULT", "TO", "9" * 40)


@pytest.mark.parametrize("seed", range(20))
def test_any_text_is_parsed_or_not_understood(seed: int) -> None:
    dice, understood = random.Random(seed), Counter[bool]()
    for _ in range(50):
        text = dice.choice(STATEMENTS)
        for _ in range(dice.randrange(1, 4)):
            start, end = sorted(dice.randrange(len(text) + 1) for _ in range(2))
            text = text[:start] + dice.choice(NOISE) + text[min(end, start + dice.randrange(9)) :]
        understood[is_understood(text)] += 1
    assert min(understood[True], understood[False]) > 0  # else the noise says nothing


def is_understood(text: str) -> bool:
    try:
        parse(text, "oracle")
    except DdlError:
        return False
    return True


LONG_TEXTS: dict[str, Callable[[int], str]] = {
    "quotes": lambda length: "q'[ " * length,
    "program": lambda length: "CREATE OR TRIGGER t " + "; " * length,
    "head": lambda length: "CREATE " + "OR " * length + "TRIGGER" + " ;" * length,
    "columns": lambda length: (
        f"CREATE TABLE t ({','.join(f'c{n} NUMBER(1)' for n in range(length))}, "
        f"PRIMARY KEY ({','.join(f'c{n}' for n in range(length))}))"
    ),
    "clauses": lambda length: "ALTER TABLE t " + "MOVE " * length,
    "parentheses": lambda length: "DROP TABLE " + "(" * length,
}
AS_LONG_AS_IS_READ = {  # a million characters, 250,000 tokens, 4,096 columns
    "quotes": 225_000,
    "program": 120_000,
    "head": 80_000,
    "columns": 4_000,
    "clauses": 179_000,
    "parentheses": 240_000,
}


@pytest.mark.parametrize("text_of", LONG_TEXTS.values(), ids=LONG_TEXTS)
def test_the_work_for_a_text_grows_with_its_length(text_of: Callable[[int], str]) -> None:
    """Count lines of Python: a clock would also measure what else the machine does."""
    assert lines_run(text_of(2_000)) < 2.2 * lines_run(text_of(1_000))


@pytest.mark.parametrize("name", LONG_TEXTS)
@pytest.mark.timeout(300)
def test_a_very_long_text_comes_to_an_end(name: str) -> None:
    """Show work that no line of Python shows, such as copies of the text: its square would take hours."""
    text = LONG_TEXTS[name](AS_LONG_AS_IS_READ[name])
    if name in ("columns", "clauses"):
        parse(text, "oracle")
    else:
        with pytest.raises(DdlError, match=r"^(?!.*not read)"):  # for what it says, not for its length
            parse(text, "oracle")


def lines_run(text: str) -> int:
    """Return how many lines of Python are run to parse a text."""
    lines = 0

    def count(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        with contextlib.suppress(DdlError):
            parse(text, "oracle")
    finally:
        sys.settrace(before)
    return lines


# -- states of constraints, blocks -------------------------------------------------------------------------------------

KEYED = "CREATE TABLE S.T (A NUMBER(9), B NUMBER(9) NOT NULL, CONSTRAINT PK PRIMARY KEY (A), CONSTRAINT U UNIQUE (B))"


def oracle_table(*texts: str) -> TableTimeline:
    """Return the only table after statements at positions 1, 2, ..."""
    changes = [SchemaChange(str(n), n, "S", text, dialect="oracle") for n, text in enumerate((KEYED, *texts), 1)]
    (table,) = build_timeline(changes).tables.values()
    return table


@pytest.mark.parametrize(
    ("statement", "key"),
    [
        ("ALTER TABLE S.T ENABLE CONSTRAINT PK", ("A",)),
        ("ALTER TABLE S.T ENABLE NOVALIDATE CONSTRAINT C EXCEPTIONS INTO S.E", ("A",)),
        ("ALTER TABLE S.T ENABLE PRIMARY KEY USING INDEX TABLESPACE X", ("A",)),
        ("ALTER TABLE S.T DISABLE CONSTRAINT U", ("A",)),
        ("ALTER TABLE S.T DISABLE CONSTRAINT FK", ("A",)),
        ("ALTER TABLE S.T DISABLE VALIDATE CONSTRAINT PK CASCADE KEEP INDEX", ("B",)),
        ("ALTER TABLE S.T DISABLE PRIMARY KEY CASCADE", ("B",)),
        ("ALTER TABLE S.T DISABLE CONSTRAINT PK DISABLE CONSTRAINT U ADD C DATE", ()),
    ],
)
def test_a_constraint_that_is_not_enforced_is_no_key(statement: str, key: tuple[str, ...]) -> None:
    table = oracle_table(statement)
    assert table.blocked == []
    assert tuple(column.name for column in table.schema.key_columns) == key


def test_a_virtual_column_without_a_type_parks_the_table_and_says_so() -> None:
    (block,) = oracle_table("ALTER TABLE S.T ADD C GENERATED ALWAYS AS (A + B) VIRTUAL").blocked
    assert "type of the virtual column 'C'" in block.reason


@pytest.mark.parametrize(
    "block",
    [
        "BEGIN EXECUTE IMMEDIATE 'DROP TABLE T'; END;",
        "BEGIN EXECUTE IMMEDIATE 'TRUNCATE TABLE S.X'; EXECUTE IMMEDIATE 'DROP TABLE S.T PURGE'; END;",
        "BEGIN EXECUTE IMMEDIATE q'[DROP TABLE S.T]'; END",
    ],
)
def test_a_block_of_plain_texts_is_what_they_are(block: str) -> None:
    assert oracle_table(block).name is None


@pytest.mark.parametrize(
    "block",
    [
        "BEGIN EXECUTE IMMEDIATE 'DROP TABLE T'; EXCEPTION WHEN OTHERS THEN NULL; END;",
        "BEGIN IF 1 = 2 THEN EXECUTE IMMEDIATE 'DROP TABLE S.T'; END IF; END;",
        "DECLARE N VARCHAR2(9) := 'T'; BEGIN EXECUTE IMMEDIATE 'TRUNCATE TABLE ' || N; END;",
        "begin execute immediate 'alter table s.t drop column b'; update other set x = 1; end;",
        "BEGIN DBMS_UTILITY.EXEC_DDL_STATEMENT('DROP TABLE T'); END;",
        'BEGIN DBMS_SQL.PARSE(C, \'DROP TABLE "S"."T"\', 1); END;',
    ],
)
def test_a_block_of_dynamic_sql_parks_the_tables_that_it_names(block: str) -> None:
    table = oracle_table(block)
    assert table.name is not None
    assert len(table.blocked) == 1
    assert oracle_table(block.replace("T'", "X'").replace("s.t ", "s.x ").replace('"T"', '"X"')).blocked == []


def test_a_block_without_dynamic_sql_changes_rows_only_by_row_events() -> None:
    assert oracle_table("BEGIN DELETE FROM T WHERE A = 1; COMMIT; END;").blocked == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("COMMENT ON COLUMN t.a IS 'DROP TABLE t; it''s'", CommentOn(Name(None, "T"), "A", "DROP TABLE t; it's")),
        ("COMMENT ON COLUMN s.\"t\".a IS q'[x'y]'", CommentOn(Name("S", "t"), "A", "x'y")),
        ("COMMENT ON TABLE s.t IS ''", CommentOn(Name("S", "T"), None, "")),
    ],
)
def test_comments_of_tables_and_columns(text: str, expected: CommentOn) -> None:
    assert parse(text, "oracle") == [expected]
