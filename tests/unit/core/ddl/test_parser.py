"""What each kind of DDL statement means."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.ddl.parser import DdlError, parse
from airflow_provider_cdc.core.ddl.statement import (
    AddColumn,
    AddPrimaryKey,
    AddUnique,
    AlterAction,
    AlterTable,
    ChangeColumn,
    ColumnDefinition,
    ConvertCharset,
    CreateDatabase,
    CreateTable,
    DropColumn,
    DropDatabase,
    DropIndex,
    DropPrimaryKey,
    DropTable,
    Name,
    NoEffect,
    Other,
    PartitionRows,
    RenameColumn,
    RenameIndex,
    RenameTable,
    RenameTo,
    SetDefault,
    Statement,
    TruncateTable,
    UseDatabase,
)
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import ColumnType, Default

INT = ColumnType("int")


def one(text: str) -> Statement:
    """The only statement of a text."""
    (statement,) = parse(text)
    return statement


def create(text: str) -> CreateTable:
    """The CREATE TABLE that a text is."""
    statement = one(text)
    assert isinstance(statement, CreateTable)
    return statement


def column(text: str) -> ColumnDefinition:
    """The column that a definition describes."""
    (definition,) = create(f"CREATE TABLE t ({text})").columns
    return definition


def actions(clauses: str) -> tuple[AlterAction, ...]:
    """The clauses of an ALTER TABLE."""
    statement = one(f"ALTER TABLE t {clauses}")
    assert isinstance(statement, AlterTable)
    assert statement.name == Name(None, "t")
    return statement.actions


def effects(clauses: str) -> list[AlterAction]:
    """The clauses of an ALTER TABLE that have an effect."""
    return [action for action in actions(clauses) if not isinstance(action, NoEffect)]


# -- types -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("INT", INT),
        ("INTEGER(11)", ColumnType("int", 11)),
        ("INT1", ColumnType("tinyint")),
        ("INT2", ColumnType("smallint")),
        ("INT3", ColumnType("mediumint")),
        ("MIDDLEINT", ColumnType("mediumint")),
        ("INT4", INT),
        ("INT8", ColumnType("bigint")),
        ("int(8) unsigned zerofill", ColumnType("int", 8, unsigned=True)),
        ("SMALLINT ZEROFILL", ColumnType("smallint", unsigned=True)),
        ("BIGINT SIGNED", ColumnType("bigint")),
        ("BOOL", ColumnType("tinyint", 1)),
        ("BOOLEAN", ColumnType("tinyint", 1)),
        ("DECIMAL", ColumnType("decimal", 10, 0)),
        ("DEC(5)", ColumnType("decimal", 5, 0)),
        ("NUMERIC(5, 2) UNSIGNED", ColumnType("decimal", 5, 2, unsigned=True)),
        ("FIXED(65,30)", ColumnType("decimal", 65, 30)),
        ("FLOAT", ColumnType("float")),
        ("FLOAT(24)", ColumnType("float")),
        ("FLOAT(25)", ColumnType("double")),
        ("FLOAT(7,3)", ColumnType("float", 7, 3)),
        ("FLOAT4", ColumnType("float")),
        ("DOUBLE PRECISION", ColumnType("double")),
        ("DOUBLE(15,4) UNSIGNED", ColumnType("double", 15, 4, unsigned=True)),
        ("REAL", ColumnType("double")),
        ("BIT", ColumnType("bit", 1)),
        ("BIT(13)", ColumnType("bit", 13)),
        ("CHAR", ColumnType("char", 1)),
        ("CHARACTER(3)", ColumnType("char", 3)),
        ("CHAR VARYING(3)", ColumnType("varchar", 3)),
        ("CHARACTER VARYING (3)", ColumnType("varchar", 3)),
        ("VARCHARACTER(3)", ColumnType("varchar", 3)),
        ("VARCHAR(0)", ColumnType("varchar", 0)),
        ("NATIONAL VARCHAR(3)", ColumnType("varchar", 3, charset="utf8")),
        ("NATIONAL CHAR VARYING(3)", ColumnType("varchar", 3, charset="utf8")),
        ("NATIONAL CHARACTER(3)", ColumnType("char", 3, charset="utf8")),
        ("NCHAR", ColumnType("char", 1, charset="utf8")),
        ("NCHAR VARCHAR(3)", ColumnType("varchar", 3, charset="utf8")),
        ("NVARCHAR(3)", ColumnType("varchar", 3, charset="utf8")),
        ("VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_bin", ColumnType("varchar", 9, charset="latin1")),
        ("VARCHAR(9) CHARSET 'GBK'", ColumnType("varchar", 9, charset="gbk")),
        ("VARCHAR(9) COLLATE utf8mb4_0900_ai_ci", ColumnType("varchar", 9, charset="utf8mb4")),
        ("VARCHAR(9) COLLATE uca1400_ai_ci", ColumnType("varchar", 9)),
        ("VARCHAR(9) BINARY", ColumnType("varchar", 9)),
        ("VARCHAR(9) ASCII", ColumnType("varchar", 9, charset="latin1")),
        ("VARCHAR(9) UNICODE", ColumnType("varchar", 9, charset="ucs2")),
        ("CHAR(9) BYTE", ColumnType("binary", 9)),
        ("VARCHAR(9) CHARACTER SET binary", ColumnType("varbinary", 9)),
        ("TEXT CHARACTER SET binary", ColumnType("blob")),
        ("BINARY", ColumnType("binary", 1)),
        ("VARBINARY(16)", ColumnType("varbinary", 16)),
        ("LONG", ColumnType("mediumtext")),
        ("LONG VARCHAR", ColumnType("mediumtext")),
        ("LONG CHAR VARYING", ColumnType("mediumtext")),
        ("LONG VARBINARY", ColumnType("mediumblob")),
        ("TINYTEXT", ColumnType("tinytext")),
        ("TEXT", ColumnType("text")),
        ("LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", ColumnType("longtext", charset="utf8mb4")),
        ("YEAR(4)", ColumnType("year")),
        ("DATE", ColumnType("date")),
        ("DATETIME(6)", ColumnType("datetime", 6)),
        ("TIME", ColumnType("time")),
        ("TIMESTAMP(3)", ColumnType("timestamp", 3)),
        ("ENUM('a','it''s', \"b\", 'ö', 'trailing  ')", ColumnType("enum", labels=("a", "it's", "b", "ö", "trailing"))),
        ("SET('x','y z') CHARACTER SET latin1", ColumnType("set", labels=("x", "y z"), charset="latin1")),
        ("JSON", ColumnType("json")),
        ("UUID", ColumnType("uuid")),
        ("INET4", ColumnType("inet4")),
        ("INET6", ColumnType("inet6")),
        ("VECTOR(3)", ColumnType("vector", 3)),
        ("POINT SRID 4326", ColumnType("point")),
        ("GEOMETRY REF_SYSTEM_ID=101", ColumnType("geometry")),
        ("GEOMCOLLECTION", ColumnType("geometrycollection")),
        ("MULTIPOLYGON", ColumnType("multipolygon")),
    ],
)
def test_every_spelling_of_a_type_becomes_one_type(text: str, kind: ColumnType) -> None:
    assert column(f"c {text}").type == kind


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("c BLOB(255)", "tinyblob"),
        ("c BLOB(256)", "blob"),
        ("c BLOB(65536)", "mediumblob"),
        ("c BLOB(4294967295)", "longblob"),
        ("c TEXT(63) CHARACTER SET utf8mb4", "tinytext"),
        ("c TEXT(64) CHARACTER SET utf8mb4", "text"),
        ("c TEXT(255) CHARACTER SET latin1", "tinytext"),
        ("c TEXT(21846) CHARACTER SET utf8", "mediumtext"),
        ("c TEXT(64)", "text"),
    ],
)
def test_text_and_blob_with_a_length_become_the_smallest_type_that_holds_it(text: str, name: str) -> None:
    assert column(text).type.name == name


def test_the_table_character_set_counts_for_the_size_of_text() -> None:
    assert create("CREATE TABLE t (c TEXT(255)) DEFAULT CHARSET=latin1").columns[0].type == ColumnType("tinytext")
    assert create("CREATE TABLE t (c TEXT(255)) COLLATE utf8mb4_bin").columns[0].type == ColumnType("text")
    assert create("CREATE TABLE t (c CHAR(2)) CHARACTER SET binary").columns[0].type == ColumnType("binary", 2)


@pytest.mark.parametrize(
    "text", ["c", "c FOO", "c VARCHAR", "c INT(", "c INT(1.5)", "c ENUM()", "c INT INT", "c `int`"]
)
def test_an_unknown_type_is_an_error(text: str) -> None:
    with pytest.raises(DdlError):
        column(text)


# -- columns -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "default"),
    [
        ("INT", None),
        ("INT DEFAULT 7", Default("constant", "7")),
        ("INT DEFAULT -7", Default("constant", "-7")),
        ("INT DEFAULT +7", Default("constant", "7")),
        ("DECIMAL(5,3) DEFAULT 1.500", Default("constant", "1.500")),
        ("DOUBLE DEFAULT 1e-30", Default("constant", "1e-30")),
        ("INT DEFAULT '7'", Default("constant", "7")),
        ("VARCHAR(9) DEFAULT 'it''s'", Default("constant", "it's")),
        ('VARCHAR(9) DEFAULT "say ""hi"""', Default("constant", 'say "hi"')),
        ("VARCHAR(9) DEFAULT 'a' 'b'", Default("constant", "ab")),
        ("VARCHAR(9) DEFAULT _utf8mb4'x'", Default("constant", "x")),
        ("VARCHAR(9) DEFAULT N'x'", Default("constant", "x")),
        ("VARCHAR(9) DEFAULT ''", Default("constant", "")),
        ("INT DEFAULT NULL", Default("constant", None)),
        ("BOOL DEFAULT TRUE", Default("constant", "1")),
        ("BOOL DEFAULT false", Default("constant", "0")),
        ("BIT(3) DEFAULT b'101'", Default("constant", "5")),
        ("INT DEFAULT 0x1F", Default("constant", "31")),
        ("VARCHAR(9) DEFAULT x'4142'", Default("constant", "AB")),
        ("VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT x'c3a4'", Default("constant", "ä")),
        ("VARBINARY(9) DEFAULT x''", Default("constant", "")),
        ("VARBINARY(9) DEFAULT x'ff'", Default("expression", "x'ff'")),
        ("VARCHAR(9) DEFAULT x'e4'", Default("expression", "x'e4'")),
        ("DATE DEFAULT DATE'2020-01-02'", Default("constant", "2020-01-02")),
        ("INT DEFAULT (7)", Default("constant", "7")),
        ("TEXT DEFAULT ('x')", Default("constant", "x")),
        ("TIMESTAMP DEFAULT CURRENT_TIMESTAMP", Default("now")),
        ("TIMESTAMP(3) DEFAULT current_timestamp(3) ON UPDATE CURRENT_TIMESTAMP(3)", Default("now")),
        ("DATETIME DEFAULT NOW()", Default("now")),
        ("DATETIME DEFAULT LOCALTIME", Default("now")),
        ("DATETIME DEFAULT LOCALTIMESTAMP()", Default("now")),
        ("INT DEFAULT (1 + 2)", Default("expression", "1 + 2")),
        ("DATETIME DEFAULT (now() + INTERVAL 1 DAY)", Default("expression", "now() + INTERVAL 1 DAY")),
        ("VARCHAR(36) DEFAULT uuid()", Default("expression", "uuid()")),
        ("BIGINT DEFAULT NEXT VALUE FOR shop.s", Default("expression", "NEXT VALUE FOR shop.s")),
    ],
)
def test_defaults(text: str, default: Default | None) -> None:
    assert column(f"c {text}").default == default


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("c INT NOT NULL", {"nullable": False}),
        ("c INT NULL", {"nullable": True}),
        ("c INT AUTO_INCREMENT PRIMARY KEY", {"auto_increment": True, "primary_key": True}),
        ("c INT KEY", {"primary_key": True}),
        ("c INT UNIQUE", {"unique": True}),
        ("c INT NOT NULL UNIQUE KEY COMMENT 'x'", {"nullable": False, "unique": True}),
        ("c INT GENERATED ALWAYS AS (a * (b + 1)) STORED NOT NULL", {"generated": True, "nullable": False}),
        ("c INT AS (a) PERSISTENT", {"generated": True}),
        ("c INT AS (a) VIRTUAL INVISIBLE", {"generated": True}),
        ("c INT COMMENT 'a, b) DEFAULT 7' COLUMN_FORMAT DYNAMIC STORAGE DISK", {}),
        ("c INT CHECK (c > 0) NOT ENFORCED", {}),
        ("c INT CONSTRAINT ck CHECK (c in (1, 2))", {}),
        ("c INT REFERENCES p (id) MATCH FULL ON DELETE SET NULL ON UPDATE NO ACTION NOT NULL", {"nullable": False}),
        ("c INT INVISIBLE ENGINE_ATTRIBUTE = '{}'", {}),
        ("c INT COMPRESSED", {}),
    ],
)
def test_column_attributes(text: str, expected: dict[str, bool]) -> None:
    assert column(text) == ColumnDefinition("c", INT, **expected)  # type: ignore[arg-type]


