# SPDX-License-Identifier: Apache-2.0
"""Check what each operator and function gives, with NULL and edges; expected values are Spark.s or standard SQL.s."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.expressions.binding import OPERATORS
from airflow_provider_cdc.core.expressions.functions import FUNCTIONS
from tests.unit.core.expressions.evaluated import FAILS, assert_gives, plain, shown

T, F, N = True, False, None
TEXTS = pa.string()
D2, D18 = pa.decimal128(10, 2), pa.decimal128(38, 18)
TIMES, INSTANTS = pa.timestamp("us"), pa.timestamp("us", "UTC")


def decimals(*texts: str | None) -> list[Decimal | None]:
    return [None if text is None else Decimal(text) for text in texts]


def at(year: int, month: int, day: int, *time: int) -> datetime:
    return datetime(year, month, day, *time)


BOTH = [(a, b) for a in (T, F, N) for b in (T, F, N)]
LEFTS, RIGHTS = [a for a, _ in BOTH], [b for _, b in BOTH]

# SQL, types and values of the columns x, y and z, expected values
TABLE: list[tuple[str, list[tuple[pa.DataType, list[Any]]], list[Any]]] = [
    # three-valued logic
    ("x AND y", [(pa.bool_(), LEFTS), (pa.bool_(), RIGHTS)], [T, F, N, F, F, F, N, F, N]),
    ("x OR y", [(pa.bool_(), LEFTS), (pa.bool_(), RIGHTS)], [T, T, T, T, F, N, T, N, N]),
    ("NOT x", [(pa.bool_(), [T, F, N])], [F, T, N]),
    ("NOT x", [(pa.int8(), [0, 1, -5, N])], [T, F, F, N]),
    ("x IS NULL", [(pa.int8(), [0, N])], [F, T]),
    ("x IS NOT NULL", [(pa.list_(pa.float32()), [[], N])], [T, F]),
    # comparisons
    ("x = y", [(pa.int64(), [1, 1, N]), (D2, decimals("1.00", "1.01", "1.00"))], [T, F, N]),
    ("x <> 1", [(pa.int8(), [1, 2, N])], [F, T, N]),
    ("x != 1", [(pa.int8(), [1, 2, N])], [F, T, N]),
    ("x < y", [(TEXTS, ["a", "Z", "é", "a", ""]), (TEXTS, ["b", "a", "z", "a ", N])], [T, T, F, T, N]),
    ("x <= 'b'", [(TEXTS, ["a", "b", "B", "ba"])], [T, T, T, F]),
    ("x > DATE '2024-01-31'", [(TIMES, [at(2024, 1, 31), at(2024, 1, 31, 0, 0, 1), N])], [F, T, N]),
    ("x >= '2024-01-31'", [(pa.date32(), [date(2024, 1, 30), date(2024, 1, 31)])], [F, T]),
    ("x >= '2024-01-31 12:00'", [(INSTANTS, [at(2024, 1, 31, 11), at(2024, 1, 31, 12)])], [F, T]),
    ("x = y", [(pa.float64(), [float("nan"), 0.0, 1.0]), (pa.float64(), [float("nan"), -0.0, N])], [T, T, N]),
    ("x > 1e300", [(pa.float64(), [float("nan"), float("inf"), 1.0])], [T, T, F]),
    ("x = 0.1", [(pa.float32(), [0.1, 0.5])], [F, F]),
    ("x > y", [(pa.decimal128(38, 30), decimals("1e-30", "12345678")), (pa.int64(), [(1 << 63) - 1, 1])], [F, T]),
    ("x = y", [(pa.binary(), [b"\0", b"a"]), (pa.binary(), [b"\0", b"b"])], [T, F]),
    ("x BETWEEN 1 AND y", [(pa.int8(), [1, 3, 0, 2, N]), (pa.int8(), [2, 2, N, N, 1])], [T, F, F, N, N]),
    ("x NOT BETWEEN 1 AND 2", [(pa.int8(), [1, 3, N])], [F, T, N]),
    ("x IN ('DE', 'AT')", [(TEXTS, ["DE", "de", "", N])], [T, F, F, N]),
    ("x IN (1, NULL)", [(pa.int32(), [1, 2, N])], [T, N, N]),
    ("x NOT IN (1, NULL)", [(pa.int32(), [1, 2, N])], [F, N, N]),
    ("x NOT IN (1, 2.5)", [(D2, decimals("1.00", "2.50", "3.00", N))], [F, F, T, N]),
    ("x IN (y, 3)", [(pa.int8(), [1, 3, 2, 2, N]), (pa.int64(), [1, N, N, 1, 1])], [T, T, N, F, N]),
    # LIKE
    ("x LIKE 'a%'", [(TEXTS, ["a", "abc", "Abc", "ba", "", N])], [T, T, F, F, F, N]),
    ("x LIKE '%c'", [(TEXTS, ["c", "abc", "cb", "c\n"])], [T, T, F, F]),
    ("x LIKE '%b%'", [(TEXTS, ["abc", "b", "ac"])], [T, T, F]),
    ("x LIKE 'a_c'", [(TEXTS, ["abc", "aéc", "a😀c", "a\nc", "ac", "abcc"])], [T, T, T, T, F, F]),
    ("x LIKE 'a%c'", [(TEXTS, ["ac", "a\nbc", "ab", "xac"])], [T, T, F, F]),
    ("x LIKE '50\\%'", [(TEXTS, ["50%", "50x", "50"])], [T, F, F]),
    ("x LIKE 'a!_%!!' ESCAPE '!'", [(TEXTS, ["a_!", "a_b!", "ab!", "a_"])], [T, T, F, F]),
    ("x LIKE '(.*)[a]+'", [(TEXTS, ["(.*)[a]+", "xa"])], [T, F]),
    ("x NOT LIKE ''", [(TEXTS, ["", "a", N])], [F, T, N]),
    # arithmetic
    ("x + y", [(pa.int64(), [(1 << 63) - 1, 1, N]), (pa.int8(), [1, -1, 1])], [FAILS, 0, N]),
    ("x - y", [(pa.int64(), [-(1 << 63), 1]), (pa.int8(), [1, -1])], [FAILS, 2]),
    ("x * 2", [(pa.int32(), [(1 << 31) - 1, N])], [(1 << 32) - 2, N]),
    ("x * x", [(pa.int64(), [1 << 32, 3])], [FAILS, 9]),
    ("-x", [(pa.int64(), [-(1 << 63), 5, N])], [FAILS, -5, N]),
    ("-x", [(pa.int8(), [-128])], [128]),
    ("x / 3", [(pa.int32(), [1, 2, -2, N])], decimals("0.33333333333", "0.66666666667", "-0.66666666667", N)),
    ("x / y", [(D2, decimals("1.00", "1.00", N)), (pa.int8(), [0, 8, 0])], [FAILS, Decimal("0.125000"), N]),
    (
        "x % y",
        [(pa.int64(), [7, -7, 7, 7, N, -(1 << 63)]), (pa.int64(), [3, 3, -3, 0, 0, -1])],
        [1, -1, 1, FAILS, N, 0],
    ),
    ("MOD(x, 0.3)", [(D2, decimals("1.00", "-1.00", N))], decimals("0.10", "-0.10", N)),
    ("x % 0.5e0", [(pa.float64(), [1.75, -1.75])], [0.25, -0.25]),
    ("x + 0.1", [(D2, decimals("0.20", "99999999.99"))], decimals("0.30", "100000000.09")),
    ("x * x", [(D2, decimals("0.05", "99999999.99"))], decimals("0.0025", "9999999998000000.0001")),
    ("x * x", [(D18, decimals("1", "99999999999999999999"))], [Decimal(1), FAILS]),
    ("x + x", [(pa.decimal128(38, 0), decimals("9" * 38, "4" + "9" * 37))], [FAILS, Decimal("9" * 37 + "8")]),
    ("x * 1e300", [(pa.float64(), [1e9, 1.0, float("inf")])], [FAILS, 1e300, float("inf")]),
    ("x / y", [(pa.float64(), [1.0, 1.0, N]), (pa.int8(), [0, 4, 0])], [FAILS, 0.25, N]),
    ("x + 0.5e0", [(pa.int64(), [1 << 53, (1 << 53) + 1, 1])], [float(1 << 53), FAILS, 1.5]),
    # choices
    ("CASE WHEN x > 1 THEN 'many' WHEN x = 1 THEN 'one' END", [(pa.int8(), [2, 1, 0, N])], ["many", "one", N, N]),
    ("CASE x WHEN 1 THEN 10 WHEN NULL THEN 20 ELSE 0.5 END", [(pa.int8(), [1, N, 2])], decimals("10.0", "0.5", "0.5")),
    (
        "CASE WHEN y <> 0 THEN x / y END",
        [(D2, decimals("1.00", "1.00")), (pa.int8(), [0, 2])],
        [N, Decimal("0.500000")],
    ),
    ("y <> 0 AND x / y > 1", [(D2, decimals("1.00", "9.00")), (pa.int8(), [0, 2])], [F, T]),
    ("y = 0 OR x / y > 1", [(D2, decimals("1.00", "9.00")), (pa.int8(), [0, 2])], [T, T]),
    ("x / y > 1 AND y <> 0", [(D2, decimals("1.00", "9.00")), (pa.int8(), [0, 2])], [FAILS, T]),
    ("x IS NULL OR 1 / y > 0", [(pa.int8(), [N, 1, 1]), (pa.int8(), [0, 0, N])], [T, FAILS, N]),
    ("COALESCE(x, 1 / y, 0)", [(pa.int8(), [1, N, N]), (pa.int8(), [0, 0, N])], [Decimal(1), FAILS, Decimal(0)]),
    ("COALESCE(x, y, '')", [(TEXTS, ["a", N, N]), (TEXTS, [N, "b", N])], ["a", "b", ""]),
    ("COALESCE(x, '1970-01-01')", [(pa.date32(), [date(2024, 1, 1), N])], [date(2024, 1, 1), date(1970, 1, 1)]),
    ("NULLIF(x, 0)", [(pa.int8(), [0, 1, N])], [N, 1, N]),
    ("NULLIF(x, NULL)", [(pa.int8(), [0, N])], [0, N]),
    # texts
    ("CONCAT(x, ' ', y)", [(TEXTS, ["Ann", "Bob", N]), (TEXTS, ["Lee", N, "x"])], ["Ann Lee", N, N]),
    (
        "CONCAT(x, '/', y, '/', z)",
        [(pa.int64(), [-1]), (D2, decimals("0.50")), (pa.date32(), [date(2024, 1, 2)])],
        ["-1/0.50/2024-01-02"],
    ),
    ("LOWER(x)", [(TEXTS, ["ÄB", "İ", N])], ["äb", "i", N]),
    ("UPPER(x)", [(TEXTS, ["äb", "ŉ", N])], ["ÄB", "ŉ", N]),
    ("TRIM(x)", [(TEXTS, ["  a b ", "\ta\n", "", N])], ["a b", "\ta\n", "", N]),
    ("SUBSTRING(x, 2)", [(TEXTS, ["Ünö", "a", "", N])], ["nö", "", "", N]),
    ("SUBSTRING(x, 2, 2)", [(TEXTS, ["Quadratically", "ab", N])], ["ua", "b", N]),
    ("SUBSTRING(x, -3, 2)", [(TEXTS, ["Sakila", "il", "a"])], ["il", "i", ""]),
    ("SUBSTRING(x, 1, 0)", [(TEXTS, ["abc"])], [""]),
    ("LENGTH(x)", [(TEXTS, ["", "é😀", N])], [0, 2, N]),
    ("REPLACE(x, 'w', 'Ww')", [(TEXTS, ["www.mysql.com", "", N])], ["WwWwWw.mysql.com", "", N]),
    ("LEFT(x, 2)", [(TEXTS, ["éfg", "a", N])], ["éf", "a", N]),
    ("RIGHT(x, 2)", [(TEXTS, ["éfg", "a", N])], ["fg", "a", N]),
    ("RIGHT(x, 0)", [(TEXTS, ["abc"])], [""]),
    ("LPAD(x, 4, '??')", [(TEXTS, ["hi", "hello", "", N])], ["??hi", "hell", "????", N]),
    ("LPAD(x, 5, 'ab')", [(TEXTS, ["é", "xyz"])], ["ababé", "abxyz"]),
    ("LPAD(x, 3)", [(TEXTS, ["é"])], ["  é"]),
    (
        "JSON_VALUE(x, '$.a')",
        [(TEXTS, ['{"a": "é"}', '{"a": 1.50}', '{"a": true}', '{"a": null}', "{}", "[]", N])],
        ["é", "1.50", "true", N, N, N, N],
    ),
    (
        "JSON_VALUE(x, '$.a[1].\"b c\"')",
        [(TEXTS, ['{"a": [0, {"b c": 12345678901234567890}]}', '{"a": [0]}'])],
        ["12345678901234567890", N],
    ),
    (
        "JSON_VALUE(x, '$')",
        [(TEXTS, ["1", "{", '{"a": 1}', "[]", "NaN", '"\\ud800"', ""])],
        ["1", FAILS, FAILS, FAILS, FAILS, FAILS, FAILS],
    ),
    # numbers
    ("ABS(x)", [(pa.int8(), [-128, 5, N])], [128, 5, N]),
    ("ABS(x)", [(pa.int64(), [-(1 << 63), -1])], [FAILS, 1]),
    ("ABS(x)", [(D2, decimals("-0.05", N))], decimals("0.05", N)),
    ("ROUND(x)", [(D2, decimals("2.50", "-2.50", "99999999.99", N))], decimals("3", "-3", "100000000", N)),
    ("ROUND(x, 1)", [(D2, decimals("0.05", "-0.04", "0.25"))], decimals("0.1", "0.0", "0.3")),
    ("ROUND(x)", [(pa.float64(), [2.5, -2.5, 0.49999999999999994, N])], [3.0, -3.0, 0.0, N]),
    ("ROUND(x, 2)", [(pa.int8(), [5])], [5]),
    ("FLOOR(x)", [(D2, decimals("1.99", "-1.01", N))], decimals("1", "-2", N)),
    ("FLOOR(x)", [(pa.float64(), [-0.5, 1e19, float("nan"), N])], [-1, FAILS, FAILS, N]),
    ("CEIL(x)", [(D2, decimals("1.01", "-1.99", "99999999.99"))], decimals("2", "-1", "100000000")),
    ("CEIL(x)", [(pa.float64(), [-0.5, 0.1])], [0, 1]),
    # dates and timestamps
    (
        "DATE(x)",
        [(TIMES, [at(2024, 1, 1, 23, 59, 59, 999999), at(1969, 12, 31, 23), N])],
        [date(2024, 1, 1), date(1969, 12, 31), N],
    ),
    ("DATE(x)", [(TEXTS, ["2024-02-29", "2023-02-29", N])], [date(2024, 2, 29), FAILS, N]),
    ("YEAR(x)", [(INSTANTS, [datetime(2024, 12, 31, 23, 30, tzinfo=UTC), N])], [2024, N]),
    ("MONTH(x)", [(pa.date32(), [date(1, 1, 1), date(9999, 12, 31)])], [1, 12]),
    ("DAY(x)", [(pa.date32(), [date(2024, 2, 29)])], [29]),
    ("HOUR(x)", [(TIMES, [at(1969, 12, 31, 23, 59), N])], [23, N]),
    ("DATE_TRUNC('quarter', x)", [(pa.date32(), [date(2024, 5, 17), N])], [at(2024, 4, 1), N]),
    ("DATE_TRUNC('WEEK', x)", [(TIMES, [at(2024, 3, 3, 10), at(1900, 5, 17)])], [at(2024, 2, 26), at(1900, 5, 14)]),
    (
        "DATE_TRUNC('hour', x)",
        [(INSTANTS, [datetime(1969, 12, 31, 23, 59, tzinfo=UTC)])],
        [datetime(1969, 12, 31, 23, tzinfo=UTC)],
    ),
    ("DATE_TRUNC('second', x)", [(TIMES, [at(2024, 1, 1, 0, 0, 0, 999999)])], [at(2024, 1, 1)]),
]


IDS = [f"{sql}-{columns[0][0]}" for sql, columns, _ in TABLE]


@pytest.mark.parametrize(("sql", "columns", "expected"), TABLE, ids=IDS)
def test_each_operator_and_function(
    sql: str, columns: list[tuple[pa.DataType, list[Any]]], expected: list[Any]
) -> None:
    assert_gives(sql, columns, expected)


@pytest.mark.parametrize(("sql", "columns", "expected"), TABLE, ids=IDS)
def test_a_row_gives_the_same_alone_and_in_a_slice(
    sql: str, columns: list[tuple[pa.DataType, list[Any]]], expected: list[Any]
) -> None:
    twice = {name: pa.array(values * 2, kind) for name, (kind, values) in zip("xyz", columns, strict=False)}
    for row, value in enumerate(expected):
        part = {name: values.slice(row + len(expected), 1) for name, values in twice.items()}
        assert shown(sql, part, 1) == [value if value is FAILS else plain(value)]


def test_the_table_has_all_functions_and_operators() -> None:
    words = " ".join(sql for sql, _, _ in TABLE)
    assert [name for name in FUNCTIONS if f"{name}(" not in words] == []
    assert [name for name in OPERATORS if name not in words] == []
