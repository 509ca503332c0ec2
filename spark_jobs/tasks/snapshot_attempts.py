# SPDX-License-Identifier: Apache-2.0
"""Tell apart the rows of snapshots that began at one position: of a table without key all of them look alike.

A connector that dies in its snapshot takes it again; if nothing happened at the source, at the same position. Its
statements and rows are on topics of their own, so only Kafka's times say which rows are of which attempt. Where the
connector was moved to a machine whose clock is behind, they say nothing.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.row_sets import group_numbers
from airflow_provider_cdc.core.arrays import BoolArray
from airflow_provider_cdc.core.errors import DataError


def broken_off(rows: pa.Table, position: str, sent: int) -> BoolArray:
    """Return which rows are of attempts before the last one at a snapshot's position.

    :param rows: with ``kafka_time``.
    :param sent: Kafka's time of the last attempt's first statement, milliseconds since the epoch.
    """
    older = pc.less(rows.column("kafka_time").cast(pa.int64()), sent)
    there = pc.equal(rows.column("position"), position)
    snapshot = pc.equal(rows.column("op").cast(pa.string()), "snapshot")
    flags: BoolArray = pc.fill_null(pc.and_(pc.and_(snapshot, there), older), False).to_numpy()
    return flags


def times_fall(rows: pa.Table) -> bool:
    """Return whether Kafka's times of a snapshot's rows fall somewhere in a partition."""
    snapshot = rows.filter(pc.equal(rows.column("op").cast(pa.string()), "snapshot"))
    if snapshot.num_rows < 2:
        return False
    parts = group_numbers([snapshot.column("topic").cast(pa.string()), snapshot.column("partition")])
    order = np.lexsort((snapshot.column("offset").to_numpy(), parts))
    times = pc.fill_null(snapshot.column("kafka_time").cast(pa.int64()), 0).to_numpy()[order]
    return bool(((np.diff(times) < 0) & (np.diff(parts[order]) == 0)).any())


def demand_one_attempt(rows: pa.Table, table: str, *, applied_position: str) -> None:
    """Refuse rows of a snapshot that may be of several attempts at it.

    Attempts read equal rows: where no row comes twice, only one of them has any.

    :param rows: with the images.
    :param applied_position: newest position that the table holds, empty if it holds nothing.
    :raises DataError: ``apply.snapshots_alike``.
    """
    snapshot = rows.filter(pc.equal(rows.column("op").cast(pa.string()), "snapshot"))
    if not snapshot.num_rows:
        return
    alike = group_numbers([snapshot.column("position"), snapshot.column("after")])
    held = applied_position >= pc.min(snapshot.column("position")).as_py()
    if held or len(np.unique(alike)) < len(alike):
        raise DataError(
            "apply.snapshots_alike",
            "a snapshot of a table without key began several times at one position, and Kafka's times do not show "
            "which rows are of which",
            where={"table": table, "position": snapshot.column("position")[0].as_py()},
            hint="change a row of any table, so that the log goes on, take a new snapshot, and rebuild the table",
        )
