"""Geometries as well-known binary."""

from __future__ import annotations

import struct

from airflow_provider_cdc.core.values.field import Misfit, Reason

_SRID = 4  # bytes before the WKB in what MySQL stores
_POINT, _LINE, _POLYGON, _COLLECTION = 1, 2, 3, 7
_XY = 16  # bytes of two coordinates
_DEPTH = 32


def wkb(raw: bytes) -> bytes:
    """Return a geometry's WKB, without the SRID that MySQL stores before it (docs/wire/canal.md 4.4).

    The empty value is what MySQL 5 puts into a new NOT NULL column.
    """
    for begin in (0, _SRID):
        try:
            if not raw or _end(raw, begin, _DEPTH) == len(raw):
                return raw[begin:]
        except (struct.error, IndexError):
            continue
    raise Misfit(Reason.GEOMETRY)


def _end(raw: bytes, begin: int, depth: int) -> int:
    """Return where the geometry ends that begins at a byte, or -1 if none begins there."""
    order = raw[begin]
    if order > 1 or not depth:
        return -1
    number = struct.Struct("<I" if order else ">I")
    (kind,) = number.unpack_from(raw, begin + 1)
    if kind == _POINT:
        return begin + 5 + _XY
    count: int = number.unpack_from(raw, begin + 5)[0]
    end = begin + 9
    if kind == _LINE:
        return end + count * _XY
    if not _POLYGON <= kind <= _COLLECTION or count > len(raw):
        return -1
    for _ in range(count):
        if kind == _POLYGON:
            end += 4 + number.unpack_from(raw, end)[0] * _XY
        else:
            end = _end(raw, end, depth - 1)
        if not 0 < end <= len(raw):
            return -1
    return end
