"""Stored values under an ALTER: exact, or refused."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.conversion import convert
from airflow_provider_cdc.core.values.types import TypeOptions, arrow_type

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
    (INT, ColumnType("year"), [1999, 0], [1999, 0]),
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
    (ColumnType("double"), INT, [2.0], [2]),
    (varchar(9), INT, ["5", "-7"], [5, -7]),
    (varchar(9), decimal(5, 2), ["1.005", "2"], [Decimal("1.01"), Decimal("2.00")]),
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
    (ColumnType("set", labels=("b", "a")), ColumnType("set", labels=("a", "b")), ["b,a", ""], ["a,b", ""]),
    (ColumnType("set", labels=("b", "a")), INT, ["b,a", ""], [3, 0]),
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
    (ColumnType("time", 1), ColumnType("time"), ["-01:02:03.5", "01:02:03.4"], ["-01:02:04", "01:02:03"]),
    (ColumnType("time"), ColumnType("time", 2), ["838:59:59"], ["838:59:59.00"]),
    (ColumnType("time"), varchar(9), ["01:02:03"], ["01:02:03"]),
    (ColumnType("point"), ColumnType("geometry"), [b"\1"], [b"\1"]),
]
REFUSED: list[tuple[ColumnType, ColumnType, list[Any]]] = [
    (INT, TINYINT, [128]),
    (INT, ColumnType("mediumint"), [1 << 23]),
    (INT, ColumnType("int", unsigned=True), [-1]),
    (INT, varchar(2), [555]),
    (INT, ColumnType("year"), [70]),
    (INT, ColumnType("date"), [20200101]),
    (BIGINT, decimal(38, 38), [-31_214_970]),
    (decimal(4, 2), decimal(3, 1), [Decimal("99.95")]),
    (ColumnType("double"), INT, [2.5]),
    (ColumnType("double"), varchar(30), [2.5]),
    (ColumnType("double"), ColumnType("float"), [1e300]),
    (ColumnType("double"), ColumnType("double", 10, 2), [2.5]),
    (varchar(9), INT, ["5x"]),
    (varchar(9), INT, [""]),
    (varchar(60), decimal(10, 0), ["3402823669209384634633746074317682114560"]),
    (varchar(9), varchar(3), ["abcd"]),
    (varchar(999), ColumnType("tinytext"), ["é" * 128]),
    (varchar(9, "utf8mb4"), varchar(9, "latin1"), ["日"]),
    (varchar(9, "utf8mb4"), varchar(9, "utf8mb3"), ["😀"]),
    (varchar(9, "utf8mb4"), varchar(9, "big5"), ["日"]),
    (varchar(9, "utf8mb4"), ColumnType("json"), ["{}"]),
    (varchar(9, "gbk"), ColumnType("varbinary", 9), ["日"]),
    (ColumnType("varbinary", 9), varchar(9, "utf8mb4"), [b"\xff"]),
    (ColumnType("varbinary", 9), ColumnType("binary", 3), [b"abcd"]),
    (enum("a", "b"), enum("a"), ["b"]),
    (enum("a"), enum("A"), ["a"]),
    (ColumnType("datetime"), ColumnType("timestamp"), [LATE]),
    (ColumnType("datetime", 6), ColumnType("datetime"), [datetime(9999, 12, 31, 23, 59, 59, 999_999)]),
    (ColumnType("geometry"), ColumnType("point"), [b"\1"]),
]


@pytest.mark.parametrize(
    ("old", "new", "values", "wanted"), DONE, ids=lambda v: str(v) if isinstance(v, ColumnType) else ""
)
def test_done(old: ColumnType, new: ColumnType, values: list[Any], wanted: list[Any]) -> None:
    column = pa.chunked_array([pa.array(values, arrow_type(old)), pa.nulls(1, arrow_type(old))])
    result = convert(column, old, new, arrow_type(new))
    assert result.type == arrow_type(new)
    assert result.to_pylist() == [*wanted, None]


@pytest.mark.parametrize(("old", "new", "values"), REFUSED, ids=lambda v: str(v) if isinstance(v, ColumnType) else "")
def test_refused(old: ColumnType, new: ColumnType, values: list[Any]) -> None:
    with pytest.raises(DataError) as caught:
        convert(pa.array(values, arrow_type(old)), old, new, arrow_type(new))
    assert caught.value.code == "values.conversion_unknown"
    nothing = convert(pa.nulls(2, arrow_type(old)), old, new, arrow_type(new))
    assert (nothing.null_count, nothing.type) == (2, arrow_type(new))


def test_fractions_may_be_truncated() -> None:
    six, none = ColumnType("datetime", 6), ColumnType("datetime")
    values = pa.array([LATE, OLD], arrow_type(six))
    result = convert(values, six, none, arrow_type(none), fractions="truncate")
    assert result.to_pylist() == [LATE.replace(microsecond=0), OLD.replace(microsecond=0)]
    result = convert(values, six, ColumnType("date"), pa.date32(), fractions="truncate")
    assert result.to_pylist() == [LATE.date(), OLD.date()]


def test_dates_kept_as_text_only_grow() -> None:
    options = TypeOptions(zero_dates="string")
    old, new = ColumnType("datetime", 1), ColumnType("datetime", 3)
    values = pa.array(["0000-00-00 00:00:00.0", None])
    assert convert(values, old, new, arrow_type(new, options)).to_pylist() == ["0000-00-00 00:00:00.000", None]
    with pytest.raises(DataError):
        convert(values, new, old, arrow_type(old, options))


def test_booleans_of_tinyint() -> None:
    old, new = INT, ColumnType("tinyint", 1)
    assert convert(pa.array([0, 9], pa.int32()), old, new, pa.bool_()).to_pylist() == [False, True]