def test_serial_is_an_unsigned_bigint_that_counts() -> None:
    serial = ColumnDefinition(
        "c", ColumnType("bigint", unsigned=True), nullable=False, auto_increment=True, unique=True
    )
    assert column("c SERIAL") == serial
    assert column("c BIGINT UNSIGNED SERIAL DEFAULT VALUE") == serial


def test_names_may_be_quoted_odd_or_almost_keywords() -> None:
    names = [
        c.name for c in create('CREATE TABLE t (`a``b` INT, "c d" INT, timestamp INT, 1st INT, größe INT)').columns
    ]
    assert names == ["a`b", "c d", "timestamp", "1st", "größe"]


def test_executable_comments_count_and_others_do_not() -> None:
    definition = column("c /* DEFAULT 1 */ INT /*!50000 DEFAULT 2 */ -- DEFAULT 3\n")
    assert definition.default == Default("constant", "2")


# -- CREATE TABLE ------------------------------------------------------------------------------------------------------


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
        "CREATE TABLE t (a INT) WITH SYSTEM VERSIONING",
        "CREATE TABLE t (id INT, UNIQUE (id, p WITHOUT OVERLAPS))",
        "CREATE TABLE t (a INT) FOO",
        "CREATE TABLE select (a INT)",
        "CREATE TABLE `` (a INT)",
    ],
)
def test_what_is_not_understood_is_an_error(text: str) -> None:
    with pytest.raises(DdlError) as caught:
        parse(text)
    assert isinstance(caught.value, DataError)
    assert caught.value.code == "ddl.not_understood"


