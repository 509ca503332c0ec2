# SPDX-License-Identifier: Apache-2.0
"""Define what a mode of a stored table has to say: which rows the table has after changes of the source's table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.merge_plan import Emptied, MergeStep
from airflow_provider_cdc.core.apply.partial_images import Completion, StoredRows, key_events
from airflow_provider_cdc.core.apply.record_keys import KeyEvents
from airflow_provider_cdc.core.apply.row_copies import sources_of
from airflow_provider_cdc.core.apply.row_sets import group_numbers
from airflow_provider_cdc.core.apply.row_typing import RowTyper
from airflow_provider_cdc.core.apply.rows_without_key import KeylessRows
from airflow_provider_cdc.core.apply.source_order import moments_of
from airflow_provider_cdc.core.apply.typed_rows import TypedRows
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.config.tables import TableRule
from airflow_provider_cdc.core.shapes.columns import SOURCE_TIME, SourceColumns
from airflow_provider_cdc.core.shapes.mode import ModeColumns


class KeyedRows(NamedTuple):
    """Rows of a table with a key, after some changes.

    :param upserts: full typed rows, at most one per key.
    :param deletes: keys whose row is gone.
    """

    upserts: TypedRows
    deletes: pa.Table


@dataclass(frozen=True)
class NewestEvents:
    """The keys that the changes of one step take and give up.

    :param events: all of them, in source order.
    :param winners: per key the newest event, of those keys that the changes touch.
    :param last: schema version of the step's end.
    :param stored_rows: returns the rows that the source's table had before the step.
    :param applied: of every change whether the stored rows went through it.
    :param every_stored: returns all rows that the stored table had.
    """

    typer: RowTyper
    events: KeyEvents
    winners: IntArray
    last: int
    stored_rows: StoredRows
    applied: BoolArray
    every_stored: StoredRows

    def rows_after(self, takes: IntArray) -> TypedRows:
        """Return the full rows after events that take a key; those that cannot be made are left out and noted.

        :param takes: the events, ascending.
        """
        typer, events, last = self.typer, self.events, self.last
        rows = typer.typed(events.rows[takes], "after", last, partial=typer.wire.partial_images)
        if not rows.absent:
            return rows
        known = key_events(typer, events.keys, events.rows, events.fills)
        applied = self.applied[events.rows]
        completion = Completion(typer, known, events.keys, last, self.stored_rows, applied)
        return completion.completed(rows, events.rows[takes])

    def keys_of(self, some: IntArray) -> pa.Table:
        """Return the keys of events."""
        return self.events.keys.take(pa.array(some))

    def times(self, some: IntArray) -> pa.Array:
        """Return the source's times of events; that of none, -1, is NULL."""
        rows = self.events.rows[some] if len(self.events.rows) else some
        times = self.typer.changes.rows.column("source_time").take(pa.array(rows, mask=some < 0))
        return times.combine_chunks().cast(SOURCE_TIME)

    def passing(self) -> BoolArray:
        """Return after which events the key's row passes the filter, taken for granted of rows that cannot be made."""
        typer, events = self.typer, self.events
        passes: BoolArray = np.ones(typer.changes.rows.num_rows, dtype=bool)
        if typer.mapper.filters:
            with typer.aside():
                rows = typer.typed(np.unique(events.rows[events.fills]), "after", self.last)
            if rows.passes is not None:
                passes[rows.row_indexes] = rows.passes
        of_events: BoolArray = passes[events.rows]
        return of_events

    @cached_property
    def unapplied(self) -> BoolArray:
        """Say which events are the first of their key that the stored rows did not go through, or come after it.

        Of those before it, which are there to compare with, some may be lacking. A row that moved to another key since
        is made again there, where its image lacks what it had before.
        """
        events, rows, fresh = self.events, self.events.rows, self.fresh
        while True:
            flags = self.from_first(fresh)
            moved = events.fills & ~flags & np.isin(rows, rows[flags & ~events.fills])
            if not self.typer.wire.partial_images or not moved.any():
                return flags
            fresh = fresh | moved

    @property
    def fresh(self) -> BoolArray:
        """Say which events the stored rows did not go through."""
        rows = self.events.rows
        flags: BoolArray = ~self.applied[rows] & ~self.typer.flags("older")[rows]
        return flags

    def from_first(self, some: BoolArray) -> BoolArray:
        """Return which events are the first of their key among some, or come after it."""
        order, begins = self.by_key
        number = some[order].astype(np.int64)
        count = np.cumsum(number)
        flags: BoolArray = np.zeros(len(order), dtype=bool)
        flags[order] = count - (count - number)[begins] > 0
        return flags

    @cached_property
    def moments(self) -> tuple[IntArray, BoolArray]:
        """The number of each event's moment, and whether nothing orders it with another of its key then."""
        events, changes, wire = self.events, self.typer.changes, self.typer.wire
        moments = moments_of(changes.rows, wire)[events.rows]
        unordered: BoolArray = np.zeros(len(moments), dtype=bool)
        # a clock gives all one number, and its conflicts are settled
        if wire.order == "clock" or not len(moments) or not (wire.updates_move_keys or not changes.distinct):
            return moments, unordered
        rows = changes.rows.select(["op", "position", "topic", "partition", "offset"]).take(pa.array(events.rows))
        sources = sources_of(rows, wire)
        if sources.min() == sources.max():
            return moments, unordered
        together = np.unique(events.groups * (int(moments.max()) + 1) + moments, return_inverse=True)[1]
        least, most = np.full(int(together.max()) + 1, sources.max()), np.zeros(int(together.max()) + 1, dtype=np.int64)
        np.minimum.at(least, together, sources)
        np.maximum.at(most, together, sources)
        unordered = (least < most)[together]
        return moments, unordered

    @cached_property
    def by_key(self) -> tuple[IntArray, IntArray]:
        """The events by key, each key's oldest first, and of each of these places where its key begins.

        Of one moment, where nothing orders what gave a key up and what took it, the key was given up first.
        """
        events, (moments, unordered) = self.events, self.moments
        order = np.lexsort((np.where(unordered, events.fills, False), moments, events.groups))
        groups = self.events.groups[order]
        is_first = np.r_[True, groups[1:] != groups[:-1]] if len(groups) else np.zeros(0, dtype=bool)
        begins: IntArray = np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))
        return order, begins


