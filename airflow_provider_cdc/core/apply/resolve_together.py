# SPDX-License-Identifier: Apache-2.0
"""Resolve the changes of small tables of one layout at once: Arrow's cost of a call is paid once for all of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.apply.contradictions import Verification
from airflow_provider_cdc.core.apply.merge_plan import ImagesLack, MergePlan, MergeStep
from airflow_provider_cdc.core.apply.newest_rows import newest_of_keys
from airflow_provider_cdc.core.apply.ordered_changes import Changes
from airflow_provider_cdc.core.apply.record_keys import KeyEvents, is_unproven
from airflow_provider_cdc.core.apply.resolve import acquired_and_released, typer_of
from airflow_provider_cdc.core.apply.row_sets import group_numbers
from airflow_provider_cdc.core.apply.row_typing import RowTyper
from airflow_provider_cdc.core.apply.witness import OwnRows, RowsBefore, Witness, numbered_moments
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.formats.contract import Format
from airflow_provider_cdc.core.shapes.shape import PLAIN, Shape
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from airflow_provider_cdc.core.values.types import TypeOptions

# newest position that a table's stored rows went through, and how far its changes are compared with them
Compared = tuple[str, Verification]

_OWNER = "owner"  # number of a row's table


def layout_of(timeline: TableTimeline, wire: Format) -> Hashable | None:
    """Return what tables that can be resolved together have in common, None where a table has to be resolved alone.

    Those have a key and have had one schema, and no TRUNCATE.
    """
    version = timeline.versions[0]
    plain = len(timeline.versions) == 1 and not timeline.clears and not version.computed
    if not plain or not version.schema.key or wire.partial_images:
        return None
    if is_unproven(timeline, wire):  # stored rows may contradict it
        return None
    columns = version.schema.columns
    if any(column.dropped for column in columns):
        return None
    numbers = {column.id: number for number, column in enumerate(columns)}
    # ids of columns are of one table; everything else decides how values are read
    described = tuple((c.name, c.type, c.nullable, c.default, c.generated, c.auto_increment) for c in columns)
    return described, tuple(numbers[column_id] for column_id in version.schema.key), version.server


def resolve_together(
    rows: pa.Table,
    owners: IntArray,
    timelines: Sequence[TableTimeline],
    wire: Format,
    options: TypeOptions,
    compared: Sequence[Compared | None] = (),
    shape: Shape = PLAIN,
) -> list[MergePlan] | None:
    """Resolve the changes of several tables of one layout (:func:`layout_of`).

    :param rows: their changes (``RESOLVE_COLUMNS``) in any order; of formats ordered by clock with the columns that
        reveal repeats (:func:`core.apply.repeated_rows.with_sending`).
    :param owners: per row the number of its table.
    :param timelines: of the tables, by number.
    :param compared: how changes are compared with the rows that they find, by number; none where it is empty.
    :param shape: the columns that each of the tables has by the same rules.
    :return: the plan of each table, as :func:`core.apply.resolve.resolve` makes it; None where values were lost, rows
        do not fit, a clock leaves a key in doubt or tables are truncated: the plans of single tables say of which.
    """
    changes = Changes(rows.append_column(_OWNER, pa.array(owners)))
    if changes.are("truncate").any():
        return None
    typer = typer_of(changes, timelines[0], wire, options, shape)
    owner_of: IntArray = changes.rows.column(_OWNER).to_numpy()
    keys, event_rows, fills = acquired_and_released(typer, np.arange(len(owner_of)), 0)
    events = KeyEvents(keys, group_numbers([pa.array(owner_of[event_rows]), *keys.columns]), event_rows, fills)
    winners = _newest(typer, events)
    if winners is None:
        return None
    upserts = typer.typed(event_rows[winners[fills[winners]]], "after", 0)
    if typer.failures or typer.lossy or typer.foreign.any() or upserts.absent:
        return None
    gone, count = winners[~fills[winners]], len(timelines)
    steps = zip(
        _by_owner(upserts.rows, upserts.row_indexes, owner_of[upserts.row_indexes], count),
        _by_owner(keys.take(pa.array(gone)), gone, owner_of[event_rows[gone]], count),
        _counts(changes, owner_of, count),
        timelines,
        strict=True,
    )
    positions = changes.rows.column("position")
    witnesses = _witnesses(typer, events, owner_of[event_rows], timelines, compared)
    plans = []
    for owner, ((mine, row_indexes), (deletes, _), counts, timeline) in enumerate(steps):
        of_upserts = partial(positions.take, pa.array(row_indexes))
        schema, witness = timeline.versions[0].schema, witnesses.get(owner)
        step = MergeStep(0, schema, False, mine, deletes, of_upserts, witness=witness)
        plans.append(MergePlan([step], changes=counts))
    return plans


def _newest(typer: RowTyper, events: KeyEvents) -> IntArray | None:
    """Return the newest event of each key, None where a clock leaves it open, or the rows before would show it."""
    with suppress(DataError, ImagesLack):
        return newest_of_keys(typer, events, typer.flags("applied"), _unread)
    return None


def _unread(keys: pa.Table) -> pa.Table:
    """Refuse to read the rows that keys had before: only one table's are at hand where it is resolved alone."""
    raise ImagesLack


def _witnesses(
    typer: RowTyper,
    events: KeyEvents,
    owners: IntArray,
    timelines: Sequence[TableTimeline],
    compared: Sequence[Compared | None],
) -> dict[int, Witness]:
    """Return what compares the changes of each table that is to be compared.

    :param owners: of the events.
    """
    if not any(compared):
        return {}
    order = np.argsort(owners, kind="stable")
    ends = np.cumsum(np.bincount(owners, minlength=len(compared))).tolist()
    moments = numbered_moments(typer)
    applied: BoolArray = np.zeros(typer.changes.rows.num_rows, dtype=bool)
    there = np.flatnonzero(typer.image("before").there)
    rows_before = RowsBefore(typer, 0, there)
    witnesses = {}
    for owner, (start, end, how) in enumerate(zip([0, *ends], ends, compared, strict=False)):
        if how is not None and end > start:
            own = order[start:end]
            mine = KeyEvents(events.keys.take(pa.array(own)), events.groups[own], events.rows[own], events.fills[own])
            of_table = OwnRows(timelines[owner], np.unique(mine.rows), moments, rows_before)
            witnesses[owner] = Witness(typer, mine, 0, applied, *how, of_table)
    return witnesses


def _by_owner(rows: pa.Table, numbers: IntArray, owners: IntArray, count: int) -> Iterator[tuple[pa.Table, IntArray]]:
    """Yield each owner's rows in their order, with their numbers."""
    order = np.argsort(owners, kind="stable")
    rows, numbers = rows.take(pa.array(order)).combine_chunks(), numbers[order]
    ends = np.cumsum(np.bincount(owners, minlength=count)).tolist()
    for start, end in zip([0, *ends], ends, strict=False):
        yield rows.slice(start, end - start), numbers[start:end]


def _counts(changes: Changes, owner_of: IntArray, count: int) -> list[dict[str, int]]:
    """Return of each owner the number of rows of each operation."""
    counts: list[dict[str, int]] = [{} for _ in range(count)]
    for op in changes.counts():
        of_op: list[Any] = np.bincount(owner_of[changes.are(op)], minlength=count).tolist()
        for owner, rows in enumerate(of_op):
            if rows:
                counts[owner][op] = rows
    return counts
