"""Numbers in Arrow without its liberties: it multiplies beyond 38 digits and does not notice, and it reads 0x1F."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.values.field import Misfit, Reason
from airflow_provider_cdc.core.values.types import MAX_DIGITS

DIGITS = b"0123456789-"
PLAIN = b"0123456789-+."
NUMERALS = PLAIN + b"eE"


def only(texts: pa.Array, allowed: bytes) -> pa.Array:
    """Let pass numbers in digits only: Arrow also takes 0x1F, nan and inf."""
    data = texts.buffers()[2]
    if data is not None and not _ALLOWED[allowed][np.frombuffer(data, np.uint8)].all():
        raise Misfit(Reason.NUMBER)
    return texts


def _table(allowed: bytes) -> Any:
    table: Any = np.zeros(256, bool)
    table[list(allowed)] = True
    return table


_ALLOWED = {allowed: _table(allowed) for allowed in (DIGITS, PLAIN, NUMERALS)}


def rescaled(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast decimals to another precision and scale; an Arrow error or Misfit if any value does not fit."""
    more = target.scale - values.type.scale
    if more >= MAX_DIGITS:
        raise Misfit(Reason.RANGE)
    if more > 0 and values.type.precision + more > MAX_DIGITS:
        # first make sure that the digits leave room for the zeros
        values = values.cast(pa.decimal128(MAX_DIGITS - more, values.type.scale))
    return values.cast(target)


def from_texts(texts: pa.Array, target: pa.DataType) -> pa.Array:
    """Read plain numbers (digits, a sign, a point); an Arrow error or Misfit if any is none or does not fit."""
    lengths = pc.binary_length(texts)
    longest = pc.max(lengths).as_py() or 0
    if longest > MAX_DIGITS:
        raise Misfit(Reason.RANGE)  # may still fit; not for Arrow to say
    if longest > MAX_DIGITS - target.scale:
        point = pc.find_substring(texts, ".")
        whole = pc.max(pc.if_else(pc.less(point, 0), lengths, point)).as_py()
        if whole > MAX_DIGITS - target.scale:
            raise Misfit(Reason.RANGE)
    return texts.cast(target)


def unscaled(numbers: pa.Array) -> pa.Array:
    """Return decimals of at most 18 digits without their point, as integers; the array is no slice."""
    words = np.frombuffer(numbers.buffers()[1], np.int64)[: 2 * len(numbers) : 2] if len(numbers) else []
    return pa.array(words, pa.int64(), mask=np.asarray(numbers.is_null()) if numbers.null_count else None)
