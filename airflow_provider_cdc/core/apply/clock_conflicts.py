# SPDX-License-Identifier: Apache-2.0
"""Settle keys that changes of one moment on several partitions acquire and release; the tool writes no positions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.apply.clock_order import moments_and_partitions, order_unknown
from airflow_provider_cdc.core.apply.rewinding import rewind_needed
from airflow_provider_cdc.core.apply.row_sets import group_numbers
from airflow_provider_cdc.core.apply.row_typing import RowTyper
from airflow_provider_cdc.core.arrays import IntArray

_State = str | None  # of a key: its row's image, or None where no row has the key


def settle(
    typer: RowTyper,
    keys: pa.Table,
    winners: IntArray,
    groups: IntArray,
    event_rows: IntArray,
    fills: np.ndarray,
    rows_before: Callable[[pa.Table], pa.Table],
) -> IntArray:
    """Return the winners, with another one for each key whose last changes are of one moment on several partitions.

    The clock does not order such changes, but their images do. Each change takes the key from the state before it to
    the state after it. So the last state is the one that is reached more often than it is left. If there is no such
    state, the key ends as it began.

    :param keys: the key of each event.
    :param winners: per key the newest event, as the positions have it.
    :param groups: number of each event's key.
    :param event_rows: per event the index of its row in the typer's changes.
    :param fills: per event whether it acquires the key; otherwise it releases the key.
    :param rows_before: return the rows that a table of keys had before all of these changes.
    :raises DataError: images do not show how a key ends.
    :raises RewindNeeded: some of a moment's changes came too late for the stored rows.
    """
    mine = typer.changes.rows.select(["position", "topic", "partition"]).take(pa.array(event_rows))
    moments, partitions = moments_and_partitions(mine)
    contested = of_several(groups, winners, moments, partitions)
    if not len(contested):
        return winners
    images, events = KeyStates(typer, event_rows, fills), _by_moment(contested, groups, moments)
    settled = {int(groups[winner]): int(winner) for winner in winners}
    cycles: dict[int, list[list[int]]] = {}
    for key, by_moment in events.items():
        runs = [_newest_version(typer, event_rows, mine) for mine in by_moment.values()]
        # a moment that ends as it began does not show the state: the moment before it does
        final = next((ends for run in reversed(runs) if (ends := images.finals(run, partitions[run]))), None)
        if final is None:
            cycles[key] = runs
        else:
            settled[key] = _reaching(typer, images, runs[-1], final)
    if cycles:
        taken = _taken(typer, keys, cycles, event_rows, rows_before)
        for key, runs in cycles.items():
            states = {images.reached(event) for event in runs[-1]}
            final = sorted(states - {None}, key=str) if key in taken else [None]
            settled[key] = _reaching(typer, images, runs[-1], final)
    newest_events: IntArray = np.sort(np.array(list(settled.values()), dtype=np.int64))
    return newest_events


def _by_moment(contested: IntArray, groups: IntArray, moments: IntArray) -> dict[int, dict[int, list[int]]]:
    """Return the events of contested keys by key and moment."""
    events: dict[int, dict[int, list[int]]] = {int(key): {} for key in contested}
    for event in np.flatnonzero(np.isin(groups, contested)).tolist():
        events[int(groups[event])].setdefault(int(moments[event]), []).append(event)
    return events


def _newest_version(typer: RowTyper, event_rows: IntArray, events: list[int]) -> list[int]:
    """Return those of a moment's events that the newest schema describes; they came after the others."""
    versions = typer.versions[event_rows[events]]
    return [event for event, version in zip(events, versions, strict=True) if version == versions.max()]


def of_several(groups: IntArray, winners: IntArray, moments: IntArray, partitions: IntArray) -> IntArray:
    """Return the keys whose events of the last moment are on several partitions.

    :param winners: per key the newest event.
    """
    last: IntArray = np.zeros(int(groups.max()) + 1, dtype=np.int64)
    last[groups[winners]] = moments[winners]
    together = np.flatnonzero(moments == last[groups])
    lowest = np.full(len(last), np.iinfo(np.int64).max)
    highest = np.full(len(last), -1)
    np.minimum.at(lowest, groups[together], partitions[together])
    np.maximum.at(highest, groups[together], partitions[together])
    contested: IntArray = np.flatnonzero(lowest < highest)
    return contested


class KeyStates:
    """Read the states of keys before and after events."""

    def __init__(self, typer: RowTyper, event_rows: IntArray, fills: np.ndarray) -> None:
        self._typer, self._event_rows, self._fills = typer, event_rows, fills

    def reached(self, event: int) -> _State:
        """Return the state after an event."""
        return self._image(event) if self._fills[event] else None

    def left(self, event: int) -> _State:
        """Return the state before an event."""
        return None if self._fills[event] else self._image(event)

    def finals(self, events: list[int], partitions: IntArray) -> list[_State]:
        """Return the states that a moment's events may leave their key in.

        Several states mean that the images do not decide; none means that nothing changes. Events of one partition are
        in order. Of events on several partitions it is the state that is reached more often than it is left.

        :param partitions: of each event.
        """
        if (partitions == partitions[0]).all():
            return [self.reached(events[-1])]
        left = Counter(map(self.left, events))
        return list((Counter(map(self.reached, events)) - left).elements())

    def not_taken_back(self, some: list[int], events: list[int]) -> list[int]:
        """Return those of some events whose change takes the key in no other event."""
        takes = {int(self._event_rows[event]) for event in events if self._fills[event]}
        return [event for event in some if int(self._event_rows[event]) not in takes]

    def _image(self, event: int) -> str:
        """Return an image as a text that is the same for equal images; formats differ in their spaces and order."""
        images = self._typer.image("after" if self._fills[event] else "before")
        image = images.at(self._event_rows[[event]])[0].as_py()
        return repr(sorted(json.loads(image, parse_float=str, parse_int=str).items()))


def _reaching(typer: RowTyper, images: KeyStates, events: list[int], final: list[_State]) -> int:
    """Return the last event that leads to the final state; of a key that is free then, one that takes it no more."""
    reaching = [event for event in events if len(final) == 1 and images.reached(event) == final[0]]
    if final == [None]:
        reaching = images.not_taken_back(reaching, events) or reaching
    if not reaching:
        raise order_unknown(typer.timeline, "changes of one key on several partitions")
    return reaching[-1]


def _taken(
    typer: RowTyper,
    keys: pa.Table,
    cycles: dict[int, list[list[int]]],
    event_rows: IntArray,
    rows_before: Callable[[pa.Table], pa.Table],
) -> set[int]:
    """Return which of these keys the stored rows have."""
    if typer.mapper.filters:
        raise order_unknown(typer.timeline, "changes of one key, whose row a filter may leave out,")
    events = [event for runs in cycles.values() for run in runs for event in run]
    positions = typer.changes.rows.column("position").take(pa.array(event_rows[events]))
    if typer.flags("applied")[event_rows[events]].any():
        what = "changes of keys came later than others of their moment"
        raise rewind_needed(str(typer.timeline.last_name), what, min(positions.to_pylist()))
    asked = keys.take(pa.array([runs[0][0] for runs in cycles.values()]))
    rows = rows_before(asked)
    both = [
        pa.chunked_array([*asked.column(name).chunks, *rows.column(name).chunks], asked.schema.field(name).type)
        for name in keys.column_names
    ]
    numbers = group_numbers(both)
    there = np.isin(numbers[: len(cycles)], numbers[len(cycles) :])
    return {key for key, taken in zip(cycles, there, strict=True) if taken}