def demand_key(mode: ModeColumns, source: SourceColumns) -> None:
    """Refuse a table without a key.

    :raises DataError: ``mode.needs_key``.
    """
    if not source.schema.key:
        raise source.rule_error(
            "mode.needs_key",
            f"mode {mode.name} needs a key: of equal rows without one nothing shows which is there and which is not",
            "take another mode for this table",
        )


def with_values(rows: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Return rows with other values in a column."""
    return rows.set_column(rows.column_names.index(name), rows.schema.field(name), values)


def first_of_each(rows: pa.Table, key: Sequence[str], order: Sequence[tuple[str, str]]) -> pa.Table:
    """Return one row of each key: the first in an order; of several that are first there, always the same one."""
    others = [field.name for field in rows.schema if not pa.types.is_nested(field.type)]
    ranked = rows.take(pc.sort_indices(rows, [*order, *((name, "ascending") for name in others)]))
    numbers = group_numbers([ranked.column(name) for name in key])
    return ranked.take(pa.array(np.sort(np.unique(numbers, return_index=True)[1])))


class TableMode(ModeColumns, Protocol):
    """Say which rows a stored table has."""

    def of(self, rule: TableRule) -> TableMode:
        """Return the mode with the options of a table's rule."""
        ...

    def merged(self, newest: NewestEvents) -> KeyedRows:
        """Return what a step changes in the rows of a table with a key."""
        ...

    def without_key(self, keyless: KeylessRows) -> MergeStep:
        """Return a step of rows without a key."""
        ...

    def of_truncates(self, truncates: Sequence[Emptied], nothing: pa.Table) -> pa.Table:
        """Return the rows that stand for TRUNCATEs and snapshots in a table that keeps its rows then.

        :param nothing: no rows, under the columns of the table.
        """
        ...

    def emptied(self, rows: pa.Table, emptied: Emptied) -> pa.Table:
        """Return what is left of stored rows when the source's table is emptied, or a snapshot states it again."""
        ...

    def expired(self, now: datetime) -> pc.Expression | None:
        """Return the condition of stored rows that maintenance removes, None where all stay."""
        ...

    def rekeyed(self, rows: pa.Table, key: Sequence[str]) -> pa.Table:
        """Return what is left of stored rows when the source's table gets another key.

        :param key: names of its columns; none of a table without one.
        """
        ...
