# SPDX-License-Identifier: Apache-2.0
"""Divide the keys of one table into buckets, so that several tasks find the newest change of each key.

The rows of a table without key are divided by their digests: a change adds and removes whole rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply import record_keys
from airflow_provider_cdc.core.apply.alike_rows import BUILT, each_alike
from airflow_provider_cdc.core.apply.key_conflicts import acquired_in_one_event
from airflow_provider_cdc.core.apply.merge_plan import ImagesLack
from airflow_provider_cdc.core.apply.newest_rows import newest_of_keys
from airflow_provider_cdc.core.apply.ordered_changes import Changes
from airflow_provider_cdc.core.apply.partial_images import StoredRows
from airflow_provider_cdc.core.apply.repeated_rows import KeyedRows, keys_in_doubt
from airflow_provider_cdc.core.apply.resolve import acquired_and_released, typer_of
from airflow_provider_cdc.core.apply.row_copies import where_made
from airflow_provider_cdc.core.apply.row_sets import (
    group_numbers,
    having_keys,
    left_after_netting,
    newest,
    of_both_kinds,
    row_digests,
)
from airflow_provider_cdc.core.apply.row_typing import RowTyper
from airflow_provider_cdc.core.apply.rows_without_key import without_passed_over
from airflow_provider_cdc.core.apply.source_order import batch_column, behind, moments_of, of_snapshots, source_order
from airflow_provider_cdc.core.arrays import IntArray
from airflow_provider_cdc.core.formats.contract import Format
from airflow_provider_cdc.core.shapes.shape import PLAIN, Shape
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from airflow_provider_cdc.core.values.types import TypeOptions

_FACTOR = np.uint64(0x100000001B3)  # odd, so that no power of it loses bits
_KEY = "key_"  # begins the name of a key's column in a table of key events: source names may be any
_ORDER = ["topic", "partition", "offset", "index", "op", "position"]
_BY_CLOCK = ["source", "older"]  # what shows of a change by the clock that it may have been sent again


@dataclass(frozen=True, slots=True)
class KeyEvents:
    """The keys that some rows acquire and release.

    :param events: key columns, what orders them, ``fills`` (whether the row acquires the key), and ``row``, the number
        of the row as it was read.
    :param buckets: bucket of each event.
    :param typer: knows the rows whose keys do not fit.
    """

    events: pa.Table
    buckets: IntArray
    typer: RowTyper


def key_events(
    changes: Changes,
    timeline: TableTimeline,
    wire: Format,
    options: TypeOptions,
    *,
    cleared: str | None,
    count: int,
    snapshot_position: str = "",
    shape: Shape = PLAIN,
) -> KeyEvents:
    """Return the keys that rows acquire and release; of a table without key the digests of rows added and removed.

    :param changes: full images; no schema change on the timeline alters the key or stored values (``part_ends``).
    :param cleared: position of the newest TRUNCATE, None without any: older rows count no more.
    :param count: number of buckets.
    :param snapshot_position: as of :func:`resolve`, and so is ``shape``.
    :raises SchemaMissing: a row shows that a schema change is not on the timeline yet.
    :raises ImagesLack: rows of a table without key lack columns.
    """
    typer, last = typer_of(changes, timeline, wire, options, shape), len(timeline.versions) - 1
    counts = ~changes.are("truncate") & ~typer.foreign
    if cleared is not None:
        counts &= behind(changes.rows, cleared)
    row_indexes = np.flatnonzero(counts)
    if timeline.versions[last].schema.key:
        keys, event_rows, fills = acquired_and_released(typer, row_indexes, last)
    else:
        row_indexes = without_passed_over(typer, row_indexes, [snapshot_position])
        keys, event_rows, fills = _added_and_removed(typer, row_indexes, last)
    columns = {f"{_KEY}{number}": column for number, column in enumerate(keys.columns)}
    further = [BUILT, *(_BY_CLOCK if wire.order == "clock" else [])]
    names = [*_ORDER, *batch_column(changes.rows), *(one for one in further if one in changes.rows.column_names)]
    rows = changes.rows.select(names).take(pa.array(event_rows))
    columns |= {name: rows.column(name) for name in rows.column_names}
    events = pa.table({**columns, "fills": fills, "row": changes.as_read(event_rows)})
    by = keys if timeline.versions[last].schema.key else keys.select(["alike"])
    return KeyEvents(events, bucket_numbers(by, count), typer)


def _added_and_removed(
    typer: RowTyper, row_indexes: IntArray, last: int
) -> tuple[pa.Table, IntArray, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Return the digests of every row that a change adds or removes, the change's index, and whether it adds it.

    The first digest is equal for all forms of a row's values; it decides the bucket. The second is the row's own.
    """
    changes, forms = typer.changes, typer.mapper.forms(last)
    images = {"after": ("snapshot", "insert", "update"), "before": ("delete", "update")}
    typed = [typer.typed(row_indexes[changes.are(*ops, rows=row_indexes)], name, last) for name, ops in images.items()]
    if any(rows.absent for rows in typed):
        raise ImagesLack
    own = pa.chunked_array([row_digests(rows.rows) for rows in typed], pa.binary())
    alike = own
    if forms:
        alike = pa.chunked_array([row_digests(forms.in_one_form(rows.rows)) for rows in typed], pa.binary())
    counts = [len(rows.row_indexes) for rows in typed]
    event_rows, fills = np.concatenate([rows.row_indexes for rows in typed]), np.repeat([True, False], counts)
    return pa.table({"alike": alike, "own": own}), event_rows, fills


