# SPDX-License-Identifier: Apache-2.0
"""Convert whole columns of bytes; twin of ``scalar/binary.py``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.model.encoding import Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.fields import ConversionError, Field, Reason
from airflow_provider_cdc.core.values.scalar import binary
from airflow_provider_cdc.core.values.shared import geometry
from airflow_provider_cdc.core.values.types import GEOMETRIES

_DECODERS: dict[Encoding, Callable[[Any], bytes]] = {
    Encoding.BASE64_URL: binary.base64_url_bytes,
    Encoding.HEX: binary.hex_bytes,
    Encoding.LATIN1_BYTES: binary.latin1_bytes,
    Encoding.BYTE_LIST: binary.list_bytes,
}


def from_texts(values: Sequence[Any], field: Field) -> pa.Array:
    """Convert bytes that JSON carries as text or as a list."""
    decode = _DECODERS[field.encoded.encoding]
    return from_bytes([None if value is None else decode(value) for value in values], field)


def from_bytes(values: Sequence[Any], field: Field) -> pa.Array:
    """Convert the bytes of values; those of a geometry may be MySQL's internal form."""
    if field.type.name in GEOMETRIES:
        values = [None if value is None else geometry.wkb(value) for value in values]
    return targeted(pa.array(values, pa.binary()), field)


def targeted(values: pa.Array, field: Field) -> pa.Array:
    """Put bytes into a binary column, or into a string column if they are UTF-8."""
    if pa.types.is_binary(field.target):
        return padded(values, field.type)
    if pa.types.is_string(field.target):
        return values.cast(field.target)
    raise ConversionError(Reason.TARGET)


def of_texts(texts: pa.Array, field: Field) -> pa.Array:
    """Put text into a binary column as UTF-8.

    A U+FFFD raises: the tool decoded bytes as text that are not text.
    """
    if pc.any(pc.match_substring(texts, "\ufffd")).as_py():
        raise ConversionError(Reason.TEXT)
    return padded(texts.cast(field.target), field.type)


def is_ascii(values: pa.Array) -> bool:
    """Return whether no byte is above 127; the array must not be a slice."""
    data = values.buffers()[2]
    return data is None or not len(data) or bool(np.frombuffer(data, np.uint8).max() < 128)


def padded(values: pa.Array, column: ColumnType) -> pa.Array:
    """Restore the zero bytes that tools strip from the end of BINARY(n)."""
    if column.name != "binary" or not len(values):
        return values
    width = column.length or 1
    lengths = np.asarray(pc.fill_null(pc.binary_length(values), width))
    if (lengths > width).any():
        raise ConversionError(Reason.LENGTH)
    if (lengths == width).all():
        return values
    return _right_padded(pc.fill_null(values, b""), width, values)


def _right_padded(values: pa.Array, width: int, like: pa.Array) -> pa.Array:
    _, offsets, data = values.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(values) + 1, values.offset * 4).astype(np.int64)
    begins, lengths = bounds[:-1], np.diff(bounds)
    out: Any = np.zeros(len(values) * width, np.uint8)
    shift: Any = np.repeat(np.arange(len(values), dtype=np.int64) * width - begins, lengths)
    where = np.arange(bounds[0], bounds[-1], dtype=np.int64)
    out[shift + where] = np.frombuffer(data or b"", np.uint8)[bounds[0] : bounds[-1]]
    fixed = pa.Array.from_buffers(pa.binary(width), len(values), [None, pa.py_buffer(out)]).cast(pa.binary())
    return pc.if_else(like.is_null(), None, fixed) if like.null_count else fixed
