# SPDX-License-Identifier: Apache-2.0
"""Find changes that the tool's clock cannot order, a whole column of positions at once (core.model.clock_position)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.row_sets import group_numbers
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model import clock_position as clock
from airflow_provider_cdc.core.model.position_columns import moment_of, partition_of
from airflow_provider_cdc.core.timeline.timeline import TableTimeline


def order_unknown(timeline: TableTimeline, what: str) -> DataError:
    """Return the error of a table whose content depends on the unknown order of changes of one instant.

    :param what: the changes whose order matters.
    """
    return DataError(
        "apply.order_unknown",
        f"{what} are of one instant of the tool's clock, and records carry no order",
        where={"table": str(timeline.last_name)},
        hint="take a new snapshot of the table; let the tool write to one partition, or choose a format with positions",
    )


def unordered_with(position: str, positions: pa.ChunkedArray) -> BoolArray:
    """Return for each position whether the order of its change and a change at ``position`` is unknown."""
    flags: BoolArray = np.zeros(len(positions), dtype=bool)
    if not clock.is_clock_position(position) or not len(positions):
        return flags
    start, end = clock.earliest_unordered(position), clock.latest_unordered(position)
    near = np.flatnonzero(_from(positions, start) & ~_from(positions, end))
    if len(near):
        texts = positions.take(pa.array(near))
        apart = ~_equal(texts, position, clock.PARTITION)
        together = _equal(texts, position, clock.TOOL)
        if int(position[clock.BATCH]):
            together |= _equal(texts, position, clock.BATCH) & ~_equal(texts, position, clock.TOPIC)
        flags[near[apart & together]] = True
    return flags


def _equal(positions: pa.ChunkedArray, position: str, part: slice) -> BoolArray:
    """Return which positions have the same number as another one in a part of their text."""
    parts = pc.utf8_slice_codeunits(positions, part.start, part.stop)
    flags: BoolArray = pc.equal(parts, position[part]).to_numpy(zero_copy_only=False)
    return flags


def moments_and_partitions(rows: pa.Table) -> tuple[IntArray, IntArray]:
    """Return for each change the number of its millisecond and the number of its partition."""
    millisecond = moment_of(rows.column("position"))
    partition = [rows.column("topic").cast(pa.string()), rows.column("partition")]
    return group_numbers([millisecond]), group_numbers(partition)


def next_to_copies(rows: pa.Table, copies: Mapping[str, Sequence[str]]) -> pa.Table:
    """Return changes with positions right before or behind statements that their own partition has a copy of.

    :param copies: position of a statement -> positions of its copies on other partitions.
    """
    own = rows.column("position")
    partitions = partition_of(own) if copies else None
    positions = own
    for statement in sorted(copies):
        for copy in copies[statement]:
            mine = pc.equal(partitions, copy[clock.PARTITION]).to_numpy(zero_copy_only=False)
            if not mine.any():
                continue
            passed = _from(own, copy)
            doubtful = unordered_with(statement, positions)
            later = _from(positions, statement)
            positions = _behind(positions, mine & ~passed & (later | doubtful), _before(statement), own)
            positions = _behind(positions, mine & passed & (~later | doubtful), statement, own)
    return rows if positions is own else rows.set_column(rows.schema.get_field_index("position"), "position", positions)


def _before(position: str) -> str:
    """Return a text below a position and above those of all other changes before it."""
    return f"{position[:-1]}{chr(ord(position[-1]) - 1)}"


def _behind(positions: pa.ChunkedArray, moved: BoolArray, target: str, own: pa.ChunkedArray) -> pa.ChunkedArray:
    if not moved.any():
        return positions
    return pc.if_else(pa.array(moved), pc.binary_join_element_wise(target, own, "."), positions)


def rows_of_name(rows: pa.Table, start: str, end: str | None, others: list[tuple[str, str | None]]) -> pa.Table | None:
    """Return the changes that a table has under one of its names, None where the clock cannot separate them.

    The clock may put a change just outside of the span, but not know its order with the boundary. Such a change belongs
    to the table if no other table had the name on the other side. It is then moved right inside of the boundary.

    :param rows: changes of everything that had this name.
    :param start: position from which on the table has the name; ``end`` from which on it does not.
    :param others: the spans of other tables, or of this one at other times, that have the same name.
    """
    positions = rows.column("position")
    mine = _within(positions, start, end)
    if any((mine & _within(positions, *other)).any() for other in others):
        return None
    if not mine.all():
        rows = rows.filter(pa.array(mine))
    if end is not None:
        rows = _moved(rows, _from(rows.column("position"), end), _before(end))
    return _moved(rows, ~_from(rows.column("position"), start), start) if start else rows


def _from(positions: pa.ChunkedArray, position: str) -> BoolArray:
    flags: BoolArray = pc.greater_equal(positions, position).to_numpy(zero_copy_only=False)
    return flags


def _within(positions: pa.ChunkedArray, start: str, end: str | None) -> BoolArray:
    inside: BoolArray = _from(positions, start) | unordered_with(start, positions)
    if end is not None:
        inside &= ~_from(positions, end) | unordered_with(end, positions)
    return inside


def _moved(rows: pa.Table, which: BoolArray, behind: str) -> pa.Table:
    """Return rows, some of them moved right behind a position in their order."""
    positions = rows.column("position")
    moved = _behind(positions, which, behind, positions)
    return rows if moved is positions else rows.set_column(rows.schema.get_field_index("position"), "position", moved)
