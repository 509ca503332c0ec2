"""Decimals in Arrow without its silent wrap-around: Arrow multiplies beyond 38 digits and does not notice."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.values.field import Misfit, Reason
from airflow_provider_cdc.core.values.types import MAX_DIGITS


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
