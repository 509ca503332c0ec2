# SPDX-License-Identifier: Apache-2.0
"""Keep every version that a row had, each with the span in which it was the row (slowly changing dimension, type 2)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.merge_plan import Emptied
from airflow_provider_cdc.core.apply.modes.contract import (
    KeyedRows,
    NewestEvents,
    demand_key,
    first_of_each,
    with_values,
)
from airflow_provider_cdc.core.apply.modes.mirror import Mirror
from airflow_provider_cdc.core.apply.rewinding import rewind_needed
from airflow_provider_cdc.core.apply.row_sets import group_numbers, numbers_among
from airflow_provider_cdc.core.apply.source_order import of_snapshots
from airflow_provider_cdc.core.apply.typed_rows import TypedRows
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.config.table_patterns import is_pattern
from airflow_provider_cdc.core.config.tables import TableRule
from airflow_provider_cdc.core.shapes.columns import MODE_IDS, SOURCE_TIME, RowInputs, SourceColumns, TargetColumn
from airflow_provider_cdc.core.timeline.timeline import SchemaVersion

VALID_FROM, VALID_TO, CURRENT = "_cdc_valid_from", "_cdc_valid_to", "_cdc_current"
FROM, TO = "_cdc_from_position", "_cdc_to_position"
_IDS = {name: MODE_IDS - 20 - number for number, name in enumerate((VALID_FROM, VALID_TO, FROM, TO, CURRENT))}


class History(Mirror):
    """The stored table has a row for each version of a row: a version begins at a change and ends at the next one.

    :param track: names or shell patterns of columns of which only another value makes a version; all changes do if it
        is empty.
    """

    name: str = "history"
    is_mirror = False
    types_later = False
    needs_order = True
    further_key: tuple[int, ...] = (_IDS[FROM],)
    of_change: tuple[str, ...] = ("source_time",)
    of_source: pc.Expression | None = pc.field(CURRENT)

    def __init__(self, track: Sequence[str] = ()) -> None:
        self._track = tuple(track)
        self.named = tuple(name for name in track if not is_pattern(name))

    def of(self, rule: TableRule) -> History:
        """Return the mode with the options of a table's rule."""
        return History(rule.track) if rule.track else self

    def barriers(self, versions: Sequence[SchemaVersion], of_mirror: Sequence[int]) -> Sequence[int]:
        """Return those of a mirror, and the versions before which other ones of their columns were tracked."""
        if not self._track:
            return of_mirror
        tracked = [self._tracked(versions, number) for number in range(len(versions))]
        others = {
            number
            for number in range(1, len(versions))
            if tracked[number - 1] != tracked[number] & {one.id for one in versions[number - 1].schema.columns}
        }
        return sorted(others.union(of_mirror))

    def _tracked(self, versions: Sequence[SchemaVersion], number: int) -> frozenset[int]:
        """Return the ids of the columns that are tracked under a schema version; one with another name now stays so."""
        named = {
            column.id
            for version in versions[: number + 1]
            for column in version.schema.columns
            if any(fnmatchcase(column.name.lower(), pattern.lower()) for pattern in self._track)
        }
        return frozenset(one.id for one in versions[number].schema.columns if one.id in named and not one.dropped)

    def columns(self, source: SourceColumns, others: Sequence[TargetColumn]) -> list[TargetColumn]:
        """Return begin and end by time and by position, and whether the version is the row now.

        :raises DataError: ``mode.needs_key``.
        """
        demand_key(self, source)
        made: dict[str, tuple[pa.DataType, Callable[[RowInputs], pa.Array]]] = {
            VALID_FROM: (SOURCE_TIME, lambda rows: rows.of_change("source_time").cast(SOURCE_TIME)),
            VALID_TO: (SOURCE_TIME, partial(_nulls, SOURCE_TIME)),
            FROM: (pa.string(), lambda rows: rows.of_change("position").cast(pa.string())),
            TO: (pa.string(), partial(_nulls, pa.string())),
            CURRENT: (pa.bool_(), lambda rows: pa.repeat(pa.scalar(True), rows.count)),
        }
        mark = f"mode {self.name}"
        return [TargetColumn(_IDS[name], name, kind, mark, make=make) for name, (kind, make) in made.items()]

    def merged(self, newest: NewestEvents) -> KeyedRows:
        """Return the versions that are new or end otherwise, and those that are no more.

        Of keys that changed late all changes from the late one on are at hand, and their versions are made again.
        """
        events = newest.events
        if self._track:
            _demand_in_time(newest)
        alive = events.fills & newest.passing()
        made = newest.rows_after(np.flatnonzero(alive))
        row_of: IntArray = np.full(newest.typer.changes.rows.num_rows, -1)
        row_of[made.row_indexes] = np.arange(len(made.row_indexes))
        own = np.where(alive, row_of[events.rows], -1)
        order = newest.by_key[0]
        # a row that is left out changes nothing
        order = order[(~alive | (own >= 0))[order] & newest.unapplied[order]]
        positions = newest.typer.changes.rows.column("position").combine_chunks()
        moments, unordered = newest.moments
        same = np.where(unordered, -1 - moments, group_numbers([positions])[events.rows])
        order = order[_lasts(events.groups[order], same[order])]
        stored = _StoredVersions(newest, order, positions)
        covering = np.flatnonzero(stored.covers)
        rows = pa.concat_tables([stored.rows.take(pa.array(covering)), made.rows])
        number = np.where(own[order] >= 0, own[order] + len(covering), -1)
        read = np.r_[np.zeros(len(covering), dtype=bool), of_snapshots(newest.typer.changes.rows)[events.rows[order]]]
        # only what a snapshot read is compared with the row before it
        values = _values(newest, rows) if read.any() else np.zeros(rows.num_rows, dtype=np.int64)
        spans = _Spans.of(
            np.r_[stored.groups[covering], events.groups[order]],
            np.r_[np.arange(len(covering)), number],
            pa.concat_arrays([stored.column(FROM, covering), positions.take(pa.array(events.rows[order]))]),
            pa.concat_arrays([stored.column(VALID_FROM, covering), newest.times(order)]),
            read,
        ).without_repeats(values)
        if self._track:
            tracked = self._tracked(newest.typer.timeline.versions, newest.last)
            spans = spans.joined(_values(newest, rows, tracked))
        versions, ends = spans.versions(rows, len(covering))
        deletes = stored.vanished(versions.select([*events.keys.column_names, FROM]))
        return KeyedRows(TypedRows(versions.filter(pa.array(ends)), np.empty(0, np.int64), {}), deletes)

    def emptied(self, rows: pa.Table, emptied: Emptied) -> pa.Table:
        """Return the rows; those that were current end there."""
        there = rows.column(CURRENT)
        for name, value in ((VALID_TO, pa.scalar(emptied.time, SOURCE_TIME)), (TO, pa.scalar(emptied.position))):
            rows = with_values(rows, name, pc.if_else(there, value, rows.column(name)))
        return with_values(rows, CURRENT, pa.repeat(pa.scalar(False), rows.num_rows))

    def rekeyed(self, rows: pa.Table, key: Sequence[str]) -> pa.Table:
        """Return the rows, of several with one key and one begin the current one."""
        return first_of_each(rows, [*key, FROM] if FROM not in key else key, [(CURRENT, "descending")])


