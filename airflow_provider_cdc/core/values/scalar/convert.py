# SPDX-License-Identifier: Apache-2.0
"""Convert one JSON token at a time: the definition of every encoding; twin of ``columnar/convert.py``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

import pyarrow as pa

from airflow_provider_cdc.core.model.encoding import Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.fields import (
    AMBIGUOUS_TIME,
    UNREADABLE,
    ConversionError,
    Field,
    Reason,
)
from airflow_provider_cdc.core.values.scalar import binary, documents, temporal
from airflow_provider_cdc.core.values.scalar.json_tokens import Number, datum_of, integer_of, numeral_of, string_of
from airflow_provider_cdc.core.values.scalar.to_target import DateTime, fit, null_for
from airflow_provider_cdc.core.values.shared import calendar, charsets, enum_set, geometry, time_zones
from airflow_provider_cdc.core.values.shared.numbers import exact, plain_digits, scaled
from airflow_provider_cdc.core.values.types import GEOMETRIES

_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_MOST_SCALE = 16_383  # fraction digits of PostgreSQL's numeric
_BOOLEANS = {"true": True, "false": False}


def convert_value(token: bytes, field: Field, lost: Counter[str]) -> Any:
    """Convert one JSON token to a Python value that Arrow accepts for the target type.

    :param lost: receives the counts of allowed losses.
    :raises ConversionError: the value cannot be converted exactly.
    """
    token = token.strip()
    datum = datum_of(token)
    if datum is None:
        return None
    try:
        value: Any
        if field.encoded.encoding is Encoding.DOCUMENT:
            value = documents.document(token)
        elif field.encoded.encoding is Encoding.LIST:
            value = documents.list_text(token, field, lost, convert_value)
        else:
            value = _CONVERTERS[field.encoded.encoding](datum, field)
    except calendar.NotOnCalendar as error:
        return null_for(error, lost)
    if value is None:
        return None
    result = fit(value, field, lost)
    if isinstance(value, DateTime):
        lost.update([AMBIGUOUS_TIME] * value.ambiguous)
    if isinstance(result, str) and "\ufffd" in result:
        lost[UNREADABLE] += 1
    return result


def _text(datum: Any, field: Field) -> Any:
    if isinstance(datum, bool):
        return datum
    text = numeral_of(datum)
    if text in _BOOLEANS and _is_boolean(field.type):
        return _BOOLEANS[text]
    if not time_zones.zone_of_texts(field):
        return datum
    try:
        return temporal.datetime_of(text, field)
    except calendar.NotOnCalendar:
        return datum


def _is_boolean(column: ColumnType) -> bool:
    """Return whether a tool may write values as ``true`` and ``false``: the type has, or implies, only two."""
    return (column.name == "bit" and column.length in (None, 1)) or (column.name == "tinyint" and column.length == 1)


def _number(datum: Any, field: Field) -> Any:
    """Accept a number, or a JSON string with a number; a list belongs to a VECTOR."""
    if isinstance(datum, (Number, bool, list)) or (isinstance(datum, str) and pa.types.is_list(field.target)):
        return datum
    return _boolean(datum, field)


def _boolean(datum: Any, field: Field) -> Any:
    if isinstance(datum, (Number, bool)):
        return datum
    text = string_of(datum)
    if text in _BOOLEANS and _is_boolean(field.type):
        return _BOOLEANS[text]
    exact(text)
    return Number(text)


def _bytes(decode: Callable[[str], bytes]) -> Callable[[Any, Field], bytes]:
    return lambda datum, field: _stored(decode(string_of(datum)), field)


def _stored(raw: bytes, field: Field) -> bytes:
    return geometry.wkb(raw) if field.type.name in GEOMETRIES else raw


def _byte_list(datum: Any, field: Field) -> bytes:
    if isinstance(datum, list):
        if any(isinstance(item, bool) for item in datum):
            raise ConversionError(Reason.BYTE)
    else:
        string_of(datum)
    return _stored(binary.list_bytes(datum), field)


def _label(datum: Any, field: Field) -> str:
    return enum_set.label_of(numeral_of(datum), enum_set.known_labels(field))


def _members(datum: Any, field: Field) -> str:
    return enum_set.members_of(numeral_of(datum), enum_set.known_labels(field))


def _charset(datum: Any, field: Field) -> Any:
    raw = binary.base64_bytes(string_of(datum))
    if pa.types.is_binary(field.target):
        return _stored(raw, field)
    return _text(charsets.decoder(field.encoded.charset)(raw), field)


def _decimal_base64(datum: Any, field: Field) -> Any:
    if isinstance(datum, Number):
        return datum
    raw = binary.base64_bytes(string_of(datum))
    if not raw:
        raise ConversionError(Reason.NUMBER)
    return scaled(int.from_bytes(raw, "big", signed=True), field.encoded.scale or 0)


def _bits(datum: Any, field: Field) -> int:
    if isinstance(datum, bool):
        return int(datum)
    order: Literal["little", "big"] = "little" if field.encoded.encoding is Encoding.BITS_LE else "big"
    bits = int.from_bytes(binary.base64_bytes(string_of(datum)), order)
    if bits >> (field.type.length or 1):
        raise ConversionError(Reason.RANGE)
    return bits


def _wrapped(datum: Any, field: Field) -> int:
    value = integer_of(datum)
    if value < -(1 << 63):
        raise ConversionError(Reason.RANGE)
    return value + (1 << 64) if value < 0 else value


def _float(datum: Any, field: Field) -> Any:
    """Accept a number, or the name of a value that is not a number."""
    if isinstance(datum, str) and not isinstance(datum, Number) and datum in _NOT_FINITE:
        return float(datum)
    return _number(datum, field)


def _variable_decimal(datum: Any, field: Field) -> str:
    """Read a number that states its own scale; text keeps all of its digits."""
    if not isinstance(datum, dict):
        raise ConversionError(Reason.TOKEN)
    scale, value = datum.get("scale"), datum.get("value")
    if type(scale) is not int or abs(scale) > _MOST_SCALE:
        raise ConversionError(Reason.NUMBER)
    raw = binary.base64_bytes(string_of(value))
    if not raw:
        raise ConversionError(Reason.NUMBER)
    return plain_digits(int.from_bytes(raw, "big", signed=True), scale)


def _geometry(datum: Any, field: Field) -> Any:
    if not isinstance(datum, dict) or "wkb" not in datum:
        raise ConversionError(Reason.TOKEN)
    wkb = datum["wkb"]
    return None if wkb is None else binary.base64_bytes(string_of(wkb))


_CONVERTERS: dict[Encoding, Callable[[Any, Field], Any]] = {
    Encoding.TEXT: _text,
    Encoding.NUMBER: _number,
    Encoding.BOOLEAN: _boolean,
    Encoding.BASE64: _bytes(binary.base64_bytes),
    Encoding.BASE64_URL: _bytes(binary.base64_url_bytes),
    Encoding.CHARSET_BYTES: _charset,
    Encoding.HEX: _bytes(binary.hex_bytes),
    Encoding.LATIN1_BYTES: _bytes(binary.latin1_bytes),
    Encoding.BYTE_LIST: _byte_list,
    Encoding.ENUM_INDEX: _label,
    Encoding.SET_BITMASK: _members,
    Encoding.EPOCH_DAYS: temporal.epoch,
    Encoding.EPOCH_MILLIS: temporal.epoch,
    Encoding.EPOCH_MICROS: temporal.epoch,
    Encoding.EPOCH_NANOS: temporal.epoch,
    Encoding.EPOCH_SECONDS: temporal.epoch_text,
    Encoding.EPOCH_MILLIS_TEXT: temporal.epoch_text,
    Encoding.MIXED_DATETIME: temporal.mixed_datetime,
    Encoding.TIME_MILLIS: temporal.time,
    Encoding.TIME_MICROS: temporal.time,
    Encoding.TIME_NANOS: temporal.time,
    Encoding.TIME_MICROS_UNSCALED: temporal.unscaled_time,
    Encoding.YEAR_SINCE_1900: temporal.year,
    Encoding.ISO_TEXT: temporal.iso,
    Encoding.ZONED_TEXT: temporal.zoned,
    Encoding.INSTANT: temporal.instant,
    Encoding.DECIMAL_BASE64: _decimal_base64,
    Encoding.BITS_LE: _bits,
    Encoding.BITS_BE: _bits,
    Encoding.WRAPPED_UNSIGNED: _wrapped,
    Encoding.GEOMETRY: _geometry,
    Encoding.FLOAT: _float,
    Encoding.VARIABLE_DECIMAL: _variable_decimal,
}
