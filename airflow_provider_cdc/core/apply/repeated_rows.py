# SPDX-License-Identifier: Apache-2.0
"""Recognise rows that a tool without positions sent again, by source time and images (docs/formats/README.md, Order).

A row that came before is either sent again or a change that was made twice in one second of the source. Where its image
before is not what the key was left with, it was sent again. Otherwise both cases are tried. If they end differently,
and the tool sent the two soon after each other, the row counts. If not, it stays unknown which case it is, and the
table is parked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.clock_conflicts import KeyStates, of_several
from airflow_provider_cdc.core.apply.clock_order import moments_and_partitions, order_unknown
from airflow_provider_cdc.core.apply.merge_plan import ImagesLack
from airflow_provider_cdc.core.apply.ordered_changes import op_numbers
from airflow_provider_cdc.core.apply.rewinding import rewind_needed
from airflow_provider_cdc.core.apply.row_sets import group_numbers
from airflow_provider_cdc.core.apply.row_typing import RowTyper
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.model.clock_position import REPEAT_MS
from airflow_provider_cdc.core.model.position_columns import tool_time_of

# the columns of a change that are needed in addition to those that resolving needs
SENT_COLUMNS = ["source_time", "tool_time", "kafka_time"]
_UNKNOWN = object()  # the state of a key that no event shows
_UNORDERED = object()  # the state of a key within a moment of several partitions


def with_sending(rows: pa.Table) -> pa.Table:
    """Return changes with the columns that reveal repeats.

    ``source`` is the source time. ``sent`` is the later of Kafka's time and the partition's clock in milliseconds.
    ``stale`` says that the tool built the record before that clock, so that it came before. ``doubtful`` says that the
    row may be the repeat of a row from before a boundary (:func:`without_repeats_across`).

    :param rows: with :data:`SENT_COLUMNS`.
    """
    clock = tool_time_of(rows.column("position"))
    built = rows.column("tool_time").cast(pa.int64())
    count = rows.num_rows
    columns = {
        "source": pc.fill_null(rows.column("source_time").cast(pa.int64()), -1),
        "sent": pc.max_element_wise(clock, rows.column("kafka_time").cast(pa.int64())),
        "stale": pc.fill_null(pc.less(built, clock), False),
        "doubtful": pa.chunked_array([pa.repeat(False, count)]),
    }
    rows = rows.drop_columns([name for name in SENT_COLUMNS if name != "source_time"])  # a column may be made of it
    for name, column in columns.items():
        rows = rows.append_column(name, column)
    return rows


def without_repeats_across(rows: pa.Table, behind: BoolArray, table: str) -> pa.Table:
    """Return changes of one name without those behind a boundary that were sent before it and long ago.

    What was sent before the boundary a short while ago is marked as doubtful: it may have been made on both sides.

    :param rows: of those that are ``late`` nothing was known when the others, but for the ``older`` ones, were applied.
    :param behind: which rows stand behind the boundary: the statement that gave the name to the table, emptied it or
        changed its columns.
    :param table: its name, for the error.
    :raises ImagesLack: images have to be compared, and they were left in the change log.
    :raises RewindNeeded: rows were applied that late ones show to be repeats.
    """
    if not behind.any() or behind.all():
        return rows
    source = rows.column("source").to_numpy()
    suspects: IntArray = np.flatnonzero(behind & (source >= 0) & (source <= source[~behind].max()))
    if not len(suspects):
        return rows
    if "before" not in rows.column_names:
        raise ImagesLack
    known: IntArray = np.flatnonzero(~behind & (source >= source[suspects].min()))
    contents = _contents(rows, np.concatenate([known, suspects]))
    sightings = _Sightings(rows, suspects, contents[len(known) :])
    again, doubtful = sightings.verdicts(known, contents[: len(known)])
    older, late = (_flags(rows, name) for name in ("older", "late"))
    if late[known].any():
        punctual = ~late[known]
        before = sightings.verdicts(known[punctual], contents[: len(known)][punctual])
        applied = ((again != before[0]) | (doubtful != before[1])) & ~older
        if applied.any():
            position = pc.min(rows.column("position").filter(pa.array(applied))).as_py()
            raise rewind_needed(table, "rows that repeat others were applied before those", position)
    if doubtful.any():
        marked = pc.or_(rows.column("doubtful"), pa.array(doubtful))
        rows = rows.set_column(rows.schema.get_field_index("doubtful"), "doubtful", marked)
    return rows.filter(pa.array(~again)) if again.any() else rows


def _flags(rows: pa.Table, name: str) -> BoolArray:
    """Return a column of flags, false where there is none."""
    if name not in rows.column_names:
        return np.zeros(rows.num_rows, bool)
    flags: BoolArray = rows.column(name).to_numpy(zero_copy_only=False)
    return flags


class _Sightings:
    """Judge rows behind a boundary that may repeat rows before it.

    :param suspects: indexes of the rows behind it.
    :param contents: of each suspect a number that only the same change has, whenever it was sent.
    """

    def __init__(self, rows: pa.Table, suspects: IntArray, contents: IntArray) -> None:
        self._suspects, self._contents = suspects, contents
        self._sent, self._stale = (rows.column(name).to_numpy(zero_copy_only=False) for name in ("sent", "stale"))

    def verdicts(self, known: IntArray, contents: IntArray) -> tuple[BoolArray, BoolArray]:
        """Return which rows repeat others for certain, and which of them may.

        :param known: indexes of rows before the boundary, ``contents`` their numbers.
        """
        before: dict[int, int] = {}
        for content, time in zip(contents.tolist(), self._sent[known].tolist(), strict=True):
            before[content] = max(time, before.get(content, time))
        again: BoolArray = np.zeros(len(self._sent), bool)
        doubtful: BoolArray = np.zeros(len(self._sent), bool)
        for row, content in zip(self._suspects.tolist(), self._contents.tolist(), strict=True):
            if content in before:
                apart = bool(self._stale[row]) or abs(self._sent[row] - before[content]) > REPEAT_MS
                (again if apart else doubtful)[row] = True
        return again, doubtful


def _contents(rows: pa.Table, row_indexes: IntArray) -> IntArray:
    """Return for each row a number that only the same change has, whenever it was sent."""
    compared = rows.select(["source", "op", "before", "after"]).take(pa.array(row_indexes))
    texts = (compared.column(name).cast(pa.string()) for name in ("op", "before", "after"))
    return group_numbers([compared.column("source"), *texts])


@dataclass(slots=True)
class KeyedRows:
    """Hold rows by the keys that they acquire and release, in the order of positions.

    :param groups: number of each event's key.
    :param event_rows: per event the index of its row in the typer's changes.
    :param fills: per event whether it acquires the key; otherwise it releases the key.
    """

    groups: IntArray
    event_rows: IntArray
    fills: BoolArray


def settled_without_repeats(
    typer: RowTyper, events: KeyedRows, winners: IntArray, settled: Callable[[IntArray], IntArray]
) -> IntArray:
    """Return for each key the newest event that is not a repeat, and no event where only repeats are left.

    :param winners: the newest event of each key that is asked for, as the positions have it.
    :param settled: returns the winners of some events, where several of one moment on several partitions are the last.
    :raises DataError: it is unknown whether a row was sent again, or which row was the last, and it matters.
    """
    moments, partitions = (codes[events.event_rows] for codes in moments_and_partitions(typer.changes.rows))
    contested = np.intersect1d(of_several(events.groups, winners, moments, partitions), events.groups[winners])
    suspects = np.union1d(_came_before(typer, events, winners), contested)
    if not len(suspects):
        return winners
    walk = _Walk(typer, events, moments, partitions)
    order = np.flatnonzero(np.isin(events.groups, suspects))
    of_key: dict[int, list[tuple[int, Any]]] = {}
    for event, content in zip(order.tolist(), _row_contents(typer, events.event_rows[order]), strict=True):
        of_key.setdefault(int(events.groups[event]), []).append((event, (content, bool(events.fills[event]))))

    def counting(once: _Once) -> tuple[int, ...]:
        return tuple(sorted(event for mine in of_key.values() for event in walk.counting_events(mine, once)))

    def ends(counting: tuple[int, ...]) -> IntArray:
        return settled(np.array(counting, dtype=np.int64)) if counting else winners[:0]

    def reached(newest: IntArray) -> dict[int, str | None]:
        return {int(events.groups[event]): walk.states.reached(int(event)) for event in newest}

    once = counting(_WAYS[0])
    newest = ends(once)
    # where all events in doubt and none of them count alike, none is in doubt
    ways = {counting(way) for way in _WAYS[1:]} - {once} if counting(_WAYS[-1]) != once else ()
    if any(reached(ends(way)) != reached(newest) for way in ways):
        raise order_unknown(typer.timeline, "changes that came before, and were made twice or sent again,")
    others = winners[~np.isin(events.groups[winners], suspects)]
    newest_events: IntArray = np.sort(np.concatenate([others, newest]))
    return newest_events


def without_stored(typer: RowTyper, events: KeyedRows, winners: IntArray) -> IntArray:
    """Return the winners that change the stored rows: none that is older, whose key stays as it is stored.

    :raises RewindNeeded: the stored rows went through newer changes of such a key, which count no more.
    """
    older = typer.flags("older")[events.event_rows]
    stays = np.isin(events.groups, events.groups[winners[older[winners]]])
    undone = stays & typer.flags("applied")[events.event_rows] & ~older
    if undone.any():
        position = pc.min(typer.changes.rows.column("position").take(pa.array(events.event_rows[undone]))).as_py()
        raise rewind_needed(str(typer.timeline.last_name), "late rows show that applied ones were repeats", position)
    changing: IntArray = winners[~older[winners]]
    return changing


def keys_in_doubt(rows: pa.Table, events: KeyedRows, winners: IntArray) -> IntArray:
    """Return the keys of which positions and times alone do not show how they end: images may.

    Their last changes are of one moment on several partitions, or the newest may be one that was sent again.

    :param rows: with the columns of :func:`with_sending`, none of them doubtful; images are not needed.
    """
    if not len(winners):
        return winners
    moments, partitions = (codes[events.event_rows] for codes in moments_and_partitions(rows))
    contested = of_several(events.groups, winners, moments, partitions)
    return np.union1d(contested, events.groups[_like_newest(rows, events, winners)[0]])


def _like_newest(rows: pa.Table, events: KeyedRows, winners: IntArray) -> tuple[IntArray, IntArray]:
    """Return the events that are as the newest of their key but for their images, and of each this newest event."""
    groups, event_rows = events.groups, events.event_rows
    newest: IntArray = np.zeros(int(groups.max()) + 1, dtype=np.int64)
    newest[groups[winners]] = winners
    rival = newest[groups]
    source, ops = rows.column("source").to_numpy()[event_rows], op_numbers(rows.column("op"))[0][event_rows]
    alike = (source == source[rival]) & (ops == ops[rival]) & (events.fills == events.fills[rival])
    alike &= np.isin(groups, groups[winners]) & (source >= 0) & (event_rows != event_rows[rival])
    repeats: IntArray = np.flatnonzero(alike)
    return repeats, rival[repeats]


def _came_before(typer: RowTyper, events: KeyedRows, winners: IntArray) -> IntArray:
    """Return the keys whose newest event is a row that came before, or may have."""
    rows, event_rows = typer.changes.rows, events.event_rows
    repeats, rival = _like_newest(rows, events, winners)
    if len(repeats):
        row_indexes = np.concatenate([event_rows[repeats], event_rows[rival]])
        contents = _image_contents(typer, row_indexes)
        repeats = repeats[contents[: len(repeats)] == contents[len(repeats) :]]
    doubtful = rows.column("doubtful").to_numpy(zero_copy_only=False)
    keys: IntArray = np.union1d(events.groups[repeats], events.groups[winners[doubtful[event_rows[winners]]]])
    return keys


def _image_contents(typer: RowTyper, row_indexes: IntArray) -> IntArray:
    compared = typer.changes.to_compare(row_indexes)
    return group_numbers([compared.column("op").cast(pa.string()), compared.column("before"), compared.column("after")])


def _row_contents(typer: RowTyper, row_indexes: IntArray) -> list[tuple[int, int]]:
    source = typer.changes.rows.column("source").to_numpy()[row_indexes]
    source = np.where(source < 0, -1 - row_indexes, source)  # without a source time no row is known to repeat another
    return list(zip(source.tolist(), _image_contents(typer, row_indexes).tolist(), strict=True))


class _Once(NamedTuple):
    """Say whether rows that came before count once where the log does not decide; else they count again.

    :param near: rows sent soon after the equal row.
    :param across: rows behind a boundary that may repeat a row from before it.
    :param apart: rows sent long after the equal row: they were sent again together, or made again.
    """

    near: bool
    across: bool
    apart: bool


_WAYS = tuple(_Once(*flags) for flags in product((True, False), repeat=3))


class _Walk:
    """Walk through one key's events in their order and leave out those that do not count."""

    def __init__(self, typer: RowTyper, events: KeyedRows, moments: IntArray, partitions: IntArray) -> None:
        rows = typer.changes.rows
        self._event_rows, self._versions, self._moments, self._partitions = (
            events.event_rows,
            typer.versions,
            moments,
            partitions,
        )
        self.states = KeyStates(typer, events.event_rows, events.fills)
        self._sent, self._source = (rows.column(name).to_numpy() for name in ("sent", "source"))
        self._stale, self._doubtful = (rows.column(n).to_numpy(zero_copy_only=False) for n in ("stale", "doubtful"))
        others = pc.not_equal(rows.column("op").cast(pa.string()), "update").to_numpy(zero_copy_only=False)
        self._states_before = typer.changes.images["before"].there | others

    def counting_events(self, events: Sequence[tuple[int, Any]], once: _Once) -> list[int]:
        """Return the events that count.

        :param events: each with the content that distinguishes it from others.
        """
        events = self._without_copies(events)
        moment_partitions = {(self._moments[event], self._partitions[event]) for event, _ in events}
        partitions = Counter(moment for moment, _ in moment_partitions)
        state: object = _UNKNOWN
        seen: dict[Any, int] = {}
        counting = []
        newest = -1
        for event, content in events:
            first = seen.setdefault(content, event)
            source = self._source[self._event_rows[event]]
            # an older row may repeat one that is not among the events, and then did not count
            older, newest = event == first and source < newest, max(newest, source)
            alone = partitions[self._moments[event]] == 1
            if not self._counts(event, first, state if alone else _UNORDERED, once):
                continue
            counting.append(event)
            state = self.states.reached(event) if alone and not older else _UNKNOWN
        return counting

    def _without_copies(self, events: Sequence[tuple[int, Any]]) -> list[tuple[int, Any]]:
        """Leave out copies of records: the tool wrote nothing in a millisecond so much later."""
        records: dict[Any, int] = {}  # of equal ones the first that was sent
        for event, content in events:
            known = records.setdefault((self._moments[event], content), event)
            if self._sent[self._event_rows[event]] < self._sent[self._event_rows[known]]:
                records[self._moments[event], content] = event
        originals = []
        for event, content in events:
            copied = self._apart(event, records[self._moments[event], content])
            if not copied or self._doubtful[self._event_rows[event]]:
                originals.append((event, content))
        return originals

    def _apart(self, event: int, first: int) -> bool:
        """Return whether a row was sent so long after an equal one that both are hardly of one second."""
        if event == first:
            return False
        row, before = self._event_rows[event], self._event_rows[first]
        return bool(self._stale[row] or abs(self._sent[row] - self._sent[before]) > REPEAT_MS)

    def _counts(self, event: int, first: int, state: object, once: _Once) -> bool:
        row, before = self._event_rows[event], self._event_rows[first]
        if self._doubtful[row]:
            return not once.across
        if first == event:
            return True
        if state is _UNORDERED or self._versions[row] != self._versions[before]:
            return not (once.apart if self._apart(event, first) else once.near)
        if state is not _UNKNOWN and self._states_before[row] and self.states.left(event) != state:
            return False
        return not (once.apart and self._apart(event, first))
