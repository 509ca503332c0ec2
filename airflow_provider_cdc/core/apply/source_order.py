# SPDX-License-Identifier: Apache-2.0
"""Order row changes as the source made them (docs/design/positions-and-order.md, "Changes that share a position")."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.formats.contract import Format
from airflow_provider_cdc.core.model.change import Op
from airflow_provider_cdc.core.model.position_columns import event_of
from airflow_provider_cdc.core.timeline.timeline import SchemaVersion

BATCH = "batch"
"""Column with the number of the batch that landed a change; rows have it where a column of their table says it."""

_SNAPSHOTS = pa.array([Op.SNAPSHOT, Op.INCREMENTAL], pa.string())
WHOLE = _SNAPSHOTS[:1]
"""The operation of rows of snapshots that state whole tables."""


def source_order(rows: pa.Table, *after: str) -> IntArray:
    """Return the indexes of rows by position, of one position those of snapshots first, then as they were sent.

    Where the batches of rows are known, copies that have one offset, in a topic that was made again, and those of rows
    that a snapshot read are in the order of their batches: late ones are not compared with all that were applied.

    :param after: columns that order the events of one row.
    """
    streamed = pc.invert(pc.is_in(rows.column("op").cast(pa.string()), value_set=_SNAPSHOTS))
    columns = {"position": rows.column("position"), "streamed": streamed.cast(pa.int8())}
    for name in batch_column(rows):
        columns["read_in"] = pc.if_else(streamed, pa.scalar(0, pa.int64()), rows.column(name))
    columns |= {name: rows.column(name) for name in ("partition", "offset", "index", *batch_column(rows), *after)}
    order: IntArray = pc.sort_indices(pa.table(columns), sort_keys=[(name, "ascending") for name in columns]).to_numpy()
    return order.astype("int64")


def batch_column(rows: pa.Table) -> list[str]:
    """Return the name of the column with the batches of rows, none where they do not have it."""
    return [BATCH] if BATCH in rows.column_names else []


def of_snapshots(rows: pa.Table, ops: pa.Array = _SNAPSHOTS) -> BoolArray:
    """Return which rows a snapshot read."""
    flags: BoolArray = pc.is_in(rows.column("op").cast(pa.string()), value_set=ops).to_numpy()
    return flags


def read_before(rows: pa.Table, wire: Format, base_time: int | None, ops: pa.Array = _SNAPSHOTS) -> BoolArray:
    """Return which changes are older than a row before them: a snapshot read it later, maybe with what they did.

    :param rows: of one table, in source order; where snapshots may be younger than their positions, with source times.
    :param base_time: newest source time among the stored rows, in microseconds since the epoch, None without any.
    :param ops: of the snapshots.
    """
    if "younger_snapshots" not in wire.carries or "source_time" not in rows.column_names:
        nothing: BoolArray = np.zeros(rows.num_rows, dtype=bool)
        return nothing
    oldest, newest = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    read, times = of_snapshots(rows, ops), rows.column("source_time").cast(pa.int64())
    of_read = np.where(read, pc.fill_null(times, oldest).to_numpy(), oldest if base_time is None else base_time)
    older: BoolArray = pc.fill_null(times, newest).to_numpy() < np.maximum.accumulate(of_read)
    return older & ~of_snapshots(rows)


def behind(rows: pa.Table, position: str) -> BoolArray:
    """Return which rows stand behind a streamed statement at a position: those at or after it.

    A row of a snapshot that has the statement's position was read before it. One of an incremental snapshot was not:
    between two of its chunks nothing but the statement may have happened.
    """
    positions, flags = rows.column("position"), since(rows, position)
    if pc.index(positions, position).as_py() < 0:
        return flags
    read = pc.equal(rows.column("op").cast(pa.string()), Op.SNAPSHOT)
    before: BoolArray = pc.and_(read, pc.equal(positions, position)).to_numpy()
    return flags & ~before


def since(rows: pa.Table, position: str) -> BoolArray:
    """Return which rows have a position or a later one."""
    flags: BoolArray = pc.greater_equal(rows.column("position"), position).to_numpy()
    return flags


def under(rows: pa.Table, version: SchemaVersion) -> BoolArray:
    """Return which rows have the schema of a version, or of a later one."""
    return behind(rows, version.position) if version.streamed else since(rows, version.position)


def moments_of(rows: pa.Table, wire: Format) -> IntArray:
    """Return numbers that rise with the moments of rows in source order: those of one event have one number.

    Where a clock orders rows, it does not say which of two came first: all have one number.
    """
    none: IntArray = np.zeros(rows.num_rows, dtype=np.int64)
    if wire.order == "clock" or rows.num_rows < 2:
        return none
    events = event_of(rows.column("position"))
    begins = pc.not_equal(events.slice(1), events.slice(0, rows.num_rows - 1)).to_numpy()
    # a snapshot's rows stand before what is streamed at their position
    streamed = ~of_snapshots(rows)
    none[1:] = np.cumsum(begins | (streamed[1:] & ~streamed[:-1]))
    return none
