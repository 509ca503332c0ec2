# SPDX-License-Identifier: Apache-2.0
"""Resolve the changes of one table and its timeline to the merge plan that makes the table equal to the source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.clock_order import order_unknown, unordered_with
from airflow_provider_cdc.core.apply.contradictions import Verification
from airflow_provider_cdc.core.apply.later_rows import typed_later
from airflow_provider_cdc.core.apply.merge_plan import Emptied, MergePlan, MergeStep, OpenRemovals
from airflow_provider_cdc.core.apply.modes import rows_of
from airflow_provider_cdc.core.apply.modes.contract import NewestEvents
from airflow_provider_cdc.core.apply.newest_rows import newest_of_keys
from airflow_provider_cdc.core.apply.ordered_changes import KEY, Changes, StoredPieces
from airflow_provider_cdc.core.apply.partial_images import StoredRows, laid_over
from airflow_provider_cdc.core.apply.record_keys import KeyEvents, demand_table_key, is_unproven
from airflow_provider_cdc.core.apply.rewinding import rewind_needed
from airflow_provider_cdc.core.apply.row_copies import without_copies
from airflow_provider_cdc.core.apply.row_sets import group_numbers
from airflow_provider_cdc.core.apply.row_typing import RowTyper
from airflow_provider_cdc.core.apply.rows_without_key import KeylessRows, without_passed_over, witness_of_gaps
from airflow_provider_cdc.core.apply.schema_mapping import AS_AT_SOURCE, Mapper, TableColumns
from airflow_provider_cdc.core.apply.source_order import behind, since, under
from airflow_provider_cdc.core.apply.stored_rows import ReadRows, Stored
from airflow_provider_cdc.core.apply.typed_rows import TypedRows
from airflow_provider_cdc.core.apply.witness import Witness
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.formats.contract import Format
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.shapes.mode import MIRROR, ModeColumns, source_rows
from airflow_provider_cdc.core.shapes.shape import PLAIN, Shape
from airflow_provider_cdc.core.timeline.barriers import barriers
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from airflow_provider_cdc.core.values.types import TypeOptions

# what resolving needs of a change
RESOLVE_COLUMNS = ["topic", "partition", "offset", "index", "op", "position", "before", "after", "columns"]


def resolve(
    changes: Changes,
    timeline: TableTimeline,
    base: TableSchema | None,
    wire: Format,
    options: TypeOptions,
    *,
    base_position: str = "",
    read: ReadRows | None = None,
    snapshots: Sequence[str] = ("",),
    open_removals: OpenRemovals | None = None,
    verification: Verification | None = None,
    columns: TableColumns = AS_AT_SOURCE,
) -> MergePlan:
    """Resolve the changes of one table.

    :param changes: its row changes (:func:`ordered`); stored images are typed when they are written, if they may be.
    :param timeline: the table's schema changes by position.
    :param base: schema that the stored rows lie under, None when nothing is stored.
    :param base_position: newest position that the stored rows went through; clears up to it are done.
    :param read: reads stored rows, for updates whose images are partial.
    :param snapshots: positions of full snapshots: first of the one that the content begins with, empty if it begins
        with the table; then of later ones, where the table's mode says what it keeps of the rows that one lacks.
    :param open_removals: of a table without key, those of earlier batches; their rows lie under ``base``.
    :param verification: how far changes are compared with the rows that they find, None for not at all.
    :param columns: of the table.
    :raises SchemaMissing: a row shows that a schema change is not on the timeline yet.
    :raises RewindNeeded: partial images came too late for the stored rows, or rows show that applied ones are repeats.
    """
    typer = typer_of(changes, timeline, wire, options, columns.shape)
    stored = Stored(None if base is None else read, base, _mapper(timeline, options, columns), timeline.versions)
    row_indexes, clears = _after_truncates(typer, base_position, snapshots[1:])
    plan = MergePlan([], typer.failures, typer.lossy, changes.counts())
    mode, first = rows_of(columns.shape.mode), version_of(base, timeline, base_position)
    made_of = columns.shape.made_of(timeline.versions[-1].schema, options)
    stretches = _stretches(typer, row_indexes, first, made_of, [] if mode.keeps_rows else clears)
    later = changes.images["after"].stored and len(stretches) == 1 and mode.types_later
    for last, of_step, emptied in stretches:
        clear = emptied is not None and mode.is_mirror
        before = partial(stored.before, tuple(plan.steps), emptied, last)
        if timeline.versions[last].schema.key:
            step = _keyed(typer, of_step, last, clear, before, later, base_position, verification)
            plan.steps.append(replace(step, emptied=None if clear else emptied))
        else:
            of_step = without_passed_over(typer, of_step, snapshots)
            earlier = None if clear or plan.steps else _under(open_removals, base, stored.mapper, last)
            keyless = KeylessRows(typer, of_step, last, clear, later, earlier, base_position)
            plan.steps.append(mode.without_key(keyless))
            plan.steps[-1].witness = witness_of_gaps(keyless, verification, before)
    return _with_truncates(plan, clears, stored.mapper)


def _with_truncates(plan: MergePlan, clears: Sequence[Emptied], mapper: Mapper) -> MergePlan:
    """Return a plan with the rows that stand for TRUNCATEs and snapshots."""
    mode, step = rows_of(mapper.mode), plan.steps[-1]
    if mode.keeps_rows and clears:
        step.type_now()
        step.upserts = pa.concat_tables([step.upserts, mode.of_truncates(clears, mapper.nothing(step.version))])
    return plan


def _after_truncates(typer: RowTyper, base_position: str, snapshots: Collection[str]) -> tuple[IntArray, list[Emptied]]:
    """Return the rows that count, and the TRUNCATEs and snapshots that the stored rows did not go through.

    In a mirror the newest TRUNCATE alone counts, and no row before it.
    """
    changes, timeline = typer.changes, typer.timeline
    times, is_mirror = dict(timeline.clear_times), typer.mapper.mode.is_mirror
    if not is_mirror:
        times |= _times_of_truncates(changes)
    clears = [Emptied(position, times.get(position)) for position in all_clears(_truncates(changes), timeline)]
    clears += [Emptied(position, _time_of_snapshot(changes, position), restated=True) for position in snapshots]
    clears.sort(key=lambda cleared: (cleared.position, not cleared.restated))
    keep = ~changes.are("truncate") & ~typer.foreign
    for cleared in clears[-1:] if is_mirror else clears:
        if unordered_with(cleared.position, changes.rows.column("position")).any():
            raise order_unknown(timeline, "a TRUNCATE and rows of other partitions")
        if is_mirror or cleared.position <= base_position:
            after = _after(changes, cleared)
            if not is_mirror and (keep & ~after & ~typer.flags("applied") & ~typer.flags("older")).any():
                what = f"rows before a {'snapshot' if cleared.restated else 'TRUNCATE'} came late"
                raise rewind_needed(str(timeline.last_name), what, _first(changes, keep))
            keep &= after
    # stored rows went through the others; only rows that arrive late have to
    new = [cleared for cleared in clears if cleared.position > base_position]
    return np.flatnonzero(keep), new[-1:] if is_mirror else new


def _after(changes: Changes, emptied: Emptied) -> BoolArray:
    """Return which rows came after the source's table was emptied; those of a snapshot itself did."""
    return (since if emptied.restated else behind)(changes.rows, emptied.position)


