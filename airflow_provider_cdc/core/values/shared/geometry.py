# SPDX-License-Identifier: Apache-2.0
"""Extract the well-known binary (WKB) of geometries."""

from __future__ import annotations

import struct

from airflow_provider_cdc.core.values.fields import ConversionError, Reason

_SRID = 4  # bytes before the WKB in MySQL's internal form
_POINT, _LINE, _POLYGON, _COLLECTION = 1, 2, 3, 7
_XY = 16  # bytes of two coordinates
_DEPTH = 32


def wkb(raw: bytes) -> bytes:
    """Return a geometry's WKB, without the SRID that MySQL stores before it (docs/wire/canal.md 4.4).

    MySQL 5 puts the empty value into a new NOT NULL column.
    """
    for begin in (0, _SRID):
        try:
            if not raw or _end(raw, begin, _DEPTH) == len(raw):
                return raw[begin:]
        except (struct.error, IndexError):
            continue
    raise ConversionError(Reason.GEOMETRY)


def _end(raw: bytes, begin: int, depth: int) -> int:
    """Return the end offset of the geometry that begins at a byte, -1 if there is none."""
    order = raw[begin]
    if order > 1 or not depth:
        return -1
    uint32 = struct.Struct("<I" if order else ">I")
    (geometry_type,) = uint32.unpack_from(raw, begin + 1)
    if geometry_type == _POINT:
        return begin + 5 + _XY
    count: int = uint32.unpack_from(raw, begin + 5)[0]
    end = begin + 9
    if geometry_type == _LINE:
        return end + count * _XY
    if not _POLYGON <= geometry_type <= _COLLECTION or count > len(raw):
        return -1
    for _ in range(count):
        if geometry_type == _POLYGON:
            end += 4 + uint32.unpack_from(raw, end)[0] * _XY
        else:
            end = _end(raw, end, depth - 1)
        if not 0 < end <= len(raw):
            return -1
    return end
