"""Type changes of texts, bytes, ENUM, SET and what travels as such."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.values import from_numbers, from_temporal, texts
from airflow_provider_cdc.core.values.certain import Step, Uncertain, shaped
from airflow_provider_cdc.core.values.exact import from_texts

_WHOLE = "-?[0-9]+"
_NUMERAL = r"-?[0-9]+(?:\.[0-9]+)?"
_ODD = "a text is no plain number"


def _integer(values: pa.Array, step: Step) -> pa.Array:
    numbers = from_texts(shaped(values, _WHOLE, _ODD), pa.decimal128(38, 0))
    return from_numbers.to_integer(numbers, step)


def _decimal(values: pa.Array, step: Step) -> pa.Array:
    return from_numbers.to_decimal(shaped(values, _NUMERAL, _ODD), step)


def _float(values: pa.Array, step: Step) -> pa.Array:
    return from_numbers.float_to_float(shaped(values, _NUMERAL, _ODD).cast(pa.float64()), step)


def _year(values: pa.Array, step: Step) -> pa.Array:
    return from_numbers.to_year(shaped(values, "[0-9]{4}", "a text is no year").cast(pa.int64()), step)


def _moment(values: pa.Array, step: Step) -> pa.Array:
    clock = r"(?: [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?)?"
    pattern = r"[0-9]{4}-[0-9]{2}-[0-9]{2}" + (clock if step.new.name == "datetime" else "")
    moments = shaped(values, pattern, "a text is no plain date").cast(pa.timestamp("us"))
    return from_temporal.moments(moments, step)


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


def _place_then(then: Callable[[pa.Array, Step], pa.Array]) -> Callable[[pa.Array, Step], pa.Array]:
    return lambda values, step: then(_place(values, step), step)


def _mask(values: pa.Array, step: Step) -> pa.Array:
    return from_numbers.to_integer(texts.bitmask(values, step), step)


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
    ("enum", "integer"): _place_then(from_numbers.to_integer),
    ("enum", "decimal"): _place_then(from_numbers.to_decimal),
    ("set", "text"): texts.fitted,
    ("set", "set"): texts.members,
    ("set", "integer"): _mask,
    ("bytes", "bytes"): texts.sized,
    ("bytes", "text"): texts.decoded,
    ("uuid", "text"): texts.fitted,
    ("geometry", "geometry"): _geometry,
    **{(name, name): _same for name in ("json", "uuid", "inet4", "inet6")},
}
