# SPDX-License-Identifier: Apache-2.0
"""Convert stored texts, bytes, ENUM and SET values, and types that are stored as such, to another type."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.values.alter import from_numbers, from_temporal, text_to_integer, to_text
from airflow_provider_cdc.core.values.alter.type_families import Step, UncertainConversion, convert_distinct, shaped
from airflow_provider_cdc.core.values.fields import NUMBER_PREFIX, ZERO_DATE

# the part of a text that a server reads as a number: up to the first character that does not belong to one
_NUMBER = re.compile(r"[ \t\n\v\f\r]*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:[eE]([+-]?[0-9]+))?")
_LONGEST = 80  # digits; MySQL's own numbers have 65, and longer ones overflow differently in each of its types
_EXPONENTS = range(-300, 300)


def _numerals(values: pa.Array, step: Step) -> pa.Array:
    """Return the numbers that texts begin with, as texts without exponent."""
    if pc.all(pc.match_substring_regex(values, r"\A-?[0-9]{1,37}(?:\.[0-9]{1,30})?\z")).as_py() is not False:
        return values

    def convert(text: str) -> tuple[str, str | None]:
        match = _NUMBER.match(text)
        if match is None:
            return "0", NUMBER_PREFIX
        digits, power = match[1], match[2] or "0"
        exponent = int(power) if len(power) < _LONGEST else _EXPONENTS.stop
        if len(digits) > _LONGEST or exponent not in _EXPONENTS:
            raise UncertainConversion("a text is a number of very many digits")
        whole = not text[match.end() :].strip(" ")
        return f"{Decimal(digits).scaleb(exponent):f}", None if whole else NUMBER_PREFIX

    return convert_distinct(values, convert, step, pa.string())


def _decimal(values: pa.Array, step: Step) -> pa.Array:
    return from_numbers.to_decimal(_numerals(values, step), step)


def _float(values: pa.Array, step: Step) -> pa.Array:
    return from_numbers.float_to_float(_numerals(values, step).cast(pa.float64()), step)


def _year(values: pa.Array, step: Step) -> pa.Array:
    return from_numbers.to_year(shaped(values, "[0-9]{4}", "a text is not a year").cast(pa.int64()), step)


def _datetime(values: pa.Array, step: Step) -> pa.Array:
    values = _zero_dates_as_null(values, step)
    clock = r"(?: [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?)?"
    pattern = r"[0-9]{4}-[0-9]{2}-[0-9]{2}" + (clock if step.new.name == "datetime" else "")
    datetimes = shaped(values, pattern, "a text is not a plain date").cast(pa.timestamp("us"))
    return from_temporal.to_datetime(datetimes, step)


def _zero_dates_as_null(values: pa.Array, step: Step) -> pa.Array:
    """Replace texts without any digit by NULL: the server made them the zero date."""
    digitless = pc.invert(pc.match_substring_regex(values, "[0-9]"))
    if not pc.any(digitless).as_py():
        return values
    if not pa.types.is_timestamp(step.target) and not pa.types.is_date32(step.target):
        raise UncertainConversion("dates are kept as text")
    step.lose(ZERO_DATE, digitless)
    return pc.if_else(digitless, None, values)


def _time(values: pa.Array, step: Step) -> pa.Array:
    pattern = r"-?[0-9]{2,3}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
    return from_temporal.times(shaped(values, pattern, "a text is not a plain time"), step)


def _uuid(values: pa.Array, step: Step) -> pa.Array:
    return shaped(values, "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "a text is not a plain UUID")


def _label_index(values: pa.Array, step: Step) -> pa.Array:
    indexes = pc.index_in(values, pa.array(["", *step.old.labels], pa.string()))
    if indexes.null_count != values.null_count:
        raise UncertainConversion("an ENUM value has a label that its type lacks")
    return indexes


def _via_number(
    old: str, to_number: Callable[[pa.Array, Step], pa.Array]
) -> dict[tuple[str, str], Callable[[pa.Array, Step], pa.Array]]:
    """Return the steps from ENUM or SET to numbers."""

    def after(then: Callable[[pa.Array, Step], pa.Array]) -> Callable[[pa.Array, Step], pa.Array]:
        return lambda values, step: then(to_number(values, step), step)

    return {
        (old, "integer"): after(from_numbers.to_integer),
        (old, "bit"): after(from_numbers.to_integer),
        (old, "decimal"): after(from_numbers.to_decimal),
        (old, "float"): after(from_numbers.to_float),
    }


def _same(values: pa.Array, step: Step) -> pa.Array:
    return values


def _geometry(values: pa.Array, step: Step) -> pa.Array:
    if step.new.name not in (step.old.name, "geometry"):
        raise UncertainConversion("whether every value is of the narrower kind")
    return values


_FROM_TEXT: dict[str, Callable[[pa.Array, Step], pa.Array]] = {
    "text": to_text.fitted,
    "bytes": to_text.encoded,
    "enum": to_text.relabelled,
    "set": to_text.members,
    "integer": text_to_integer.to_integer,
    "decimal": _decimal,
    "float": _float,
    "year": _year,
    "date": _datetime,
    "datetime": _datetime,
    "time": _time,
    "uuid": _uuid,
}

STEPS: dict[tuple[str, str], Callable[[pa.Array, Step], pa.Array]] = {
    **{("text", new): step for new, step in _FROM_TEXT.items()},
    ("enum", "text"): to_text.fitted,
    ("enum", "enum"): to_text.relabelled,
    ("enum", "bytes"): to_text.encoded,
    ("enum", "set"): to_text.members,
    **_via_number("enum", _label_index),
    ("set", "text"): to_text.fitted,
    ("set", "bytes"): to_text.encoded,
    ("set", "set"): to_text.members,
    ("set", "enum"): to_text.relabelled,
    **_via_number("set", to_text.bitmask),
    ("bytes", "bytes"): to_text.sized,
    ("bytes", "text"): to_text.decoded,
    ("uuid", "text"): to_text.fitted,
    ("geometry", "geometry"): _geometry,
    **{(name, name): _same for name in ("json", "uuid", "inet4", "inet6")},
}
