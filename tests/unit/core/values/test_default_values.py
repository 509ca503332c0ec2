# SPDX-License-Identifier: Apache-2.0
"""Test constant defaults of DDL statements."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.images import constant
from airflow_provider_cdc.core.values.types import arrow_type


@pytest.mark.parametrize(
    ("text", "column", "value"),
    [
        (None, ColumnType("int"), None),
        ("5", ColumnType("int"), 5),
        ("0.00", ColumnType("decimal", 5, 2), Decimal("0.00")),
        ("1.5", ColumnType("decimal", 5, 2), Decimal("1.50")),
        ("1", ColumnType("bit", 1), True),
        ("", ColumnType("varchar", 5), ""),
        ("a", ColumnType("binary", 2), b"a\0"),
        ("", ColumnType("geometry"), b""),
        ("0000-00-00", ColumnType("date"), None),
        ("12:30:00", ColumnType("time"), "12:30:00"),
        ("12:30", ColumnType("time", 2), "12:30:00.00"),
        ("SILVER", ColumnType("enum", labels=("basic", "silver")), "silver"),
        ("b,a", ColumnType("set", labels=("a", "b")), "a,b"),
    ],
)
def test_constants(text: str | None, column: ColumnType, value: Any) -> None:
    scalar = constant(text, column, arrow_type(column))
    assert (scalar.as_py(), scalar.type) == (value, arrow_type(column))


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("x", ColumnType("int")),
        ("300", ColumnType("tinyint")),
        ("1.555", ColumnType("decimal", 5, 2)),
        ("x", ColumnType("enum", labels=("a",))),
        ("abc", ColumnType("char", 2)),
        ("2020-13-01", ColumnType("date")),
    ],
)
def test_constants_that_do_not_fit(text: str, column: ColumnType) -> None:
    with pytest.raises(DataError) as caught:
        constant(text, column, arrow_type(column))
    assert caught.value.code == "values.constant"
    assert text not in str(caught.value)
