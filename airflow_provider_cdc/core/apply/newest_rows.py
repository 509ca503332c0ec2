# SPDX-License-Identifier: Apache-2.0
"""Find the newest event of each key, by positions or where only a clock orders changes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.apply.clock_conflicts import settle
from airflow_provider_cdc.core.apply.key_conflicts import acquired_in_one_event
from airflow_provider_cdc.core.apply.partial_images import StoredRows
from airflow_provider_cdc.core.apply.record_keys import KeyEvents
from airflow_provider_cdc.core.apply.repeated_rows import KeyedRows, settled_without_repeats, without_stored
from airflow_provider_cdc.core.apply.row_sets import newest
from airflow_provider_cdc.core.apply.row_typing import RowTyper
from airflow_provider_cdc.core.arrays import BoolArray, IntArray


def newest_of_keys(typer: RowTyper, events: KeyEvents, applied: BoolArray, stored_rows: StoredRows) -> IntArray:
    """Return the newest event of each key.

    :param applied: of each row whether an earlier batch applied it.
    :param stored_rows: returns the rows that some keys had before; only what a clock orders may need them.
    :raises DataError: a clock leaves it open.
    """
    if typer.wire.order == "clock":
        return _by_clock(typer, events, applied, stored_rows)
    winners = newest(events.groups)
    if typer.wire.updates_move_keys or not typer.changes.distinct:
        rows = typer.changes.rows
        winners = acquired_in_one_event(winners, events.groups, events.rows, events.fills, rows, typer.wire)
    return winners


def _by_clock(typer: RowTyper, of_keys: KeyEvents, applied: BoolArray, stored_rows: StoredRows) -> IntArray:
    """Return the newest event of each key where only a clock orders them, without those that repeat stored rows."""
    keys, groups, event_rows, fills = of_keys
    events, winners = KeyedRows(groups, event_rows, fills), newest(groups)

    def settled(some: IntArray) -> IntArray:
        mine, numbers = keys.take(pa.array(some)), np.unique(groups[some], return_inverse=True)[1]
        settled_events = settle(typer, mine, newest(numbers), numbers, event_rows[some], fills[some], stored_rows)
        newest_events: IntArray = some[settled_events]
        return newest_events

    # applied rows are only compared with: a key that no new row acquires or releases stays as it is stored
    winners = winners[np.isin(groups[winners], groups[~applied[event_rows]])]
    return without_stored(typer, events, settled_without_repeats(typer, events, winners, settled))
