# SPDX-License-Identifier: Apache-2.0
"""Keep the rows that the source deletes, flagged, as they were before they went."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

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
from airflow_provider_cdc.core.apply.row_sets import group_numbers, numbers_among
from airflow_provider_cdc.core.apply.typed_rows import TypedRows
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.config.tables import TableRule
from airflow_provider_cdc.core.shapes.columns import MODE_IDS, SOURCE_TIME, RowInputs, SourceColumns, TargetColumn

DELETED, DELETED_AT = "_cdc_deleted", "_cdc_deleted_at"


class SoftDelete(Mirror):
    """A row that the source deletes stays with its last values, flagged, with the time of its delete.

    :param days: after which maintenance removes it, None for never.
    """

    name: str = "soft_delete"
    is_mirror = False
    types_later = False
    of_change: tuple[str, ...] = ("source_time",)
    of_source: pc.Expression | None = ~pc.field(DELETED)

    def __init__(self, days: float | None = None) -> None:
        self._days = days

    def of(self, rule: TableRule) -> SoftDelete:
        """Return the mode with the options of a table's rule."""
        return SoftDelete(rule.soft_delete_days) if rule.soft_delete_days else self

    def expired(self, now: datetime) -> pc.Expression | None:
        """Return the condition of rows that were flagged too long ago; those without a time stay."""
        if self._days is None:
            return None
        until = pa.scalar(now - timedelta(days=self._days), SOURCE_TIME)
        return pc.coalesce(pc.field(DELETED) & (pc.field(DELETED_AT) < until), pc.scalar(False))

    def columns(self, source: SourceColumns, others: Sequence[TargetColumn]) -> list[TargetColumn]:
        """Return the flag and the time.

        :raises DataError: ``mode.needs_key``.
        """
        demand_key(self, source)
        mark = f"mode {self.name}"
        return [
            TargetColumn(MODE_IDS, DELETED, pa.bool_(), mark, make=_there),
            TargetColumn(MODE_IDS - 1, DELETED_AT, SOURCE_TIME, mark, make=_no_time),
        ]

    def merged(self, newest: NewestEvents) -> KeyedRows:
        """Return the newest row of each key that is there, and the last row, flagged, of each that went."""
        events, winners = newest.events, newest.winners
        # where a clock orders events, others of one moment may stand behind the newest: it says itself what went
        said, by_clock = _as_said(newest, winners if newest.typer.wire.order == "clock" else winners[:0])
        winners = winners[~np.isin(winners, by_clock)]
        order, begins = newest.by_key
        unapplied = newest.unapplied
        winners = winners[np.isin(events.groups[winners], events.groups[unapplied])]
        counts = unapplied.copy()
        counts[winners] = True  # by a clock, behind one that was applied others may stand that only came again
        may, alike = _as_it_went(newest, winners)
        alive = events.fills & newest.passing() & counts & may
        place_of: IntArray = np.empty(len(order), dtype=np.int64)
        place_of[order] = np.arange(len(order))
        winning = place_of[winners]
        held = _last(alive, order)[winning]
        # by a clock the change that made a row may stand behind the one that says that it went
        behind = _last(alive & alike, order)[_ends(begins)[winning]]
        ends_with = np.where(behind > winning, winning, held + 1)
        held = np.where(behind > winning, behind, held)
        was_there = held >= begins[winning]
        takes, went = order[held[was_there]], held[was_there] != winning[was_there]
        rows = newest.rows_after(np.sort(takes))
        died_at: IntArray = np.full(len(newest.applied), -1)  # by row that took a key: the event that ended it
        died_at[events.rows[takes[went]]] = order[ends_with[was_there][went]]
        ended = died_at[rows.row_indexes]
        flagged = _with_flags(rows.rows, ended >= 0, newest.times(ended))
        made = np.isin(events.rows[takes], rows.row_indexes)
        unmade = events.groups[takes[went & ~made]]  # their row is left out, an older one may be stored
        gone = winners[~was_there | np.isin(events.groups[winners], unmade)]
        stored = _ended_before(newest, gone, _first_fresh(newest, order, begins)[place_of[gone]])
        upserts = TypedRows(pa.concat_tables([flagged, said, stored]), rows.row_indexes, {})
        return KeyedRows(upserts, events.keys.slice(0, 0))

    def emptied(self, rows: pa.Table, emptied: Emptied) -> pa.Table:
        """Return the rows, all flagged; those that were keep their time."""
        there = pc.invert(rows.column(DELETED)).to_numpy()
        return _with_flags(rows, there, pa.repeat(pa.scalar(emptied.time, SOURCE_TIME), rows.num_rows))

    def rekeyed(self, rows: pa.Table, key: Sequence[str]) -> pa.Table:
        """Return the rows but flagged ones that have the key of a row that is there, or that went later."""
        return first_of_each(rows, key, [(DELETED, "ascending"), (DELETED_AT, "descending")])


def _there(rows: RowInputs) -> pa.Array:
    return pa.repeat(pa.scalar(False), rows.count)


def _no_time(rows: RowInputs) -> pa.Array:
    return pa.nulls(rows.count, SOURCE_TIME)