def _nulls(kind: pa.DataType, rows: RowInputs) -> pa.Array:
    return pa.nulls(rows.count, kind)


def _lasts(groups: IntArray, moments: IntArray) -> BoolArray:
    """Return which events, by key, are the last of their key and moment."""
    last: BoolArray = np.ones(len(groups), dtype=bool)
    last[:-1] = (groups[1:] != groups[:-1]) | (moments[1:] != moments[:-1])
    return last


def _values(newest: NewestEvents, rows: pa.Table, some: Collection[int] | None = None) -> IntArray:
    """Return numbers of rows that are equal where nothing but the change that made them differs.

    :param some: ids of the columns that count, None for all.
    """
    columns = newest.typer.mapper.columns(newest.last)
    columns = tuple(column for column in columns if not column.mark.startswith(("metadata", "mode")))
    names = [column.name for column in columns if some is None or column.id in some]
    none: IntArray = np.zeros(rows.num_rows, dtype=np.int64)
    return group_numbers([rows.column(name) for name in names]) if rows.num_rows and names else none


def _demand_in_time(newest: NewestEvents) -> None:
    """Demand changes in the order of the source: a version has no values but its last ones.

    :raises RewindNeeded: one is older than what its row went through.
    """
    events, applied = newest.events, newest.applied[newest.events.rows]
    positions = newest.typer.changes.rows.column("position").combine_chunks()
    changes = group_numbers([pa.array(events.groups), positions.take(pa.array(events.rows))])
    fresh = newest.fresh & ~np.isin(changes, changes[applied])  # others came again
    late = fresh & np.isin(events.groups, events.groups[newest.from_first(fresh) & applied])
    if late.any():
        first: str = pc.min(positions.take(pa.array(events.rows[late]))).as_py()
        raise rewind_needed(
            str(newest.typer.timeline.last_name), "changes came late of rows that are not tracked whole", first
        )