def _first(changes: Changes, some: BoolArray) -> str:
    position: str = pc.min(changes.rows.column("position").filter(pa.array(some))).as_py()
    return position


def _times_of_truncates(changes: Changes) -> dict[str, int]:
    """Return the source's time of each TRUNCATE that came as a row, by position."""
    rows = changes.rows.select(["position", "source_time"]).filter(pa.array(changes.are("truncate")))
    times = rows.column("source_time").cast(pa.int64()).to_pylist()
    return {p: time for p, time in zip(rows.column("position").to_pylist(), times, strict=True) if time is not None}


def _time_of_snapshot(changes: Changes, position: str) -> int | None:
    """Return the source's time at which a snapshot began to read the table."""
    mine = changes.are("snapshot") & pc.equal(changes.rows.column("position"), position).to_numpy()
    time: int | None = pc.min(changes.rows.column("source_time").filter(pa.array(mine)).cast(pa.int64())).as_py()
    return time


class Stretch(NamedTuple):
    """Rows that one step resolves.

    :param last: the last schema version of the step.
    :param emptied: the TRUNCATE or snapshot that the step begins with, None without one.
    """

    last: int
    rows: IntArray
    emptied: Emptied | None


def _stretches(
    typer: RowTyper, row_indexes: IntArray, first: int, made_of: Collection[int], clears: list[Emptied]
) -> list[Stretch]:
    """Return the rows step by step: a step ends at a barrier, and where the table is emptied.

    :param first: the stored rows' version.
    :param made_of: as of :func:`barriers`.
    """
    is_mirror = typer.mapper.mode.is_mirror
    clear_version = typer.timeline.version_at(clears[-1].position) if clears and is_mirror else None
    ends = part_ends(typer.timeline, first, clear_version, made_of, typer.mapper.mode)
    parts = np.searchsorted(ends, typer.versions[row_indexes])
    passed: IntArray = np.zeros(len(row_indexes), dtype=np.int64)
    for clear in clears:
        passed += _after(typer.changes, clear)[row_indexes]
    begins: list[tuple[str, int, Emptied | None]] = [
        (typer.timeline.versions[end + 1].position, number + 1, None) for number, end in enumerate(ends[:-1])
    ]
    begins += [(clear.position, 0, clear) for clear in clears]
    begins = [("", 0, None), *sorted(begins, key=lambda begin: begin[:2])]
    part_of = np.maximum.accumulate([part for _, part, _ in begins])
    cleared = np.cumsum([emptied is not None for _, _, emptied in begins])
    # a clock may leave a row's version and its place before or behind a TRUNCATE apart: the later of both counts
    number = np.maximum(np.searchsorted(part_of, parts), np.searchsorted(cleared, passed))
    stretches = [
        Stretch(ends[part], row_indexes[number == i], emptied)
        for i, (part, (_, _, emptied)) in enumerate(zip(part_of.tolist(), begins, strict=True))
    ]
    return stretches[1:] if clears and is_mirror else stretches