def _with_flags(rows: pa.Table, flagged: BoolArray, times: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Return rows of which some are flagged now.

    :param times: of all of them; those of the others count not.
    """
    if not flagged.any():
        return rows
    mask = pa.array(flagged)
    rows = with_values(rows, DELETED, pc.or_(rows.column(DELETED), mask))
    return with_values(rows, DELETED_AT, pc.if_else(mask, times, rows.column(DELETED_AT)))


def _last(some: BoolArray, order: IntArray) -> IntArray:
    """Return of each place the last one up to it with one of some events, -1 without."""
    last: IntArray = np.maximum.accumulate(np.where(some[order], np.arange(len(order)), -1))
    return last


def _ends(begins: IntArray) -> IntArray:
    """Return of each place where its key ends.

    :param begins: where it begins.
    """
    counts = np.bincount(begins, minlength=len(begins))
    ends: IntArray = begins + counts[begins] - 1
    return ends


def _as_it_went(newest: NewestEvents, winners: IntArray) -> tuple[BoolArray, BoolArray]:
    """Return which events may have made the last row of a key, and which made one that a change says to have gone.

    By a clock, copies of older ones may stand behind the one that made it. Where a change says the row that went, that
    is one with the same values, if there is one.

    :param winners: the newest event of each key.
    """
    typer, events = newest.typer, newest.events
    may: BoolArray = np.ones(len(events.rows), dtype=bool)
    alike: BoolArray = np.zeros(len(events.rows), dtype=bool)
    went = winners[~events.fills[winners] & typer.image("before").there[events.rows[winners]]]
    if typer.wire.order != "clock" or not len(went):
        return may, alike
    takes = np.flatnonzero(events.fills & np.isin(events.groups, events.groups[went]))
    with typer.aside():
        said = typer.typed(np.unique(events.rows[went]), "before", newest.last)
        made = typer.typed(np.unique(events.rows[takes]), "after", newest.last, partial=typer.wire.partial_images)
    columns = typer.mapper.columns(newest.last)
    names = [column.name for column in columns if not column.mark.startswith(("metadata", "mode"))]
    values = group_numbers(pa.concat_tables([said.rows.select(names), made.rows.select(names)]).columns)
    before, after = (np.full(len(newest.applied), -1 - number) for number in range(2))  # numbers of values by row
    before[said.row_indexes], after[made.row_indexes] = np.split(values, [said.rows.num_rows])
    said_of: IntArray = np.full(int(events.groups.max()) + 1, -1)
    said_of[events.groups[went]] = before[events.rows[went]]
    same = after[events.rows[takes]] == said_of[events.groups[takes]]
    alike[takes] = same
    may[takes] = same | ~np.isin(events.groups[takes], events.groups[takes[same]])
    return may, alike


def _first_fresh(newest: NewestEvents, order: IntArray, begins: IntArray) -> IntArray:
    """Return of each place, by key, the first event of its key that the stored rows did not go through."""
    applied = np.bincount(begins[~newest.unapplied[order]], minlength=len(order))  # of a key those come first
    first: IntArray = order[np.minimum(begins + applied[begins], len(order) - 1)]
    return first


def _ended_before(newest: NewestEvents, gone: IntArray, ended_by: IntArray) -> pa.Table:
    """Return, flagged, the last rows of keys that were taken before the step.

    :param gone: an event of each key.
    :param ended_by: of each of these the event that its row ended with.
    """
    flagged, known = _as_said(newest, ended_by if newest.typer.wire.order == "exact" else ended_by[:0])
    rest = ~np.isin(ended_by, known)
    if not rest.any():
        return flagged
    keys = newest.keys_of(gone[rest])
    stored = newest.stored_rows(keys)
    mine = numbers_among(stored, keys)
    ended = ended_by[rest][mine[mine >= 0]]
    went = stored.filter(pa.array(mine >= 0))
    there: BoolArray = np.ones(went.num_rows, dtype=bool)
    return pa.concat_tables([flagged, _with_flags(went, there, newest.times(ended))])


def _as_said(newest: NewestEvents, ended_by: IntArray) -> tuple[pa.Table, IntArray]:
    """Return, flagged, the rows before changes that say the whole row, so that none is to be read, and which those are.

    :param ended_by: events, of which those that give up a key count.
    """
    typer, last = newest.typer, newest.last
    columns, schema = typer.mapper.columns(last), typer.timeline.versions[last].schema
    of_change = any(column.mark.startswith("metadata") for column in columns)
    only_here = any(column.dropped for column in schema.columns)
    event_of: IntArray = np.full(len(newest.applied), -1)
    gives_up = ended_by[~newest.events.fills[ended_by]]
    event_of[newest.events.rows[gives_up]] = gives_up
    rows = np.flatnonzero((event_of >= 0) & typer.image("before").there)
    if of_change or only_here or typer.mapper.filters or "deleted_keys" in typer.wire.carries:
        rows = rows[:0]
    with typer.aside():
        said = typer.typed(rows, "before", last)
    every: BoolArray = np.ones(said.rows.num_rows, dtype=bool)
    known = event_of[said.row_indexes]
    return _with_flags(said.rows, every, newest.times(known)), known
