# SPDX-License-Identifier: Apache-2.0
"""Test stored values under an ALTER: converted as in MySQL's manual, counted if they did not fit, or an error.

What did not fit is as the manual has it for servers without strict mode: "Out-of-Range and Overflow Handling", "Server
SQL Modes", "The CHAR and VARCHAR Types", "The ENUM Type", "Type Conversion in Expression Evaluation", "The YEAR Type".
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.alter.convert import convert, without_nulls
from airflow_provider_cdc.core.values.types import TypeOptions, arrow_type

WIDE = Context(prec=80, rounding=ROUND_HALF_UP)
INT, BIGINT, TINYINT = ColumnType("int"), ColumnType("bigint"), ColumnType("tinyint")
LATE = datetime(2020, 1, 1, 23, 59, 59, 500_000)
OLD = datetime(1960, 1, 1, 0, 0, 0, 500_000)


def decimal(precision: int, scale: int) -> ColumnType:
    return ColumnType("decimal", precision, scale)


def varchar(length: int, charset: str | None = None) -> ColumnType:
    return ColumnType("varchar", length, charset=charset)


def enum(*labels: str) -> ColumnType:
    return ColumnType("enum", labels=labels)


DONE: list[tuple[ColumnType, ColumnType, list[Any], list[Any]]] = [
    (INT, BIGINT, [1, -5], [1, -5]),
    (BIGINT, TINYINT, [127], [127]),
    (INT, ColumnType("tinyint", unsigned=True), [255], [255]),
    (BIGINT, ColumnType("bigint", unsigned=True), [2**63 - 1], [Decimal(2**63 - 1)]),
    (ColumnType("bigint", unsigned=True), ColumnType("bit", 64), [Decimal(2**64 - 1)], [Decimal(2**64 - 1)]),
    (INT, ColumnType("bit", 1), [0, 1], [False, True]),
    (ColumnType("bit", 1), INT, [True], [1]),
    (INT, decimal(38, 4), [7], [Decimal("7.0000")]),
    (INT, ColumnType("double"), [7], [7.0]),
    (INT, varchar(2), [5, -7], ["5", "-7"]),
    (INT, enum("a", "b"), [2, 1], ["b", "a"]),
    (INT, ColumnType("year"), [1999, 0, 70, 99, 1, 69], [1999, 0, 1970, 1999, 2001, 2069]),
    (ColumnType("year"), varchar(4), [1999, 0], ["1999", "0000"]),
    (
        decimal(10, 2),
        decimal(5, 1),
        [Decimal("1.25"), Decimal("-1.25"), Decimal("1.24")],
        [Decimal("1.3"), Decimal("-1.3"), Decimal("1.2")],
    ),
    (decimal(10, 2), decimal(65, 30), [Decimal("1.25")], ["1.25" + "0" * 28]),
    (decimal(65, 30), decimal(5, 1), ["1.25" + "0" * 28, "-1.25" + "0" * 28], [Decimal("1.3"), Decimal("-1.3")]),
    (decimal(10, 1), INT, [Decimal("2.5"), Decimal("-2.5")], [3, -3]),
    (decimal(20, 10), varchar(12), [Decimal("0E-10")], ["0.0000000000"]),
    (decimal(10, 2), ColumnType("double"), [Decimal("0.10")], [0.1]),
    (ColumnType("double"), ColumnType("float"), [0.1], [0.10000000149011612]),
    (ColumnType("float"), ColumnType("double"), [0.5], [0.5]),
    (ColumnType("double"), INT, [2.0, 2.4, -2.6], [2, 2, -3]),
    (
        ColumnType("double"),
        decimal(10, 2),
        [2.675, -0.125, 1e3],
        [Decimal("2.68"), Decimal("-0.13"), Decimal("1000.00")],
    ),
    (ColumnType("double"), ColumnType("double", 10, 2), [2.5, 1.239, -1.239], [2.5, 1.24, -1.24]),
    (ColumnType("float", 7, 3), varchar(20), [1.5, -0.1], ["1.500", "-0.100"]),
    (INT, ColumnType("longblob"), [-17, 0], [b"-17", b"0"]),
    (decimal(5, 2), ColumnType("varbinary", 9), [Decimal("1.50")], [b"1.50"]),
    (ColumnType("year"), ColumnType("binary", 5), [1999], [b"1999\0"]),
    (varchar(9), INT, ["5", "-7"], [5, -7]),
    (varchar(9), INT, ["1.5", " 7", "1e2", "+3", ".4", "-2.5 "], [2, 7, 100, 3, 0, -3]),
    (varchar(9), decimal(5, 2), ["1.005", "2", "1e-1"], [Decimal("1.01"), Decimal("2.00"), Decimal("0.10")]),
    (varchar(9), ColumnType("double"), ["1.5"], [1.5]),
    (varchar(9), varchar(3), ["abc", "日本語", "ab   "], ["abc", "日本語", "ab "]),
    (varchar(9), ColumnType("char", 9), ["ab "], ["ab"]),
    (varchar(9, "utf8mb4"), varchar(9, "latin1"), ["é€"], ["é€"]),
    (varchar(9, "latin1"), varchar(9, "utf8mb4"), ["é€"], ["é€"]),
    (varchar(9, "utf8mb4"), varchar(9, "utf8mb3"), ["日\n"], ["日\n"]),
    (varchar(9), enum("a", "b"), ["b"], ["b"]),
    (varchar(30), ColumnType("datetime", 3), ["2020-01-02 03:04:05.6"], [datetime(2020, 1, 2, 3, 4, 5, 600_000)]),
    (varchar(30), ColumnType("date"), ["2020-01-02"], [date(2020, 1, 2)]),
    (varchar(9, "utf8mb4"), ColumnType("varbinary", 9), ["é"], ["é".encode()]),
    (ColumnType("varbinary", 9), varchar(9, "utf8mb4"), ["é".encode()], ["é"]),
    (ColumnType("varbinary", 9), ColumnType("binary", 3), [b"a"], [b"a\0\0"]),
    (enum("a", "b"), enum("c", "a", "b"), ["a", "b"], ["a", "b"]),
    (enum("a", "b"), varchar(1), ["b"], ["b"]),
    (enum("a", "b"), TINYINT, ["b", ""], [2, 0]),
    (enum("a", "b"), enum("c", "b"), ["b", ""], ["b", ""]),
    (enum("a", "é"), ColumnType("double"), ["é"], [2.0]),
    (
        ColumnType("enum", labels=("a", "é"), charset="utf8mb4"),
        ColumnType("longblob"),
        ["a", "é"],
        [b"a", "é".encode()],
    ),
    (varchar(9), enum("x", "y"), ["2"], ["y"]),
    (ColumnType("set", labels=("b", "a")), ColumnType("set", labels=("a", "b")), ["b,a", ""], ["a,b", ""]),
    (ColumnType("set", labels=("b", "a")), INT, ["b,a", ""], [3, 0]),
    (ColumnType("set", labels=("b", "a")), ColumnType("double"), ["b,a", ""], [3.0, 0.0]),
    (ColumnType("set", labels=("b", "a")), enum("a", "b,a"), ["b,a", "a"], ["b,a", "a"]),
    (
        ColumnType("datetime", 6),
        ColumnType("datetime"),
        [LATE, OLD],
        [datetime(2020, 1, 2), datetime(1960, 1, 1, 0, 0, 1)],
    ),
    (
        ColumnType("timestamp", 6),
        ColumnType("timestamp"),
        [LATE.replace(tzinfo=UTC)],
        [datetime(2020, 1, 2, tzinfo=UTC)],
    ),
    (ColumnType("datetime", 6), ColumnType("date"), [LATE, OLD], [date(2020, 1, 2), date(1960, 1, 1)]),
    (ColumnType("date"), ColumnType("datetime", 3), [date(2020, 1, 2)], [datetime(2020, 1, 2)]),
    (ColumnType("datetime", 2), varchar(30), [LATE], ["2020-01-01 23:59:59.50"]),
    (ColumnType("datetime"), ColumnType("mediumblob"), [LATE.replace(microsecond=0)], [b"2020-01-01 23:59:59"]),
    (ColumnType("datetime"), BIGINT, [LATE.replace(microsecond=0)], [20200101235959]),
    (ColumnType("date"), INT, [date(2020, 1, 2)], [20200102]),
    (ColumnType("time", 1), ColumnType("time"), ["-01:02:03.5", "01:02:03.4"], ["-01:02:04", "01:02:03"]),
    (ColumnType("time"), ColumnType("time", 2), ["838:59:59"], ["838:59:59.00"]),
    (ColumnType("time"), varchar(9), ["01:02:03"], ["01:02:03"]),
    (ColumnType("point"), ColumnType("geometry"), [b"\1"], [b"\1"]),
]
UNSIGNED = ColumnType("int", unsigned=True)
# values that do not fit and, after the result, the counts
LOSSY: list[tuple[ColumnType, ColumnType, list[Any], list[Any], dict[str, int]]] = [
    (INT, TINYINT, [128, -129, 5], [127, -128, 5], {"number_clamped": 2}),
    (INT, ColumnType("mediumint"), [1 << 23], [(1 << 23) - 1], {"number_clamped": 1}),
    (INT, UNSIGNED, [-1, 7], [0, 7], {"number_clamped": 1}),
    (BIGINT, ColumnType("bigint", unsigned=True), [-(2**63)], [Decimal(0)], {"number_clamped": 1}),
    (ColumnType("bigint", unsigned=True), BIGINT, [Decimal(2**64 - 1)], [2**63 - 1], {"number_clamped": 1}),
    (INT, varchar(2), [555], ["55"], {"text_cut": 1}),
    (INT, ColumnType("year"), [100, 1900, 2156, -1, 10**9], [0] * 5, {"number_clamped": 5}),
    (INT, enum("a"), [2, 0, 1], ["", "", "a"], {"label_lost": 2}),
    (
        decimal(4, 2),
        decimal(3, 1),
        [Decimal("99.95"), Decimal("-99.94")],
        [Decimal("99.9")] * 1 + [Decimal("-99.9")],
        {"number_clamped": 1},
    ),
    (decimal(4, 2), ColumnType("decimal", 4, 2, True), [Decimal("-1.50")], [Decimal("0.00")], {"number_clamped": 1}),
    (decimal(65, 0), BIGINT, ["9" * 60, "-" + "9" * 60, "5"], [2**63 - 1, -(2**63), 5], {"number_clamped": 2}),
    (BIGINT, decimal(38, 38), [-31_214_970], [Decimal("-0." + "9" * 38)], {"number_clamped": 1}),
    (ColumnType("double"), TINYINT, [1e300, -200.7, 127.2], [127, -128, 127], {"number_clamped": 2}),
    (ColumnType("double"), ColumnType("float"), [1e300], [3.4028234663852886e38], {"number_clamped": 1}),
    (ColumnType("double"), ColumnType("float", unsigned=True), [-1.5], [0.0], {"number_clamped": 1}),
    (ColumnType("double"), ColumnType("double", 4, 2, True), [123.456], [99.99], {"number_clamped": 1}),
    (ColumnType("double"), decimal(3, 1), [-1e20], [Decimal("-99.9")], {"number_clamped": 1}),
    (varchar(9), INT, ["5x", "", "abc", "12.4x", "-"], [5, 0, 0, 12, 0], {"number_prefix": 5}),
    (varchar(9), TINYINT, ["999x"], [127], {"number_clamped": 1}),
    (varchar(9), ColumnType("double"), ["1.5e", "x1"], [1.5, 0.0], {"number_prefix": 2}),
    (
        varchar(60),
        decimal(10, 0),
        ["3402823669209384634633746074317682114560"],
        [Decimal(9999999999)],
        {"number_clamped": 1},
    ),
    (
        varchar(200),
        varchar(5),
        ["abcdef", "日本語日本語", "ab", "abcde  "],
        ["abcde", "日本語日本", "ab", "abcde"],
        {"text_cut": 2},
    ),
    (varchar(9), ColumnType("char", 4), ["ab  cd"], ["ab"], {"text_cut": 1}),
    (
        varchar(999, "utf8mb4"),
        ColumnType("tinytext", charset="utf8mb4"),
        ["é" * 128, "a" + "é" * 127],
        ["é" * 127, "a" + "é" * 127],
        {"text_cut": 1},
    ),
    (varchar(999, "latin1"), ColumnType("tinytext", charset="latin1"), ["é" * 256], ["é" * 255], {"text_cut": 1}),
    (varchar(9, "utf8mb4"), varchar(9, "latin1"), ["a日é日"], ["a?é?"], {"character_replaced": 1}),
    (varchar(9, "utf8mb4"), varchar(9, "utf8mb3"), ["😀x"], ["?x"], {"character_replaced": 1}),
    (ColumnType("varbinary", 9), ColumnType("binary", 3), [b"abcd"], [b"abc"], {"text_cut": 1}),
    (ColumnType("datetime"), ColumnType("varchar", 10), [LATE.replace(microsecond=0)], ["2020-01-01"], {"text_cut": 1}),
    (ColumnType("datetime"), INT, [LATE.replace(microsecond=0)], [2**31 - 1], {"number_clamped": 1}),
    (enum("a", "b"), enum("a"), ["b", "a"], ["", "a"], {"label_lost": 1}),
    (
        ColumnType("set", labels=("a", "b")),
        ColumnType("set", labels=("b",)),
        ["a,b", "a"],
        ["b", ""],
        {"label_lost": 2},
    ),
    (varchar(9), enum("x", "y"), ["z", "3"], ["", ""], {"label_lost": 2}),
    (varchar(9), ColumnType("datetime"), ["", "soon"], [None, None], {"zero_date": 2}),
]
REFUSED: list[tuple[ColumnType, ColumnType, list[Any]]] = [
    (INT, ColumnType("bit", 3), [8]),
    (UNSIGNED, ColumnType("year"), [0]),
    (INT, ColumnType("date"), [20200101]),
    (ColumnType("double"), INT, [2.5]),
    (ColumnType("double"), varchar(30), [2.5]),
    (ColumnType("float"), varchar(30), [2.5]),
    (ColumnType("double"), ColumnType("bigint", unsigned=True), [2.0**63]),
    (varchar(9), INT, ["9" * 90]),
    (ColumnType("double"), ColumnType("double", 4, 2), [123.456]),
    (ColumnType("float"), BIGINT, [1e20]),
    (decimal(20, 0), ColumnType("bigint", unsigned=True), [Decimal(2**63)]),
    (varchar(999), ColumnType("tinytext"), ["é" * 128]),
    (varchar(999, "gbk"), ColumnType("tinytext", charset="gbk"), ["日" * 128]),
    (varchar(9, "utf8mb4"), varchar(9, "big5"), ["日"]),
    (varchar(9, "utf8mb4"), ColumnType("json"), ["{}"]),
    (varchar(9, "gbk"), ColumnType("varbinary", 9), ["日"]),
    (ColumnType("varbinary", 9), varchar(9, "utf8mb4"), [b"\xff"]),
    (enum("a"), enum("A"), ["a"]),
    (varchar(9), enum("a"), ["a "]),
    (varchar(9), enum("a"), ["ä"]),
    (varchar(9), ColumnType("set", labels=("a", "b")), ["2"]),
    (varchar(30), ColumnType("datetime"), ["20200101"]),
    (ColumnType("timestamp"), varchar(30), [LATE.replace(tzinfo=UTC)]),
    (ColumnType("datetime", 3), BIGINT, [LATE]),
    (ColumnType("datetime"), ColumnType("timestamp"), [LATE]),
    (ColumnType("datetime", 6), ColumnType("datetime"), [datetime(9999, 12, 31, 23, 59, 59, 999_999)]),
    (ColumnType("geometry"), ColumnType("point"), [b"\1"]),
]


@pytest.mark.parametrize(
    ("old", "new", "values", "expected"), DONE, ids=lambda v: str(v) if isinstance(v, ColumnType) else ""
)
def test_certain_conversions(old: ColumnType, new: ColumnType, values: list[Any], expected: list[Any]) -> None:
    column = pa.chunked_array([pa.array(values, arrow_type(old)), pa.nulls(1, arrow_type(old))])
    lost = Counter[str]()
    result = convert(column, old, new, arrow_type(new), lost, "mysql")
    assert result.type == arrow_type(new)
    assert result.to_pylist() == [*expected, None]
    assert not lost


@pytest.mark.parametrize(
    ("old", "new", "values", "expected", "counted"), LOSSY, ids=lambda v: str(v) if isinstance(v, ColumnType) else ""
)
def test_values_that_do_not_fit_are_converted_as_without_strict_mode_and_counted(
    old: ColumnType, new: ColumnType, values: list[Any], expected: list[Any], counted: dict[str, int]
) -> None:
    lost = Counter[str]()
    column = pa.array([*values, None], arrow_type(old))
    assert convert(column, old, new, arrow_type(new), lost).to_pylist() == [*expected, None]
    assert lost == counted


@pytest.mark.parametrize(
    ("column_type", "default"),
    [
        (INT, 0),
        (decimal(4, 2), Decimal("0.00")),
        (varchar(9), ""),
        (ColumnType("binary", 2), b"\0\0"),
        (ColumnType("time", 2), "00:00:00.00"),
        (ColumnType("bit", 1), False),
        (ColumnType("set", labels=("a",)), ""),
        (enum("a"), ""),
        (ColumnType("inet6"), "::"),
    ],
    ids=str,
)
def test_null_in_a_column_that_becomes_not_null_is_its_implicit_default(column_type: ColumnType, default: Any) -> None:
    lost = Counter[str]()
    values = pa.chunked_array(
        [pa.array([None, default], arrow_type(column_type)), pa.nulls(1, arrow_type(column_type))]
    )
    assert without_nulls(values, column_type, lost).to_pylist() == [default] * 3
    assert lost == {"null_replaced": 2}


@pytest.mark.parametrize("name", ["timestamp", "json", "vector"])
def test_null_is_uncertain_for_some_types(name: str) -> None:
    column_type = ColumnType(name)
    with pytest.raises(DataError) as caught:
        without_nulls(pa.nulls(1, arrow_type(column_type)), column_type)
    assert caught.value.code == "values.conversion_unknown"
    assert len(without_nulls(pa.nulls(0, arrow_type(column_type)), column_type)) == 0


def test_a_zero_date_that_replaces_null_stays_null_unless_dates_are_kept_as_text() -> None:
    lost = Counter[str]()
    assert without_nulls(pa.nulls(1, pa.date32()), ColumnType("date"), lost).to_pylist() == [None]
    assert not lost
    assert without_nulls(pa.nulls(1, pa.string()), ColumnType("date"), lost).to_pylist() == ["0000-00-00"]
    assert lost == {"null_replaced": 1}


@pytest.mark.parametrize(("old", "new", "values"), REFUSED, ids=lambda v: str(v) if isinstance(v, ColumnType) else "")
def test_uncertain_conversions_raise(old: ColumnType, new: ColumnType, values: list[Any]) -> None:
    with pytest.raises(DataError) as caught:
        convert(pa.array(values, arrow_type(old)), old, new, arrow_type(new), server="mysql")
    assert caught.value.code == "values.conversion_unknown"
    nothing = convert(pa.nulls(2, arrow_type(old)), old, new, arrow_type(new))
    assert (nothing.null_count, nothing.type) == (2, arrow_type(new))


@pytest.mark.parametrize("new", [ColumnType("datetime"), ColumnType("date")], ids=str)
def test_a_fraction_that_one_server_rounds_and_another_truncates_needs_to_know_the_server(new: ColumnType) -> None:
    six = ColumnType("datetime", 6)
    with pytest.raises(DataError, match="MariaDB"):
        convert(pa.array([LATE], arrow_type(six)), six, new, arrow_type(new))
    low = LATE.replace(hour=1, microsecond=499_999)
    (result,) = convert(pa.array([low], arrow_type(six)), six, new, arrow_type(new)).to_pylist()
    assert result == (low.date() if new.name == "date" else low.replace(microsecond=0))


def test_fractions_may_be_truncated() -> None:
    six, none = ColumnType("datetime", 6), ColumnType("datetime")
    values = pa.array([LATE, OLD], arrow_type(six))
    result = convert(values, six, none, arrow_type(none), server="mariadb")
    assert result.to_pylist() == [LATE.replace(microsecond=0), OLD.replace(microsecond=0)]
    result = convert(values, six, ColumnType("date"), pa.date32(), server="mariadb")
    assert result.to_pylist() == [LATE.date(), OLD.date()]


def test_dates_kept_as_text_only_grow() -> None:
    options = TypeOptions(zero_dates="text")
    old, new = ColumnType("datetime", 1), ColumnType("datetime", 3)
    values = pa.array(["0000-00-00 00:00:00.0", None])
    assert convert(values, old, new, arrow_type(new, options)).to_pylist() == ["0000-00-00 00:00:00.000", None]
    with pytest.raises(DataError):
        convert(values, new, old, arrow_type(old, options))


def test_booleans_of_tinyint() -> None:
    old, new = INT, ColumnType("tinyint", 1)
    assert convert(pa.array([0, 9], pa.int32()), old, new, pa.bool_()).to_pylist() == [False, True]


@pytest.mark.parametrize("dropped", [1, 9, 10, 13, 17, 18])
def test_decimals_are_rounded_exactly_however_many_digits_they_lose(dropped: int) -> None:
    """Arrow's own rounding is wrong near the limits of 32 and 64 bits where it drops ten digits or more."""
    whole = [2**32 - 1, 2**32, 2**63, 2**64 - 1, 10**10 - 1]
    parts = ["9" * dropped, "5".ljust(dropped, "0"), "4".ljust(dropped, "9"), "0" * dropped]
    texts = [f"{sign}{number}.{part}" for sign in ("", "-") for number in whole for part in parts]
    old, new = ColumnType("decimal", 38, dropped), ColumnType("decimal", 38, 0)
    values = pa.array([Decimal(text) for text in texts], pa.decimal128(38, dropped))
    rounded = convert(values, old, new, pa.decimal128(38, 0)).to_pylist()
    assert rounded == [WIDE.quantize(Decimal(text), Decimal(1)) for text in texts]
