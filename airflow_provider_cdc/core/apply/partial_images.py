# SPDX-License-Identifier: Apache-2.0
"""Complete partial images: what an update's image lacks did not change, so take it from the row before the update."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.clock_order import moments_and_partitions
from airflow_provider_cdc.core.apply.rewinding import rewind_needed
from airflow_provider_cdc.core.apply.row_copies import sources_of
from airflow_provider_cdc.core.apply.row_sets import group_numbers, numbers_among
from airflow_provider_cdc.core.apply.row_typing import ABSENT, RowTyper
from airflow_provider_cdc.core.apply.typed_rows import TypedRows
from airflow_provider_cdc.core.apply.update_chains import Chains, KeyEvents
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.model.position_columns import event_of

UNKNOWN = "row_unknown"  # an update lacks columns, and the row that it changed is not there or cannot be identified
FITTED = "fitted"  # flag of rows that did not fit when the stored rows were made, and were replayed since
# returns stored rows that have these keys, maybe among others, under the schema that the keys belong to
StoredRows = Callable[[pa.Table], pa.Table]


def laid_over(typer: RowTyper, after: TypedRows, before: TypedRows) -> TypedRows:
    """Return rows with the columns that their images after lack taken from the images before.

    :param before: rows before the updates that have them; both have the same columns, maybe the key's only.
    """
    if not after.absent:
        return after
    before_indexes = np.minimum(
        np.searchsorted(before.row_indexes, after.row_indexes), max(len(before.row_indexes) - 1, 0)
    )
    has_before: BoolArray = (
        before.row_indexes[before_indexes] == after.row_indexes
        if len(before.row_indexes)
        else np.zeros(len(after.row_indexes), bool)
    )
    rows = after.rows
    good: BoolArray = np.ones(len(after.row_indexes), bool)
    for name, absent in after.absent.items():
        for row_index in after.row_indexes[absent & ~has_before & good]:
            typer.fail(int(row_index), name, ABSENT)
        good &= ~absent | has_before
        if len(before.row_indexes):
            column = pc.if_else(
                pa.array(absent & has_before), before.rows.column(name).take(pa.array(before_indexes)), rows[name]
            )
            rows = rows.set_column(rows.column_names.index(name), rows.schema.field(name), column)
    return TypedRows(rows.filter(pa.array(good)), after.row_indexes[good], {})


def key_events(typer: RowTyper, keys: pa.Table, row_indexes: IntArray, fills: BoolArray) -> KeyEvents:
    """Return the acquiring and releasing of keys with what decides their order.

    :param keys: one key for each event.
    """
    exact = typer.wire.order == "exact"
    rows = typer.changes.rows.select(["op", "position", "topic", "partition", "offset"]).take(pa.array(row_indexes))
    if exact:
        moments = group_numbers([event_of(rows.column("position"))])
        sources = sources_of(rows, typer.wire)
    else:
        moments, sources = moments_and_partitions(rows)
    updates = pc.equal(rows.column("op").cast(pa.string()), "update").to_numpy(zero_copy_only=False)
    return KeyEvents(group_numbers(keys.columns), row_indexes, fills, updates, moments, sources, exact)


class Completion:
    """Complete the newest rows of their keys.

    :param typer: type further images of the chains.
    :param keys: one key for each event.
    :param target: schema version of the rows.
    :param stored: return the stored rows.
    :param applied: of each event, whether the stored rows went through it already.
    """

    def __init__(
        self, typer: RowTyper, events: KeyEvents, keys: pa.Table, target: int, stored: StoredRows, applied: BoolArray
    ) -> None:
        self._typer, self._events, self._keys = typer, events, keys
        self._target, self._stored, self._applied = target, stored, applied
        self._chains = Chains(events)
        dropped = {column.id for column in typer.timeline.versions[target].schema.columns if column.dropped}
        self._dropped = {column.name for column in typer.mapper.columns(target) if column.id in dropped}
        self._takings = np.flatnonzero(events.fills)  # of each row that takes a key the event, rows rising

    def completed(self, newest: TypedRows, tried: IntArray) -> TypedRows:
        """Return these rows with every column; those that cannot be completed fail.

        :param newest: rows that acquired their keys, which may lack columns.
        :param tried: their row indexes and those of the rows that failed.
        """
        winners = self._event_of(newest.row_indexes)
        rows = newest.rows
        for name in self._keys.column_names:  # the key is known, whatever the image after lacks
            column = self._keys.column(name).take(pa.array(winners))
            rows = rows.set_column(rows.column_names.index(name), rows.schema.field(name), column)
        lacking = {name: mask for name, mask in newest.absent.items() if name not in self._keys.column_names}
        if not lacking:
            return TypedRows(rows, newest.row_indexes, {})
        rest = self._rest(winners[np.logical_or.reduce(list(lacking.values()))], tried)
        known = pa.concat_tables([rows, rest.rows])
        row_of: IntArray = np.full(len(self._events), -1)
        row_of[winners] = np.arange(len(winners))
        row_of[self._event_of(rest.row_indexes)] = len(winners) + np.arange(len(rest.row_indexes))
        nodes = self._nodes(lacking, newest, rest, row_of, winners)
        stored, stored_row = self._stored_rows(list(nodes.values()))
        # of each node the row in ``known`` and behind it ``stored``, -1 for none
        source: IntArray = np.concatenate([row_of, [-1], np.where(stored_row < 0, -1, len(known) + stored_row)])
        good: BoolArray = np.ones(len(winners), bool)
        for name, value_nodes in nodes.items():
            value_rows = source[value_nodes]
            unknown: BoolArray = value_rows < 0
            if name not in self._dropped:
                for row_index in newest.row_indexes[good & unknown]:
                    self._typer.fail(int(row_index), name, UNKNOWN)
                good &= ~unknown
            values = pa.chunked_array([*known.column(name).chunks, *stored.column(name).chunks])
            # of a column that only the target has, a row that is not there had no value
            column = values.take(pa.array(value_rows, mask=unknown)) if len(values) else rows.column(name)
            rows = rows.set_column(rows.column_names.index(name), rows.schema.field(name), column)
        return TypedRows(rows, newest.row_indexes, {}).only(good)

    def _event_of(self, row_indexes: IntArray) -> IntArray:
        events: IntArray = self._takings[np.searchsorted(self._events.row_indexes[self._takings], row_indexes)]
        return events

    def _rest(self, lacking: IntArray, tried: IntArray) -> TypedRows:
        """Type the other rows in the chains of those that lack columns."""
        begins = self._chains.begins
        chained = np.isin(begins[self._takings], begins[lacking])
        row_indexes = np.setdiff1d(self._events.row_indexes[self._takings[chained]], tried)
        return self._typer.typed(row_indexes, "after", self._target, partial=True)

    def _nodes(
        self, lacking: dict[str, BoolArray], newest: TypedRows, rest: TypedRows, row_of: IntArray, winners: IntArray
    ) -> dict[str, IntArray]:
        """Return by column the node that each winner's value comes from."""
        broken = self._events.fills & (row_of < 0)  # not typed: it failed, or nothing of its chain is wanted
        nodes = {}
        for name in lacking:
            absent: BoolArray = np.zeros(len(self._events), bool)
            for typed in (newest, rest):
                if name in typed.absent:
                    absent[self._event_of(typed.row_indexes)] = typed.absent[name]
            nodes[name] = self._chains.nearest(absent, broken)[winners]
        return nodes

    def _stored_rows(self, nodes: list[IntArray]) -> tuple[pa.Table, IntArray]:
        """Return the stored rows that are needed, and for each stored row of the chains its index there, -1 for none.

        :raises RewindNeeded: they are no longer the rows that the chains begin at.
        """
        chains = self._chains
        stored_row: IntArray = np.full(len(chains.stored), -1)
        needed = np.unique(np.concatenate(nodes)) - chains.unknown - 1
        needed = needed[needed >= 0]
        empty = self._typer.mapper.nothing(self._target)
        if not len(needed):
            return empty, stored_row
        # what came before such a row in its batch was left out with it
        fitted = self._typer.flags(FITTED)[self._events.row_indexes]
        lacking = (fitted & np.isin(chains.begins, chains.unknown + 1 + needed)).any()
        if lacking or not chains.stands_as_before(needed, self._applied):
            what = "updates that leave out columns come late: their rows moved, went, came again or did not fit since"
            position = self._typer.changes.rows.column("position")[int(self._events.row_indexes[0])].as_py()
            raise rewind_needed(str(self._typer.timeline.last_name), what, position)
        keys = self._keys.take(pa.array(chains.stored[needed]))
        rows = self._stored(keys)
        stored_row[needed] = numbers_among(keys, rows.select(keys.column_names))
        return rows, stored_row
