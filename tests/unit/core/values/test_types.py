# SPDX-License-Identifier: Apache-2.0
"""Test the Arrow types of source types."""

from __future__ import annotations

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.types import TypeOptions, arrow_type

UINT64 = pa.decimal128(20, 0)


@pytest.mark.parametrize(
    ("name", "signed", "unsigned"),
    [
        ("tinyint", pa.int8(), pa.int16()),
        ("smallint", pa.int16(), pa.int32()),
        ("mediumint", pa.int32(), pa.int32()),
        ("int", pa.int32(), pa.int64()),
        ("bigint", pa.int64(), UINT64),
    ],
)
def test_integers(name: str, signed: pa.DataType, unsigned: pa.DataType) -> None:
    assert arrow_type(ColumnType(name)) == signed
    assert arrow_type(ColumnType(name, unsigned=True)) == unsigned


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (ColumnType("decimal"), pa.decimal128(10, 0)),
        (ColumnType("decimal", 38, 10), pa.decimal128(38, 10)),
        (ColumnType("decimal", 39, 10), pa.string()),
        (ColumnType("decimal", 5, 5, unsigned=True), pa.decimal128(5, 5)),
        (ColumnType("float"), pa.float32()),
        (ColumnType("float", 7, 3), pa.float32()),
        (ColumnType("double"), pa.float64()),
        (ColumnType("datetime", 6), pa.timestamp("us")),
        (ColumnType("timestamp"), pa.timestamp("us", "UTC")),
        (ColumnType("date"), pa.date32()),
        (ColumnType("time"), pa.string()),
        (ColumnType("year"), pa.int16()),
        (ColumnType("bit"), pa.bool_()),
        (ColumnType("bit", 1), pa.bool_()),
        (ColumnType("bit", 63), pa.int64()),
        (ColumnType("bit", 64), UINT64),
        (ColumnType("char", 3), pa.string()),
        (ColumnType("longtext"), pa.string()),
        (ColumnType("binary", 3), pa.binary()),
        (ColumnType("tinyblob"), pa.binary()),
        (ColumnType("enum", labels=("a",)), pa.string()),
        (ColumnType("json"), pa.string()),
        (ColumnType("inet6"), pa.string()),
        (ColumnType("multipolygon"), pa.binary()),
        (ColumnType("vector", 3), pa.list_(pa.float32())),
    ],
)
def test_others(column: ColumnType, expected: pa.DataType) -> None:
    assert arrow_type(column) == expected


def test_options() -> None:
    options = TypeOptions(tinyint1_as_boolean=True, zero_dates="text")
    assert arrow_type(ColumnType("tinyint", 1), options) == pa.bool_()
    assert arrow_type(ColumnType("tinyint", 4), options) == pa.int8()
    assert arrow_type(ColumnType("tinyint", 1, unsigned=True), options) == pa.int16()
    assert [arrow_type(ColumnType(name), options) for name in ("date", "datetime", "timestamp")] == [pa.string()] * 3
