"""One token at a time: the whole truth of every encoding, used for what the columnar paths do not take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal

import pyarrow as pa

from airflow_provider_cdc.core.model.encoding import Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values import byte_texts, charsets, civil, geometry, labels, moments, zones
from airflow_provider_cdc.core.values.field import AMBIGUOUS_TIME, FRACTION_CUT, UNREADABLE, Field, Misfit, Reason
from airflow_provider_cdc.core.values.fit import Moment, exact, fit, given_up
from airflow_provider_cdc.core.values.tokens import Number, datum_of, integer_of, numeral_of, string_of
from airflow_provider_cdc.core.values.types import GEOMETRIES

_BOOLEANS = {"true": True, "false": False}


def value_of(token: bytes, field: Field, lost: Counter[str]) -> Any:
    """Convert one JSON token to what Arrow takes for the target, or raise :class:`Misfit`."""
    datum = datum_of(token.strip())
    if datum is None:
        return None
    try:
        meaning = _READERS[field.encoded.encoding](datum, field)
    except civil.NotOnCalendar as error:
        return given_up(error, lost)
    if meaning is None:
        return None
    value = fit(meaning, field, lost)
    if isinstance(meaning, Moment):
        lost.update([AMBIGUOUS_TIME] * meaning.ambiguous + [FRACTION_CUT] * meaning.cut)
    if isinstance(value, str) and "\ufffd" in value:
        lost[UNREADABLE] += 1
    return value


def _text(datum: Any, field: Field) -> Any:
    if isinstance(datum, bool):
        return datum
    text = numeral_of(datum)
    if text in _BOOLEANS and _is_boolean(field.type):
        return _BOOLEANS[text]
    if not zones.zone_of_texts(field):
        return datum
    try:
        return moments.moment(text, field)
    except civil.NotOnCalendar:
        return datum


def _is_boolean(column: ColumnType) -> bool:
    """Say whether a tool may write a column's values as words: it has, or is meant to have, only two."""
    return (column.name == "bit" and column.length in (None, 1)) or (column.name == "tinyint" and column.length == 1)


def _number(datum: Any, field: Field) -> Any:
    """Take what is, or what in a JSON string would be, a number; a list is a VECTOR's."""
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
        if any(isinstance(number, bool) for number in datum):
            raise Misfit(Reason.BYTE)
    else:
        string_of(datum)
    return _stored(byte_texts.list_bytes(datum), field)


def _label(datum: Any, field: Field) -> str:
    return labels.label_of(numeral_of(datum), labels.known(field))


def _members(datum: Any, field: Field) -> str:
    return labels.members_of(numeral_of(datum), labels.known(field))


def _charset(datum: Any, field: Field) -> Any:
    raw = byte_texts.base64_bytes(string_of(datum))
    if pa.types.is_binary(field.target):
        return _stored(raw, field)
    return _text(charsets.decoder(field.encoded.charset)(raw), field)


def _decimal_base64(datum: Any, field: Field) -> Any:
    if isinstance(datum, Number):
        return datum
    raw = byte_texts.base64_bytes(string_of(datum))
    if not raw:
        raise Misfit(Reason.NUMBER)
    return scaled(int.from_bytes(raw, "big", signed=True), field.encoded.scale or 0)


def scaled(unscaled: int, scale: int) -> Decimal:
    """Return ``unscaled`` / 10^``scale`` exactly, however many digits it has."""
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def _bits(datum: Any, field: Field) -> int:
    if isinstance(datum, bool):
        return int(datum)
    order: Literal["little", "big"] = "little" if field.encoded.encoding is Encoding.BITS_LE else "big"
    bits = int.from_bytes(byte_texts.base64_bytes(string_of(datum)), order)
    if bits >> (field.type.length or 1):
        raise Misfit(Reason.RANGE)
    return bits


def _wrapped(datum: Any, field: Field) -> int:
    value = integer_of(datum)
    if value < -(1 << 63):
        raise Misfit(Reason.RANGE)
    return value + (1 << 64) if value < 0 else value


def _geometry(datum: Any, field: Field) -> Any:
    if not isinstance(datum, dict) or "wkb" not in datum:
        raise Misfit(Reason.TOKEN)
    wkb = datum["wkb"]
    return None if wkb is None else byte_texts.base64_bytes(string_of(wkb))


_READERS: dict[Encoding, Callable[[Any, Field], Any]] = {
    Encoding.TEXT: _text,
    Encoding.NUMBER: _number,
    Encoding.BOOLEAN: _boolean,
    Encoding.BASE64: _bytes(byte_texts.base64_bytes),
    Encoding.BASE64_URL: _bytes(byte_texts.base64_url_bytes),
    Encoding.CHARSET_BYTES: _charset,
    Encoding.HEX: _bytes(byte_texts.hex_bytes),
    Encoding.LATIN1_BYTES: _bytes(byte_texts.latin1_bytes),
    Encoding.BYTE_LIST: _byte_list,
    Encoding.ENUM_INDEX: _label,
    Encoding.SET_BITMASK: _members,
    Encoding.EPOCH_DAYS: moments.epoch,
    Encoding.EPOCH_MILLIS: moments.epoch,
    Encoding.EPOCH_MICROS: moments.epoch,
    Encoding.EPOCH_NANOS: moments.epoch,
    Encoding.EPOCH_SECONDS: moments.epoch_text,
    Encoding.EPOCH_MILLIS_TEXT: moments.epoch_text,
    Encoding.MOMENT_TEXT: moments.moment_text,
    Encoding.TIME_MILLIS: moments.time,
    Encoding.TIME_MICROS: moments.time,
    Encoding.TIME_NANOS: moments.time,
    Encoding.TIME_MICROS_UNSCALED: moments.unscaled_time,
    Encoding.YEAR_SINCE_1900: moments.year,
    Encoding.ISO_TEXT: moments.iso,
    Encoding.ZONED_TEXT: moments.zoned,
    Encoding.DECIMAL_BASE64: _decimal_base64,
    Encoding.BITS_LE: _bits,
    Encoding.BITS_BE: _bits,
    Encoding.WRAPPED_UNSIGNED: _wrapped,
    Encoding.GEOMETRY: _geometry,
}
