# SPDX-License-Identifier: Apache-2.0
"""Compare what changes say of the rows that they found with the rows that are there.

The log of a source carries, with most changes, the row as it was before. So it says whether a key was taken, and what
the row's values were. A row that is not as the log says it was is a contradiction: a change was lost, or altered, or
somebody else changed the table. What explains one otherwise is left out: a change that was sent again, one that was
compared before, the rows of a snapshot and changes that it may have read, and what a partition that is read less far
may still bring.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.compared_values import unlike_values, unproven_columns
from airflow_provider_cdc.core.apply.contradictions import (
    KEY_MISSING,
    KEY_THERE,
    ROW_DIFFERS,
    Findings,
    GapWitness,
    Verification,
)
from airflow_provider_cdc.core.apply.record_keys import KeyEvents
from airflow_provider_cdc.core.apply.row_sets import numbers_among
from airflow_provider_cdc.core.apply.row_typing import RowTyper
from airflow_provider_cdc.core.apply.source_order import WHOLE, moments_of, of_snapshots, read_before
from airflow_provider_cdc.core.apply.typed_rows import TypedRows
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.model.clock_position import SOURCE, at_tool_time, is_clock_position
from airflow_provider_cdc.core.model.position_columns import generation_text_of, tool_time_of
from airflow_provider_cdc.core.timeline.timeline import TableTimeline

_SAMPLED = 1_000  # rows of a table and batch of which all values are compared, however many there are
_ZERO_DATES = frozenset({"date", "datetime", "timestamp"})
_SKEW = 60_000  # milliseconds that the clocks of source and broker may differ by
_PORTION = 1 << 13  # images to gather at once: memory for more is asked of the system each time, and is slow


class _Finds(IntEnum):
    """Say what a change must have found at its key."""

    UNKNOWN = 0
    NO_ROW = 1
    A_ROW = 2


class RowsBefore:
    """Type the rows before changes, those of several tables at once where they are resolved together.

    :param some: indexes of the rows that may be asked for, ascending; None to type what is asked for each time.
    """

    def __init__(self, typer: RowTyper, target: int, some: IntArray | None = None) -> None:
        self._typer, self._target, self._some = typer, target, some
        self._typed: TypedRows | None = None

    def of(self, row_indexes: IntArray) -> TypedRows:
        """Return typed rows; those that do not fit are not among them."""
        if self._some is None:
            return self._type(row_indexes)
        if self._typed is None:
            self._typed = self._type(self._some)
        typed = self._typed
        mine = np.flatnonzero(np.isin(typed.row_indexes, row_indexes))
        absent = {name: mask[mine] for name, mask in typed.absent.items()}
        return TypedRows(typed.rows.take(pa.array(mine)), typed.row_indexes[mine], absent)

    def _type(self, row_indexes: IntArray) -> TypedRows:
        with self._typer.aside():
            return self._typer.typed(np.unique(row_indexes), "before", self._target, partial=True)


@dataclass(frozen=True, slots=True)
class OwnRows:
    """Say what is of one table, where the changes of several are resolved together.

    :param timeline: the table's.
    :param numbered: the numbers of its changes, ascending.
    :param moments: of every change of all tables (:func:`moments_of`).
    :param rows_before: types rows before changes of all tables.
    """

    timeline: TableTimeline
    numbered: IntArray
    moments: IntArray
    rows_before: RowsBefore


class Witness(GapWitness):
    """Compare the changes of one step with each other, and with stored rows as a writer meets them.

    :param target: schema version of the step's end, under which rows are compared.
    :param applied: of every change whether the stored rows went through it.
    :param base_position: newest position that the stored rows went through.
    :param own: what is of the table, None where all changes are.
    """

    def __init__(
        self,
        typer: RowTyper,
        events: KeyEvents,
        target: int,
        applied: BoolArray,
        base_position: str,
        verification: Verification,
        own: OwnRows | None = None,
    ) -> None:
        numbered = None if own is None else own.numbered
        super().__init__(typer, events.rows, events.keys, applied, base_position, verification, numbered)
        self._events, self._target, self._own = events, target, own
        self._timeline = typer.timeline if own is None else own.timeline
        self._rows_before = RowsBefore(typer, target) if own is None else own.rows_before
        self._forms = typer.mapper.forms(target)
        self._compares_rows = verification.compares_rows(typer.wire)
        self._unproven = unproven_columns(self._timeline)
        # by Kafka's time no change of a minute after a snapshot would be compared: so only where nothing else is known
        younger = "younger_snapshots" in typer.wire.carries
        none: BoolArray = np.zeros(len(events.rows), dtype=bool)
        self._loaded, passed_over = self._may_be_read() if younger else (self._may_be_loaded(_SKEW), none)
        self._moments = numbered_moments(typer) if own is None else own.moments
        finds = _finds(typer, events)
        order = np.argsort(events.groups, kind="stable")
        order = order[~passed_over[order]]
        first = np.r_[True, events.groups[order][1:] != events.groups[order][:-1]] if len(order) else order.astype(bool)
        compared = self._compared(applied, base_position)
        follows = np.flatnonzero(~first)
        self._in_no_order = self._several_at_once(order[follows - 1], order[follows])
        self._compare_within(order[follows - 1], order[follows], finds, compared)
        begins = order[first]
        begins = begins[(finds[begins] != _Finds.UNKNOWN) & compared[begins] & ~self._loaded[begins]]
        begins = begins[self._of_log(begins, base_position)]
        self._begins = begins[~self._in_no_order[begins]]
        self._finds = finds[self._begins]
        self._met: BoolArray = np.zeros(len(self._begins), dtype=bool)
        self._keys = events.keys.take(pa.array(self._begins))

    def meet(self, rows: pa.Table) -> None:
        """Take stored rows that go or are replaced.

        :param rows: under the schema that the table has then; or the columns of the key alone.
        """
        names = self._keys.column_names
        if not len(self._begins) or not rows.num_rows:
            return
        met = numbers_among(rows.select(names).cast(self._keys.schema), self._keys)
        there = np.flatnonzero(met >= 0)
        self._met[met[there]] = True
        there = there[self._finds[met[there]] == _Finds.A_ROW]
        if self._compares_rows and rows.num_columns > len(names) and len(there):
            self._compare_stored(rows.take(pa.array(there)), self._begins[met[there]])

    def finish(self) -> Findings:
        """Return the outcome, once all stored rows of the changed keys were met."""
        self._note(KEY_MISSING, self._begins[~self._met & (self._finds == _Finds.A_ROW)])
        self._note(KEY_THERE, self._begins[self._met & (self._finds == _Finds.NO_ROW)])
        self._begins = self._begins[:0]
        self._met, self._finds = self._met[:0], self._finds[:0]
        return self.findings

    def _may_be_read(self) -> tuple[BoolArray, BoolArray]:
        """Return of which events a snapshot that is younger than its place may have read what they did.

        :returns: they, and the rows of snapshots to pass over: what comes behind a row that was read among changes, and
            is older, has to find what was there without it, where all rows from before it are known.
        """
        typer, groups, base_time = self._typer, self._events.groups, self._verification.base_time
        mine, events = np.unique(self._events.rows, return_inverse=True)
        of_table = typer.changes.rows.take(pa.array(mine))
        loaded = read_before(of_table, typer.wire, base_time)[events]
        if self._timeline.versions[0].position in self._timeline.unseen:
            return loaded, np.zeros_like(loaded)
        by_whole = read_before(of_table, typer.wire, base_time, WHOLE)[events]
        read = typer.changes.are("incremental", rows=self._events.rows)
        return by_whole, read & np.isin(groups, groups[loaded & ~by_whole])

    def _compared(self, applied: BoolArray, base_position: str) -> BoolArray:
        """Return which events are of changes that came in time, and that the stored rows did not go through."""
        compared: BoolArray = ~applied[self._events.rows] & pc.greater(self._positions, base_position).to_numpy()
        if self._by_clock:
            compared &= self._cannot_be_repeats(base_position)
        # a change that came late stands before one that was applied, so the stored row is a later one
        late = np.unique(self._events.groups[~compared])
        compared &= ~np.isin(self._events.groups, late)
        return compared

    def _cannot_be_repeats(self, base_position: str) -> BoolArray:
        """Return which events of a log that a clock orders can neither be sent again nor be out of their order.

        Those happened at the source after all that is stored, and after the tool had sent it; after the one before at
        their key; and not before the table was made or emptied, nor before a change that was sent before them.
        """
        groups, rows = self._events.groups, self._events.rows
        source = self._typer.changes.rows.column("source").to_numpy()[rows]
        sent = tool_time_of(pa.scalar(base_position or at_tool_time(0))).as_py()
        new: BoolArray = (source > max(sent * 1_000, self._newest_before())) & ~self._typer.flags("older")[rows]
        for began in (self._timeline.versions[0].position, *self._timeline.clears):
            if is_clock_position(began):
                new &= source >= int(began[SOURCE]) * 1_000_000
        new &= source >= np.maximum.accumulate(source)  # the events are in the order of positions
        order = np.argsort(groups, kind="stable")
        before, event = order[:-1], order[1:]
        other = (groups[before] == groups[event]) & (rows[before] != rows[event])
        new[event[other & (source[event] <= source[before])]] = False
        return new

    def _newest_before(self) -> int:
        """Return the newest source time of the stored rows, and of this batch's changes in steps before this one."""
        changes = self._typer.changes.rows.select(["source", "position"])
        if self._own is not None:
            changes = changes.take(pa.array(self._own.numbered))
        before = changes.column("source")
        if len(self._positions):
            before = before.filter(pc.less(changes.column("position"), pc.min(self._positions)))
        return max(self._verification.base_time or 0, pc.max(before).as_py() or 0)

    def _several_at_once(self, before: IntArray, event: IntArray) -> BoolArray:
        """Return which events are of several rows of one statement at one key: they may have no order.

        :param before: of each event the one before it at its key.
        """
        rows, rows_before = self._events.rows[event], self._events.rows[before]
        at_once = (self._moments[rows] == self._moments[rows_before]) & (rows != rows_before)
        several: BoolArray = np.zeros(len(self._events.rows), dtype=bool)
        several[before[at_once]] = several[event[at_once]] = True
        return several

    def _of_log(self, events: IntArray, base_position: str) -> BoolArray:
        """Return which events are of the same log as what is stored: another one may lack what came between."""
        if not base_position or not len(events):
            every: BoolArray = np.ones(len(events), dtype=bool)
            return every
        positions = self._typer.changes.rows.column("position").take(pa.array(self._events.rows[events]))
        same: BoolArray = pc.equal(
            generation_text_of(positions), generation_text_of(pa.scalar(base_position))
        ).to_numpy()
        return same

    def _compare_within(self, before: IntArray, event: IntArray, finds: IntArray, compared: BoolArray) -> None:
        """Compare events with the events before them at their keys."""
        events, changes = self._events, self._typer.changes
        moments = self._moments
        snapshot = of_snapshots(changes.rows)
        rows, rows_before = events.rows[event], events.rows[before]
        # a change that was sent again has the position of the first; rows of one statement may have no order
        known = compared[event] & compared[before] & (moments[rows] != moments[rows_before])
        known &= ~self._in_no_order[event] & ~self._in_no_order[before]
        known &= self._same_log(event, before) & ~snapshot[rows]
        known &= ~(snapshot[rows_before] & self._loaded[event])
        before, event = before[known], event[known]
        filled = events.fills[before]
        self._note(KEY_MISSING, event[(finds[event] == _Finds.A_ROW) & ~filled])
        self._note(KEY_THERE, event[(finds[event] == _Finds.NO_ROW) & filled])
        joined = (finds[event] == _Finds.A_ROW) & filled & ~snapshot[events.rows[before]]
        self._compare_images(before[joined], event[joined])

    def _same_log(self, events: IntArray, others: IntArray) -> BoolArray:
        one, other = (generation_text_of(self._positions.take(pa.array(some))) for some in (events, others))
        same: BoolArray = pc.equal(one, other).to_numpy()
        return same

    def _compare_images(self, before: IntArray, event: IntArray) -> None:
        """Compare the row after each change with the row before the next: by their texts, if those differ by value."""
        images = self._typer.changes.images
        if not self._compares_rows or not len(event) or images["after"].stored:
            return
        rows, rows_before = self._events.rows[event], self._events.rows[before]
        there = self._says_row(rows) & images["after"].there[rows_before]
        rows, rows_before, event = rows[there], rows_before[there], event[there]
        one, other = images["after"], self._typer.image("before")
        differing: IntArray = np.zeros(0, dtype=np.int64)
        for start in range(0, len(rows), _PORTION):
            some = slice(start, start + _PORTION)
            unlike = pc.not_equal(one.at(rows_before[some]), other.at(rows[some])).to_numpy(zero_copy_only=False)
            differing = np.r_[differing, start + np.flatnonzero(unlike)]
        self.findings.agreed += len(rows) - len(differing)
        if len(differing):
            event, rows, rows_before = event[differing], rows[differing], rows_before[differing]
            with self._typer.aside():
                known = self._typer.typed(np.unique(rows_before), "after", self._target, partial=True)
            self._compare_rows(known, rows_before, RowsBefore(self._typer, self._target).of(rows), event)

    def _compare_stored(self, stored: pa.Table, event: IntArray) -> None:
        """Compare stored rows with the rows before the changes that found them, or a share of them."""
        rows = self._events.rows[event]
        there = self._says_row(rows)
        if there.sum() > _SAMPLED and self._verification.share < 1:
            there &= self._is_sampled(event)
        some = np.flatnonzero(there)
        if not len(some):
            return
        numbers = np.arange(len(some))
        known = TypedRows(stored.take(pa.array(some)), numbers, {})
        self._compare_rows(known, numbers, self._rows_before.of(rows[some]), event[some])

    def _says_row(self, rows: IntArray) -> BoolArray:
        """Return which changes say what the row before them was, and not only its key."""
        there: BoolArray = self._typer.image("before").there[rows]
        if "deleted_keys" in self._typer.wire.carries:
            there = there & ~self._typer.changes.are("delete", rows=rows)
        return there

    def _is_sampled(self, event: IntArray) -> BoolArray:
        """Choose the same keys in every run: those whose digest is small."""
        positions = self._positions.take(pa.array(event)).to_pylist()
        limit = int(self._verification.share * (1 << 32))
        return np.fromiter((zlib.crc32(position.encode()) < limit for position in positions), bool, len(positions))

    def _compare_rows(self, known: TypedRows, numbers: IntArray, said: TypedRows, event: IntArray) -> None:
        """Compare pairs of rows, column by column, without those that one of them lacks.

        :param numbers: of each pair the number of the known row among its row indexes.
        :param event: of each pair; its row is the one that ``said`` has.
        """
        rows = self._events.rows[event]
        whole = said.row_indexes[~self._names_key_alone(said)]
        pairs = np.flatnonzero(np.isin(numbers, known.row_indexes) & np.isin(rows, whole))
        of_known = np.searchsorted(known.row_indexes, numbers[pairs])
        of_said = np.searchsorted(said.row_indexes, rows[pairs])
        event, count = event[pairs], len(pairs)
        differs: BoolArray = np.zeros(count, dtype=bool)
        columns: list[str] = [""] * count
        schema = self._timeline.versions[self._target].schema
        proven = {column.id for column in schema.columns_in_rows} - set(self._unproven)
        for name in [one.name for one in self._typer.mapper.columns(self._target) if one.id in proven and not one.mark]:
            if name not in known.rows.column_names:
                continue
            one, other = (
                known.rows.column(name).take(pa.array(of_known)),
                said.rows.column(name).take(pa.array(of_said)),
            )
            unlike = unlike_values(one, other, self._forms, name)
            for typed, indexes in ((known, of_known), (said, of_said)):
                if name in typed.absent:
                    unlike &= ~typed.absent[name][indexes]
            for pair in np.flatnonzero(unlike & ~differs).tolist():
                columns[pair] = name
            differs |= unlike
        self.findings.agreed += count - int(differs.sum())
        self._note(ROW_DIFFERS, event[differs], [name for name in columns if name])

    def _names_key_alone(self, said: TypedRows) -> BoolArray:
        """Return which rows lack what no row lacks: PostgreSQL wrote their REPLICA IDENTITY alone, and NULL elsewhere.

        A zero date that is stored as NULL lacks nothing.
        """
        alone: BoolArray = np.zeros(said.rows.num_rows, dtype=bool)
        columns = self._timeline.versions[self._target].schema.columns_in_rows
        demanded = {one.id for one in columns if not one.nullable and one.type.name not in _ZERO_DATES}
        for name in [one.name for one in self._typer.mapper.columns(self._target) if one.id in demanded]:
            null = said.rows.column(name).is_null().to_numpy()
            alone |= null & ~said.absent[name] if name in said.absent else null
        return alone


def numbered_moments(typer: RowTyper) -> IntArray:
    """Return a number of each change, the same for changes that may have no order."""
    by_clock, rows = typer.wire.order == "clock", typer.changes.rows
    return rows.column("source").to_numpy() if by_clock else moments_of(rows, typer.wire)


def _finds(typer: RowTyper, events: KeyEvents) -> IntArray:
    """Return for each event what it must have found at its key."""
    changes, rows, fills = typer.changes, events.rows, events.fills
    finds: IntArray = np.zeros(len(rows), dtype=np.int64)
    finds[~fills] = _Finds.A_ROW
    finds[fills & changes.are("insert", rows=rows)] = _Finds.NO_ROW
    updates = np.flatnonzero(fills & changes.are("update", rows=rows))
    left = np.maximum(updates - 1, 0)
    own = (updates > 0) & (rows[left] == rows[updates]) & ~fills[left]  # the key that the same change gave up
    moved = own & (events.groups[left] != events.groups[updates])
    finds[updates] = np.where(moved, _Finds.NO_ROW, np.where(own, _Finds.UNKNOWN, _Finds.A_ROW))
    return finds
