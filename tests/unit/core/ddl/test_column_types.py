# SPDX-License-Identifier: Apache-2.0
"""Test each spelling of a type."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.ddl.parser import DdlError
from airflow_provider_cdc.core.model.schema import ColumnType
from tests.unit.core.ddl.single_statements import INT, column, create


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
