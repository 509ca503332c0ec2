"""Type changes of INT, BIT, YEAR, DECIMAL, FLOAT and DOUBLE."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.values.certain import Step, Uncertain, bounds, demand
from airflow_provider_cdc.core.values.exact import rescaled as exactly_rescaled
from airflow_provider_cdc.core.values.fit import plain
from airflow_provider_cdc.core.values.texts import fitted
from airflow_provider_cdc.core.values.types import MAX_DIGITS, decimal_digits

_WIDE = Context(prec=200, rounding=ROUND_HALF_UP)
_EXACT_DOUBLES = 1 << 53


def exact(values: pa.Array) -> pa.Array:
    """Return whole numbers, decimals or booleans as decimals of 38 digits; texts are decimals beyond that."""
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    if pa.types.is_string(values.type):
        return values
    scale = values.type.scale if pa.types.is_decimal128(values.type) else 0
    return values.cast(pa.decimal128(MAX_DIGITS, scale))


def to_integer(values: pa.Array, step: Step) -> pa.Array:
    """Round half away from zero and check the new type's range."""
    if pa.types.is_boolean(step.target) and step.new.name == "tinyint":
        return pc.not_equal(exact(values), pa.scalar(Decimal(0), pa.decimal128(1, 0)))
    numbers = rescaled(exact(values), MAX_DIGITS, 0)
    low, high = bounds(step.new)
    least, greatest = pc.min_max(numbers).as_py().values()
    if not low <= least <= greatest <= high:
        raise Uncertain("a number is out of the new range")
    return numbers.cast(pa.decimal128(20, 0)).cast(pa.int8()) if pa.types.is_boolean(step.target) else numbers


def to_year(values: pa.Array, step: Step) -> pa.Array:
    """Take years as they are; two digits mean something else."""
    years = exact(values).cast(pa.int64())
    demand(
        pc.or_(pc.equal(years, 0), pc.and_(pc.greater_equal(years, 1901), pc.less_equal(years, 2155))),
        "a number is no year",
    )
    return years


def to_decimal(values: pa.Array, step: Step) -> pa.Array:
    """Change precision and scale, rounding half away from zero."""
    precision, scale = decimal_digits(step.new)
    return rescaled(exact(values), precision, scale)


def rescaled(values: pa.Array, precision: int, scale: int) -> pa.Array:
    """Return decimals (texts where they are wider than Arrow's) with another precision and scale."""
    if pa.types.is_string(values.type) or precision > MAX_DIGITS:
        return _rescaled_one_by_one(values, precision, scale)
    if scale < values.type.scale:
        values = pc.round(values, scale, round_mode="half_towards_infinity")
    return exactly_rescaled(values, pa.decimal128(precision, scale))


def _rescaled_one_by_one(values: pa.Array, precision: int, scale: int) -> pa.Array:
    unit = Decimal(1).scaleb(-scale)
    limit = Decimal(10) ** (precision - scale)
    texts: list[str | None] = []
    for value in values.to_pylist():
        number = None if value is None else _WIDE.quantize(Decimal(value), unit)
        if number is not None and abs(number) >= limit:
            raise Uncertain("a number is out of the new range")
        texts.append(None if number is None else plain(number, scale))
    array = pa.array(texts, pa.string())
    return array if precision > MAX_DIGITS else array.cast(pa.decimal128(precision, scale))


def to_float(values: pa.Array, step: Step) -> pa.Array:
    """Round to the nearest double, and from there to the nearest float, as the server does."""
    _no_digits(step)
    return _narrowed(exact(values).cast(pa.string()).cast(pa.float64()), step)


def float_to_float(values: pa.Array, step: Step) -> pa.Array:
    """Widen exactly, or round to the nearest float."""
    _no_digits(step)
    return _narrowed(values.cast(pa.float64()), step)


def float_to_exact(then: Callable[[pa.Array, Step], pa.Array]) -> Callable[[pa.Array, Step], pa.Array]:
    """Make whole floating numbers exact ones; how others are rounded differs between servers."""

    def convert(values: pa.Array, step: Step) -> pa.Array:
        doubles = values.cast(pa.float64())
        whole = pc.and_(pc.equal(pc.floor(doubles), doubles), pc.less_equal(pc.abs(doubles), float(_EXACT_DOUBLES)))
        demand(whole, "a floating number has a fraction")
        return then(doubles.cast(pa.int64()), step)

    return convert


def to_text(values: pa.Array, step: Step) -> pa.Array:
    """Write numbers as the server prints them."""
    numbers = exact(values)
    if pa.types.is_string(numbers.type):
        return fitted(numbers, step)
    scale = numbers.type.scale
    if scale == 0:
        return fitted(numbers.cast(pa.decimal128(MAX_DIGITS, 0)).cast(pa.string()), step)
    # Arrow writes 0E-10 where MySQL writes 0.0000000000
    texts = [None if value is None else plain(value, scale) for value in numbers.to_pylist()]
    return fitted(pa.array(texts, pa.string()), step)


def year_to_text(values: pa.Array, step: Step) -> pa.Array:
    """Write years with four digits."""
    return fitted(pc.utf8_lpad(values.cast(pa.string()), 4, "0"), step)


def to_enum(values: pa.Array, step: Step) -> pa.Array:
    """Take numbers as places in the list of labels, which begins with 1."""
    places = exact(values).cast(pa.int64())
    demand(
        pc.and_(pc.greater(places, 0), pc.less_equal(places, len(step.new.labels))), "a number is no place in the ENUM"
    )
    return pa.array(["", *step.new.labels], pa.string()).take(places)


def _no_digits(step: Step) -> None:
    if step.new.scale is not None:
        raise Uncertain("FLOAT(m,d) rounds in its own way")


def _narrowed(doubles: pa.Array, step: Step) -> pa.Array:
    numbers = doubles.cast(step.target)
    demand(pc.is_finite(numbers), "a number is out of the new range")
    return numbers


_TO: dict[str, Callable[[pa.Array, Step], Any]] = {
    "integer": to_integer,
    "bit": to_integer,
    "year": to_year,
    "decimal": to_decimal,
    "float": to_float,
}

STEPS: dict[tuple[str, str], Callable[[pa.Array, Step], pa.Array]] = {
    **{(old, new): step for old in ("integer", "bit", "year", "decimal") for new, step in _TO.items()},
    **{("float", new): float_to_exact(_TO[new]) for new in ("integer", "decimal")},
    ("float", "float"): float_to_float,
    ("integer", "text"): to_text,
    ("decimal", "text"): to_text,
    ("year", "text"): year_to_text,
    ("integer", "enum"): to_enum,
}
