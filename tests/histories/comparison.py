# SPDX-License-Identifier: Apache-2.0
"""Compare a table of the lake with what the model holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tests.histories.kinds import Kind, time_text
from tests.histories.source import Column, Row

_SHOWN = 4  # rows of each kind


def unlike(lake: pa.Table, columns: Sequence[Column], rows: Sequence[Row]) -> list[str]:
    """Return in words what a table has otherwise than it must hold.

    :param columns: that it must have, ``rows`` its content.
    """
    names = [column.name for column in columns]
    if lake.column_names != names:
        return [f"columns {lake.column_names} instead of {names}"]
    types = zip(lake.schema, (lake_type(column.kind) for column in columns), strict=True)
    wrong = [f"{field.name} is {field.type}, not {kind}" for field, kind in types if field.type != kind]
    actual = Counter(zip(*(stored_values(lake.column(i), c.kind) for i, c in enumerate(columns)), strict=True))
    expected = Counter(tuple(expected_value(row[c.name], c.kind) for c in columns) for row in rows)
    for sign, some in (("too much", actual - expected), ("missing", expected - actual)):
        wrong += [f"{sign} ({count} x) {_short(names, row)}" for row, count in list(some.items())[:_SHOWN]]
    return wrong


def _short(names: Sequence[str], row: Sequence[Any]) -> str:
    return ", ".join(f"{name}={str(value)[:60]!r}" for name, value in zip(names, row, strict=True))


def lake_type(kind: Kind) -> pa.DataType:
    """Return the lake's type of a column."""
    signed = {
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "mediumint": pa.int32(),
        "int": pa.int32(),
        "bigint": pa.int64(),
    }
    unsigned = {
        "tinyint": pa.int16(),
        "smallint": pa.int32(),
        "mediumint": pa.int32(),
        "int": pa.int64(),
        "bigint": pa.decimal128(20, 0),
    }
    if kind.name in signed:
        return (unsigned if kind.unsigned else signed)[kind.name]
    if kind.name == "decimal":
        return pa.decimal128(kind.length, kind.scale)
    if kind.name == "bit":
        return pa.bool_() if kind.length == 1 else pa.decimal128(20, 0) if kind.length == 64 else pa.int64()
    others = {
        "double": pa.float64(),
        "float": pa.float32(),
        "date": pa.date32(),
        "datetime": pa.timestamp("us"),
        "timestamp": pa.timestamp("us", "UTC"),
        "blob": pa.binary(),
    }
    return others.get(kind.name, pa.string())


def stored_values(column: pa.ChunkedArray, kind: Kind) -> list[Any]:
    """Return a column of the lake in the model's values, decimals as text."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64()).to_pylist()
    if pa.types.is_date32(column.type):
        return column.cast(pa.int32()).to_pylist()
    values = column.to_pylist()
    if kind.name == "decimal":
        return [None if value is None else str(value) for value in values]
    if kind.name in ("bigint", "bit"):
        return [None if value is None else int(value) for value in values]
    return values


def expected_value(value: Any, kind: Kind) -> Any:
    """Return a value of the model as :func:`stored_values` has it."""
    if value is None:
        return None
    if kind.name == "decimal":
        return str(value if value else abs(value))
    return time_text(value, kind.length or 0) if kind.name == "time" else value
