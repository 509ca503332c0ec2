# SPDX-License-Identifier: Apache-2.0
"""Convert stored values of INT, BIT, YEAR, DECIMAL, FLOAT and DOUBLE to another type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.values.alter.to_text import printed_as
from airflow_provider_cdc.core.values.alter.type_families import (
    Step,
    UncertainConversion,
    bounds,
    convert_distinct,
    demand,
)
from airflow_provider_cdc.core.values.columnar.checked_casts import rescaled as exactly_rescaled
from airflow_provider_cdc.core.values.fields import LABEL_LOST, NUMBER_CLAMPED, ConversionError
from airflow_provider_cdc.core.values.shared.numbers import plain
from airflow_provider_cdc.core.values.types import MAX_DIGITS, decimal_digits

# Arrow rounds decimals wrongly near the limits of its words where it drops so many digits (measured: 17 to 26)
_MISROUNDED = 10
_WIDE = Context(prec=1000, rounding=ROUND_HALF_UP)
_GREATEST_SIGNED = 2**63 - 1
_BEYOND_BIGINT = 2.0**63
_BEYOND_EVERY = 2.0**65


def exact(values: pa.Array) -> pa.Array:
    """Return whole numbers, decimals or booleans as decimals of 38 digits; wider decimals are texts and stay so."""
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    if pa.types.is_string(values.type):
        return values
    scale = values.type.scale if pa.types.is_decimal128(values.type) else 0
    return values.cast(pa.decimal128(MAX_DIGITS, scale))


def to_integer(values: pa.Array, step: Step) -> pa.Array:
    """Round half away from zero and clamp to the new type's range."""
    if pa.types.is_boolean(step.target) and step.new.name == "tinyint":
        return pc.not_equal(exact(values), pa.scalar(Decimal(0), pa.decimal128(1, 0)))
    # values that are clamped here to 38 digits are counted below
    ints = rescaled(exact(values), MAX_DIGITS, 0, replace(step, lost=Counter()))
    low, high = bounds(step.new)
    beyond = pc.or_(pc.less(ints, _whole(low)), pc.greater(ints, _whole(high)))
    if pc.any(beyond).as_py():
        if step.new.name == "bit":
            raise UncertainConversion("a number has more bits than the new type")
        step.lose(NUMBER_CLAMPED, beyond)
        ints = pc.if_else(pc.less(ints, _whole(low)), _whole(low), ints)
        ints = pc.if_else(pc.greater(ints, _whole(high)), _whole(high), ints)
    return ints.cast(pa.decimal128(20, 0)).cast(pa.int8()) if pa.types.is_boolean(step.target) else ints


def decimal_to_integer(values: pa.Array, step: Step) -> pa.Array:
    """Convert decimals; MySQL reads them as signed numbers for unsigned columns too, in some versions."""
    if step.server != "mariadb" and bounds(step.new)[1] > _GREATEST_SIGNED:
        signed = rescaled(exact(values), MAX_DIGITS, 0, replace(step, lost=Counter()))
        demand(pc.less_equal(signed, _whole(_GREATEST_SIGNED)), "a decimal is beyond every signed BIGINT")
    return to_integer(values, step)


def bit_to_float(values: pa.Array, step: Step) -> pa.Array:
    """Convert bits; MariaDB reads 64 bits as a signed number."""
    if step.server != "mysql":
        demand(pc.less_equal(exact(values), _whole(_GREATEST_SIGNED)), "whether 64 bits are a signed number")
    return to_float(values, step)


def _whole(value: int) -> pa.Scalar:
    return pa.scalar(Decimal(value), pa.decimal128(MAX_DIGITS, 0))


