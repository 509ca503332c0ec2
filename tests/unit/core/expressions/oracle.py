# SPDX-License-Identifier: Apache-2.0
"""Implement expressions a second time, for tests: one row at a time, in plain Python, without Arrow and sqlglot.

A :class:`Part` knows its SQL and computes its value; the tests compare the product's answer to its SQL with that value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from math import fmod, isfinite, isinf, isnan, nan
from typing import Any

from pyarrow import DataType, bool_, decimal128, float64, int64

from tests.unit.core.expressions.oracle_values import (
    EXACT,
    WHOLE,
    Fails,
    Row,
    comparable,
    convert,
    digits,
    fit,
    truth,
)


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
        searched, values = first.value(row), [item.value(row) for item in others]
        if searched is None:
            return None
        if any(one is not None and _TESTS["="](*comparable(searched, one)) for one in values):
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


def cast(operand: Part, name: str, kind: DataType) -> Part:
    return Part(f"CAST({operand.sql} AS {name})", 8, kind, lambda row: convert(operand.value(row), kind))


# --- functions


def function(name: str, kind: DataType, compute: Callable[..., Any], *operands: Part, literals: str = "") -> Part:
    """Return a call; literals stand after the operands."""
    arguments = ", ".join([operand.sql for operand in operands] + ([literals] if literals else []))
    return strict(f"{name}({arguments})", 8, kind, compute, *operands)
