# SPDX-License-Identifier: Apache-2.0
"""Types in Debezium's tableChanges: names of several words, with the length next to them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.formats.connect.debezium_table_changes import structures
from airflow_provider_cdc.core.model.schema import ColumnType


def type_of(name: str, length: int | None = None, scale: int | None = None, **more: Any) -> ColumnType:
    """Return the type that is read of a column with this ``typeName``."""
    column = {"name": "v", "typeName": name, "length": length, "scale": scale, "position": 1, "optional": True, **more}
    text = json.dumps([{"type": "CREATE", "id": '"s"."t"', "table": {"columns": [column]}}])
    ((_, _, schema),) = structures(text)
    assert schema is not None
    return schema.columns[0].type


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("CHAR BINARY", "char"),
        ("CHAR ASCII", "char"),
        ("CHAR UNICODE", "char"),
        ("CHAR ASCII BINARY", "char"),
        ("CHAR BYTE", "binary"),
        ("CHARACTER", "char"),
        ("CHARACTER BINARY", "char"),
        ("NCHAR", "char"),
        ("NATIONAL CHAR", "char"),
        ("NATIONAL CHARACTER", "char"),
        ("NATIONAL CHAR BINARY", "char"),
        ("VARCHAR BINARY", "varchar"),
        ("VARCHAR BYTE", "varbinary"),
        ("VARCHARACTER", "varchar"),
        ("CHAR VARYING", "varchar"),
        ("CHARACTER VARYING", "varchar"),
        ("CHARACTER VARYING BINARY", "varchar"),
        ("NATIONAL VARCHAR", "varchar"),
        ("NATIONAL VARCHARACTER", "varchar"),
        ("NATIONAL CHAR VARYING", "varchar"),
        ("NATIONAL CHARACTER VARYING", "varchar"),
        ("NCHAR VARYING", "varchar"),
        ("NCHAR VARCHAR", "varchar"),
        ("NVARCHAR", "varchar"),
        ("BINARY", "binary"),
        ("VARBINARY", "varbinary"),
    ],
)
def test_a_length_stands_behind_the_type_and_before_its_attributes(name: str, stored: str) -> None:
    for spelled in (name, name.lower()):
        kind = type_of(spelled, 8)
        assert (kind.name, kind.length) == (stored, 8)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("TEXT BINARY", (), ColumnType("text")),
        ("TEXT BINARY", (70_000,), ColumnType("mediumtext")),
        ("TINYTEXT BINARY", (), ColumnType("tinytext")),
        ("LONG VARCHAR", (), ColumnType("mediumtext")),
        ("LONG VARBINARY", (), ColumnType("mediumblob")),
        ("LONG CHAR VARYING", (), ColumnType("mediumtext")),
        ("LONG", (), ColumnType("mediumtext")),
        ("DOUBLE PRECISION", (), ColumnType("double")),
        ("DOUBLE PRECISION", (10, 2), ColumnType("double", 10, 2)),
        ("DOUBLE PRECISION UNSIGNED ZEROFILL", (10, 2), ColumnType("double", 10, 2, unsigned=True)),
        ("FLOAT UNSIGNED", (7, 3), ColumnType("float", 7, 3, unsigned=True)),
        ("NUMERIC UNSIGNED", (10, 4), ColumnType("decimal", 10, 4, unsigned=True)),
        ("DECIMAL UNSIGNED ZEROFILL", (10, 4), ColumnType("decimal", 10, 4, unsigned=True)),
        ("BIGINT UNSIGNED ZEROFILL", (20,), ColumnType("bigint", 20, unsigned=True)),
        ("INT SIGNED", (11,), ColumnType("int", 11)),
        ("INT ZEROFILL", (5,), ColumnType("int", 5, unsigned=True)),
        ("DATE", (10,), ColumnType("date")),
        ("JSON", (1,), ColumnType("json")),
    ],
)
def test_attributes_and_digits(name: str, arguments: tuple[int, ...], expected: ColumnType) -> None:
    assert type_of(name, *arguments) == expected


def test_labels_stand_before_attributes() -> None:
    kind = type_of("ENUM BINARY", 1, charsetName="utf8mb4", enumValues=["'a'", "'b c'"])
    assert kind == ColumnType("enum", charset="utf8mb4", labels=("a", "b c"))


@pytest.mark.parametrize("name", ["CHAR OF THE FUTURE", "VARCHAR PACKED", "CHAR", "VARCHAR"])
@pytest.mark.parametrize("length", [-1, 8.5])
def test_a_type_that_cannot_be_read_with_its_length_is_not_read_without_it(name: str, length: Any) -> None:
    with pytest.raises(DataError):
        type_of(name, length)
