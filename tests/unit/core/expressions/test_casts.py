# SPDX-License-Identifier: Apache-2.0
"""Check what CAST makes of the values of each type; those that the new type cannot hold fail."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.unit.core.expressions.evaluated import FAILS, assert_gives

T, F, N = True, False, None
TEXTS = pa.string()
D2, D18 = pa.decimal128(10, 2), pa.decimal128(38, 18)
TIMES, INSTANTS = pa.timestamp("us"), pa.timestamp("us", "UTC")


def decimals(*texts: str | None) -> list[Decimal | None]:
    return [None if text is None else Decimal(text) for text in texts]


def at(year: int, month: int, day: int, *time: int) -> datetime:
    return datetime(year, month, day, *time)


CASTS: list[tuple[str, pa.DataType, list[Any], list[Any]]] = [
    ("SMALLINT", pa.int64(), [32767, 32768, -32769, N], [32767, FAILS, FAILS, N]),
    ("INT", D2, decimals("1.99", "-1.99", "99999999.99"), [1, -1, 99999999]),
    ("INT", pa.decimal128(20, 0), decimals("2147483647", "2147483648"), [2147483647, FAILS]),
    ("BIGINT", pa.float64(), [1.9, -1.9, 9.3e18, float("nan"), N], [1, -1, FAILS, FAILS, N]),
    (
        "BIGINT",
        TEXTS,
        [" 7 ", "+7", "-007", "1.5", "1e3", "", "0x1F", "9223372036854775808", "٣", N],
        [7, 7, -7, FAILS, FAILS, FAILS, FAILS, FAILS, FAILS, N],
    ),
    ("INT", pa.bool_(), [T, F, N], [1, 0, N]),
    ("DECIMAL(4, 2)", D2, decimals("1.50", "99.99", "100.00", N), [*decimals("1.50", "99.99"), FAILS, N]),
    ("DECIMAL(3, 1)", D2, decimals("0.05", "-0.05", "0.04", "99.95"), [*decimals("0.1", "-0.1", "0.0"), FAILS]),
    (
        "DECIMAL(10, 2)",
        pa.float64(),
        [0.125, 1.005, 1e300, float("inf"), 1e-300],
        [*decimals("0.13", "1.01"), FAILS, FAILS, Decimal("0.00")],
    ),
    ("DECIMAL(38, 10)", pa.int64(), [-(1 << 63)], [Decimal(-(1 << 63))]),
    (
        "DECIMAL(5, 2)",
        TEXTS,
        ["1.005", ".5", "5.", "-1e-2", "1e3", "abc", "9" * 100, "0." + "0" * 60 + "1", N],
        [*decimals("1.01", "0.50", "5.00", "-0.01"), FAILS, FAILS, FAILS, Decimal("0.00"), N],
    ),
    ("DOUBLE", D18, decimals("0.1", "12345678901234567890.123456789012345678"), [0.1, 1.2345678901234567e19]),
    ("DOUBLE", pa.int64(), [1 << 53, -(1 << 53) - 1], [float(1 << 53), FAILS]),
    ("DOUBLE", TEXTS, ["0.1", "1e400", "-1e-400", "nan", " 1 "], [0.1, FAILS, -0.0, FAILS, 1.0]),
    ("DOUBLE", pa.float32(), [0.5, N], [0.5, N]),
    ("STRING", pa.bool_(), [T, F, N], ["true", "false", N]),
    ("VARCHAR", pa.int8(), [-5], ["-5"]),
    ("STRING", pa.decimal128(10, 8), decimals("0.00000001", "0", "-1.5"), ["0.00000001", "0.00000000", "-1.50000000"]),
    (
        "TEXT",
        pa.float64(),
        [1.0, 0.1, 1e22, 1e-7, -0.0, float("nan"), float("-inf")],
        ["1.0", "0.1", "10000000000000000000000.0", "0.0000001", "-0.0", "NaN", "-Infinity"],
    ),
    ("STRING", pa.float32(), [0.1, 16777216.0, N], ["0.1", "16777216.0", N]),
    ("STRING", pa.date32(), [date(1, 2, 3)], ["0001-02-03"]),
    (
        "STRING",
        TIMES,
        [at(1, 2, 3), at(2024, 1, 2, 3, 4, 5, 600000), at(2024, 1, 2, 10, 0, 0)],
        ["0001-02-03 00:00:00", "2024-01-02 03:04:05.6", "2024-01-02 10:00:00"],
    ),
    ("STRING", INSTANTS, [datetime(2024, 1, 2, 3, tzinfo=UTC)], ["2024-01-02 03:00:00"]),
    (
        "DATE",
        TEXTS,
        [" 2024-02-29 ", "2024-02-29 10:00", "2024-2-9", "2023-02-29", "0000-00-00", "0000-01-01", "2024-02-29x", N],
        [date(2024, 2, 29), date(2024, 2, 29), FAILS, FAILS, FAILS, FAILS, FAILS, N],
    ),
    ("DATE", INSTANTS, [datetime(1969, 12, 31, 23, 59, tzinfo=UTC)], [date(1969, 12, 31)]),
    (
        "TIMESTAMP",
        TEXTS,
        ["2024-01-02", "2024-01-02T03:04:05.000001", "2024-01-02 24:00:00", "2024-01-02 03:04:05Z", N],
        [at(2024, 1, 2), at(2024, 1, 2, 3, 4, 5, 1), FAILS, FAILS, N],
    ),
    ("TIMESTAMP", pa.date32(), [date(1969, 12, 31), N], [at(1969, 12, 31), N]),
    ("TIMESTAMP", INSTANTS, [datetime(2024, 1, 2, 3, tzinfo=UTC)], [at(2024, 1, 2, 3)]),
    ("BOOLEAN", TEXTS, ["true", " T ", "no", "0", "2", "", N], [T, T, F, F, FAILS, FAILS, N]),
    ("BOOLEAN", D2, decimals("0.00", "-0.01", N), [F, T, N]),
]


@pytest.mark.parametrize(("name", "kind", "values", "expected"), CASTS, ids=[f"{one[1]} to {one[0]}" for one in CASTS])
def test_each_cast(name: str, kind: pa.DataType, values: list[Any], expected: list[Any]) -> None:
    assert_gives(f"CAST(x AS {name})", [(kind, values)], expected)
