# SPDX-License-Identifier: Apache-2.0
"""Recognise rows that came again by their positions, and leave one of each (docs/design/positions-and-order.md)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.alike_rows import each_alike
from airflow_provider_cdc.core.apply.ordered_changes import Changes, ascending
from airflow_provider_cdc.core.apply.row_sets import group_numbers
from airflow_provider_cdc.core.apply.source_order import batch_column
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.formats.contract import Format
from airflow_provider_cdc.core.model.position_columns import event_of, without_first_number


class Distinct(NamedTuple):
    """Hold rows without their copies.

    :param row_indexes: of the rows, ascending.
    :param applied: of every change whether the stored rows went through it or through a copy of it.
    """

    row_indexes: IntArray
    applied: BoolArray


def sources_of(rows: pa.Table, wire: Format) -> IntArray:
    """Return a number per row: positions order the rows of one event only where it is the same."""
    numbers = ("partition", "offset") if wire.row_numbers == "record" else ("partition",)
    return group_numbers([rows.column("topic").cast(pa.string()), *rows.select(numbers).columns])


def where_made(rows: pa.Table, wire: Format) -> pa.ChunkedArray:
    """Return a text per row that changes share which were made at one place of the source's log.

    A row that was read has no place of its own.

    :param rows: with position and op.
    """
    positions = rows.column("position")
    if "own_places" not in wire.carries:
        return positions
    read = pc.is_in(rows.column("op").cast(pa.string()), pa.array(["snapshot", "incremental"]))
    return pc.if_else(read, positions, without_first_number(positions))


def identities(rows: pa.Table, wire: Format) -> IntArray:
    """Return a number per row that only the same change sent again shares.

    Where each record numbers its rows, one sent again may have another number: how a tool spreads the rows of an event
    over records follows from its settings. Equal rows of one event stay in one record.
    """
    alike = [rows.column("op").cast(pa.string()), *rows.select(["before", "after"]).columns]
    positions = rows.column("position")
    if wire.row_numbers == "event":
        made = where_made(rows, wire)
        return each_alike(group_numbers([made, *alike]), made, rows)
    numbers, records = group_numbers([event_of(positions), *alike]), sources_of(rows, wire)
    index = rows.column("index").to_numpy()
    order = np.lexsort((index, records, numbers))
    begins = (np.diff(numbers[order], prepend=-1) != 0) | (np.diff(records[order], prepend=-1) != 0)
    # a topic that was made again has other records at the same offsets
    rank = np.cumsum(begins | (np.diff(index[order], prepend=-1) != 0))
    nth: IntArray = np.zeros(len(order), np.int64)
    nth[order] = rank - rank[begins][np.cumsum(begins) - 1]
    return group_numbers([pa.array(numbers), pa.array(nth)])


def without_copies(changes: Changes, row_indexes: IntArray, applied: BoolArray, wire: Format) -> Distinct:
    """Leave one of the rows that were sent more than once.

    Of the copies of a row the one is left whose record has most rows of its event, of equal records the same for all
    rows: their order is known.

    :param row_indexes: of the rows, ascending.
    :param applied: of every change whether the stored rows went through it.
    """
    rows = changes.rows.select(["position", "op"]).take(pa.array(row_indexes))
    made = where_made(rows, wire)
    if ascending(made):
        return Distinct(row_indexes, applied)
    ops = rows.column("op").cast(pa.string())
    pairs = group_numbers([made, ops])
    shared = np.bincount(pairs)[pairs] > 1  # only these can be copies: images are large, and others' are not needed
    if wire.row_numbers == "record":
        events = group_numbers([event_of(rows.column("position"))])
        shared = np.isin(events, events[shared])
    if wire.snapshot_rows != "numbered":
        shared &= pc.not_equal(ops, "snapshot").to_numpy(zero_copy_only=False)
    alike = np.flatnonzero(shared)
    if not len(alike):
        return Distinct(row_indexes, applied)
    copies = row_indexes[alike]
    rows = changes.to_compare(copies)
    numbers = identities(rows, wire)
    parts = group_numbers([event_of(rows.column("position")), pa.array(sources_of(rows, wire))])
    order = np.lexsort((parts, -np.bincount(parts)[parts], numbers))
    first = order[np.unique(numbers[order], return_index=True)[1]]
    known: BoolArray = np.zeros(int(numbers.max()) + 1, bool)
    known[numbers[applied[copies]]] = True
    applied = applied.copy()
    applied[copies] = known[numbers]
    _share_batch(changes, copies, numbers)
    return Distinct(np.delete(row_indexes, np.delete(alike, first)), applied)


def _share_batch(changes: Changes, copies: IntArray, numbers: IntArray) -> None:
    """Let copies be of the newest batch that has one: which of them is left depends on the rows next to them.

    :param numbers: of the change that each is a copy of.
    """
    for name in batch_column(changes.rows):
        batches: IntArray = changes.rows.column(name).to_numpy().copy()
        newest: IntArray = np.zeros(int(numbers.max()) + 1, dtype=np.int64)
        np.maximum.at(newest, numbers, batches[copies])
        batches[copies] = newest[numbers]
        ordinal = changes.rows.column_names.index(name)
        changes.rows = changes.rows.set_column(ordinal, name, pa.array(batches))