# -- ALTER TABLE -------------------------------------------------------------------------------------------------------

A, B = ColumnDefinition("a", INT), ColumnDefinition("b", INT)


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
        ("ALTER a SET DEFAULT 'x'", [SetDefault("a", Default("constant", "x"))]),
        ("ALTER COLUMN a SET DEFAULT (uuid())", [SetDefault("a", Default("expression", "uuid()"))]),
        ("ALTER COLUMN a SET DEFAULT NULL", [SetDefault("a", Default("constant", None))]),
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
        ("CONVERT TO CHARSET 'latin1'", [ConvertCharset("latin1")]),
        ("ADD a INT, ALGORITHM=INPLACE, LOCK=NONE", [AddColumn(A)]),
        ("ALGORITHM = INSTANT, ADD a INT", [AddColumn(A)]),
        ("ENGINE=InnoDB ROW_FORMAT=COMPACT, ADD a INT, COMMENT 'x'", [AddColumn(A)]),
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
        ("CONVERT PARTITION p TO TABLE o", [PartitionRows("exchange", Name(None, "o"))]),
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
        "ADD CONSTRAINT fk FOREIGN KEY IF NOT EXISTS (a) REFERENCES p (id)",
        "ADD CONSTRAINT ck CHECK (a > 0)",
        "ADD UNIQUE f ((lower(a)))",
        "DROP FOREIGN KEY IF EXISTS fk",
        "DROP CHECK ck",
        "ALTER INDEX i INVISIBLE",
        "ALTER INDEX i NOT IGNORED",
        "ALTER CHECK ck NOT ENFORCED",
        "ALTER COLUMN a SET INVISIBLE",
        "DEFAULT CHARACTER SET = utf8mb4 COLLATE utf8mb4_bin",
        "AUTO_INCREMENT=500",
        "COMMENT='x'",
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
    assert one(f"{head} s.t DROP a") == AlterTable(Name("s", "t"), (DropColumn("a"),))


