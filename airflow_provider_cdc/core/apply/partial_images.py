# SPDX-License-Identifier: Apache-2.0
"""Partial images: what an update's image lacks did not change, so it is taken from the row as it was before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.clock_order import moments_and_partitions
from airflow_provider_cdc.core.apply.row_copies import sources_of
from airflow_provider_cdc.core.apply.row_sets import group_numbers
from airflow_provider_cdc.core.apply.row_typing import ABSENT, RowTyper, TypedRows
from airflow_provider_cdc.core.apply.update_chains import Chains, KeyEvents
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.position_columns import event_of

UNKNOWN = "row_unknown"  # an update lacks columns, and the row it changed is not there or cannot be told
# gives stored rows that have these keys, maybe among others, under the schema that the keys belong to
StoredRows = Callable[[pa.Table], pa.Table]


class RewindNeeded(DataError):
    """Changes arrived late, and the stored rows no longer are those that they changed.

    :ivar position: the table has to go back behind it.
    """

    position = ""


def rewind_needed(table: str, what: str, position: str) -> RewindNeeded:
    """Return the error that lets a table go back behind a position.

    :param what: the changes that came late.
    """
    error = RewindNeeded(
        "apply.rewind_needed",
        what,
        where={"table": table},
        hint="the table goes back to before them and is resolved again",
    )
    error.position = position
    return error


def laid_over(typer: RowTyper, after: TypedRows, before: TypedRows) -> TypedRows:
    """Return rows whose images after may lack columns: those are as they were before.

    :param before: rows before the updates that have them; both have the same columns, maybe the key's only.
    """
    if not after.absent:
        return after
    places = np.minimum(np.searchsorted(before.places, after.places), max(len(before.places) - 1, 0))
    told: BoolArray = before.places[places] == after.places if len(before.places) else np.zeros(len(after.places), bool)
    rows = after.rows
    good: BoolArray = np.ones(len(after.places), bool)
    for name, absent in after.absent.items():
        for place in after.places[absent & ~told & good]:
            typer.fail(int(place), name, ABSENT)
        good &= ~absent | told
        if len(before.places):
            column = pc.if_else(pa.array(absent & told), before.rows.column(name).take(pa.array(places)), rows[name])
            rows = rows.set_column(rows.column_names.index(name), rows.schema.field(name), column)
    return TypedRows(rows.filter(pa.array(good)), after.places[good], {})


def key_events(typer: RowTyper, keys: pa.Table, places: IntArray, fills: BoolArray) -> KeyEvents:
    """Return the takings and leavings of keys with what tells their order.

    :param keys: one key each.
    """
    exact = typer.wire.order == "exact"
    chosen = typer.changes.rows.select(["op", "position", "topic", "partition", "offset"]).take(pa.array(places))
    if exact:
        moments = group_numbers([event_of(chosen.column("position"))])
        sources = sources_of(chosen, typer.wire)
    else:
        moments, sources = moments_and_partitions(chosen)
    updates = pc.equal(chosen.column("op").cast(pa.string()), "update").to_numpy(zero_copy_only=False)
    return KeyEvents(group_numbers(keys.columns), places, fills, updates, moments, sources, exact)


class Completion:
    """Completes the newest rows of their keys.

    :param typer: types further images of the chains.
    :param keys: one key for each event.
    :param target: schema version of the rows.
    :param stored: gives the stored rows.
    :param applied: of each event, whether the stored rows went through it already.
    """

    def __init__(
        self, typer: RowTyper, events: KeyEvents, keys: pa.Table, target: int, stored: StoredRows, applied: BoolArray
    ) -> None:
        self._typer, self._events, self._keys = typer, events, keys
        self._target, self._stored, self._applied = target, stored, applied
        self._chains = Chains(events)
        self._takings = np.flatnonzero(events.fills)  # of each row that takes a key the event, rows rising

    def completed(self, newest: TypedRows, tried: IntArray) -> pa.Table:
        """Return these rows with every column; those that cannot be completed fail.

        :param newest: rows that took their keys last, which may lack columns.
        :param tried: their places and those of the ones that failed.
        """
        winners = self._event_of(newest.places)
        rows = newest.rows
        for name in self._keys.column_names:  # the key is known, whatever the image after lacks
            column = self._keys.column(name).take(pa.array(winners))
            rows = rows.set_column(rows.column_names.index(name), rows.schema.field(name), column)
        lacking = {name: mask for name, mask in newest.absent.items() if name not in self._keys.column_names}
        if not lacking:
            return rows
        rest = self._rest(winners[np.logical_or.reduce(list(lacking.values()))], tried)
        known = pa.concat_tables([rows, rest.rows])
        row_of: IntArray = np.full(len(self._events), -1)
        row_of[winners] = np.arange(len(winners))
        row_of[self._event_of(rest.places)] = len(winners) + np.arange(len(rest.places))
        nodes = self._nodes(lacking, newest, rest, row_of, winners)
        stored, stored_row = self._stored_rows(list(nodes.values()))
        # of each node the row in ``known`` and behind it ``stored``, -1 for none
        source: IntArray = np.concatenate([row_of, [-1], np.where(stored_row < 0, -1, len(known) + stored_row)])
        good: BoolArray = np.ones(len(winners), bool)
        for name, wanted in nodes.items():
            found = source[wanted]
            for place in newest.places[good & (found < 0)]:
                self._typer.fail(int(place), name, UNKNOWN)
            good &= found >= 0
            values = pa.chunked_array([*known.column(name).chunks, *stored.column(name).chunks])
            column = values.take(pa.array(np.maximum(found, 0))) if len(values) else rows.column(name)
            rows = rows.set_column(rows.column_names.index(name), rows.schema.field(name), column)
        return rows if good.all() else rows.filter(pa.array(good))

    def _event_of(self, places: IntArray) -> IntArray:
        events: IntArray = self._takings[np.searchsorted(self._events.places[self._takings], places)]
        return events

    def _rest(self, lacking: IntArray, tried: IntArray) -> TypedRows:
        """Type the other rows in the chains of those that lack columns."""
        begins = self._chains.begins
        chained = np.isin(begins[self._takings], begins[lacking])
        places = np.setdiff1d(self._events.places[self._takings[chained]], tried)
        return self._typer.typed(places, "after", self._target, partial=True)

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
                    absent[self._event_of(typed.places)] = typed.absent[name]
            nodes[name] = self._chains.nearest(absent, broken)[winners]
        return nodes

    def _stored_rows(self, nodes: list[IntArray]) -> tuple[pa.Table, IntArray]:
        """Return the stored rows that are wanted, and of each stored row of the chains its place there, -1 for none.

        :raises RewindNeeded: they are no longer the rows that the chains begin at.
        """
        chains = self._chains
        places: IntArray = np.full(len(chains.stored), -1)
        wanted = np.unique(np.concatenate(nodes)) - chains.unknown - 1
        wanted = wanted[wanted >= 0]
        empty = self._typer.mapper.rows({}, 0, self._target, self._target)
        if not len(wanted):
            return empty, places
        if not chains.stands_as_before(wanted, self._applied):
            what = "updates that leave out columns arrived late, after their rows moved, went or came anew"
            position = self._typer.changes.rows.column("position")[int(self._events.places[0])].as_py()
            raise rewind_needed(str(self._typer.timeline.last_name), what, position)
        keys = self._keys.take(pa.array(chains.stored[wanted]))
        rows = self._stored(keys)
        both = [
            pa.chunked_array([*keys.column(name).chunks, *rows.column(name).chunks], keys.schema.field(name).type)
            for name in keys.column_names
        ]
        groups = group_numbers(both)
        row_of: IntArray = np.full(int(groups.max(initial=0)) + 1, -1)
        row_of[groups[len(wanted) :]] = np.arange(rows.num_rows)
        places[wanted] = row_of[groups[: len(wanted)]]
        return rows, places