def net_events(events: pa.Table, wire: Format) -> tuple[IntArray, int]:
    """Return the indexes of events of a table without key that are left: a removal takes an equal row added before it.

    Of an event that was sent more than once one counts. Its copies have its position; of snapshots whose rows share
    one, all count.

    :param events: all events of these digests.
    :return: they, and the number of rows that were both added and removed.
    """
    alike, own = (group_numbers([events.column(f"{_KEY}{number}")]) for number in range(2))
    fills = events.column("fills").to_numpy()
    ops = events.column("op").cast(pa.string())
    made = where_made(events, wire)
    sent = each_alike(group_numbers([pa.array(own), pa.array(fills), made, ops]), made, events)
    counts = np.zeros(events.num_rows, dtype=bool)
    counts[np.unique(sent, return_index=True)[1]] = True
    if wire.snapshot_rows != "numbered":
        counts |= pc.equal(ops, "snapshot").to_numpy()
    index = np.flatnonzero(counts)
    some = index[of_both_kinds(alike[index], fills[index])]
    rows = events.select(_ORDER).take(pa.array(some))
    order = source_order(rows)
    some, rows = some[order], rows.take(pa.array(order))
    moments, snapshot = moments_of(rows, wire), of_snapshots(rows)
    stay = left_after_netting(own[some], fills[some], moments)
    again = np.flatnonzero(stay & (snapshot | ~fills[some]))
    stay[again] = left_after_netting(alike[some][again], fills[some][again], moments[again])
    return np.setdiff1d(index, some[~stay]), int((fills[some] & ~stay).sum())


def newest_events(events: pa.Table, wire: Format) -> tuple[IntArray, IntArray]:
    """Return the index of the newest event of each key, and where a clock orders all events of the keys in doubt.

    Of those only images show how they end (:func:`newest_by_clock`).

    :param events: all events of these keys, those of one row in the order that :func:`key_events` gave them.
    """
    groups = group_numbers([events.column(name) for name in key_columns(events)])
    fills = events.column("fills").to_numpy(zero_copy_only=False)
    is_ordered = _is_ordered(events)
    order: IntArray = np.arange(events.num_rows) if is_ordered else source_order(events, "fills")
    groups, fills = groups[order], fills[order]
    winners = newest(groups)
    if wire.order == "clock":
        older = events.column("older").to_numpy(zero_copy_only=False)[order]
        known = np.isin(groups, keys_in_doubt(events, KeyedRows(groups, order, fills), winners), invert=True)
        changed = np.isin(groups, groups[~older])
        return order[winners[(known & ~older)[winners]]], order[~known & changed]
    if wire.updates_move_keys or not is_ordered:
        winners = acquired_in_one_event(winners, groups, order, fills, events, wire)
    return order[winners], order[:0]