def test_alter_table_without_a_clause_does_nothing() -> None:
    assert one("ALTER TABLE t") == AlterTable(Name(None, "t"), ())


@pytest.mark.parametrize(
    "clauses",
    [
        "ADD",
        "ADD a",
        "ADD a INT,",
        "ADD a INT ADD b INT",
        "ADD SYSTEM VERSIONING",
        "DROP SYSTEM VERSIONING",
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


# -- the other statements ----------------------------------------------------------------------------------------------

T = Name(None, "t")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DROP TABLE t", [DropTable((T,))]),
        ("DROP TABLES IF EXISTS t, `s`.`u` CASCADE", [DropTable((T, Name("s", "u")), if_exists=True)]),
        ("DROP TABLE `t` /* generated by server */", [DropTable((T,))]),
        ("TRUNCATE t", [TruncateTable(T)]),
        ("truncate /* c */ table `s`.`t`", [TruncateTable(Name("s", "t"))]),
        ("RENAME TABLE t TO b.u", [RenameTable(((T, Name("b", "u")),))]),
        (
            "RENAME TABLES IF EXISTS a TO x, b WAIT 3 TO a",
            [RenameTable(((Name(None, "a"), Name(None, "x")), (Name(None, "b"), Name(None, "a"))))],
        ),
        ("CREATE DATABASE d", [CreateDatabase("d")]),
        (
            "CREATE SCHEMA IF NOT EXISTS `d` DEFAULT CHARACTER SET = latin1 COLLATE latin1_bin",
            [CreateDatabase("d", "latin1")],
        ),
        ("CREATE DATABASE d COLLATE utf8mb4_bin ENCRYPTION='N'", [CreateDatabase("d", "utf8mb4")]),
        ("CREATE OR REPLACE DATABASE d", [DropDatabase("d"), CreateDatabase("d")]),
        ("DROP SCHEMA IF EXISTS d", [DropDatabase("d")]),
        ("USE `my-db`", [UseDatabase("my-db")]),
        (
            "CREATE UNIQUE INDEX u USING BTREE ON s.t (a, b(3))",
            [AlterTable(Name("s", "t"), (AddUnique("u", ("a", "b")),))],
        ),
        ("DROP INDEX u ON t ALGORITHM=INPLACE LOCK=NONE", [AlterTable(T, (DropIndex("u"),))]),
        ("DROP INDEX `PRIMARY` ON t", [AlterTable(T, (DropPrimaryKey(),))]),
        ("SET STATEMENT max_statement_time=0, lock_wait_timeout=1 FOR TRUNCATE t", [TruncateTable(T)]),
        ("", []),
        (" ; -- nothing", []),
        ("DROP TABLE t; TRUNCATE t;", [DropTable((T,)), TruncateTable(T)]),
    ],
)
def test_statements(text: str, expected: list[Statement]) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "CREATE INDEX i ON t (a)",
        "CREATE FULLTEXT INDEX i ON t (a)",
        "CREATE UNIQUE INDEX i ON t ((a + 1))",
        "CREATE TEMPORARY TABLE t (a INT)",
        "CREATE OR REPLACE TEMPORARY TABLE t (a INT)",
        "DROP TEMPORARY TABLE IF EXISTS t",
        "DROP /*!40005 TEMPORARY */ TABLE IF EXISTS t",
        "ALTER DATABASE d CHARACTER SET latin1",
        "ALTER SCHEMA COLLATE utf8mb4_bin",
        "CREATE ALGORITHM=MERGE DEFINER=`r`@`%` SQL SECURITY INVOKER VIEW v AS SELECT 1",
        "CREATE OR REPLACE VIEW v AS SELECT 1",
        "ALTER VIEW v AS SELECT 1",
        "DROP VIEW v",
        "CREATE DEFINER=root@127.0.0.1 PROCEDURE p() BEGIN DROP TABLE t; END",
        "CREATE DEFINER=CURRENT_USER() TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1",
        "CREATE AGGREGATE FUNCTION f RETURNS INT SONAME 'x.so'",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO TRUNCATE t",
        "CREATE USER 'u'@'%' IDENTIFIED BY 'x'",
        "CREATE SEQUENCE s",
        "RENAME USER a TO b",
        "GRANT ALL ON *.* TO u",
        "SET @x := 0",
        "FLUSH TABLES",
        "ANALYZE TABLE t",
        "OPTIMIZE NO_WRITE_TO_BINLOG TABLE t",
        "BEGIN",
        "COMMIT",
        "XA START 'x'",
    ],
)
def test_statements_that_leave_tables_alone(text: str) -> None:
    assert one(text) == Other(text)


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES (1)",
        "DELETE FROM t",
        "LOAD DATA INFILE 'x' INTO TABLE t",
        "CALL p()",
        "ANALYZE DELETE FROM t",
        "IMPORT TABLE FROM 'x.sdi'",
        "BEGIN NOT ATOMIC DROP TABLE t; END",
        "EXECUTE IMMEDIATE 'DROP TABLE t'",
        "ALTER DATABASE `#mysql50#a-b` UPGRADE DATA DIRECTORY NAME",
        "CREATE FOO t",
        "DROP TABLE",
        "DROP TABLE t,",
        "DROP TABLE t u",
        "RENAME TABLE a TO",
        "RENAME a TO b",
        "TRUNCATE TABLE a, b",
        "USE",
        "frobnicate",
        "DROP TABLE a; frobnicate",
    ],
)
def test_statements_that_may_concern_tables_are_never_guessed(text: str) -> None:
    with pytest.raises(DdlError):
        parse(text)


def test_an_error_tells_place_and_word_but_no_literal() -> None:
    with pytest.raises(DdlError) as caught:
        parse("ALTER TABLE t\n  ADD a INT 'password'")
    assert caught.value.where == {"line": 2, "column": 13}
    assert "password" not in str(caught.value)
    assert "found string" in str(caught.value)
