# SPDX-License-Identifier: Apache-2.0
"""Implement expressions a second time, for tests: one row at a time, in plain Python, without Arrow and sqlglot.

A :class:`Part` knows its SQL and computes its value; the tests compare the product's answer to its SQL with that value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from math import fmod, isfinite, isinf, isnan, nan
from typing import Any

from pyarrow import DataType, bool_, date32, decimal128, float64, int8, int16, int32, int64, string, timestamp

Row = dict[str, Any]

TIMESTAMP, INSTANT = timestamp("us"), timestamp("us", "UTC")
WHOLE = {int8(): 7, int16(): 15, int32(): 31, int64(): 63}
DIGITS = {int8(): 3, int16(): 5, int32(): 10, int64(): 19}
EXACT = Context(prec=400, rounding=ROUND_HALF_UP)


class Fails(Exception):
    """Signal that the expression fails on the row."""


@dataclass(frozen=True)
class Part:
    """Hold a part of an expression.

    :param level: how tightly its outermost operator binds: OR 1, AND 2, NOT 3, comparisons 4, sums 5, products 6, sign
        7, others 8.
    """

    sql: str
    level: int
    type: DataType
    value: Callable[[Row], Any]

    def within(self, level: int) -> str:
        """Return the SQL as an operand of an operator that binds so tightly."""
        return self.sql if self.level >= level else f"({self.sql})"


def column(name: str, kind: DataType) -> Part:
    return Part(name, 8, kind, lambda row: row[name])


def literal(sql: str, kind: DataType, value: Any) -> Part:
    return Part(sql, 7 if sql.startswith("-") else 8, kind, lambda row: value)


def is_decimal(kind: DataType) -> bool:
    return str(kind).startswith("decimal")


def is_number(kind: DataType) -> bool:
    return kind in WHOLE or is_decimal(kind) or kind == float64()


def digits(kind: DataType) -> tuple[int, int]:
    return (DIGITS[kind], 0) if kind in WHOLE else (kind.precision, kind.scale)


# --- operators


def strict(sql: str, level: int, kind: DataType, compute: Callable[..., Any], *operands: Part) -> Part:
    """Return a part that is NULL if an operand is."""

    def value(row: Row) -> Any:
        values = [operand.value(row) for operand in operands]
        return None if None in values else compute(*values)

    return Part(sql, level, kind, value)


def doubles(*parts: Part) -> list[Part]:
    """Return operands as they are compared and computed with: DOUBLEs if one is, which a BIGINT may not fit."""
    if float64() not in [part.type for part in parts]:
        return [*parts]
    return [replace(part, value=lambda row, part=part: convert(part.value(row), float64())) for part in parts]


def truth(value: Any) -> Any:
    return value if value is None or isinstance(value, bool) else value != 0


def conjunction(left: Part, right: Part) -> Part:
    def value(row: Row) -> Any:
        a = truth(left.value(row))
        if a is False:
            return False
        b = truth(right.value(row))
        return False if b is False else None if a is None or b is None else True

    return Part(f"{left.within(2)} AND {right.within(3)}", 2, bool_(), value)


def disjunction(left: Part, right: Part) -> Part:
    def value(row: Row) -> Any:
        a = truth(left.value(row))
        if a is True:
            return True
        b = truth(right.value(row))
        return True if b is True else None if a is None or b is None else False

    return Part(f"{left.within(1)} OR {right.within(2)}", 1, bool_(), value)


def negation(operand: Part) -> Part:
    return strict(f"NOT {operand.within(3)}", 3, bool_(), lambda a: not truth(a), operand)


def is_null(operand: Part, negated: bool) -> Part:
    sql = f"{operand.within(5)} IS {'NOT ' if negated else ''}NULL"
    return Part(sql, 4, bool_(), lambda row: (operand.value(row) is None) != negated)


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


_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
COMPARISONS = tuple(_TESTS)


def comparison(sign: str, left: Part, right: Part) -> Part:
    sql = f"{left.within(5)} {sign} {right.within(5)}"
    return strict(sql, 4, bool_(), lambda a, b: _TESTS[sign](*comparable(a, b)), *doubles(left, right))


def between(operand: Part, low: Part, high: Part, negated: bool) -> Part:
    both = conjunction(comparison(">=", operand, low), comparison("<=", operand, high))
    sql = f"{operand.within(5)} {'NOT ' if negated else ''}BETWEEN {low.within(5)} AND {high.within(5)}"
    return Part(sql, 4, bool_(), (negation(both) if negated else both).value)


def among(operand: Part, items: list[Part], negated: bool) -> Part:
    first, *others = doubles(operand, *items)

    def value(row: Row) -> Any:
        wanted, values = first.value(row), [item.value(row) for item in others]
        if wanted is None:
            return None
        if any(one is not None and _TESTS["="](*comparable(wanted, one)) for one in values):
            return not negated
        return None if None in values else negated

    sql = f"{operand.within(5)} {'NOT ' if negated else ''}IN ({', '.join(item.sql for item in items)})"
    return Part(sql, 4, bool_(), value)


def like(operand: Part, pattern: str, escape: str | None, negated: bool) -> Part:
    regex, escaped = "", False
    for character in pattern:
        if not escaped and character == (escape or "\\"):
            escaped = True
            continue
        special = {"%": "(?s:.*)", "_": "(?s:.)"} if not escaped else {}
        regex += special.get(character, re.escape(character))
        escaped = False
    ending = f" ESCAPE '{escape}'" if escape else ""
    sql = f"{operand.within(5)} {'NOT ' if negated else ''}LIKE '{pattern}'{ending}"
    return strict(sql, 4, bool_(), lambda text: (re.fullmatch(regex, text) is not None) != negated, operand)


def case(branches: list[tuple[Part, Part]], otherwise: Part | None, kind: DataType) -> Part:
    def value(row: Row) -> Any:
        for condition, result in branches:
            if truth(condition.value(row)):
                return convert(result.value(row), kind)
        return None if otherwise is None else convert(otherwise.value(row), kind)

    parts = " ".join(f"WHEN {condition.sql} THEN {result.sql}" for condition, result in branches)
    ending = f" ELSE {otherwise.sql}" if otherwise else ""
    return Part(f"CASE {parts}{ending} END", 8, kind, value)


def coalesce(operands: list[Part], kind: DataType) -> Part:
    def value(row: Row) -> Any:
        for operand in operands:
            if (known := operand.value(row)) is not None:
                return convert(known, kind)
        return None

    return Part(f"COALESCE({', '.join(operand.sql for operand in operands)})", 8, kind, value)


def null_if(left: Part, right: Part) -> Part:
    same = comparison("=", left, right)
    return Part(
        f"NULLIF({left.sql}, {right.sql})", 8, left.type, lambda row: None if same.value(row) else left.value(row)
    )


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


# --- arithmetic


def arithmetic(sign: str, left: Part, right: Part) -> Part | None:
    """Return a sum, product, quotient or remainder; None if its type has too many digits after the point."""
    kind = _type_of(sign, left.type, right.type)
    if kind is None:
        return None
    level = 5 if sign in "+-" else 6
    sql = f"{left.within(level)} {sign} {right.within(level + 1)}"
    if sign == "%" and len(left.sql) % 2:
        sql, level = f"MOD({left.sql}, {right.sql})", 8
    return strict(sql, level, kind, lambda a, b: _calculate(sign, a, b, kind), *doubles(left, right))


def _type_of(sign: str, left: DataType, right: DataType) -> DataType | None:
    if float64() in (left, right):
        return float64()
    if left in WHOLE and right in WHOLE and sign != "/":
        return int64()
    (p1, s1), (p2, s2) = digits(left), digits(right)
    if sign in "+-":
        return decimal128(min(38, max(s1, s2) + max(p1 - s1, p2 - s2) + 1), max(s1, s2))
    if sign == "*":
        return decimal128(min(38, p1 + p2 + 1), s1 + s2) if s1 + s2 <= 38 else None
    if sign == "%":
        return decimal128(max(1, min(38, min(p1 - s1, p2 - s2) + max(s1, s2))), max(s1, s2))
    precision, scale = p1 - s1 + s2 + max(6, s1 + p2 + 1), max(6, s1 + p2 + 1)
    if precision > 38:  # as Spark's adjustPrecisionScale
        return decimal128(38, max(38 - (precision - scale), min(scale, 6)))
    return decimal128(precision, scale)


def _calculate(sign: str, a: Any, b: Any, kind: DataType) -> Any:
    if kind == float64():
        return _of_doubles(sign, a, b)
    if sign in "/%" and b == 0:
        raise Fails
    if kind == int64():
        rest = abs(a) % abs(b) if sign == "%" else 0
        return fit({"+": a + b, "-": a - b, "*": a * b, "%": -rest if a < 0 else rest}[sign], kind)
    with localcontext(EXACT):
        a, b = Decimal(a), Decimal(b)
        return fit(a / b if sign == "/" else a % b if sign == "%" else {"+": a + b, "-": a - b, "*": a * b}[sign], kind)


def _of_doubles(sign: str, a: float, b: float) -> float:
    if sign in "/%" and b == 0:
        raise Fails
    if sign == "%":
        return nan if isinf(a) or isnan(b) else fmod(a, b)
    result = a / b if sign == "/" else {"+": a + b, "-": a - b, "*": a * b}[sign]
    if not isfinite(result) and isfinite(a) and isfinite(b):
        raise Fails
    return result


def minus(operand: Part) -> Part:
    kind = int64() if operand.type in WHOLE else operand.type
    sql = operand.within(8)
    return strict(f"-({sql})" if sql[0].isdigit() else f"-{sql}", 7, kind, lambda a: fit(-a, kind), operand)


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


# --- conversions


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
    *parts, fraction = match.groups()
    try:
        return datetime(*(int(part or 0) for part in parts), int((fraction or "0").ljust(6, "0")))  # type: ignore[arg-type]
    except ValueError:
        raise Fails from None


def cast(operand: Part, name: str, kind: DataType) -> Part:
    return Part(f"CAST({operand.sql} AS {name})", 8, kind, lambda row: convert(operand.value(row), kind))


# --- functions


def function(name: str, kind: DataType, compute: Callable[..., Any], *operands: Part, literals: str = "") -> Part:
    """Return a call; literals stand after the operands."""
    arguments = ", ".join([operand.sql for operand in operands] + ([literals] if literals else []))
    return strict(f"{name}({arguments})", 8, kind, compute, *operands)


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