def newest_by_clock(typer: RowTyper, among: pa.Table, stored_rows: StoredRows) -> tuple[IntArray, pa.Table]:
    """Return the rows that keys end with, and the keys that end without any.

    :param typer: all rows of these keys.
    :param among: the keys, with their columns' names; the rows may have others, of which they are not all.
    :param stored_rows: returns the rows that some keys had before.
    :raises DataError: it is unknown how a key ends.
    """
    every = np.arange(typer.changes.rows.num_rows)
    keys, event_rows, fills = acquired_and_released(typer, every, len(typer.timeline.versions) - 1)
    mine = np.flatnonzero(having_keys(keys, among, keys.column_names))
    keys, event_rows, fills = keys.take(pa.array(mine)), event_rows[mine], fills[mine]
    events = record_keys.KeyEvents(keys, group_numbers(keys.columns), event_rows, fills)
    winners = newest_of_keys(typer, events, typer.flags("applied"), stored_rows)
    return event_rows[winners[fills[winners]]], keys.take(pa.array(winners[~fills[winners]]))


def keys_of(events: pa.Table, names: list[str]) -> pa.Table:
    """Return the keys of events.

    :param names: of the key's columns.
    """
    return events.select(key_columns(events)).rename_columns(names)


def key_columns(events: pa.Table) -> list[str]:
    """Return the names of the columns with the keys of events."""
    return [name for name in events.column_names if name.startswith(_KEY)]


def _is_ordered(events: pa.Table) -> bool:
    """Return whether events are in the order of the source: positions rise, events of one position are of one row."""
    count, position = events.num_rows, events.column("position")
    if count < 2:
        return True
    first, second = position.slice(0, count - 1), position.slice(1)
    if not pc.all(pc.less_equal(first, second)).as_py():
        return False
    same = np.flatnonzero(pc.equal(first, second).to_numpy())
    records = events.select(["partition", "offset", "index", *batch_column(events)])
    return bool(records.take(pa.array(same)).equals(records.take(pa.array(same + 1))))


def bucket_numbers(keys: pa.Table, count: int) -> IntArray:
    """Return the bucket of each key; equal keys have the same in every process.

    :param keys: the key's columns, typed under one schema version.
    :param count: number of buckets.
    """
    hashes = np.zeros(keys.num_rows, dtype=np.uint64)
    for column in keys.columns:
        chunks = [_hashes(chunk) for chunk in column.chunks]
        hashes = hashes * _FACTOR + (np.concatenate(chunks) if chunks else hashes)
    hashes = (hashes ^ (hashes >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)  # the low bits of text hashes are few
    numbers: IntArray = ((hashes >> np.uint64(32)) % np.uint64(count)).astype(np.int64)
    return numbers


def _hashes(values: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Return a polynomial of the bytes of each value's text, modulo 2^64; of NULL 0."""
    if pa.types.is_floating(values.type):
        values = values.cast(pa.float64()).view(pa.int64())  # equal are floats of the same bits
    if not pa.types.is_binary(values.type):
        values = values.cast(pa.string())
    values = pc.fill_null(values.cast(pa.large_binary()), b"")
    _, offsets, data = values.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[values.offset : values.offset + len(values) + 1]
    lengths = np.diff(bounds)
    if not len(values) or data is None:
        return np.zeros(len(values), dtype=np.uint64)
    text = np.frombuffer(data, dtype=np.uint8)[bounds[0] : bounds[-1]].astype(np.uint64) + np.uint64(1)
    powers = np.cumprod(np.full(max(1, int(lengths.max(initial=0))), _FACTOR))
    within = np.arange(len(text)) - np.repeat(bounds[:-1] - bounds[0], lengths)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(text * powers[within])])
    hashes: np.ndarray[tuple[int], np.dtype[np.uint64]] = sums[bounds[1:] - bounds[0]] - sums[bounds[:-1] - bounds[0]]
    return hashes
