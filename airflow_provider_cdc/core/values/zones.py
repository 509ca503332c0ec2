"""Civil time in a time zone and instants, one by one and in columns.

Not Arrow's own conversion: it knows no summer time after 2037.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.model.encoding import Encoding
from airflow_provider_cdc.core.values import civil
from airflow_provider_cdc.core.values.field import Field, Misfit, Reason

_OFFSET = re.compile(r"([+-])([0-9]{1,2}):([0-5][0-9])")
_DAY = 86_400
# where Python's calendar ends, less what an offset may add; before and after it the offset stays
_FIRST, _LAST = -62_135_596_800 + 2 * _DAY, 253_402_300_800 - 2 * _DAY


def is_zone(name: str) -> bool:
    """Say whether a name is one of the time zone database, or an offset such as ``+08:00``."""
    try:
        return _zone(name) is not None
    except Misfit:
        return False


def zone_of_texts(field: Field) -> str | None:
    """Return the zone in which a column's texts show instants."""
    return field.encoded.zone if field.type.name == "timestamp" else None


def zone_of_numbers(field: Field) -> str | None:
    """Return the zone in which a column's civil times were taken for instants before they became numbers."""
    is_civil = field.type.name in ("date", "datetime") and field.encoded.encoding is not Encoding.EPOCH_DAYS
    return field.encoded.zone if is_civil else None


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo:
    if name in ("UTC", "Z"):
        return UTC
    match = _OFFSET.fullmatch(name)
    try:
        if match:
            offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
            return timezone(-offset if match[1] == "-" else offset)
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise Misfit(Reason.ZONE) from None


def civil_of(micros: int, zone: str) -> int:
    """Return the civil time of an instant, both as µs since 1970."""
    return civil.in_range(micros + _offset(micros // civil.SECOND, _zone(zone)) * civil.SECOND)


def instant_of(micros: int, zone: str) -> tuple[int, bool]:
    """Return the instant of a civil time, both as µs since 1970, and whether another one has the same civil time.

    Where a clock is set back, the earlier instant is taken, as MySQL does (``TIME_to_gmt_sec`` of its time zones).
    A civil time that a clock set forward never showed is a :class:`Misfit`: the tool cannot have had this zone.
    """
    where = _zone(zone)
    seconds = micros // civil.SECOND
    found = {seconds - offset for offset in _offsets_near(seconds, where) if _offset(seconds - offset, where) == offset}
    if not found:
        raise Misfit(Reason.ZONE)
    return civil.in_range(min(found) * civil.SECOND + micros % civil.SECOND), len(found) > 1


def civil_column(micros: pa.Array, zone: str) -> pa.Array:
    """Return the civil times of instants; :func:`civil_of` for a column."""
    seconds = _seconds(micros)
    changes, _, offsets = _table(zone, _years(seconds))
    return _moved(micros, offsets[np.searchsorted(changes, seconds, "right") - 1])


def instant_column(micros: pa.Array, zone: str) -> tuple[pa.Array, int]:
    """Return the instants of civil times and how many of them are one of two; :func:`instant_of` for a column."""
    seconds = _seconds(micros)
    changes, before, after = _table(zone, _years(seconds))
    order = np.argsort(changes + before, kind="stable")
    changes, before, after = changes[order], before[order], after[order]
    place = np.searchsorted(changes + before, seconds, "right") - 1
    offsets = after[place]
    never = seconds - offsets < changes[place]
    following = np.minimum(place + 1, len(changes) - 1)
    again = (following > place) & (seconds >= changes[following] + after[following])
    if micros.null_count:
        valid = np.asarray(micros.is_valid())
        never, again = never & valid, again & valid
    if never.any():
        raise Misfit(Reason.ZONE)
    return _moved(micros, -offsets), int(again.sum())


def _seconds(micros: pa.Array) -> Any:
    return np.asarray(pc.fill_null(micros, 0)) // civil.SECOND


def _moved(micros: pa.Array, seconds: Any) -> pa.Array:
    return pc.add(micros, pa.array(seconds * civil.SECOND))


def _years(seconds: Any) -> tuple[int, ...]:
    return tuple((np.unique(seconds.astype("datetime64[s]").astype("datetime64[Y]").astype(np.int64)) + 1970).tolist())


@lru_cache(maxsize=256)
def _table(zone: str, years: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """Return when a zone's offset changes in these years, the offset before and the offset after, all in seconds."""
    changes = sorted({change for year in years for change in _changes(zone, year)})
    table: Any = np.array(changes or [(0, 0, 0)], np.int64)
    return table[:, 0], table[:, 1], table[:, 2]


@lru_cache(maxsize=4096)
def _changes(name: str, year: int) -> list[tuple[int, int, int]]:
    """Return a year's changes of offset, with its neighbourhood; the first entry is none, it says what held before."""
    zone = _zone(name)
    begin = (civil.days_of(year, 1, 1) - 2) * _DAY
    end = (civil.days_of(year, 12, 31) + 3) * _DAY
    before = _offset(begin, zone)
    changes = [(begin, before, before)]
    for day in range(begin, end, _DAY):
        after = _offset(day + _DAY, zone)
        if after != before:
            changes.append((_change(day, day + _DAY, zone), before, after))
            before = after
    return changes


def _change(begin: int, end: int, zone: tzinfo) -> int:
    """Return the second between two instants in which the offset becomes that of the latter."""
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
