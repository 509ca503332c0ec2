"""One token at a time: the whole truth of every encoding, used for what the columnar paths do not take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal

import msgspec
import pyarrow as pa

from airflow_provider_cdc.core.model.encoding import Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values import byte_texts, charsets, civil, geometry, labels, zones
from airflow_provider_cdc.core.values.field import AMBIGUOUS_TIME, Field, Misfit, Reason
from airflow_provider_cdc.core.values.fit import INTEGER, Moment, exact, fit, given_up, integral, unscaled_of
from airflow_provider_cdc.core.values.types import GEOMETRIES

_BOOLEANS = {"true": True, "false": False}
_ONE_BIT = (ColumnType("bit", 1), ColumnType("tinyint", 1))
_UNITS = {
    Encoding.EPOCH_DAYS: (civil.DAY, 1),
    Encoding.EPOCH_MILLIS: (1000, 1),
    Encoding.EPOCH_MICROS: (1, 1),
    Encoding.EPOCH_NANOS: (1, 1000),
    Encoding.TIME_MILLIS: (1000, 1),
    Encoding.TIME_MICROS: (1, 1),
    Encoding.TIME_NANOS: (1, 1000),
}


class Number(str):
    """A JSON number's text."""

    __slots__ = ()


def value_of(token: bytes, field: Field, lost: Counter[str]) -> Any:
    """Convert one JSON token to what Arrow takes for the target, or raise :class:`Misfit`."""
    datum = _datum(token.strip())
    if datum is None:
        return None
    try:
        meaning = _READERS[field.encoded.encoding](datum, field)
    except civil.NotOnCalendar as error:
        return given_up(error, lost)
    if meaning is None:
        return None
    value = fit(meaning, field, lost)
    if isinstance(meaning, Moment) and meaning.ambiguous:
        lost[AMBIGUOUS_TIME] += 1
    return value


def _datum(token: bytes) -> Any:
    first = token[:1]
    if first == b"n":
        return None
    if first in (b"t", b"f"):
        return first == b"t"
    if first == b'"' or first in (b"{", b"["):
        try:
            return msgspec.json.decode(token)
        except (ValueError, RecursionError):
            raise Misfit(Reason.TEXT) from None
    return Number(token.decode("ascii"))


def _text(datum: Any, field: Field) -> Any:
    if isinstance(datum, bool):
        return datum
    text = _numeral(datum)
    if text in _BOOLEANS and field.type in _ONE_BIT:
        return _BOOLEANS[text]
    if not zones.zone_of_texts(field):
        return datum
    try:
        return _moment(text, field)
    except civil.NotOnCalendar:
        return datum


def _number(datum: Any, field: Field) -> Any:
    """Take what is, or what in a JSON string would be, a number; a list is a VECTOR's."""
    if isinstance(datum, (Number, bool, list)) or (isinstance(datum, str) and pa.types.is_list(field.target)):
        return datum
    return _boolean(datum, field)


def _boolean(datum: Any, field: Field) -> Any:
    if isinstance(datum, (Number, bool)):
        return datum
    text = _string(datum)
    if text in _BOOLEANS and field.type in _ONE_BIT:
        return _BOOLEANS[text]
    exact(text)
    return Number(text)


def _string(datum: Any) -> str:
    if isinstance(datum, str) and not isinstance(datum, Number):
        return datum
    raise Misfit(Reason.TOKEN)


def _bytes(decode: Callable[[str], bytes]) -> Callable[[Any, Field], bytes]:
    return lambda datum, field: _stored(decode(_string(datum)), field)


def _stored(raw: bytes, field: Field) -> bytes:
    return geometry.wkb(raw) if field.type.name in GEOMETRIES else raw


def _byte_list(datum: Any, field: Field) -> bytes:
    if isinstance(datum, list):
        if any(isinstance(number, bool) for number in datum):
            raise Misfit(Reason.BYTE)
    else:
        _string(datum)
    return _stored(byte_texts.list_bytes(datum), field)


def _label(datum: Any, field: Field) -> str:
    return labels.label_of(_numeral(datum), labels.known(field))


def _members(datum: Any, field: Field) -> str:
    return labels.members_of(_numeral(datum), labels.known(field))


def _numeral(datum: Any) -> str:
    """Return a number's text, be it a JSON number or in a JSON string."""
    if isinstance(datum, str):
        return datum
    raise Misfit(Reason.TOKEN)


def _charset(datum: Any, field: Field) -> Any:
    raw = byte_texts.base64_bytes(_string(datum))
    if pa.types.is_binary(field.target):
        return _stored(raw, field)
    return _text(charsets.decoder(field.encoded.charset)(raw), field)


def _integer(datum: Any) -> int:
    text = _numeral(datum)
    if not INTEGER.fullmatch(text):
        raise Misfit(Reason.NUMBER)
    try:
        return int(text)
    except ValueError:  # thousands of digits
        raise Misfit(Reason.NUMBER) from None


def _micros(datum: Any, field: Field) -> int:
    multiply, divide = _UNITS[field.encoded.encoding]
    micros, beyond = divmod(_integer(datum) * multiply, divide)
    if beyond:
        raise Misfit(Reason.FRACTION)
    return micros