def to_year(values: pa.Array, step: Step) -> pa.Array:
    """Convert to YEAR: 1 to 69 are 2001 to 2069, 70 to 99 are 1970 to 1999, a number that is not a year becomes 0."""
    ints = rescaled(exact(values), MAX_DIGITS, 0, step)
    if step.old.unsigned and pc.any(pc.equal(ints, _whole(0))).as_py():
        raise UncertainConversion("whether an unsigned 0 is the year 0 or 2000")
    years = pc.if_else(pc.less_equal(pc.abs(ints), _whole(9999)), ints, _whole(-1)).cast(pa.int64())
    years = pc.if_else(_between(years, 1, 69), pc.add(years, 2000), years)
    years = pc.if_else(_between(years, 70, 99), pc.add(years, 1900), years)
    proper = pc.or_(pc.equal(years, 0), _between(years, 1901, 2155))
    step.lose(NUMBER_CLAMPED, pc.invert(proper))
    return pc.if_else(proper, years, 0)


def _between(ints: pa.Array, least: int, greatest: int) -> pa.Array:
    return pc.and_(pc.greater_equal(ints, least), pc.less_equal(ints, greatest))


def to_decimal(values: pa.Array, step: Step) -> pa.Array:
    """Change precision and scale, rounding half away from zero and clamping."""
    precision, scale = decimal_digits(step.new)
    return rescaled(exact(values), precision, scale, step)


def rescaled(values: pa.Array, precision: int, scale: int, step: Step) -> pa.Array:
    """Return decimals (texts where they are wider than Arrow's) with another precision and scale.

    A value with too many digits becomes the greatest value of the column, or the least, which is 0 if it is unsigned.
    """
    if not pa.types.is_string(values.type) and precision <= MAX_DIGITS:
        negative = step.new.name == "decimal" and step.new.unsigned and pc.any(pc.less(values, 0)).as_py()
        dropped = values.type.scale - scale
        if not negative and dropped < _MISROUNDED:
            try:
                rounded = pc.round(values, scale, round_mode="half_towards_infinity") if dropped > 0 else values
                return exactly_rescaled(rounded, pa.decimal128(precision, scale))
            except (ConversionError, pa.ArrowInvalid):
                pass  # a value has too many digits
    nines = (9,) * precision
    greatest = Decimal((0, nines, -scale))
    least = Decimal(0) if step.new.name == "decimal" and step.new.unsigned else Decimal((1, nines, -scale))
    target = pa.string() if precision > MAX_DIGITS else pa.decimal128(precision, scale)

    def convert(value: Any) -> tuple[Decimal | str, str | None]:
        number = _WIDE.quantize(Decimal(value), Decimal((0, (1,), -scale)))
        clamped = min(max(number, least), greatest)
        result = clamped if precision <= MAX_DIGITS else plain(clamped, scale)
        return result, None if clamped == number else NUMBER_CLAMPED

    return convert_distinct(values, convert, step, target)


def to_float(values: pa.Array, step: Step) -> pa.Array:
    """Round to the nearest double, and from there to the nearest float, as the server does."""
    return _narrowed(exact(values).cast(pa.string()).cast(pa.float64()), step)


def float_to_float(values: pa.Array, step: Step) -> pa.Array:
    """Widen exactly, or round to the nearest float."""
    return _narrowed(values.cast(pa.float64()), step)


def float_to_integer(values: pa.Array, step: Step) -> pa.Array:
    """Round to the nearest whole number and clamp; servers differ in how they round a half, so a half raises."""
    doubles = values.cast(pa.float64())
    demand(pc.not_equal(pc.abs(pc.subtract(doubles, pc.trunc(doubles))), 0.5), "a floating number is a half")
    rounded = pc.round(doubles)
    if step.old.name == "float":  # MySQL and MariaDB, and their versions, wrap around or clamp
        demand(pc.less(pc.abs(rounded), _BEYOND_BIGINT), "a FLOAT is beyond every BIGINT")
    if step.new.name == "bigint" and step.new.unsigned:
        demand(pc.less(rounded, _BEYOND_BIGINT), "a floating number is out of the range of a signed BIGINT")
    # beyond every integer type, and exact as a decimal
    inside = pc.min_element_wise(pc.max_element_wise(rounded, -_BEYOND_EVERY), _BEYOND_EVERY, skip_nulls=False)
    return to_integer(pc.if_else(pc.is_null(doubles), None, inside).cast(pa.decimal128(MAX_DIGITS, 0)), step)


