# SPDX-License-Identifier: Apache-2.0
"""Settle keys that rows of one statement acquire and release, where a tool spread the rows over partitions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.row_copies import sources_of
from airflow_provider_cdc.core.apply.row_sets import group_numbers
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.formats.contract import Format
from airflow_provider_cdc.core.model.position_columns import event_of


def acquired_in_one_event(
    winners: IntArray, groups: IntArray, event_rows: IntArray, fills: BoolArray, rows: pa.Table, wire: Format
) -> IntArray:
    """Return the winners, with another one for each key that one row released and another acquired in one event.

    Each record numbers such rows from the start (docs/wire/canal.md 5.1). So their numbers do not show whether the row
    that acquired the key (1 to 2) or the row that released it (2 to 3) came first. But a key is released before it is
    acquired again.

    :param winners: per key the newest event, as the positions have it.
    :param groups: number of each event's key.
    :param event_rows: per event the index of its row in ``rows``.
    :param fills: per event whether it acquires the key; otherwise it releases the key.
    """
    leaving = winners[~fills[winners]]
    ops = rows.column("op").take(pa.array(event_rows[leaving])).cast(pa.string())
    leaving = leaving[pc.equal(ops, "update").to_numpy(zero_copy_only=False)]
    if not len(leaving):
        return winners
    is_left_key: BoolArray = np.zeros(int(groups.max()) + 1, dtype=bool)
    is_left_key[groups[leaving]] = True
    order = np.flatnonzero(is_left_key[groups])
    order = order[np.argsort(groups[order], kind="stable")]  # by key, each key's newest last
    last = np.flatnonzero(np.r_[groups[order][1:] != groups[order][:-1], True])
    leaving, before = order[last], order[np.maximum(last - 1, 0)]
    of_one_event = (
        fills[before]
        & (groups[before] == groups[leaving])
        & _of_one_event(rows, event_rows[leaving], event_rows[before], wire)
    )
    newest_events: IntArray = np.sort(
        np.concatenate([np.setdiff1d(winners, leaving[of_one_event]), before[of_one_event]])
    )
    return newest_events


def _of_one_event(rows: pa.Table, some: IntArray, others: IntArray, wire: Format) -> BoolArray:
    """Return for each pair of rows whether both belong to one event of the source's log and no number orders them."""
    both = rows.select(["position", "topic", "partition", "offset"]).take(pa.array(np.concatenate([some, others])))
    events, other_events = np.split(group_numbers([event_of(both.column("position"))]), 2)
    sources, other_sources = np.split(sources_of(both, wire), 2)
    flags: BoolArray = (events == other_events) & (sources != other_sources)
    return flags
