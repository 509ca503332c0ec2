"""Type changes of texts, bytes, ENUM, SET and what travels as such."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.values import from_numbers, from_temporal, texts
from airflow_provider_cdc.core.values.certain import Step, Uncertain, converted_one_by_one, shaped
from airflow_provider_cdc.core.values.exact import from_texts
from airflow_provider_cdc.core.values.field import NUMBER_PREFIX, ZERO_DATE
from airflow_provider_cdc.core.values.types import MAX_DIGITS

# what a server reads of a text as a number: up to the first character that is no part of one
_NUMBER = re.compile(r"[ \t\n\v\f\r]*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:[eE]([+-]?[0-9]+))?")
_LONGEST = 80  # digits; MySQL's own numbers have 65, and how longer ones overflow differs between its types
_EXPONENTS = range(-300, 300)


def _numerals(values: pa.Array, step: Step) -> pa.Array:
    """Return the numbers that texts begin with as plain texts of numbers."""
    if pc.all(pc.match_substring_regex(values, r"\A-?[0-9]{1,37}(?:\.[0-9]{1,30})?\z")).as_py() is not False:
        return values

    def convert(text: str) -> tuple[str, str | None]:
        found = _NUMBER.match(text)
        if found is None:
            return "0", NUMBER_PREFIX
        digits, exponent = found[1], int(found[2] or 0)
        if len(digits) > _LONGEST or exponent not in _EXPONENTS:
            raise Uncertain("a text is a number of very many digits")
        whole = not text[found.end() :].strip(" ")
        return f"{Decimal(digits).scaleb(exponent):f}", None if whole else NUMBER_PREFIX

    return converted_one_by_one(values, convert, step, pa.string())


def _integer(values: pa.Array, step: Step) -> pa.Array:
    if pc.all(pc.match_substring_regex(values, r"\A-?[0-9]{1,37}\z")).as_py() is not False:
        return from_numbers.to_integer(from_texts(values, pa.decimal128(MAX_DIGITS, 0)), step)
    return from_numbers.to_integer(_numerals(values, step), step)


def _decimal(values: pa.Array, step: Step) -> pa.Array:
    return from_numbers.to_decimal(_numerals(values, step), step)


def _float(values: pa.Array, step: Step) -> pa.Array:
    return from_numbers.float_to_float(_numerals(values, step).cast(pa.float64()), step)


def _year(values: pa.Array, step: Step) -> pa.Array:
    return from_numbers.to_year(shaped(values, "[0-9]{4}", "a text is no year").cast(pa.int64()), step)


def _moment(values: pa.Array, step: Step) -> pa.Array:
    values = _without_garbage(values, step)
    clock = r"(?: [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?)?"
    pattern = r"[0-9]{4}-[0-9]{2}-[0-9]{2}" + (clock if step.new.name == "datetime" else "")
    moments = shaped(values, pattern, "a text is no plain date").cast(pa.timestamp("us"))
    return from_temporal.moments(moments, step)


def _without_garbage(values: pa.Array, step: Step) -> pa.Array:
    """Replace texts without any digit, which become the zero date."""
    garbage = pc.invert(pc.match_substring_regex(values, "[0-9]"))
    if not pc.any(garbage).as_py():
        return values
    if not pa.types.is_timestamp(step.target) and not pa.types.is_date32(step.target):
        raise Uncertain("dates are kept as text")
    step.lose(ZERO_DATE, garbage)
    return pc.if_else(garbage, None, values)


def _time(values: pa.Array, step: Step) -> pa.Array:
    pattern = r"-?[0-9]{2,3}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
    return from_temporal.times(shaped(values, pattern, "a text is no plain time"), step)


def _uuid(values: pa.Array, step: Step) -> pa.Array:
    return shaped(values, "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "a text is no plain UUID")


def _place(values: pa.Array, step: Step) -> pa.Array:
    places = pc.index_in(values, pa.array(["", *step.old.labels], pa.string()))
    if places.null_count != values.null_count:
        raise Uncertain("an ENUM value has a label that its type lacks")
    return places


def _numbered(
    old: str, number: Callable[[pa.Array, Step], pa.Array]
) -> dict[tuple[str, str], Callable[[pa.Array, Step], pa.Array]]:
    """Return the steps from ENUM or SET to numbers."""

    def after(then: Callable[[pa.Array, Step], pa.Array]) -> Callable[[pa.Array, Step], pa.Array]:
        return lambda values, step: then(number(values, step), step)

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
        raise Uncertain("whether every value is of the narrower kind")
    return values


_FROM_TEXT: dict[str, Callable[[pa.Array, Step], pa.Array]] = {
    "text": texts.fitted,
    "bytes": texts.encoded,
    "enum": texts.relabelled,
    "set": texts.members,
    "integer": _integer,
    "decimal": _decimal,
    "float": _float,
    "year": _year,
    "date": _moment,
    "datetime": _moment,
    "time": _time,
    "uuid": _uuid,
}

STEPS: dict[tuple[str, str], Callable[[pa.Array, Step], pa.Array]] = {
    **{("text", new): step for new, step in _FROM_TEXT.items()},
    ("enum", "text"): texts.fitted,
    ("enum", "enum"): texts.relabelled,
    ("enum", "bytes"): texts.encoded,
    ("enum", "set"): texts.members,
    **_numbered("enum", _place),
    ("set", "text"): texts.fitted,
    ("set", "bytes"): texts.encoded,
    ("set", "set"): texts.members,
    ("set", "enum"): texts.relabelled,
    **_numbered("set", texts.bitmask),
    ("bytes", "bytes"): texts.sized,
    ("bytes", "text"): texts.decoded,
    ("uuid", "text"): texts.fitted,
    ("geometry", "geometry"): _geometry,
    **{(name, name): _same for name in ("json", "uuid", "inet4", "inet6")},
}