def float_to_decimal(values: pa.Array, step: Step) -> pa.Array:
    """Round the shortest digits that identify the number, as the server does."""
    return to_decimal(_shortest(values), step)


def _shortest(values: pa.Array) -> pa.Array:
    return pa.array(
        [None if value is None else f"{Decimal(repr(value)):f}" for value in values.to_pylist()], pa.string()
    )


def printed(values: pa.Array, step: Step) -> pa.Array:
    """Write numbers as the server prints them."""
    numbers = exact(values)
    if pa.types.is_string(numbers.type):
        return numbers
    scale = numbers.type.scale
    if scale == 0:
        return numbers.cast(pa.decimal128(MAX_DIGITS, 0)).cast(pa.string())
    # Arrow writes 0E-10 where MySQL writes 0.0000000000
    return pa.array([None if value is None else plain(value, scale) for value in numbers.to_pylist()], pa.string())


def printed_float(values: pa.Array, step: Step) -> pa.Array:
    """Write FLOAT(m,d) with its declared digits; other floats raise, as servers print different digits."""
    digits = step.old.scale
    if digits is None:
        raise UncertainConversion("the digits that a floating number is printed with")
    return pa.array([None if value is None else f"{value:.{digits}f}" for value in values.to_pylist()], pa.string())


def printed_year(values: pa.Array, step: Step) -> pa.Array:
    """Write years with four digits."""
    return pc.utf8_lpad(values.cast(pa.string()), 4, "0")


def to_enum(values: pa.Array, step: Step) -> pa.Array:
    """Convert label numbers, which begin with 1, to their labels; other numbers become the empty text."""
    indexes, last = exact(values), _whole(len(step.new.labels))
    proper = pc.and_(pc.greater(indexes, _whole(0)), pc.less_equal(indexes, last))
    step.lose(LABEL_LOST, pc.invert(proper))
    return pa.array(["", *step.new.labels], pa.string()).take(pc.if_else(proper, indexes, _whole(0)).cast(pa.int64()))


def _narrowed(doubles: pa.Array, step: Step) -> pa.Array:
    """Round doubles to the digits of a FLOAT(m,d), clamp them, and round to the nearest float."""
    greatest = float(np.finfo(np.float32 if step.new.name == "float" else np.float64).max)
    if step.new.scale is not None:
        power = 10.0**step.new.scale
        whole = pc.floor(doubles)
        fraction = pc.round(pc.multiply(pc.subtract(doubles, whole), power), round_mode="half_to_even")
        doubles = pc.add(whole, pc.divide(fraction, power))
        greatest = 10.0 ** ((step.new.length or 0) - step.new.scale) - 1 / power
    least = 0.0 if step.new.unsigned else -greatest
    beyond = pc.or_(pc.less(doubles, least), pc.greater(doubles, greatest))
    if (step.old.name, step.old.unsigned) == (step.new.name, step.new.unsigned):  # copied as they are, then printed
        demand(pc.invert(beyond), "a floating number has more digits than its new type prints")
    step.lose(NUMBER_CLAMPED, beyond)
    doubles = pc.if_else(pc.less(doubles, least), least, doubles)
    return pc.if_else(pc.greater(doubles, greatest), greatest, doubles).cast(step.target)


_TO: dict[str, Callable[[pa.Array, Step], Any]] = {
    "integer": to_integer,
    "bit": to_integer,
    "year": to_year,
    "decimal": to_decimal,
    "float": to_float,
}

STEPS: dict[tuple[str, str], Callable[[pa.Array, Step], pa.Array]] = {
    **{(old, new): step for old in ("integer", "bit", "year", "decimal") for new, step in _TO.items()},
    ("decimal", "integer"): decimal_to_integer,
    ("decimal", "bit"): decimal_to_integer,
    ("bit", "float"): bit_to_float,
    ("float", "integer"): float_to_integer,
    ("float", "decimal"): float_to_decimal,
    ("float", "float"): float_to_float,
    **printed_as("integer", printed),
    **printed_as("decimal", printed),
    **printed_as("year", printed_year),
    **printed_as("float", printed_float),
    ("integer", "enum"): to_enum,
}
