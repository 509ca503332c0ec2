# SPDX-License-Identifier: Apache-2.0
"""Evaluate an expression on a few rows and compare it with stated values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.expressions.expression import parse

FAILS = object()
"""Stands for a row on which the expression fails."""


def assert_gives(sql: str, columns: list[tuple[pa.DataType, list[Any]]], expected: list[Any]) -> None:
    """Compare the values of all rows.

    :param columns: types and values of x, y and z.
    """
    arrays = {name: pa.array(values, kind) for name, (kind, values) in zip("xyz", columns, strict=False)}
    assert shown(sql, arrays, len(expected)) == [value if value is FAILS else plain(value) for value in expected]


def shown(sql: str, columns: dict[str, pa.Array], count: int) -> list[Any]:
    """Return the values of an expression, of exactly its type, and FAILS where it fails."""
    expression = parse(sql)
    values, failed = expression.evaluate(columns, count)
    assert values.type == expression.type({name: array.type for name, array in columns.items()})
    marks = [False] * count if failed is None else failed.tolist()
    assert all(value is None for mark, value in zip(marks, values.to_pylist(), strict=True) if mark)
    return [FAILS if mark else plain(value) for mark, value in zip(marks, values.to_pylist(), strict=True)]


def plain(value: Any) -> Any:
    """Return a value by which 0.0, -0.0, 0 and False differ, and NaN is itself."""
    return type(value), repr(value) if isinstance(value, float) else value
