# SPDX-License-Identifier: Apache-2.0
"""Define what a mode of a stored table has to say: which rows the table has after changes of the source's table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.apply.merge_plan import Emptied, MergeStep, OpenRemovals
from airflow_provider_cdc.core.apply.partial_images import Completion, StoredRows, key_events
from airflow_provider_cdc.core.apply.record_keys import KeyEvents
from airflow_provider_cdc.core.apply.row_typing import RowTyper
from airflow_provider_cdc.core.apply.typed_rows import TypedRows
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.shapes.mode import ModeColumns


class KeyedRows(NamedTuple):
    """Rows of a table with a key, after some changes.

    :param upserts: full typed rows, at most one per key.
    :param deletes: keys whose row is gone.
    """

    upserts: TypedRows
    deletes: pa.Table


@dataclass(frozen=True, slots=True)
class NewestEvents:
    """The keys that the changes of one step take and give up.

    :param events: all of them, in source order.
    :param winners: per key the newest event, of those keys that the changes touch.
    :param last: schema version of the step's end.
    :param stored_rows: returns the rows that the source's table had before the step.
    :param applied: of every change whether the stored rows went through it.
    """

    typer: RowTyper
    events: KeyEvents
    winners: IntArray
    last: int
    stored_rows: StoredRows
    applied: BoolArray

    def rows_after(self, takes: IntArray) -> TypedRows:
        """Return the full rows after events that take a key; those that cannot be made are left out and noted.

        :param takes: the events, ascending, at most one per key.
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

    def sorted_by_key(self) -> tuple[IntArray, IntArray]:
        """Return the events by key, each key's oldest first, and of each of these places where its key begins."""
        order = np.argsort(self.events.groups, kind="stable")
        groups = self.events.groups[order]
        is_first = np.r_[True, groups[1:] != groups[:-1]] if len(groups) else np.zeros(0, dtype=bool)
        begins: IntArray = np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))
        return order, begins


class TableMode(ModeColumns, Protocol):
    """Say which rows a stored table has."""

    def merged(self, newest: NewestEvents) -> KeyedRows:
        """Return what a step changes in the rows of a table with a key."""
        ...

    def without_key(
        self,
        typer: RowTyper,
        row_indexes: IntArray,
        last: int,
        clear: bool,
        later: bool,
        earlier: OpenRemovals | None,
        base_position: str,
    ) -> MergeStep:
        """Return a step of rows without a key, as :func:`of_rows_without_key` does."""
        ...

    def of_truncates(self, truncates: Sequence[Emptied], nothing: pa.Table) -> pa.Table:
        """Return the rows that stand for TRUNCATEs in a table that keeps its rows then.

        :param nothing: no rows, under the columns of the table.
        """
        ...

    def emptied(self, rows: pa.Table, emptied: Emptied) -> pa.Table:
        """Return what is left of stored rows when the source's table is emptied."""
        ...

    def rekeyed(self, rows: pa.Table, key: Sequence[str]) -> pa.Table:
        """Return what is left of stored rows when the source's table gets another key.

        :param key: names of its columns; none of a table without one.
        """
        ...
