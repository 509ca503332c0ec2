# SPDX-License-Identifier: Apache-2.0
"""Convert whole columns of wide integers, decimals and bits: numpy pads their bytes to 128-bit words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.model.encoding import Encoding
from airflow_provider_cdc.core.values.columnar.checked_casts import rescaled
from airflow_provider_cdc.core.values.fields import ConversionError, Field, Reason
from airflow_provider_cdc.core.values.shared.numbers import plain_decimal, scaled
from airflow_provider_cdc.core.values.types import MAX_DIGITS

_WORDS = np.dtype([("low", "<u8"), ("high", "<i8")])
_LIMIT = 10**MAX_DIGITS


def decimal_base64(values: Sequence[Any], field: Field) -> pa.Array:
    """Convert big-endian two's complement bytes."""
    scale = field.encoded.scale or 0
    if pa.types.is_string(field.target):
        return _texts(values, field, scale)
    if not 0 <= scale <= MAX_DIGITS:
        raise ConversionError(Reason.RANGE)
    array = pa.array(values, pa.binary())
    words = _big_endian(array)
    return _targeted(_decimals(words, array, scale), field)


def bits(values: Sequence[Any], field: Field) -> pa.Array:
    """Convert bytes of BIT(n)."""
    if field.encoded.encoding is Encoding.BITS_BE:
        values = [None if raw is None else raw[::-1] for raw in values]
    array = pa.array(values, pa.binary())
    words = _little_endian(array)
    if words["high"].any() or (words["low"] >> np.uint64((field.type.length or 1) - 1) > 1).any():
        raise ConversionError(Reason.RANGE)
    if pa.types.is_decimal128(field.target):
        return rescaled(_decimals(words, array, 0), field.target)
    ints = pa.Array.from_buffers(pa.uint64(), len(array), [_validity(array), pa.py_buffer(words["low"].copy())])
    if pa.types.is_boolean(field.target) and (words["low"] > 1).any():
        raise ConversionError(Reason.RANGE)
    return ints.cast(field.target)


def wrapped_unsigned(values: Sequence[Any], field: Field) -> pa.Array:
    """Convert unsigned 64-bit numbers that were written as signed."""
    array = pa.array(values, pa.int64())
    words: Any = np.zeros(len(array), _WORDS)
    words["low"] = np.frombuffer(array.buffers()[1], np.uint64, len(array)) if len(array) else 0
    if array.null_count:
        words["low"][np.asarray(array.is_null())] = 0
    return _targeted(_decimals(words, array, 0), field)


def _targeted(decimals: pa.Array, field: Field) -> pa.Array:
    if pa.types.is_decimal128(field.target):
        return rescaled(decimals, field.target)
    if pa.types.is_signed_integer(field.target):
        return decimals.cast(field.target)
    raise ConversionError(Reason.TARGET)  # Arrow does not round a decimal to the nearest float


def _texts(values: Sequence[Any], field: Field, scale: int) -> pa.Array:
    """Write decimals beyond 38 digits as text."""
    return pa.array([None if raw is None else _text(raw, scale, field) for raw in values], pa.string())


def _text(raw: bytes, scale: int, field: Field) -> str:
    if not raw:
        raise ConversionError(Reason.NUMBER)
    return plain_decimal(scaled(int.from_bytes(raw, "big", signed=True), scale), field)


def _offsets(array: pa.Array) -> tuple[Any, Any, Any]:
    """Return begin and end offsets of each value, and the data bytes; the array must not be a slice."""
    if not len(array):
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint8)
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(array) + 1).astype(np.int64)
    return bounds[:-1], bounds[1:], np.frombuffer(data or b"", np.uint8)[: bounds[-1]]


def _big_endian(array: pa.Array) -> Any:
    begins, ends, data = _offsets(array)
    lengths = ends - begins
    if array.null_count != int(np.count_nonzero(lengths == 0)) or (lengths > 16).any():
        raise ConversionError(
            Reason.NUMBER
        )  # an empty value is invalid, one of more than 16 bytes may still fit: the scalar twin decides
    negative: Any = np.zeros(len(array), bool)
    filled = lengths > 0
    negative[filled] = data[begins[filled]] > 127
    out: Any = np.repeat(np.where(negative, np.uint8(255), np.uint8(0)), 16)
    at: Any = np.arange(len(array), dtype=np.int64) * 16
    # byte p of value r goes to 16 r + (end of r - 1 - p)
    out[np.repeat(at + ends - 1, lengths) - np.arange(len(data))] = data
    words = out.view(_WORDS)
    _within_38_digits(words)
    return words


def _little_endian(array: pa.Array) -> Any:
    begins, ends, data = _offsets(array)
    lengths = ends - begins
    if (lengths > 15).any():
        raise ConversionError(Reason.RANGE)
    out: Any = np.zeros(len(array) * 16, np.uint8)
    at: Any = np.arange(len(array), dtype=np.int64) * 16
    out[np.repeat(at - begins, lengths) + np.arange(len(data))] = data
    return out.view(_WORDS)


def _within_38_digits(words: Any) -> None:
    """Raise for values that fit 16 bytes but not 38 digits; Arrow does not check."""
    high, low = words["high"], words["low"]
    max_high, max_low = _LIMIT >> 64, _LIMIT & ((1 << 64) - 1)
    min_high, min_low = -_LIMIT >> 64, -_LIMIT & ((1 << 64) - 1)
    over = (high > max_high) | ((high == max_high) & (low >= np.uint64(max_low)))
    under = (high < min_high) | ((high == min_high) & (low <= np.uint64(min_low)))
    if (over | under).any():
        raise ConversionError(Reason.RANGE)


def _validity(array: pa.Array) -> pa.Buffer | None:
    return array.buffers()[0] if array.null_count else None


def _decimals(words: Any, like: pa.Array, scale: int) -> pa.Array:
    arrow_type = pa.decimal128(MAX_DIGITS, scale)
    return pa.Array.from_buffers(arrow_type, len(like), [_validity(like), pa.py_buffer(words)])