def _epoch(datum: Any, field: Field) -> Moment:
    return _since_1970(_micros(datum, field), field)


def _epoch_text(datum: Any, field: Field) -> Any:
    text = _numeral(datum)
    if text.startswith("0000-"):  # OMS writes a zero TIMESTAMP so (oceanbase-oms sheet 7.4)
        return _zero_date(text)
    digits = 6 if field.encoded.encoding is Encoding.EPOCH_SECONDS else 3
    return _since_1970(unscaled_of(exact(text), digits), field)


def _zero_date(text: str) -> str:
    try:
        civil.moment(text)
    except civil.NotOnCalendar:
        return text
    raise Misfit(Reason.NUMBER)


def _since_1970(micros: int, field: Field) -> Moment:
    civil.in_range(micros)
    zone = zones.zone_of_numbers(field)
    return Moment(zones.civil_of(micros, zone) if zone else micros)


def _time(datum: Any, field: Field) -> str:
    return civil.time_text(_micros(datum, field), civil.fraction_digits(field.type))


def _unscaled_time(datum: Any, field: Field) -> str:
    digits = civil.fraction_digits(field.type)
    return civil.time_text(civil.scaled_time(_integer(datum), digits), digits)


def _year(datum: Any, field: Field) -> int:
    return civil.year_since_1900(_integer(datum))


def _iso(datum: Any, field: Field) -> Any:
    text = _string(datum)
    if field.type.name == "time":
        return civil.time_text(civil.duration(text.removesuffix("Z")), civil.fraction_digits(field.type))
    return _moment(text, field, civil_z=True)


def _zoned(datum: Any, field: Field) -> Any:
    micros = civil.moment(_string(datum), zone=True)
    if micros == civil.GO_ZERO and field.type.name == "timestamp":
        digits = civil.fraction_digits(field.type)
        return "0000-00-00 00:00:00" + ("." + "0" * digits if digits else "")
    return Moment(micros)


def _moment(text: str, field: Field, civil_z: bool = False) -> Moment:
    micros = civil.moment(text, civil_z=civil_z)
    zone = zones.zone_of_texts(field)
    return Moment(*zones.instant_of(micros, zone)) if zone else Moment(micros)


def _moment_text(datum: Any, field: Field) -> Any:
    if isinstance(datum, Number):
        return _since_1970(integral(datum) * 1000, field)
    text = _string(datum)
    if not is_civil(text):
        return _since_1970(unscaled_of(exact(text), 6), field)
    day, _, rest = text.partition(" ")
    clock, _, zone = rest.partition(" ")
    if zone:
        return _named_zone(f"{day} {clock}", zone, field)
    try:
        return _moment(text, field)
    except civil.NotOnCalendar:
        return datum  # given up, or kept as text, by what the target is


def _named_zone(text: str, zone: str, field: Field) -> Moment:
    moment = Moment(*zones.instant_of(civil.moment(text), zone))
    if field.type.name == "timestamp":
        return moment
    own = zones.zone_of_numbers(field)
    if not own:
        raise Misfit(Reason.ZONE)  # a civil time without its zone would be another one
    return Moment(zones.civil_of(moment.micros, own))


def is_civil(text: str) -> bool:
    """Say whether a text is a date or a date-time, not a number."""
    return "-" in text[1:]


def _decimal_base64(datum: Any, field: Field) -> Any:
    if isinstance(datum, Number):
        return datum
    raw = byte_texts.base64_bytes(_string(datum))
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
    bits = int.from_bytes(byte_texts.base64_bytes(_string(datum)), order)
    if bits >> (field.type.length or 1):
        raise Misfit(Reason.RANGE)
    return bits


def _wrapped(datum: Any, field: Field) -> int:
    value = _integer(datum)
    if value < -(1 << 63):
        raise Misfit(Reason.RANGE)
    return value + (1 << 64) if value < 0 else value


def _geometry(datum: Any, field: Field) -> Any:
    if not isinstance(datum, dict) or "wkb" not in datum:
        raise Misfit(Reason.TOKEN)
    wkb = datum["wkb"]
    return None if wkb is None else byte_texts.base64_bytes(_string(wkb))


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
    Encoding.EPOCH_DAYS: _epoch,
    Encoding.EPOCH_MILLIS: _epoch,
    Encoding.EPOCH_MICROS: _epoch,
    Encoding.EPOCH_NANOS: _epoch,
    Encoding.EPOCH_SECONDS: _epoch_text,
    Encoding.EPOCH_MILLIS_TEXT: _epoch_text,
    Encoding.MOMENT_TEXT: _moment_text,
    Encoding.TIME_MILLIS: _time,
    Encoding.TIME_MICROS: _time,
    Encoding.TIME_NANOS: _time,
    Encoding.TIME_MICROS_UNSCALED: _unscaled_time,
    Encoding.YEAR_SINCE_1900: _year,
    Encoding.ISO_TEXT: _iso,
    Encoding.ZONED_TEXT: _zoned,
    Encoding.DECIMAL_BASE64: _decimal_base64,
    Encoding.BITS_LE: _bits,
    Encoding.BITS_BE: _bits,
    Encoding.WRAPPED_UNSIGNED: _wrapped,
    Encoding.GEOMETRY: _geometry,
}
