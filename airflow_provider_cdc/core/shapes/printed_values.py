# SPDX-License-Identifier: Apache-2.0
"""Write the values of a column as text, for a target that stores it under the type ``string``."""

from __future__ import annotations

import pyarrow as pa

from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.columnar.temporal import datetime_texts
from airflow_provider_cdc.core.values.fields import ConversionError
from airflow_provider_cdc.core.values.shared.numbers import plain

_DIGITS = 6  # of a fraction of a second, where a type states fewer than values have


def is_printed(kind: pa.DataType) -> bool:
    """Return whether the values of a type have such a text."""
    return not (pa.types.is_binary(kind) or pa.types.is_nested(kind))


def printed(values: pa.Array | pa.ChunkedArray, column: ColumnType) -> pa.Array:
    """Return the text of each value: numbers and times with the fraction digits of their type, an instant in UTC."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    kind = array.type
    if pa.types.is_boolean(kind):
        return array.cast(pa.int8()).cast(pa.string())
    if pa.types.is_decimal(kind):  # Arrow writes 0E-10
        texts = [None if value is None else plain(value, kind.scale) for value in array.to_pylist()]
        return pa.array(texts, pa.string())
    if pa.types.is_timestamp(kind):
        micros = array.view(pa.int64()).view(pa.timestamp("us"))
        try:
            return datetime_texts(micros, column.length or 0)
        except ConversionError:
            return datetime_texts(micros, _DIGITS)
    return array.cast(pa.string())
