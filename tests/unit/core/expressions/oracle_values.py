# SPDX-License-Identifier: Apache-2.0
"""Convert single values as SQL does, for the oracle of expressions: plain Python, without Arrow."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from math import isfinite, isinf, isnan
from typing import Any

from pyarrow import DataType, bool_, date32, decimal128, float64, int8, int16, int32, int64, string, timestamp

Row = dict[str, Any]
TIMESTAMP, INSTANT = timestamp("us"), timestamp("us", "UTC")
WHOLE = {int8(): 7, int16(): 15, int32(): 31, int64(): 63}
DIGITS = {int8(): 3, int16(): 5, int32(): 10, int64(): 19}
EXACT = Context(prec=400, rounding=ROUND_HALF_UP)


class Fails(Exception):
    """Signal that the expression fails on the row."""


def is_decimal(kind: DataType) -> bool:
    return str(kind).startswith("decimal")


def is_number(kind: DataType) -> bool:
    return kind in WHOLE or is_decimal(kind) or kind == float64()


def digits(kind: DataType) -> tuple[int, int]:
    return (DIGITS[kind], 0) if kind in WHOLE else (kind.precision, kind.scale)


def truth(value: Any) -> Any:
    return value if value is None or isinstance(value, bool) else value != 0


def comparable(a: Any, b: Any) -> tuple[Any, Any]:
    """Return two values as what is compared."""
    if isinstance(a, float) or isinstance(b, float):
        # NaN is equal to itself and greater than all others
        return (isnan(a), 0.0 if isnan(a) else a), (isnan(b), 0.0 if isnan(b) else b)
    if isinstance(a, date) or isinstance(b, date):
        return as_time(a), as_time(b)
    if isinstance(a, str):
        return a.encode(), b.encode()
    return a, b


def as_double(value: Any) -> float:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 1 << 53:
        raise Fails
    return float(value)


def as_time(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    return datetime.combine(value, time())


def common(*kinds: DataType) -> DataType:
    """Return the type of a CASE or COALESCE."""
    first = kinds[0]
    if all(kind == first for kind in kinds):
        return first
    if all(kind in WHOLE for kind in kinds):
        return max(kinds, key=lambda kind: WHOLE[kind])
    if float64() in kinds:
        return float64()
    if any(kind in (TIMESTAMP, INSTANT) for kind in kinds):
        return INSTANT if INSTANT in kinds else TIMESTAMP
    scale = max(digits(kind)[1] for kind in kinds)
    return decimal128(min(38, max(p - s for p, s in map(digits, kinds)) + scale), scale)


def fit(value: Any, kind: DataType) -> Any:
    """Return a number as a value of a type, rounded; raise if it does not fit."""
    if kind in WHOLE:
        if not -(1 << WHOLE[kind]) <= value < 1 << WHOLE[kind]:
            raise Fails
        return int(value)
    if is_decimal(kind):
        rounded = Decimal(value).quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP, EXACT)
        if abs(rounded) >= Decimal(10) ** (kind.precision - kind.scale):
            raise Fails
        return rounded if rounded else abs(rounded)  # Python knows a negative zero
    return value


def convert(value: Any, kind: DataType) -> Any:
    """Return a value as CAST does."""
    if value is None:
        return None
    if kind == string():
        return text_of(value)
    if isinstance(value, str):
        return _from_text(value.strip(" \t\n\v\f\r"), kind)
    if kind == bool_():
        return truth(value)
    if kind in WHOLE:
        if isinstance(value, float) and not isfinite(value):
            raise Fails
        return fit(int(value), kind)
    if is_decimal(kind):
        if isinstance(value, float) and not isfinite(value):
            raise Fails
        return fit(Decimal(repr(value)) if isinstance(value, float) else Decimal(value), kind)
    if kind == float64():
        return as_double(value)
    if kind == date32():
        return as_time(value).date()
    return as_time(value).replace(tzinfo=UTC) if kind == INSTANT else as_time(value)


def text_of(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        text = f"{Decimal(repr(value)):f}"
        return text if "." in text or not isfinite(value) else f"{text}.0"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        plain = as_time(value)
        fraction = f".{plain.microsecond:06}".rstrip("0").rstrip(".")
        return f"{plain.year:04}-{plain:%m-%d %H:%M:%S}{fraction}"
    return value.isoformat() if isinstance(value, date) else str(value)


def _from_text(text: str, kind: DataType) -> Any:
    if kind == bool_():
        for word, result in (("t true y yes 1", True), ("f false n no 0", False)):
            if text.lower() in word.split():
                return result
        raise Fails
    if kind in WHOLE and re.fullmatch(r"[+-]?[0-9]+", text):
        return fit(int(text), kind)
    if kind in (date32(), TIMESTAMP, INSTANT):
        return convert(_moment(text), kind)
    if kind in WHOLE or not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?", text):
        raise Fails
    if is_decimal(kind):
        with localcontext(EXACT):
            return fit(Decimal(text), kind)
    if isinf(float(text)):
        raise Fails
    return float(text)


def _moment(text: str) -> datetime:
    match = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?", text, re.ASCII)
    if not match:
        raise Fails
    year, month, day, *time, fraction = match.groups()
    try:
        return datetime(
            int(year), int(month), int(day), *(int(part or 0) for part in time), int((fraction or "0").ljust(6, "0"))
        )
    except ValueError:
        raise Fails from None


def truncated(unit: str, value: Any) -> Any:
    moment = as_time(value)
    first = {
        "SECOND": lambda: moment.replace(microsecond=0),
        "MINUTE": lambda: moment.replace(second=0, microsecond=0),
        "HOUR": lambda: moment.replace(minute=0, second=0, microsecond=0),
        "DAY": lambda: as_time(moment.date()),
        "WEEK": lambda: as_time(moment.date() - timedelta(days=moment.weekday())),
        "MONTH": lambda: as_time(moment.date().replace(day=1)),
        "QUARTER": lambda: as_time(date(moment.year, (moment.month - 1) // 3 * 3 + 1, 1)),
        "YEAR": lambda: as_time(date(moment.year, 1, 1)),
    }[unit]()
    return first.replace(tzinfo=UTC) if getattr(value, "tzinfo", None) else first
