# SPDX-License-Identifier: Apache-2.0
"""State in a table's log what one data file holds: the one place that does, for every file of ours.

Readers leave a file out by these bounds, so a bound is never narrower than the values. delta-rs' own bounds of decimals
go through a double, and are at most 2^63 - 1 (1.6.6); its dataset for pyarrow takes a column without bounds for one
that equals nothing where other columns of the file have bounds. So a file has bounds of all its columns, or of none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.sinks.row_group_files import text_above

_COLUMNS = 32  # Delta's default
_LENGTH = 32  # characters: readers expect longer texts to be cut, with care for the greatest


class UnstatableError(Exception):
    """A value has no bound that every reader understands."""


class FileStatistics:
    """Gathers what the log states of a file.

    :param columns: names of the columns that readers may expect bounds of.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = columns
        self._rows = 0
        self._nulls = dict.fromkeys(columns, 0)
        self._bounds: dict[str, tuple[Any, Any]] = {}
        self._is_bounded = True

    def note(self, rows: pa.Table) -> None:
        """Add rows of the file."""
        self._rows += rows.num_rows
        for name in self._columns:
            values = rows.column(name)
            self._nulls[name] += values.null_count
            if self._is_bounded and values.null_count < len(values) and _has_bounds(values.type):
                self._widen(name, values)

    def _widen(self, name: str, values: pa.ChunkedArray) -> None:
        try:
            low, high = _bounds(values)
        except UnstatableError:
            self._is_bounded = False
            return
        known_low, known_high = self._bounds.get(name, (low, high))
        self._bounds[name] = (min(low, known_low), max(high, known_high))

    def document(self) -> str:
        """Return the statistics as the log has them; a column of NULLs has no bounds, and needs none."""
        stated: dict[str, Any] = {"numRecords": self._rows}
        if self._is_bounded:
            stated["minValues"] = {name: _stated(low) for name, (low, _) in self._bounds.items()}
            stated["maxValues"] = {name: _stated(high) for name, (_, high) in self._bounds.items()}
        return msgspec.json.encode({**stated, "nullCount": self._nulls}).decode()


def bounded_columns(names: Sequence[str], properties: Mapping[str, str | None]) -> list[str]:
    """Return the columns of which readers expect bounds, as a table's properties choose them.

    :param names: the table's columns.
    """
    stated = properties.get("delta.dataSkippingStatsColumns")
    if stated is not None:
        listed = {name.strip().strip("`") for name in stated.split(",")}
        return [name for name in names if name in listed]
    try:
        count = int(properties.get("delta.dataSkippingNumIndexedCols") or _COLUMNS)
    except ValueError:
        count = _COLUMNS
    return list(names) if count < 0 else list(names[:count])


def _has_bounds(kind: pa.DataType) -> bool:
    """Return whether Delta has bounds of a type: of bytes and arrays there are none."""
    types = pa.types
    numbers = types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return bool(numbers or types.is_string(kind) or types.is_date32(kind) or types.is_timestamp(kind))


def _bounds(values: pa.ChunkedArray) -> tuple[Any, Any]:
    """Return bounds of values that are not all NULL.

    :raises UnstatableError: a value has none.
    """
    kind = values.type
    if pa.types.is_floating(kind) and not pc.all(pc.is_finite(values)).as_py():
        raise UnstatableError  # JSON has no such number
    extremes = pc.min_max(values).as_py()
    low, high = extremes["min"], extremes["max"]
    if pa.types.is_string(kind):
        if (high := text_above(high, _LENGTH)) is None:
            raise UnstatableError
        return low[:_LENGTH], high
    if pa.types.is_floating(kind):  # both zeros are within, whichever is there
        return (-0.0 if low == 0 else low), (0.0 if high == 0 else high)
    return _in_milliseconds(low, high) if pa.types.is_timestamp(kind) else (low, high)


def _in_milliseconds(low: datetime, high: datetime) -> tuple[datetime, datetime]:
    """Return bounds in whole milliseconds, as all writers of the format state them, but for the last of all times."""
    low = low.replace(microsecond=low.microsecond // 1000 * 1000)
    try:
        return low, high + timedelta(microseconds=-high.microsecond % 1000)
    except OverflowError:
        return low, high


def _stated(bound: Any) -> Any:
    """Return a bound as JSON has it."""
    if isinstance(bound, datetime):
        unit = "microseconds" if bound.microsecond % 1000 else "milliseconds"
        text = bound.replace(tzinfo=None).isoformat(timespec=unit)
        return text + "Z" if bound.tzinfo is not None else text
    if isinstance(bound, Decimal):
        return msgspec.Raw(f"{bound:f}".encode())  # delta-rs reads 1E-8 as NULL
    return bound.isoformat() if isinstance(bound, date) else bound
