# SPDX-License-Identifier: Apache-2.0
"""Convert between local time and instants, value by value and in columns.

Arrow's own conversion is not used: it knows no summer time after 2037.
"""

from __future__ import annotations

from datetime import datetime, tzinfo
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.model.encoding import Encoding
from airflow_provider_cdc.core.values.fields import ConversionError, Field, Reason
from airflow_provider_cdc.core.values.shared import calendar
from airflow_provider_cdc.core.values.shared.zone_names import zone_named

_DAY = 86_400
# the ends of Python's calendar, less the largest offset; before and after them the offset stays
_FIRST, _LAST = -62_135_596_800 + 2 * _DAY, 253_402_300_800 - 2 * _DAY


def zone_of_texts(field: Field) -> str | None:
    """Return the zone in which a column's texts denote instants; None if they denote local times."""
    return field.encoded.zone if field.type.name == "timestamp" else None


def zone_of_numbers(field: Field) -> str | None:
    """Return the zone by which a tool converted a column's local times to instants before it wrote numbers."""
    is_local_time = field.type.name in ("date", "datetime") and field.encoded.encoding is not Encoding.EPOCH_DAYS
    return field.encoded.zone if is_local_time else None


def _zone(name: str) -> tzinfo:
    zone = zone_named(name)
    if zone is None:
        raise ConversionError(Reason.ZONE)
    return zone


def local_time_of(micros: int, zone: str) -> int:
    """Return the local time of an instant, both as µs since 1970."""
    return calendar.in_range(micros + _offset(micros // calendar.SECOND, _zone(zone)) * calendar.SECOND)


def instant_of(micros: int, zone: str) -> tuple[int, bool]:
    """Return the instant of a local time, both as µs since 1970, and whether a second instant has that local time.

    Where a clock was set back, the earlier instant is taken, as MySQL does (``TIME_to_gmt_sec`` of its time zones).
    A local time that a clock set forward never showed is a :class:`ConversionError`: the tool cannot have this zone.
    """
    tz = _zone(zone)
    seconds = micros // calendar.SECOND
    candidates = {seconds - offset for offset in _offsets_near(seconds, tz) if _offset(seconds - offset, tz) == offset}
    if not candidates:
        raise ConversionError(Reason.ZONE)
    return calendar.in_range(min(candidates) * calendar.SECOND + micros % calendar.SECOND), len(candidates) > 1


def local_time_column(micros: pa.Array, zone: str) -> pa.Array:
    """Return the local times of instants; :func:`local_time_of` for a column."""
    seconds = _seconds(micros)
    changes, _, offsets = _table(zone, _years(seconds))
    return _moved(micros, offsets[np.searchsorted(changes, seconds, "right") - 1])


def instant_column(micros: pa.Array, zone: str) -> tuple[pa.Array, int]:
    """Return the instants of local times, and how many are ambiguous; :func:`instant_of` for a column."""
    seconds = _seconds(micros)
    changes, before, after = _table(zone, _years(seconds))
    order = np.argsort(changes + before, kind="stable")
    changes, before, after = changes[order], before[order], after[order]
    index = np.searchsorted(changes + before, seconds, "right") - 1
    offsets = after[index]
    skipped = seconds - offsets < changes[index]
    following = np.minimum(index + 1, len(changes) - 1)
    ambiguous = (following > index) & (seconds >= changes[following] + after[following])
    if micros.null_count:
        valid = np.asarray(micros.is_valid())
        skipped, ambiguous = skipped & valid, ambiguous & valid
    if skipped.any():
        raise ConversionError(Reason.ZONE)
    return _moved(micros, -offsets), int(ambiguous.sum())


def _seconds(micros: pa.Array) -> Any:
    return np.asarray(pc.fill_null(micros, 0)) // calendar.SECOND


def _moved(micros: pa.Array, seconds: Any) -> pa.Array:
    return pc.add(micros, pa.array(seconds * calendar.SECOND))


def _years(seconds: Any) -> tuple[int, ...]:
    return tuple((np.unique(seconds.astype("datetime64[s]").astype("datetime64[Y]").astype(np.int64)) + 1970).tolist())


@lru_cache(maxsize=256)
def _table(zone: str, years: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """Return when a zone's offset changes in these years, the offsets before, and the offsets after, in seconds."""
    changes = sorted({change for year in years for change in _changes(zone, year)})
    table: Any = np.array(changes or [(0, 0, 0)], np.int64)
    return table[:, 0], table[:, 1], table[:, 2]


@lru_cache(maxsize=4096)
def _changes(name: str, year: int) -> list[tuple[int, int, int]]:
    """Return the changes of offset in a year and some days around it; the first entry states the offset before them."""
    zone = _zone(name)
    begin = (calendar.days_of(year, 1, 1) - 2) * _DAY
    end = (calendar.days_of(year, 12, 31) + 3) * _DAY
    before = _offset(begin, zone)
    changes = [(begin, before, before)]
    for day in range(begin, end, _DAY):
        after = _offset(day + _DAY, zone)
        if after != before:
            changes.append((_change(day, day + _DAY, zone), before, after))
            before = after
    return changes


def _change(begin: int, end: int, zone: tzinfo) -> int:
    """Return the second between two instants at which the offset changes to that of the latter."""
    after = _offset(end, zone)
    while end - begin > 1:
        middle = (begin + end) // 2
        begin, end = (begin, middle) if _offset(middle, zone) == after else (middle, end)
    return end


def _offsets_near(seconds: int, zone: tzinfo) -> set[int]:
    """Return the offsets in use a day before and a day after; no zone has ever changed twice in three days."""
    return {_offset(seconds + days * _DAY, zone) for days in (-1, 1)}


def _offset(seconds: int, zone: tzinfo) -> int:
    """Return a zone's seconds ahead of UTC at an instant."""
    ahead = datetime.fromtimestamp(min(max(seconds, _FIRST), _LAST), zone).utcoffset()
    assert ahead is not None
    return int(ahead.total_seconds())
