# SPDX-License-Identifier: Apache-2.0
"""Cast numbers with the checks that Arrow lacks.

Two of its behaviours matter: decimals overflow above 38 digits in silence, and hex literals such as 0x1F are accepted
as integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.values.fields import ConversionError, Reason
from airflow_provider_cdc.core.values.types import MAX_DIGITS

DIGITS = b"0123456789-"
PLAIN = b"0123456789-+."
NUMERALS = PLAIN + b"eE"


def only(texts: pa.Array, allowed: bytes) -> pa.Array:
    """Return the texts; raise if one has other characters. Arrow would also accept 0x1F, nan and inf."""
    data = texts.buffers()[2]
    if data is not None and not _ALLOWED[allowed][np.frombuffer(data, np.uint8)].all():
        raise ConversionError(Reason.NUMBER)
    return texts


def _table(allowed: bytes) -> Any:
    table: Any = np.zeros(256, bool)
    table[list(allowed)] = True
    return table


_ALLOWED = {allowed: _table(allowed) for allowed in (DIGITS, PLAIN, NUMERALS)}


def rescaled(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast decimals to another precision and scale; raise an Arrow error or ConversionError if a value does not fit."""
    added_scale = target.scale - values.type.scale
    if added_scale >= MAX_DIGITS:
        raise ConversionError(Reason.RANGE)
    if added_scale > 0 and values.type.precision + added_scale > MAX_DIGITS:
        # check first that the digits leave room for the added zeros
        values = values.cast(pa.decimal128(MAX_DIGITS - added_scale, values.type.scale))
    return values.cast(target)


def from_texts(texts: pa.Array, target: pa.DataType) -> pa.Array:
    """Parse plain numbers (digits, sign, point); raise an Arrow error or ConversionError for one that does not fit."""
    lengths = pc.binary_length(texts)
    longest = pc.max(lengths).as_py() or 0
    if longest > MAX_DIGITS:
        raise ConversionError(Reason.RANGE)  # it may still fit, but Arrow cannot decide that
    if longest > MAX_DIGITS - target.scale:
        point = pc.find_substring(texts, ".")
        whole = pc.max(pc.if_else(pc.less(point, 0), lengths, point)).as_py()
        if whole > MAX_DIGITS - target.scale:
            raise ConversionError(Reason.RANGE)
    return texts.cast(target)


def unscaled(decimals: pa.Array) -> pa.Array:
    """Return decimals of at most 18 digits as unscaled integers; the array must not be a slice."""
    if not len(decimals):
        return pa.array([], pa.int64())
    words = np.frombuffer(decimals.buffers()[1], np.int64)[: 2 * len(decimals) : 2]
    return pa.array(words, pa.int64(), mask=np.asarray(decimals.is_null()) if decimals.null_count else None)
