# SPDX-License-Identifier: Apache-2.0
"""Settle keys that rows of one statement acquire and release, where a tool spread the rows over partitions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.apply.row_copies import sources_of
from airflow_provider_cdc.core.apply.row_sets import group_numbers
from airflow_provider_cdc.core.apply.source_order import of_snapshots
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.formats.contract import Format
from airflow_provider_cdc.core.model.position_columns import event_of


def acquired_in_one_event(
    winners: IntArray, groups: IntArray, event_rows: IntArray, fills: BoolArray, rows: pa.Table, wire: Format
) -> IntArray:
    """Return the winners, with another one for each key that one row released and another acquired at one time.

    A key is released before it is acquired again, where nothing shows the order: of an update that moves a key, in a
    record that numbers its rows from the start (docs/wire/canal.md 5.1), the number does not show whether the row that
    acquired the key (1 to 2) or the row that released it (2 to 3) came first. Nor do offsets, where a key's delete and
    insert have one position and lie on two partitions.

    :param winners: per key the newest event, as the positions have it.
    :param groups: number of each event's key.
    :param event_rows: per event the index of its row in ``rows``.
    :param fills: per event whether it acquires the key; otherwise it releases the key.
    """
    leaving = winners[~fills[winners]]
    if not len(leaving):
        return winners
    is_left_key: BoolArray = np.zeros(int(groups.max()) + 1, dtype=bool)
    is_left_key[groups[leaving]] = True
    order = np.flatnonzero(is_left_key[groups])
    order = order[np.argsort(groups[order], kind="stable")]  # by key, each key's newest last
    last = np.flatnonzero(np.r_[groups[order][1:] != groups[order][:-1], True])
    leaving, before = order[last], order[np.maximum(last - 1, 0)]
    pairs = fills[before] & (groups[before] == groups[leaving])
    leaving, before = leaving[pairs], before[pairs]
    of_one_event = _unordered(rows, event_rows[leaving], event_rows[before], wire)
    newest_events: IntArray = np.sort(
        np.concatenate([np.setdiff1d(winners, leaving[of_one_event]), before[of_one_event]])
    )
    return newest_events


def _unordered(rows: pa.Table, releasing: IntArray, acquiring: IntArray, wire: Format) -> BoolArray:
    """Return for each pair of rows whether nothing orders them: rows of a snapshot stand before what is streamed."""
    names = ["position", "op", "topic", "partition", "offset"]
    both = rows.select(names).take(pa.array(np.concatenate([releasing, acquiring])))
    events = event_of(both.column("position")) if wire.updates_move_keys else both.column("position")
    (one, other), (source, other_source) = (
        np.split(numbers, 2) for numbers in (group_numbers([events]), sources_of(both, wire))
    )
    streamed = ~of_snapshots(both)[len(releasing) :]
    flags: BoolArray = (one == other) & (source != other_source) & streamed
    return flags