class _StoredVersions:
    """The stored versions of the keys that a step changes.

    :param order: the events, each key's oldest first.
    :ivar groups: number of each version's key.
    :ivar covers: which of them were the row when the key's first change came.
    """

    def __init__(self, newest: NewestEvents, order: IntArray, positions: pa.Array) -> None:
        groups = newest.events.groups[order]
        firsts = order[np.unique(groups, return_index=True)[1]] if len(order) else order
        keys = newest.keys_of(firsts)
        stored = newest.every_stored(keys)
        key_of = numbers_among(stored, keys)
        self.rows = stored.filter(pa.array(key_of >= 0))
        key_of = key_of[key_of >= 0]
        self.groups = newest.events.groups[firsts][key_of]
        begin = positions.take(pa.array(newest.events.rows[firsts])).take(pa.array(key_of))
        every = np.arange(self.rows.num_rows)
        begins, ends = self.column(FROM, every), self.column(TO, every)
        before = pc.less(begins, begin)
        open_then = pc.or_(ends.is_null(), pc.fill_null(pc.greater_equal(ends, begin), True))
        self.covers: BoolArray = pc.and_(before, open_then).to_numpy(zero_copy_only=False)
        self._later: BoolArray = pc.invert(before).to_numpy(zero_copy_only=False)

    def column(self, name: str, some: IntArray) -> pa.Array:
        """Return the values of a column of some of them."""
        return self.rows.column(name).take(pa.array(some)).combine_chunks()

    def vanished(self, versions: pa.Table) -> pa.Table:
        """Return keys and begins of those that began with the first change or later and are no more."""
        later = self.rows.select(versions.column_names).filter(pa.array(self._later))
        numbers = group_numbers(pa.concat_tables([later, versions.cast(later.schema)]).columns)
        return later.filter(pa.array(~np.isin(numbers[: later.num_rows], numbers[later.num_rows :])))


@dataclass(frozen=True, slots=True)
class _Spans:
    """Hold what the rows of keys were, one after the other, each key's oldest first.

    :param groups: number of the key.
    :param rows: number of the row, -1 for none.
    :param positions: since which it was so.
    :param read: whether a snapshot read it, so that nothing may have changed.
    """

    groups: IntArray
    rows: IntArray
    positions: pa.Array
    times: pa.Array
    read: BoolArray

    @staticmethod
    def of(groups: IntArray, rows: IntArray, positions: pa.Array, times: pa.Array, read: BoolArray) -> _Spans:
        """Return spans that are put into the order of their keys; those of one key are in order."""
        return _Spans(groups, rows, positions, times, read)._take(np.argsort(groups, kind="stable"))

    def _take(self, some: IntArray) -> _Spans:
        taken = pa.array(some)
        positions, times = self.positions.take(taken), self.times.take(taken)
        return _Spans(self.groups[some], self.rows[some], positions, times, self.read[some])

    def _follows(self) -> BoolArray:
        """Return which spans have the next one behind them."""
        follows: BoolArray = np.zeros(len(self.groups), dtype=bool)
        follows[:-1] = self.groups[1:] == self.groups[:-1]
        return follows

    def without_repeats(self, values: IntArray) -> _Spans:
        """Return them without those in which there is no row as before, or a snapshot read the row as it was before.

        Other changes count, also those of columns alone that the table does not have (any more).

        :param values: number of each row's values.
        """
        value = np.where(self.rows >= 0, np.append(values, -1)[self.rows], -1)
        same: BoolArray = np.zeros(len(value), dtype=bool)
        same[1:] = self._follows()[:-1] & (value[1:] == value[:-1])
        same &= self.read | (self.rows < 0)
        return self._take(np.flatnonzero(~same))

    def joined(self, tracked: IntArray) -> _Spans:
        """Return them with those as one that follow each other with equal values: its row is the last one.

        :param tracked: number of each row's values that count.
        """
        value = np.where(self.rows >= 0, np.append(tracked, -1)[self.rows], -1)
        goes_on: BoolArray = np.zeros(len(value), dtype=bool)
        goes_on[1:] = self._follows()[:-1] & (value[1:] == value[:-1]) & (self.rows[1:] >= 0)
        begins = np.flatnonzero(~goes_on)
        lasts = np.append(begins[1:], len(value)) - 1
        return replace(self._take(begins), rows=self.rows[lasts[: len(begins)]])

    def versions(self, rows: pa.Table, stored: int) -> tuple[pa.Table, BoolArray]:
        """Return the versions with their ends, and which of them are not stored so.

        :param stored: how many of the rows, the first ones, are stored.
        """
        follows, there = self._follows(), np.flatnonzero(self.rows >= 0)
        behind = pa.array(np.minimum(there + 1, max(len(self.groups) - 1, 0)), mask=~follows[there])
        versions = rows.take(pa.array(self.rows[there]))
        before = versions.column(TO)
        versions = with_values(versions, FROM, self.positions.take(pa.array(there)))
        versions = with_values(versions, VALID_FROM, self.times.take(pa.array(there)))
        versions = with_values(versions, TO, self.positions.take(behind))
        versions = with_values(versions, VALID_TO, self.times.take(behind))
        versions = with_values(versions, CURRENT, pa.array(~follows[there]))
        unchanged = pc.fill_null(pc.equal(before, versions.column(TO)), False)
        both_open = pc.and_(before.is_null(), versions.column(TO).is_null())
        same: BoolArray = pc.or_(unchanged, both_open).to_numpy()
        return versions, ~(same & (self.rows[there] < stored))
