# SPDX-License-Identifier: Apache-2.0
"""Refuse a key that only the tool's records name where they show that it is not the table's.

The user may choose which columns a record's key has (Debezium's ``message.key.columns``). Two rows of the source may
then share it, and one would replace the other. An INSERT of a key that is there proves it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.ordered_changes import Changes
from airflow_provider_cdc.core.apply.partial_images import StoredRows
from airflow_provider_cdc.core.apply.row_sets import group_numbers, having_keys
from airflow_provider_cdc.core.apply.row_typing import RowTyper
from airflow_provider_cdc.core.apply.source_order import of_snapshots, read_before
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.formats.contract import Format, LosesTruncates
from airflow_provider_cdc.core.model.position import GENERATION_DIGITS
from airflow_provider_cdc.core.timeline.timeline import TableTimeline


def is_unproven(timeline: TableTimeline, wire: Format) -> bool:
    """Return whether rows with a key that is there have to be looked for.

    A table's key may only be known from keys that the tool may have been set to write, or the tool may have left out
    what removed the rows that have it.
    """
    doubtful = (timeline.from_rows and wire.chosen_keys) or (isinstance(wire, LosesTruncates) and wire.loses_truncates)
    return doubtful and any(version.schema.key for version in timeline.versions)


def contradicted_within(
    groups: IntArray, fills: BoolArray, rows: pa.Table, applied: BoolArray | None = None
) -> tuple[IntArray, IntArray]:
    """Return events that take a key which an event before them took, and those events.

    The same position is the same change, sent again, but for rows of a snapshot: they share one. A log that began again
    may lack what the one before it had.

    :param groups: of each event, in source order, the number of its key.
    :param fills: whether the event takes the key; else it gives it up.
    :param rows: ``op`` and ``position`` of the events.
    :param applied: which of them the stored rows went through: they were looked at before.
    """
    order = np.argsort(groups, kind="stable")
    follows = np.flatnonzero(groups[order][1:] == groups[order][:-1]) + 1
    before, event = order[follows - 1], order[follows]
    both = fills[before] & fills[event]
    if applied is not None:
        both &= ~applied[event]
    before, event = before[both], event[both]
    ops, positions = rows.column("op").cast(pa.string()), rows.column("position")
    inserts, shots = (pc.is_in(ops, pa.array(names)).to_numpy() for names in (["insert"], _SNAPSHOTS))
    here, there = (positions.take(pa.array(some)) for some in (event, before))
    elsewhere = pc.not_equal(here, there).to_numpy()
    suspect = (inserts[event] & elsewhere & _of_one_log(here, there)) | (shots[event] & shots[before] & ~elsewhere)
    return event[suspect], before[suspect]


_SNAPSHOTS = ["snapshot", "incremental"]


def firsts_unlike_stored(groups: IntArray, fills: BoolArray, rows: pa.Table, position: str, begun: str) -> IntArray:
    """Return the events that are the first of their keys and can only be of a key that is not stored.

    Those insert a row behind what is stored, or are of the snapshot that the table began with, as all that is stored.

    :param position: what is stored went through it.
    :param begun: where the table began.
    """
    first = np.unique(groups, return_index=True)[1]
    first = first[fills[first]]
    ops, positions = (rows.column(name).take(pa.array(first)) for name in ("op", "position"))
    inserts, shots = (pc.equal(ops.cast(pa.string()), name).to_numpy() for name in ("insert", "snapshot"))
    new = inserts & pc.greater(positions, position).to_numpy() & _of_one_log(positions, position)
    if position == begun:
        new |= shots & pc.equal(positions, position).to_numpy()
    events: IntArray = first[new]
    return events


def _of_one_log(positions: pa.ChunkedArray, others: pa.ChunkedArray | str) -> BoolArray:
    def generation(texts: Any) -> Any:
        return pc.utf8_slice_codeunits(texts, 0, GENERATION_DIGITS)

    same: BoolArray = pc.equal(
        generation(positions), generation(pa.scalar(others) if isinstance(others, str) else others)
    ).to_numpy()
    return same


class KeyEvents(NamedTuple):
    """The keys that the rows of a step take and give up, in source order.

    :param groups: numbers of the keys.
    :param rows: index of each event's row.
    :param fills: whether the event takes the key.
    """

    keys: pa.Table
    groups: IntArray
    rows: IntArray
    fills: BoolArray


def demand_table_key(
    typer: RowTyper,
    events: KeyEvents,
    last: int,
    applied: BoolArray,
    base: tuple[str, int | None],
    stored_rows: StoredRows,
) -> None:
    """Refuse a step's rows where two of them, or one and a stored row, have one key and are not one row.

    A snapshot that overlaps the changes has the same row twice: rows that are equal contradict nothing.

    :param last: schema version of the step's end.
    :param applied: of every change whether the stored rows went through it.
    :param base: newest position that the stored rows went through, and newest source time among them.
    :raises DataError: ``apply.key_unproven``.
    """
    base_position, base_time = base
    rows = typer.changes.rows.take(pa.array(events.rows))
    rows = pa.table({"op": rows.column("op"), "position": _where_read(rows, typer.wire)})
    mine = (applied | read_before(typer.changes.rows, typer.wire, base_time))[events.rows]
    event, before = contradicted_within(events.groups, events.fills, rows, mine)
    differs = _differ(typer.changes, events.rows[event], events.rows[before])
    if differs.any():
        raise _unproven(typer, int(events.rows[event[differs][0]]))
    begun = typer.timeline.versions[0].position
    rows = typer.changes.rows.select(["op", "position"]).take(pa.array(events.rows))
    first = firsts_unlike_stored(events.groups, events.fills, rows, base_position, begun)
    first = first[~mine[first] & ~_read_again(typer.changes.rows, typer.wire, base_time)[events.rows[first]]]
    if not len(first):
        return
    keys = events.keys.take(pa.array(first))
    stored = stored_rows(keys)
    taken = first[having_keys(keys, stored.select(keys.column_names), keys.column_names)]
    for row_index in _unlike(typer, np.sort(events.rows[taken]), last, stored)[:1]:
        raise _unproven(typer, row_index)


def _where_read(rows: pa.Table, wire: Format) -> pa.ChunkedArray:
    """Return positions, those of rows that snapshots read at another time at one place as others."""
    positions = rows.column("position")
    if "younger_snapshots" not in wire.carries:
        return positions
    times = pc.fill_null(rows.column("source_time").cast(pa.int64()).cast(pa.string()), "")
    at = pc.binary_join_element_wise(positions, times, " ")
    return pc.if_else(pa.array(of_snapshots(rows)), at, positions)


def _read_again(rows: pa.Table, wire: Format, base_time: int | None) -> BoolArray:
    """Return which rows a snapshot read after all that is stored: of its place, they are of another attempt at it."""
    if "younger_snapshots" not in wire.carries or base_time is None:
        nothing: BoolArray = np.zeros(rows.num_rows, dtype=bool)
        return nothing
    times = rows.column("source_time").cast(pa.int64())
    later: BoolArray = pc.greater(times, base_time).fill_null(False).to_numpy()
    return of_snapshots(rows) & later


def _differ(changes: Changes, some: IntArray, others: IntArray) -> BoolArray:
    """Return of pairs of rows whether their images after the change differ."""
    ascending = np.unique(np.concatenate([some, others]))
    if not len(ascending):
        nothing: BoolArray = np.zeros(0, dtype=bool)
        return nothing
    images = changes.to_compare(ascending).column("after")
    first, second = (images.take(pa.array(np.searchsorted(ascending, rows))) for rows in (some, others))
    differing: BoolArray = pc.fill_null(pc.not_equal(first, second), True).to_numpy()
    return differing


def _unlike(typer: RowTyper, row_indexes: IntArray, last: int, stored: pa.Table) -> list[int]:
    """Return the rows that equal no stored one."""
    if not len(row_indexes):
        return []
    with typer.aside():
        typed = typer.typed(row_indexes, "after", last)
    together = pa.concat_tables([typed.rows, stored.select(typed.rows.column_names).cast(typed.rows.schema)])
    numbers = group_numbers(together.columns)
    unlike: list[int] = typed.row_indexes[
        ~np.isin(numbers[: typed.rows.num_rows], numbers[typed.rows.num_rows :])
    ].tolist()
    return unlike


def _unproven(typer: RowTyper, row_index: int) -> DataError:
    where = {name: typer.changes.rows.column(name)[row_index].as_py() for name in ("topic", "partition", "offset")}
    where = {"table": str(typer.timeline.last_name), **where}
    if not typer.timeline.from_rows:
        return DataError(
            "apply.key_unproven",
            "a row is inserted whose key another row has: the log lacks what removed that row, such as a TRUNCATE, "
            "which flattened rows (ExtractNewRecordState) never show",
            where=where,
            hint="take a new snapshot of the table and rebuild it; remove the transform, or use DELETE for TRUNCATE",
        )
    return DataError(
        "apply.key_unproven",
        "a row is inserted whose record key another row has: the record key is not the table's key "
        "(message.key.columns), or the log lacks what removed that row (a TRUNCATE that the tool leaves out)",
        where=where,
        hint="state the table's CREATE TABLE in tables.<name>.create, or read the tool's schema topic "
        "(source.schema_topic) in a new pipeline; with skipped.operations=none a TRUNCATE is in the log",
    )
