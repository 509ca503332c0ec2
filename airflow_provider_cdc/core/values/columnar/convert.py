# SPDX-License-Identifier: Apache-2.0
"""Convert whole columns of one encoding to one Arrow type; twin of ``scalar/convert.py``.

Anything unusual raises and is left to the twin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.model.encoding import Encoding
from airflow_provider_cdc.core.values.columnar import binary, decimals, temporal
from airflow_provider_cdc.core.values.columnar.checked_casts import DIGITS, NUMERALS, PLAIN, from_texts, only
from airflow_provider_cdc.core.values.fields import NOT_BOOLEAN, UNREADABLE, ConversionError, Field, Reason
from airflow_provider_cdc.core.values.shared import charsets, time_zones
from airflow_provider_cdc.core.values.shared.calendar import is_local_time
from airflow_provider_cdc.core.values.shared.enum_set import labels, spellings
from airflow_provider_cdc.core.values.shared.numbers import scale_of
from airflow_provider_cdc.core.values.types import GEOMETRIES


def convert_column(values: Sequence[Any], field: Field, lost: Counter[str]) -> pa.Array:
    """Convert decoded tokens (None for null).

    :param lost: receives the counts of allowed losses.
    :raises Exception: one of several (see ``blocks``) if a token is unusual; then the scalar twin decides.
    """
    return _CONVERTERS[field.encoded.encoding](values, field, lost)


def _text(values: Sequence[Any], field: Field, lost: Counter[str]) -> pa.Array:
    return _of_texts(pa.array(values, pa.string()), field, lost)


def _of_texts(texts: pa.Array, field: Field, lost: Counter[str]) -> pa.Array:
    target = field.target
    if pa.types.is_string(target):
        return _texts(texts, field, lost)
    if pa.types.is_signed_integer(target):
        return only(texts, DIGITS).cast(target)
    if pa.types.is_decimal128(target):
        return from_texts(only(texts, PLAIN), target)
    if pa.types.is_floating(target):
        return _finite(only(texts, NUMERALS).cast(target))
    if pa.types.is_timestamp(target) or pa.types.is_date32(target):
        return temporal.datetime_of(texts, field, lost)
    if pa.types.is_boolean(target):
        return _boolean_of(only(texts, DIGITS).cast(pa.int64()), field, lost)
    if pa.types.is_binary(target) and field.type.name not in GEOMETRIES:
        return binary.of_texts(texts, field)
    raise ConversionError(Reason.TARGET)


def _texts(texts: pa.Array, field: Field, lost: Counter[str]) -> pa.Array:
    if time_zones.zone_of_texts(field):
        return temporal.datetime_of(texts, field, lost)
    if field.type.name == "decimal":
        return _decimal_texts(texts, field)
    unreadable = pc.sum(pc.match_substring(texts, "\ufffd")).as_py()
    if unreadable:
        lost[UNREADABLE] += unreadable
    for spelling, label in spellings(field.type.labels).items():
        texts = pc.if_else(pc.equal(texts, spelling), label, texts)
    return texts


def _number(values: Sequence[Any], field: Field, lost: Counter[str]) -> pa.Array:
    target = field.target
    if pa.types.is_signed_integer(target):
        return _integers(values, target)
    if pa.types.is_boolean(target):
        return _boolean_of(_integers(values, pa.int64()), field, lost)
    if pa.types.is_float64(target):
        return pa.array(values, target)
    if pa.types.is_float32(target):
        return _single(pa.array(values, pa.float64()))
    if pa.types.is_list(target):
        return pa.ListArray.from_arrays(*_list_parts(values), mask=_nulls(values))
    texts = _raw_texts(values)
    if pa.types.is_decimal128(target):
        return from_texts(only(texts, PLAIN), target)
    if pa.types.is_string(target):
        return _decimal_texts(texts, field) if field.type.name == "decimal" else texts
    raise ConversionError(Reason.TARGET)


def _integers(values: Sequence[Any], target: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, target)
    except pa.ArrowTypeError:
        # a boolean among the integers, or an absent member, which raises here again
        return pa.array([int(value) if value.__class__ is bool else value for value in values], target)


def _list_parts(values: Sequence[Any]) -> tuple[pa.Array, pa.Array]:
    nested = pa.array(values, pa.list_(pa.float64()))
    return nested.offsets, _single(nested.values)


def _nulls(values: Sequence[Any]) -> pa.Array | None:
    return pa.array([value is None for value in values]) if None in values else None


def _raw_texts(values: Sequence[Any]) -> pa.Array:
    """Return the texts of number tokens; a null is a token too."""
    tokens = [None if raw is None else bytes(raw) for raw in values]
    texts = pa.array([None if token == b"null" else token for token in tokens], pa.binary()).cast(pa.string())
    return only(texts, NUMERALS)


def _decimal_texts(texts: pa.Array, field: Field) -> pa.Array:
    scale = scale_of(field)
    shape = rf"^(?:-?[1-9][0-9]*|0|-0\.0*[1-9])\.[0-9]{{{scale}}}$" if scale else r"^(?:-?[1-9][0-9]*|0)$"
    if pc.all(pc.match_substring_regex(texts, shape)).as_py() is False:
        raise ConversionError(Reason.NUMBER)
    return texts


def _boolean(values: Sequence[Any], field: Field, lost: Counter[str]) -> pa.Array:
    if not (pa.types.is_boolean(field.target) or pa.types.is_signed_integer(field.target)):
        raise ConversionError(Reason.TARGET)
    try:
        return pa.array(values, pa.bool_()).cast(field.target)
    except pa.ArrowInvalid:
        return _number(values, field, lost)  # there are numbers among the booleans


def _boolean_of(ints: pa.Array, field: Field, lost: Counter[str]) -> pa.Array:
    other = pc.sum(pc.greater(pc.bit_wise_and(ints, -2).cast(pa.uint64(), safe=False), 0)).as_py() or 0
    if other:
        if field.type.name != "tinyint":
            raise ConversionError(Reason.RANGE)
        bounds = pc.min_max(ints).as_py()
        if bounds["min"] < -128 or bounds["max"] > 255:
            raise ConversionError(Reason.RANGE)
        lost[NOT_BOOLEAN] += other
    return ints.cast(pa.bool_())


def _charset(values: Sequence[Any], field: Field, lost: Counter[str]) -> pa.Array:
    if pa.types.is_binary(field.target):
        return binary.from_bytes(values, field)
    raw = pa.array(values, pa.binary())
    charset = field.encoded.charset
    decode = charsets.decoder(charset)
    if charsets.is_utf8(charset) or (charsets.is_ascii_based(charset) and binary.is_ascii(raw)):
        return _of_texts(raw.cast(pa.string()), field, lost)
    return _text([None if value is None else decode(value) for value in values], field, lost)


def _mixed_datetime(values: Sequence[Any], field: Field, lost: Counter[str]) -> pa.Array:
    """Convert texts of the form that the first one has; a text of another form raises."""
    first = next((value for value in values if value is not None), None)
    if isinstance(first, str) and not is_local_time(first):
        encoding = Encoding.EPOCH_SECONDS
    elif pa.types.is_string(field.target):
        raise ConversionError(Reason.TARGET)  # the scalar twin rewrites such texts
    else:
        encoding = Encoding.TEXT
    return convert_column(values, replace(field, encoded=replace(field.encoded, encoding=encoding)), lost)


def _geometry(values: Sequence[Any], field: Field, lost: Counter[str]) -> pa.Array:
    return binary.targeted(pa.array([None if value is None else value.wkb for value in values], pa.binary()), field)


def _float(values: Sequence[Any], field: Field, lost: Counter[str]) -> pa.Array:
    if not pa.types.is_floating(field.target):
        raise ConversionError(Reason.TARGET)
    return _number(values, field, lost)


def _by_twin(values: Sequence[Any], field: Field, lost: Counter[str]) -> pa.Array:
    """Leave every value to the scalar twin."""
    raise ConversionError(Reason.TARGET)


def _finite(floats: pa.Array) -> pa.Array:
    if pc.all(pc.is_finite(floats)).as_py() is False:
        raise ConversionError(Reason.RANGE)
    return floats


def _single(doubles: pa.Array) -> pa.Array:
    """Round doubles to floats.

    A double half way between two floats raises: the decimal text it was read from may be on either side.
    """
    if len(doubles):
        bits = np.frombuffer(doubles.buffers()[1], np.uint64, len(doubles), doubles.offset * 8)
        if ((bits & np.uint64(0x1FFFFFFF)) == np.uint64(0x10000000)).any():
            raise ConversionError(Reason.NUMBER)
        magnitude = np.abs(bits.view(np.float64))
        if ((magnitude < 1.2e-38) & (magnitude > 0)).any():
            raise ConversionError(Reason.NUMBER)  # for subnormal floats the half way points are other doubles
    return _finite(doubles.cast(pa.float32()))


_Converter = Callable[[Sequence[Any], Field, "Counter[str]"], pa.Array]


def _lossless(convert: Callable[[Sequence[Any], Field], pa.Array]) -> _Converter:
    return lambda values, field, lost: convert(values, field)


_CONVERTERS: dict[Encoding, _Converter] = {
    Encoding.TEXT: _text,
    Encoding.NUMBER: _number,
    Encoding.BOOLEAN: _boolean,
    Encoding.BASE64: _lossless(binary.from_bytes),
    Encoding.CHARSET_BYTES: _charset,
    Encoding.BASE64_URL: _lossless(binary.from_texts),
    Encoding.HEX: _lossless(binary.from_texts),
    Encoding.LATIN1_BYTES: _lossless(binary.from_texts),
    Encoding.BYTE_LIST: _lossless(binary.from_texts),
    Encoding.ENUM_INDEX: _lossless(labels),
    Encoding.SET_BITMASK: _lossless(labels),
    Encoding.EPOCH_DAYS: _lossless(temporal.epoch),
    Encoding.EPOCH_MILLIS: _lossless(temporal.epoch),
    Encoding.EPOCH_MICROS: _lossless(temporal.epoch),
    Encoding.EPOCH_NANOS: _lossless(temporal.epoch),
    Encoding.EPOCH_SECONDS: _lossless(temporal.epoch_text),
    Encoding.EPOCH_MILLIS_TEXT: _lossless(temporal.epoch_text),
    Encoding.MIXED_DATETIME: _mixed_datetime,
    Encoding.TIME_MILLIS: _lossless(temporal.time),
    Encoding.TIME_MICROS: _lossless(temporal.time),
    Encoding.TIME_NANOS: _lossless(temporal.time),
    Encoding.TIME_MICROS_UNSCALED: _lossless(temporal.unscaled_time),
    Encoding.YEAR_SINCE_1900: _lossless(temporal.year),
    Encoding.ISO_TEXT: temporal.iso,
    Encoding.ZONED_TEXT: temporal.zoned,
    Encoding.INSTANT: _lossless(temporal.instant),
    Encoding.DECIMAL_BASE64: _lossless(decimals.decimal_base64),
    Encoding.BITS_LE: _lossless(decimals.bits),
    Encoding.BITS_BE: _lossless(decimals.bits),
    Encoding.WRAPPED_UNSIGNED: _lossless(decimals.wrapped_unsigned),
    Encoding.GEOMETRY: _geometry,
    Encoding.FLOAT: _float,
    **dict.fromkeys((Encoding.VARIABLE_DECIMAL, Encoding.DOCUMENT, Encoding.LIST), _by_twin),
}