def _under(
    open_removals: OpenRemovals | None, base: TableSchema | None, mapper: Mapper, last: int
) -> OpenRemovals | None:
    """Return the removals of earlier batches under a schema version; later steps have only newer rows."""
    if open_removals is None or base is None:
        return None
    return replace(open_removals, rows=mapper.content(open_removals.rows, base, last))


def _mapper(timeline: TableTimeline, options: TypeOptions, columns: TableColumns) -> Mapper:
    return Mapper(timeline.versions, timeline.fills, options, columns=columns)


def typer_of(
    changes: Changes, timeline: TableTimeline, wire: Format, options: TypeOptions, shape: Shape = PLAIN
) -> RowTyper:
    """Return what types the rows, once it has compared them with the timeline."""
    lossy = Counter[str]()
    mapper = Mapper(timeline.versions, timeline.fills, options, lossy, columns=TableColumns(shape))
    typer = RowTyper(changes, versions_of(changes.rows, timeline), timeline, wire, options, mapper, lossy=lossy)
    typer.check()
    return typer


def ordered(
    fresh: pa.Table, applied: pa.Table | None = None, stored_images: Mapping[str, StoredPieces] | None = None
) -> Changes:
    """Put the row changes of one table into source order.

    :param fresh: :data:`RESOLVE_COLUMNS` in any order and with repeats; of formats ordered by clock with the columns
        that reveal repeats (:func:`core.apply.repeated_rows.with_sending`).
    :param applied: changes that the stored rows went through and that late ones have to be compared with.
    :param stored_images: the images, if the changes name their stored rows instead (:class:`Changes`).
    """
    if applied is not None:
        fresh = pa.concat_tables([_marked(fresh, applied=False), _marked(applied, applied=True)])
    return Changes(fresh, stored_images)


def _marked(rows: pa.Table, *, applied: bool) -> pa.Table:
    return rows.append_column("applied", pa.chunked_array([pa.repeat(applied, rows.num_rows)]))


def part_ends(
    timeline: TableTimeline,
    first: int,
    clear_version: int | None = None,
    made_of: Collection[int] = (),
    mode: ModeColumns = MIRROR,
) -> list[int]:
    """Return the last version of each step: one before each barrier after the stored rows' version, and the newest.

    :param first: the stored rows' version.
    :param clear_version: version at the newest TRUNCATE, None without any.
    :param made_of: as of :func:`barriers`.
    """
    if clear_version is not None:
        first = max(first, clear_version)  # stored rows are gone: what was before the clear needs no settling
    every = mode.barriers(timeline.versions, barriers(timeline.versions, made_of))
    ends = [number - 1 for number in every if number > first]
    return [*ends, len(timeline.versions) - 1]


def version_of(base: TableSchema | None, timeline: TableTimeline, position: str) -> int:
    """Return the stored rows' schema version: of several with the same schema the newest that they went through.

    :param base: schema that they lie under, None without any.
    """
    numbers = [number for number, version in enumerate(timeline.versions) if version.schema == base]
    reached = [number for number in numbers if timeline.versions[number].position <= position]
    return max(reached or numbers, default=0)


def versions_of(rows: pa.Table, timeline: TableTimeline) -> IntArray:
    """Return the schema version of each row."""
    versions: IntArray = np.zeros(rows.num_rows, dtype=np.int64)
    for version in timeline.versions[1:]:
        versions += under(rows, version).astype(np.int64)
    return versions


