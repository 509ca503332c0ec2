# SPDX-License-Identifier: Apache-2.0
"""Compare a table of the lake with what the model of the server holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tests.postgres_histories.kinds import Kind
from tests.postgres_histories.server import Content

_SHOWN = 4  # rows of each kind


def unlike(lake: pa.Table, content: Content, *, ordered: bool) -> list[str]:
    """Return in words what a table has otherwise than it must hold.

    :param ordered: whether columns must have their order.
    """
    columns = list(content.structure.columns)
    names = [column.name for column in columns]
    if (lake.column_names if ordered else sorted(lake.column_names)) != (names if ordered else sorted(names)):
        return [f"columns {lake.column_names} instead of {names}"]
    types = [(lake.schema.field(column.name).type, column.kind.lake, column.name) for column in columns]
    wrong = [
        f"columns: {name} is {actual}, not {expected_type}"
        for actual, expected_type, name in types
        if actual != expected_type
    ]
    if wrong:
        return wrong
    actual = Counter(zip(*(stored_values(lake.column(c.name), c.kind) for c in columns), strict=True))
    expected = Counter(tuple(expected_value(row[c.attnum], c.kind) for c in columns) for row in content.rows)
    for sign, some in (("too much", actual - expected), ("missing", expected - actual)):
        wrong += [f"{sign} ({count} x) {_short(names, row)}" for row, count in list(some.items())[:_SHOWN]]
    return wrong


def _short(names: Sequence[str], row: Sequence[Any]) -> str:
    return ", ".join(f"{name}={str(value)[:60]!r}" for name, value in zip(names, row, strict=True))


def stored_values(column: pa.ChunkedArray, kind: Kind) -> list[Any]:
    """Return a column of the lake in the model's values: decimals and floats as text."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64()).to_pylist()
    if pa.types.is_date32(column.type):
        return column.cast(pa.int32()).to_pylist()
    values = column.to_pylist()
    if pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
        return [None if value is None else expected_value(value, kind) for value in values]
    return values


def expected_value(value: Any, kind: Kind) -> Any:
    """Return a value of the model as :func:`stored_values` has it."""
    return None if value is None else kind.stored(value)
