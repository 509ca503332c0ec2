# SPDX-License-Identifier: Apache-2.0
"""Test values in MySQL's internal forms: geometries after their SRID, ENUM and SET as integers."""

from __future__ import annotations

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.images import Field, type_images
from airflow_provider_cdc.core.values.types import arrow_type

WKB = bytes.fromhex("0101000000000000000000f03f0000000000000040")  # POINT(1 2)


def typed(token: str, encoded: Encoded, column: ColumnType) -> tuple[object, str | None]:
    image = '{"c":' + token + "}"
    result = type_images(pa.array([image]), [Field(encoded, column, arrow_type(column))])
    return result.columns[0].to_pylist()[0], result.failures[0].reason if result.failures else None


def as_token(raw: bytes) -> str:
    return '"' + "".join(f"\\u{byte:04x}" for byte in raw) + '"'


@pytest.mark.parametrize("srid", [0, 4326])
def test_a_geometry_loses_the_srid_before_it(srid: int) -> None:
    encoded = Encoded("c", Encoding.LATIN1_BYTES)
    assert typed(as_token(srid.to_bytes(4, "little") + WKB), encoded, ColumnType("point")) == (WKB, None)


def test_latin1_bytes_are_one_byte_a_character() -> None:
    encoded = Encoded("c", Encoding.LATIN1_BYTES)
    every = bytes(range(256))
    assert typed(as_token(every), encoded, ColumnType("blob")) == (every, None)
    assert typed('"ÿ"', encoded, ColumnType("binary", 3)) == (b"\xff\0\0", None)
    assert typed('"€"', encoded, ColumnType("blob")) == (None, "byte_invalid")


def test_latin1_bytes_of_a_text_column_are_its_utf8() -> None:
    encoded = Encoded("c", Encoding.LATIN1_BYTES)
    assert typed(as_token("größe 😀".encode()), encoded, ColumnType("json")) == ("größe 😀", None)
    assert typed(as_token(b"\xff"), encoded, ColumnType("json")) == (None, "text_invalid")


def test_a_replacement_character_shows_that_bytes_were_read_as_text() -> None:
    encoded = Encoded("c", Encoding.TEXT)
    assert typed('"é"', encoded, ColumnType("varbinary", 9)) == ("é".encode(), None)
    assert typed('"a\\ufffd"', encoded, ColumnType("varbinary", 9)) == (None, "text_invalid")
    assert typed('"a\\ufffd"', encoded, ColumnType("varchar", 9)) == ("a\ufffd", None)


@pytest.mark.parametrize("token", ['"2"', "2"])
def test_numbers_count_the_columns_labels(token: str) -> None:
    labels = ("a", "b", "c")
    assert typed(token, Encoded("c", Encoding.ENUM_INDEX), ColumnType("enum", labels=labels)) == ("b", None)
    assert typed('"5"', Encoded("c", Encoding.SET_BITMASK), ColumnType("set", labels=labels)) == ("a,c", None)


def test_labels_that_the_record_states_go_before_the_columns() -> None:
    column = ColumnType("enum", labels=("a", "b"))
    assert typed('"1"', Encoded("c", Encoding.ENUM_INDEX, labels=("b", "a")), column) == ("b", None)
    assert typed('"3"', Encoded("c", Encoding.SET_BITMASK, labels=("x", "y")), column) == ("x,y", None)
    assert typed('"3"', Encoded("c", Encoding.ENUM_INDEX), column) == (None, "out_of_range")


def test_numbers_without_known_labels_fail() -> None:
    assert typed('"1"', Encoded("c", Encoding.ENUM_INDEX), ColumnType("varchar", 9)) == (None, "labels_unknown")
    assert typed("null", Encoded("c", Encoding.ENUM_INDEX), ColumnType("varchar", 9)) == (None, None)