def all_clears(truncates: Iterable[str], timeline: TableTimeline) -> list[str]:
    """Return the positions of the TRUNCATEs that were not denied, ascending.

    :param truncates: positions of those that came as rows; the timeline knows those that came as statements.
    """
    return sorted({*(p for p in truncates if p not in timeline.denied), *timeline.clears})


def _truncates(changes: Changes) -> list[str]:
    positions: list[str] = changes.rows.column("position").filter(pa.array(changes.are("truncate"))).to_pylist()
    return positions


def _keyed(
    typer: RowTyper,
    row_indexes: IntArray,
    last: int,
    clear: bool,
    stored: StoredRows,
    later: bool,
    base_position: str,
    verification: Verification | None,
) -> MergeStep:
    schema, wire, mode = typer.timeline.versions[last].schema, typer.wire, rows_of(typer.mapper.mode)
    applied = typer.flags("applied")

    def stored_rows(keys: pa.Table) -> pa.Table:
        return source_rows(stored(keys), mode)

    if wire.partial_images or len(schema.columns_in_rows) < len(schema.columns):
        # a key left twice would seem to have lost its row
        row_indexes, applied = without_copies(typer.changes, row_indexes, applied, wire)
    keys, event_rows, fills = acquired_and_released(typer, row_indexes, last)
    if not keys.num_rows:
        nothing = typer.mapper.nothing(last)
        return MergeStep(last, schema, clear, nothing, nothing.select(typer.mapper.row_key(last)))
    groups = group_numbers(keys.columns)
    events = KeyEvents(keys, groups, event_rows, fills)
    if is_unproven(typer.timeline, wire):
        base = base_position, None if verification is None else verification.base_time
        demand_table_key(typer, events, last, applied, base, stored_rows)
    witness = None if verification is None else Witness(typer, events, last, applied, base_position, verification)
    winners = newest_of_keys(typer, events, applied, stored_rows)
    if later and not (typer.mapper.filters and base_position):
        nothing, deletes = typer.mapper.nothing(last), keys.take(pa.array(winners[~fills[winners]]))
        rows = typed_later(typer, event_rows[winners[fills[winners]]], last, partial=wire.partial_images)
        return MergeStep(last, schema, clear, nothing, deletes, later=rows, witness=witness)
    upserts, deletes = mode.merged(NewestEvents(typer, events, winners, last, stored_rows, applied, stored))
    of_upserts = None
    if mode.is_mirror:
        of_upserts = partial(typer.changes.rows.column("position").take, pa.array(upserts.row_indexes))
    return MergeStep(last, schema, clear, upserts.rows, deletes, of_upserts, witness=witness)


def acquired_and_released(typer: RowTyper, row_indexes: IntArray, last: int) -> tuple[pa.Table, IntArray, np.ndarray]:
    """Return in source order every key that a row acquires or releases, the row's index, and whether it acquires it."""
    wire, changes = typer.wire, typer.changes
    if not wire.updates_move_keys and not wire.partial_images:
        keys = typer.typed(row_indexes, KEY, last, key_only=True)
        return keys.rows, keys.row_indexes, ~changes.are("delete", rows=keys.row_indexes)
    deleting = changes.are("delete", rows=row_indexes)
    after = typer.typed(row_indexes[~deleting], "after", last, key_only=True, partial=wire.partial_images)
    before = [typer.typed(row_indexes[deleting], "before", last, key_only=True)]
    # an update without an image before has not moved its key
    updates = row_indexes[changes.are("update", rows=row_indexes) & changes.images["before"].there[row_indexes]]
    moving = typer.may_move_key(updates, last)
    before.append(typer.typed(updates[moving], "before", last, key_only=True))
    after = laid_over(typer, after, before[-1])
    if not moving.all():
        still = np.isin(after.row_indexes, updates[~moving], assume_unique=True)
        before.append(TypedRows(after.rows.filter(pa.array(still)), after.row_indexes[still], {}))
    if not any(len(left.row_indexes) for left in before):
        return after.rows, after.row_indexes, np.ones(len(after.row_indexes), dtype=bool)
    keys = pa.concat_tables([*(left.rows for left in before), after.rows])
    event_rows = np.concatenate([*(left.row_indexes for left in before), after.row_indexes])
    fills = np.arange(len(event_rows)) >= len(event_rows) - len(after.row_indexes)
    # of one row the key that it releases comes before the key that it acquires
    order = np.argsort(event_rows, kind="stable")
    return keys.take(pa.array(order)), event_rows[order], fills[order]
