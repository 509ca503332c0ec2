# SPDX-License-Identifier: Apache-2.0
"""Draw random expressions and rows with edges for them; the same seed draws the same."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import ceil, copysign, floor, inf, nan
from random import Random
from typing import Any

import pyarrow as pa

from tests.unit.core.expressions import oracle
from tests.unit.core.expressions import oracle_values as values
from tests.unit.core.expressions.oracle import Part
from tests.unit.core.expressions.oracle_values import INSTANT, TIMESTAMP, Row

TEXT, TRUTH, DAY, DOUBLE = pa.string(), pa.bool_(), pa.date32(), pa.float64()
COLUMNS: dict[str, pa.DataType] = {
    "tiny": pa.int8(),
    "small": pa.int16(),
    "num": pa.int32(),
    "big": pa.int64(),
    "price": pa.decimal128(10, 2),
    "wide": pa.decimal128(38, 6),
    "fine": pa.decimal128(20, 18),
    "unsigned": pa.decimal128(20, 0),
    "real": DOUBLE,
    "name": TEXT,
    "digits": TEXT,
    "stamp": TEXT,
    "flag": TRUTH,
    "born": DAY,
    "made": TIMESTAMP,
    "seen": INSTANT,
}
_VALUES: dict[str, list[Any]] = {
    "tiny": [-128, -1, 0, 1, 2, 127],
    "small": [-32768, -7, 0, 3, 32767],
    "num": [-(1 << 31), -10, -1, 0, 1, 3, 10, (1 << 31) - 1],
    "big": [-(1 << 63), -(1 << 53) - 1, -3, 0, 1, 7, 100, 1 << 53, (1 << 63) - 1],
    "price": [Decimal(f"{one}E-2") for one in (-9999999999, -5, 0, 1, 250, -250, 1999, 9999999999)],
    "wide": [Decimal(f"{one}E-6") for one in (0, -1, 1500000, int("9" * 38), -int("9" * 38), 10**30)],
    "fine": [Decimal(f"{one}E-18") for one in (0, 1, -5 * 10**17, 10**20 - 1, 3 * 10**18, (1 << 66) - 1)],
    "unsigned": [Decimal(one) for one in (0, 1, 18446744073709551615, 9223372036854775808)],
    "real": [0.0, -0.0, 0.5, -2.5, 1.5, 1e-7, 0.1, 1e15, 9.2e18, 1e300, -1e300, inf, -inf, nan],
    "name": ["", " ", "a", "A", "Ann", "  Bob ", "100%", "a_b", "Zoë", "日本語", "x\ny", "\U0001f600!", "DE", "de"],
    "digits": ["1", "-7", " 42 ", "+5", "1.5", "-0.005", ".5", "5.", "1e2", "x", "", "9" * 30, "9223372036854775808"],
    "stamp": [
        "2024-02-29", "2023-02-29", "2024-01-31 23:59:59.999999", "1969-12-31T12:30", "0000-00-00", "x", " 2000-01-01 ",
        "2024-01-01 24:00:00", "0001-01-01 00:00:00.5", "9999-12-31",
    ],
    "flag": [True, False],
    "born": [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29), date(9999, 12, 31)],
    "made": [datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 5, 6, 7, 8, 9, 100000),
             datetime(2024, 2, 29), datetime(9999, 12, 31, 23, 59, 59, 999999)],
}  # fmt: skip
_VALUES["seen"] = [one.replace(tzinfo=UTC) for one in _VALUES["made"]]


def rows(random: Random, count: int) -> list[Row]:
    """Return rows; a value in six is NULL."""
    return [
        {name: None if random.random() < 1 / 6 else random.choice(_VALUES[name]) for name in COLUMNS}
        for _ in range(count)
    ]


def table(content: list[Row]) -> dict[str, pa.Array]:
    return {name: pa.array([row[name] for row in content], kind) for name, kind in COLUMNS.items()}


class Drawn:
    """Draw parts of expressions.

    :param random: where choices come from.
    """

    def __init__(self, random: Random) -> None:
        self._random = random

    def any(self, depth: int) -> Part:
        return self._random.choice([self.truth, self.truth, self.number, self.number, self.text, self.moment])(depth)

    def _column(self, *kinds: pa.DataType) -> Part:
        name = self._random.choice([name for name, kind in COLUMNS.items() if kind in kinds])
        return oracle.column(name, COLUMNS[name])

    # --- conditions

    def truth(self, depth: int) -> Part:
        r = self._random
        if depth <= 0:
            return self._column(TRUTH) if r.random() < 0.7 else self._tested(0)
        kind = r.randrange(8)
        if kind == 0:
            return oracle.negation(self._condition(depth - 1))
        if kind in (1, 2):
            connect = r.choice([oracle.conjunction, oracle.disjunction])
            return connect(self._condition(depth - 1), self._condition(depth - 1))
        if kind == 3:
            return self._choice(depth, self.truth)
        return self._tested(depth - 1)

    def _condition(self, depth: int) -> Part:
        return self._column(pa.int8(), pa.int32()) if self._random.random() < 0.1 else self.truth(depth)

    def _tested(self, depth: int) -> Part:
        r = self._random
        kind, negated = r.randrange(8), r.random() < 0.4
        if kind == 0:
            return oracle.is_null(self.any(depth), negated)
        if kind == 1:
            pattern, escape = r.choice(
                [("%", None), ("a%", None), ("%b", None), ("%o%", None), ("_", None), ("A_n", None), ("", None),
                 ("%\\%", None), ("a!_b", "!"), ("%!!", "!"), ("x%y", None), ("__", None), ("Z%ë", None), ("a.b", None)]
            )  # fmt: skip
            return oracle.like(self.text(depth), pattern, escape, negated)
        draw = r.choice([self.number, self.number, self.text, self.moment])
        if kind == 2:
            return oracle.among(draw(depth), [draw(r.choice([0, 0, depth])) for _ in range(r.randint(1, 4))], negated)
        if kind == 3:
            return oracle.between(draw(depth), draw(0), draw(depth), negated)
        return oracle.comparison(r.choice(oracle.COMPARISONS), draw(depth), draw(depth))

    def _choice(self, depth: int, draw: Any) -> Part:
        """Draw a CASE or COALESCE of parts of one kind."""
        r = self._random
        parts = [draw(depth - 1) for _ in range(r.randint(2, 3))]
        kind = values.common(*(part.type for part in parts))
        if r.random() < 0.4:
            return oracle.coalesce(parts, kind)
        *alternatives, last = parts
        branches = [(self._condition(depth - 1), part) for part in alternatives]
        if r.random() < 0.3:
            return oracle.case(branches, None, values.common(*(part.type for part in alternatives)))
        return oracle.case(branches, last, kind)

    # --- numbers

    def number(self, depth: int) -> Part:
        r = self._random
        if depth <= 0:
            if r.random() < 0.35:
                return self._number_literal()
            return self._column(*(kind for kind in COLUMNS.values() if values.is_number(kind)))
        kind = r.randrange(10)
        if kind == 0:
            return oracle.minus(self.number(depth - 1))
        if kind == 1:
            return self._choice(depth, self.number)
        if kind == 2:
            return oracle.null_if(self.number(depth - 1), self.number(depth - 1))
        if kind == 3:
            return self._number_cast(depth - 1)
        if kind in (4, 5):
            return self._number_function(depth - 1)
        part = oracle.arithmetic(r.choice("+-*/%"), self.number(depth - 1), self.number(depth - 1))
        return part or self.number(0)

    def _number_literal(self) -> Part:
        sql = self._random.choice(["0", "1", "2", "-1", "7", "3000000000", "0.5", "2.50", "-0.001", "1e3", "2.5e-1"])
        if "e" in sql:
            return oracle.literal(sql, DOUBLE, float(sql))
        if "." in sql:
            value = Decimal(sql)
            scale = -int(value.as_tuple().exponent)
            return oracle.literal(sql, pa.decimal128(max(len(value.as_tuple().digits), scale), scale), value)
        return oracle.literal(sql, pa.int32() if abs(int(sql)) < 1 << 31 else pa.int64(), int(sql))

    def _number_cast(self, depth: int) -> Part:
        r = self._random
        name, kind = r.choice(
            [("SMALLINT", pa.int16()), ("INT", pa.int32()), ("BIGINT", pa.int64()), ("DOUBLE", DOUBLE),
             ("DECIMAL(12, 3)", pa.decimal128(12, 3)), ("DECIMAL(38, 0)", pa.decimal128(38, 0)),
             ("DECIMAL(38, 20)", pa.decimal128(38, 20))]
        )  # fmt: skip
        operands = [self.number(depth), self.number(depth), oracle.column("digits", TEXT)]
        if kind in values.WHOLE:
            operands.append(self.truth(depth))
        return oracle.cast(r.choice(operands), name, kind)

    def _number_function(self, depth: int) -> Part:
        r = self._random
        kind = r.randrange(8)
        if kind == 0:
            return oracle.function("LENGTH", pa.int32(), len, self.text(depth))
        if kind == 1:
            name = r.choice(["YEAR", "MONTH", "DAY"])
            return oracle.function(name, pa.int32(), lambda one: getattr(one, name.lower()), self.moment(depth))
        if kind == 2:
            return oracle.function("HOUR", pa.int32(), lambda one: one.hour, self._column(TIMESTAMP, INSTANT))
        operand = self.number(depth)
        if kind == 3:
            wide = pa.int64() if operand.type in values.WHOLE else operand.type
            return oracle.function("ABS", wide, lambda one: values.fit(abs(one), wide), operand)
        if kind in (4, 5):
            return _rounded(operand, r.randint(0, 3))
        return _to_whole(operand, up=r.random() < 0.5)

    # --- texts

    def text(self, depth: int) -> Part:
        r = self._random
        if depth <= 0:
            if r.random() < 0.3:
                value = r.choice(["", "a", "it's", "DE", "Zoë", "42", "% _"])
                return oracle.literal("'" + value.replace("'", "''") + "'", TEXT, value)
            return self._column(TEXT)
        kind = r.randrange(6)
        if kind == 0:
            parts = [self.any(depth - 1) for _ in range(r.randint(1, 3))]
            return oracle.function("CONCAT", TEXT, lambda *one: "".join(map(values.text_of, one)), *parts)
        if kind == 1:
            return self._choice(depth, self.text)
        if kind == 2:
            return oracle.cast(self.any(depth - 1), r.choice(["STRING", "VARCHAR", "TEXT"]), TEXT)
        if kind == 3:
            return oracle.null_if(self.text(depth - 1), self.text(depth - 1))
        return self._text_function(self.text(depth - 1))

    def _text_function(self, part: Part) -> Part:
        r = self._random
        size, pad = r.randint(0, 9), r.choice(["x", "ab", "日"])
        return r.choice(
            [
                lambda: oracle.function("LOWER", TEXT, str.lower, part),
                lambda: oracle.function("UPPER", TEXT, str.upper, part),
                lambda: oracle.function("TRIM", TEXT, lambda text: text.strip(" "), part),
                lambda: oracle.function("LEFT", TEXT, lambda text: text[:size], part, literals=f"{size}"),
                lambda: oracle.function(
                    "RIGHT", TEXT, lambda text: text[max(0, len(text) - size) :], part, literals=f"{size}"
                ),
                lambda: oracle.function(
                    "LPAD", TEXT, lambda text: _padded(text, size, pad), part, literals=f"{size}, '{pad}'"
                ),
                lambda: oracle.function(
                    "REPLACE", TEXT, lambda text: text.replace("a", "ob"), part, literals="'a', 'ob'"
                ),
                lambda: _substring(part, r.choice([-9, -4, -2, -1, 1, 2, 5, 9]), r.choice([None, 0, 1, 2, 3, 9])),
            ]
        )()

    # --- dates and timestamps

    def moment(self, depth: int) -> Part:
        r = self._random
        if depth <= 0:
            if r.random() < 0.25:
                time = datetime(2024, 5, 6, 7, 8, 9, 100000)
                day = oracle.literal("DATE '2024-02-29'", DAY, date(2024, 2, 29))
                return r.choice([day, oracle.literal("TIMESTAMP '2024-05-06 07:08:09.1'", TIMESTAMP, time)])
            return self._column(DAY, TIMESTAMP, INSTANT)
        kind = r.randrange(5)
        if kind == 0:
            return self._choice(depth, self.moment)
        if kind == 1:
            operand = r.choice([self.moment(depth - 1), oracle.column("stamp", TEXT)])
            name, type_ = r.choice([("DATE", DAY), ("TIMESTAMP", TIMESTAMP)])
            return oracle.cast(operand, name, type_)
        if kind == 2:
            operand = r.choice([self.moment(depth - 1), oracle.column("stamp", TEXT)])
            return Part(f"DATE({operand.sql})", 8, DAY, lambda row: values.convert(operand.value(row), DAY))
        if kind == 3:
            return oracle.null_if(self.moment(depth - 1), self.moment(depth - 1))
        unit = r.choice(["SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"])
        operand = self.moment(depth - 1)
        type_ = INSTANT if operand.type == INSTANT else TIMESTAMP
        return oracle.strict(
            f"DATE_TRUNC('{unit}', {operand.sql})", 8, type_, lambda a: values.truncated(unit, a), operand
        )


def _padded(text: str, size: int, pad: str) -> str:
    return text[:size] if len(text) >= size else (pad * size)[: size - len(text)] + text


def _substring(part: Part, position: int, length: int | None) -> Part:
    def cut(text: str) -> str:
        begin = position - 1 if position > 0 else len(text) + position
        end = len(text) if length is None else begin + length
        return "".join(text[index] for index in range(len(text)) if begin <= index < end)

    literals = f"{position}" if length is None else f"{position}, {length}"
    return oracle.function("SUBSTRING", TEXT, cut, part, literals=literals)


def _rounded(operand: Part, digits: int) -> Part:
    if operand.type == DOUBLE:

        def whole(value: float) -> float:
            down = float(floor(abs(value))) if abs(value) < inf else value
            up = down + 1 if abs(value) - down >= 0.5 else down
            return value if value != value or abs(value) == inf else copysign(up, value)

        return oracle.function("ROUND", DOUBLE, whole, operand)
    kind = pa.int64() if operand.type in values.WHOLE else operand.type
    if values.is_decimal(kind) and digits < kind.scale:
        kind = pa.decimal128(min(38, kind.precision - kind.scale + digits + 1), digits)
    return oracle.function("ROUND", kind, lambda one: values.fit(one, kind), operand, literals=f"{digits}")


def _to_whole(operand: Part, up: bool) -> Part:
    name = "CEIL" if up else "FLOOR"
    if operand.type == DOUBLE:

        def whole(value: float) -> int:
            if value != value or abs(value) == inf:
                raise values.Fails
            result: int = values.fit(ceil(value) if up else floor(value), pa.int64())
            return result

        return oracle.function(name, pa.int64(), whole, operand)
    if operand.type in values.WHOLE:
        return oracle.function(name, pa.int64(), int, operand)
    old = operand.type
    kind = old if old.scale == 0 else pa.decimal128(min(38, old.precision - old.scale + 1), 0)
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    return oracle.function(name, kind, lambda one: values.fit(one.to_integral_value(rounding), kind), operand)
