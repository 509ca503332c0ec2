# SPDX-License-Identifier: Apache-2.0
"""Find the change that came before each change of a row, by the keys that the row had."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airflow_provider_cdc.core.arrays import BoolArray, IntArray


@dataclass(slots=True)
class KeyEvents:
    """Hold every acquiring and releasing of a key in source order; of one row the releasing comes first.

    :param keys: number of the key, the same for equal keys.
    :param row_indexes: index of the row, ascending.
    :param fills: whether the row acquires the key; otherwise it releases the key.
    :param updates: whether the row is an update.
    :param moments: number of the event in the source's log; rows of one event share it. Without positions: number of
        the time by the tool's clock.
    :param sources: number of the partition or record that the row came from; in one of them the order is known.
    :param exact: whether the order of events of one moment and several sources is known, or does not matter.
    """

    keys: IntArray
    row_indexes: IntArray
    fills: BoolArray
    updates: BoolArray
    moments: IntArray
    sources: IntArray
    exact: bool

    def __len__(self) -> int:
        return len(self.row_indexes)


class Chains:
    """Link each event to its predecessor: the event that left the row as an update met it.

    Nodes are the events, then :attr:`unknown`, then a node for each stored row that a chain begins at.

    :ivar unknown: the node of rows that were not there, deleted or moved away, or that nothing tells apart.
    :ivar stored: of each stored row an event that names its key; the row's node is ``unknown + 1 +`` its index.
    """

    def __init__(self, events: KeyEvents) -> None:
        self._events = events
        self.unknown = len(events)
        rows = np.flatnonzero(events.fills & events.updates)
        left = self._left(rows)
        self._moved: BoolArray = np.zeros(len(events), bool)
        self._moved[rows] = events.keys[left] != events.keys[rows]
        before = self._before(rows, left)
        first = before < 0
        keys, self.stored = np.unique(events.keys[left[first]], return_index=True)
        self.stored = left[first][self.stored]
        self._predecessors: IntArray = np.arange(self.unknown + 1 + len(keys))
        self._predecessors[rows] = np.where(events.fills[before], before, self.unknown)
        self._predecessors[rows[first]] = self.unknown + 1 + np.searchsorted(keys, events.keys[left[first]])
        if not events.exact:
            self._predecessors[rows[self._of_several_sources()[left]]] = self.unknown
        self.begins = self.nearest(events.updates, np.zeros(len(events), bool))

    def _left(self, rows: IntArray) -> IntArray:
        """Return for each update the event that names the key its row had before: its own where it keeps its key."""
        leaves = np.flatnonzero(~self._events.fills & self._events.updates)
        if not len(leaves):
            return rows
        row_indexes = self._events.row_indexes
        candidates = leaves[np.minimum(np.searchsorted(row_indexes[leaves], row_indexes[rows]), len(leaves) - 1)]
        left: IntArray = np.where(row_indexes[candidates] == row_indexes[rows], candidates, rows)
        return left

    def _before(self, rows: IntArray, left: IntArray) -> IntArray:
        """Return the newest event of another row on the key that each row had before, -1 where there is none."""
        events = self._events
        order = self._by_key()
        same = events.keys[order][1:] == events.keys[order][:-1]
        previous = np.full(len(events), -1)
        previous[order[1:][same]] = order[:-1][same]
        # releasing and acquiring one key in one row is one step
        own = np.flatnonzero((previous >= 0) & (events.row_indexes[previous] == events.row_indexes))
        previous[own] = previous[previous[own]]
        before: IntArray = previous[left]
        return before

    def _by_key(self) -> IntArray:
        """Return the events by key, each key's in their order.

        Tools that spread the rows of one statement over records number them from the start in each record. Of such rows
        one releases a key before another acquires it.
        """
        events = self._events
        spread = events.fills & self._of_several_sources()
        moment = np.cumsum(np.r_[False, events.moments[1:] != events.moments[:-1]])
        order: IntArray = np.lexsort((np.arange(len(events)), spread, moment, events.keys))
        return order

    def _of_several_sources(self) -> BoolArray:
        """Return which events share key and moment with one of another source."""
        events = self._events
        flags: BoolArray = np.zeros(len(events), bool)
        if not len(events) or (events.sources == events.sources[0]).all():
            return flags
        order = np.lexsort((events.sources, events.moments, events.keys))
        key, moment, source = (some[order] for some in (events.keys, events.moments, events.sources))
        begins = np.flatnonzero(np.r_[True, (key[1:] != key[:-1]) | (moment[1:] != moment[:-1])])
        ends = np.r_[begins[1:], len(order)]
        flags[order] = np.repeat(source[begins] != source[ends - 1], ends - begins)
        return flags

    def nearest(self, absent: BoolArray, broken: BoolArray) -> IntArray:
        """Return for each event the node that its value comes from: the first along its chain that has one.

        :param absent: of each event, whether its row lacks the value.
        :param broken: of each event, whether nothing can be known of its row.
        """
        jumps = np.arange(len(self._predecessors))
        chained = np.flatnonzero(absent & self._events.fills & self._events.updates)
        jumps[chained] = self._predecessors[chained]
        jumps[np.flatnonzero(broken)] = self.unknown
        while True:
            further = jumps[jumps]
            if np.array_equal(further, jumps):
                return jumps[: self.unknown]
            jumps = further

    def stands_as_before(self, stored: IntArray, applied: BoolArray) -> bool:
        """Return whether stored rows still are the ones that chains begin at, although later changes were applied.

        An applied update that kept its key changed only columns that it has itself, and it stands in the same chain.

        :param stored: indexes into :attr:`stored`.
        :param applied: of each event, whether the stored rows went through it.
        """
        events = self._events
        nodes = np.full(int(events.keys.max(initial=0)) + 1, -1)
        nodes[events.keys[self.stored[stored]]] = self.unknown + 1 + stored
        keeps_key = events.fills & events.updates & ~self._moved & (self.begins == nodes[events.keys])
        # an update's releasing comes right before its acquiring
        keeps_key[:-1] |= (
            (events.row_indexes[:-1] == events.row_indexes[1:]) & (events.keys[:-1] == events.keys[1:]) & keeps_key[1:]
        )
        return not bool((applied & (nodes[events.keys] >= 0) & ~keeps_key).any())
