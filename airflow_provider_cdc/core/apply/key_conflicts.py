# SPDX-License-Identifier: Apache-2.0
"""Keys that rows of one statement take and leave, where a tool spread the rows over partitions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.row_copies import sources_of
from airflow_provider_cdc.core.apply.row_sets import group_numbers
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.formats.contract import Format
from airflow_provider_cdc.core.model.position_columns import event_of


def taken_beside(
    winners: IntArray, groups: IntArray, where: IntArray, fills: BoolArray, rows: pa.Table, wire: Format
) -> IntArray:
    """Return the winners, with another one for each key that a row took beside the one that left it.

    Such rows are numbered anew in each record (docs/wire/canal.md 5.1), so nothing tells whether the row that took
    the key (1 to 2) or the one that left it (2 to 3) came first; but a key is free before it is taken.

    :param winners: per key the newest event, as the positions have it.
    :param groups: number of each event's key.
    :param where: place of each event's row in ``rows``.
    :param fills: whether the event takes the key; if not, it leaves it.
    """
    leaving = winners[~fills[winners]]
    ops = rows.column("op").take(pa.array(where[leaving])).cast(pa.string())
    leaving = leaving[pc.equal(ops, "update").to_numpy(zero_copy_only=False)]
    if not len(leaving):
        return winners
    wanted: BoolArray = np.zeros(int(groups.max()) + 1, dtype=bool)
    wanted[groups[leaving]] = True
    order = np.flatnonzero(wanted[groups])
    order = order[np.argsort(groups[order], kind="stable")]  # by key, each key's newest last
    last = np.flatnonzero(np.r_[groups[order][1:] != groups[order][:-1], True])
    leaving, before = order[last], order[np.maximum(last - 1, 0)]
    beside = (
        fills[before] & (groups[before] == groups[leaving]) & _of_one_event(rows, where[leaving], where[before], wire)
    )
    chosen: IntArray = np.sort(np.concatenate([np.setdiff1d(winners, leaving[beside]), before[beside]]))
    return chosen


def _of_one_event(rows: pa.Table, some: IntArray, others: IntArray, wire: Format) -> BoolArray:
    """Return which rows belong to one event in the source's log, which does not number them together."""
    both = rows.select(["position", "topic", "partition", "offset"]).take(pa.array(np.concatenate([some, others])))
    events, other_events = np.split(group_numbers([event_of(both.column("position"))]), 2)
    sources, other_sources = np.split(sources_of(both, wire), 2)
    flags: BoolArray = (events == other_events) & (sources != other_sources)
    return flags
