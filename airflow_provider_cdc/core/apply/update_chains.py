# SPDX-License-Identifier: Apache-2.0
"""Which change of a row came before which, by the keys that its row had."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airflow_provider_cdc.core.arrays import BoolArray, IntArray


@dataclass(slots=True)
class KeyEvents:
    """Every taking and leaving of a key, in source order; of one row the key it leaves stands before the one it takes.

    :param keys: number of the key, the same for equal keys.
    :param places: number of the row, rising.
    :param fills: whether the row takes the key, else leaves it.
    :param updates: whether the row is an update.
    :param moments: number of the event in the source's log; rows of one event share it. Without positions: number of
        the time by the tool's clock.
    :param sources: number of the partition or record that the row came from: in it the order of events is known.
    :param exact: whether the order of events of one moment and several sources is known, or does not matter.
    """

    keys: IntArray
    places: IntArray
    fills: BoolArray
    updates: BoolArray
    moments: IntArray
    sources: IntArray
    exact: bool

    def __len__(self) -> int:
        return len(self.places)


class Chains:
    """Each event as a node that knows its predecessor: where an update's row stood before.

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
            self._predecessors[rows[self._beside()[left]]] = self.unknown
        self.begins = self.nearest(events.updates, np.zeros(len(events), bool))

    def _left(self, rows: IntArray) -> IntArray:
        """Return for each update the event that names the key its row had before: its own where it keeps its key."""
        leaves = np.flatnonzero(~self._events.fills & self._events.updates)
        if not len(leaves):
            return rows
        places = self._events.places
        found = leaves[np.minimum(np.searchsorted(places[leaves], places[rows]), len(leaves) - 1)]
        left: IntArray = np.where(places[found] == places[rows], found, rows)
        return left

    def _before(self, rows: IntArray, left: IntArray) -> IntArray:
        """Return the newest event of another row on the key that each row had before, -1 where there is none."""
        events = self._events
        order = self._by_key()
        same = events.keys[order][1:] == events.keys[order][:-1]
        previous = np.full(len(events), -1)
        previous[order[1:][same]] = order[:-1][same]
        # leaving and taking one key again is one step
        own = np.flatnonzero((previous >= 0) & (events.places[previous] == events.places))
        previous[own] = previous[previous[own]]
        before: IntArray = previous[left]
        return before

    def _by_key(self) -> IntArray:
        """Return the events by key, each key's in their order.

        Tools that spread the rows of one statement over records number them anew in each. Of such rows one leaves a key
        before another takes it.
        """
        events = self._events
        spread = events.fills & self._beside()
        moment = np.cumsum(np.r_[False, events.moments[1:] != events.moments[:-1]])
        order: IntArray = np.lexsort((np.arange(len(events)), spread, moment, events.keys))
        return order

    def _beside(self) -> BoolArray:
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
        kept = events.fills & events.updates & ~self._moved & (self.begins == nodes[events.keys])
        # an update's leaving stands right before its taking
        kept[:-1] |= (events.places[:-1] == events.places[1:]) & (events.keys[:-1] == events.keys[1:]) & kept[1:]
        return not bool((applied & (nodes[events.keys] >= 0) & ~kept).any())
