# SPDX-License-Identifier: Apache-2.0
"""Read a table's changes from the change log, with those of earlier batches that they may repeat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.alike_rows import BUILT
from airflow_provider_cdc.core.apply.clock_order import next_to_copies, order_unknown, rows_of_name, unordered_with
from airflow_provider_cdc.core.apply.partial_images import FITTED
from airflow_provider_cdc.core.apply.repeated_rows import SENT_COLUMNS, with_sending, without_repeats_across
from airflow_provider_cdc.core.apply.resolve import RESOLVE_COLUMNS
from airflow_provider_cdc.core.apply.rewinding import rewind_needed
from airflow_provider_cdc.core.apply.row_copies import identities
from airflow_provider_cdc.core.apply.row_sets import group_numbers
from airflow_provider_cdc.core.apply.sequence_gaps import NUMBERED_COLUMNS
from airflow_provider_cdc.core.apply.source_order import BATCH, under
from airflow_provider_cdc.core.arrays import BoolArray
from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA, Format
from airflow_provider_cdc.core.model.clock_position import latest_unordered
from airflow_provider_cdc.core.timeline.barriers import barriers
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from spark_jobs.lake.manifest import RowGroup
from spark_jobs.lake.row_groups import StoredImages, read_groups, read_without_images, without_settled
from spark_jobs.lake.storage import Storage
from spark_jobs.tasks.snapshot_attempts import broken_off, demand_one_attempt, times_fall
from spark_jobs.tasks.table_task import ApplyTask, Span
from spark_jobs.tasks.unlogged import Unlogged

_PIECE_BYTES = 64 << 20  # of images that are read at a time


class TableChanges:
    """The changes of the spans of one task.

    :param timeline: of the table.
    :param verifies: whether rows before changes are compared with those that are there.
    :param further: columns of the change log that rows are made of.
    :param unlogged: the columns whose values stay out of the change log by the rules of now.
    :ivar unlogged: None where they are as they were landed.
    :ivar first: topic, partition and offset of the first record that was read.
    """

    def __init__(
        self,
        storage: Storage,
        task: ApplyTask,
        timeline: TableTimeline,
        wire: Format,
        *,
        verifies: bool,
        further: Sequence[str],
        unlogged: Unlogged,
    ) -> None:
        self._storage, self._task, self._timeline, self._wire = storage, task, timeline, wire
        self._by_clock = wire.order == "clock"
        # where a row's values are what shows that it came again, they are those that the log may have of all rows
        known_by_values = self._by_clock or not all(version.schema.key for version in timeline.versions)
        names = [name for _, name in timeline.names if name is not None]
        self.unlogged = unlogged if known_by_values and any(unlogged.patterns(*name) for name in names) else None
        self._verifies = verifies
        self._columns = list(dict.fromkeys([*columns_of(wire, verifies=verifies), *further]))
        self._fitted = task.replayed("row")
        self.first: dict[str, Any] = {}

    def read(self, images: dict[str, StoredImages] | None) -> tuple[pa.Table, pa.Table | None]:
        """Return the changes to resolve, and those applied before that late ones have to be compared with.

        :param images: takes where the images are stored, which are not read then.
        """
        task = self._task
        fresh = self.of(task.spans, images)
        self._demand_before_repaired()
        before = self._applied_from(task.late_from) if task.late_from is not None and task.context else None
        older = None
        if self._by_clock:
            # what late rows are compared with may repeat rows from before them too
            older = self._maybe_repeated(fresh if before is None else pa.concat_tables([fresh, before]))
            fresh, before = _not_older(fresh), None if before is None else _not_older(before)
        if before is None:
            return fresh, older
        # newest per key over old and new changes: what was applied wins again where it is newer; without a key a row
        # counts each time, so there only changes that were not applied yet may come in
        again = before.filter(
            pc.or_(self._in_keyed_version(before), pc.equal(before.column("op").cast(pa.string()), "truncate"))
        )
        keyed = self._in_keyed_version(fresh)
        counted = self._without_replayed(fresh)
        unknown = _unknown(counted.filter(pc.invert(self._in_keyed_version(counted))), before, self._wire)
        if older is not None:
            again = pa.concat_tables([again, older.filter(pc.less(older.column("position"), task.late_from))])
        return pa.concat_tables([fresh.filter(keyed), unknown]), again

    def _demand_before_repaired(self) -> None:
        """Demand that a table without key goes back behind the rows that operators replayed since its base.

        What was landed of such a row counts no more, and other rows may look like it: the applied changes do not show
        whether the table holds it.

        :raises RewindNeeded: the table is further on.
        """
        task, files = self._task, self._task.replayed("record", "row")
        repaired = [group for span in task.spans for group in span.groups if group.file in files]
        if task.base is None or not repaired:
            return
        rows = read_groups(self._storage, repaired, ["position"])
        first = pc.min(rows.filter(pc.invert(self._in_keyed_version(rows))).column("position")).as_py()
        if first is None or (task.rewind_to is not None and task.rewind_to <= first):
            return
        if first <= task.base.applied_position:
            name = f"{task.database}.{task.table}"
            raise rewind_needed(name, "rows of a table without key are replayed from the quarantine", first)

    def _without_replayed(self, fresh: pa.Table) -> pa.Table:
        """Return the changes without those of row groups that the table holds: some rows look all alike.

        :param fresh: the changes of all spans.
        """
        applied = {group.origin for span in self._task.context for group in span.groups}
        spans = []
        for span in self._task.spans:
            groups = [group for group in span.groups if group.origin not in applied]
            spans.append(replace(span, groups=groups))
        if all(len(new.groups) == len(span.groups) for new, span in zip(spans, self._task.spans, strict=True)):
            return fresh
        rows = self.of([span for span in spans if span.groups])
        return _not_older(rows) if self._by_clock else rows

    def _applied_from(self, late_from: str) -> pa.Table:
        """Return the applied changes to compare late ones with; where a clock orders, those before are marked older."""
        rows = self.of(self._task.context)
        before = pc.less(rows.column("position"), late_from)
        if not self._by_clock:
            return rows.filter(pc.invert(before))
        older = pc.or_(rows.column("older"), before)
        return rows.set_column(rows.schema.get_field_index("older"), "older", older)

    def _maybe_repeated(self, rows: pa.Table) -> pa.Table | None:
        """Return the rows of earlier batches that fresh ones may repeat, and those behind them; None without any.

        Rows before a change of the key's columns cannot be repeated behind it.
        """
        older = self._older_once(rows)
        first = _first_compared(rows.filter(pc.invert(rows.column("older"))), older)
        if first is None or self._task.base is None:
            return None
        applied = self._task.base.applied_position
        positions = [self._timeline.versions[index].position for index in barriers(self._timeline.versions)]
        begins = max([first, *(position for position in positions if position <= applied)])
        older = older.filter(pc.and_(self._in_keyed_version(older), pc.greater_equal(older.column("position"), begins)))
        return older if older.num_rows else None

    def _older_once(self, rows: pa.Table) -> pa.Table:
        """Return the rows marked as older, each once and none that is also a fresh one: several spans may read it."""
        older = rows.filter(rows.column("older"))
        if len(self._task.spans) + len(self._task.context) == 1 or not older.num_rows:
            return older
        both = pa.concat_tables([_not_older(rows), older])
        records = group_numbers([both.column(name) for name in ("topic", "partition", "offset", "index")])
        first = np.unique(records, return_index=True)[1]
        return both.take(pa.array(np.sort(first[first >= both.num_rows - older.num_rows])))

    def _in_keyed_version(self, rows: pa.Table) -> pa.ChunkedArray:
        keyed = pa.chunked_array([pa.repeat(bool(self._timeline.versions[0].schema.key), rows.num_rows)])
        for version in self._timeline.versions[1:]:
            keyed = pc.if_else(pa.array(under(rows, version)), bool(version.schema.key), keyed)
        return keyed

    def of(
        self, spans: list[Span], images: dict[str, StoredImages] | None = None, columns: Sequence[str] = ()
    ) -> pa.Table:
        """Return the changes of some spans.

        :param images: takes where the images are stored, which are not read then.
        :param columns: of the change log; those to resolve if empty.
        """
        tables, sent = [], bool(self._attempts or self._task.snapshot_again)
        further = SENT_COLUMNS if self._by_clock else ["kafka_time"] if sent else []
        columns = list(dict.fromkeys([*(columns or self._columns), *further]))
        for span in spans:
            if self._by_clock:
                tables.append(self._of_table(self._with_older(span, columns, images), span))
                continue
            tables.append(_between(self._read_groups(span.groups, columns, images), span))
        if not tables:
            return self._no_changes()
        rows = pa.concat_tables(tables).unify_dictionaries()
        if sent and not self._by_clock:
            rows = self._without_broken_off(rows)
        if rows.num_rows and not self.first:
            self.first = rows.slice(0, 1).select(["topic", "partition", "offset"]).to_pylist()[0]
        return rows

    def pieces(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the changes of the task's spans, some row groups at a time, always the same rows in the same order.

        :param columns: of the change log.
        """
        for span in self._task.spans:
            for groups in _pieces(span.groups):
                yield self.of([replace(span, groups=groups, older=[])], columns=columns)
            for groups in _pieces(span.older):
                yield self.of([replace(span, groups=[], older=groups)], columns=columns)

    def topics(self) -> set[str]:
        """Return the topics of the changes."""
        rows = self.of(self._task.spans, columns=["topic", "partition", "offset", "op", "position"])
        return set(rows.column("topic").cast(pa.string()).unique().to_pylist())

    def _read_groups(
        self, groups: list[RowGroup], columns: list[str], images: dict[str, StoredImages] | None = None
    ) -> pa.Table:
        """Return the rows of row groups without those that operators replaced or discarded."""
        verifies = self._verifies and images is None
        needed = before_of(self._timeline, self._wire, verifies=verifies) if "before" in columns else None

        def read(some: list[RowGroup]) -> pa.Table:
            if images is None:
                rows = read_groups(self._storage, some, columns, before_of=needed)
                mine = (some[0].database, some[0].table)  # that they were landed under: a rule is of a name
                return rows if self.unlogged is None else self.unlogged.of_table(rows, *mine)
            return read_without_images(self._storage, some, columns, images, before_of=needed)

        settled = self._task.settled
        if not settled:
            return read(groups)
        files = sorted({group.file for group in groups})
        tables = [without_settled(read([g for g in groups if g.file == file]), file, settled) for file in files]
        tables = [self._with_fitted(rows, file) for rows, file in zip(tables, files, strict=True)]
        return pa.concat_tables(tables, promote_options="permissive")

    def _with_fitted(self, rows: pa.Table, file: str) -> pa.Table:
        """Return rows with those flagged that did not fit when the base was made, and that operators replayed since."""
        base = self._task.base
        if base is None or not self._fitted or "position" not in rows.column_names:
            return rows
        flags = pc.and_(file in self._fitted, pc.less_equal(rows.column("position"), base.applied_position))
        return rows.append_column(FITTED, flags)

    def _no_changes(self) -> pa.Table:
        none = CHANGE_SCHEMA.append(pa.field(BATCH, pa.int64())).empty_table()
        topic = none.schema.get_field_index("topic")
        none = none.set_column(topic, "topic", none.column(topic).dictionary_encode())  # as the change log is read
        none = self._with_fitted(none.select(self._columns), "")
        return _marked(none, older=False) if self._by_clock else none

    def _without_broken_off(self, rows: pa.Table) -> pa.Table:
        """Leave out rows of the snapshot's earlier attempts at the same position.

        :raises DataError: it cannot be known which those are.
        """
        task = self._task
        if task.snapshot_again == "unclear" or (task.snapshot_again and times_fall(rows)):
            applied = task.base.applied_position if task.base is not None else ""
            demand_one_attempt(rows, f"{task.database}.{task.table}", applied_position=applied)
            return rows.drop_columns(["kafka_time"])
        for position, sent in self._attempts:
            rows = rows.filter(pa.array(~broken_off(rows, position, sent)))
        return rows.drop_columns(["kafka_time"])

    @property
    def _attempts(self) -> list[tuple[str, int]]:
        """Position and Kafka's time of the snapshots whose rows are told apart from those of earlier attempts."""
        return [one for one in self._task.every_snapshot if one[1]]

    def _with_older(self, span: Span, columns: list[str], images: dict[str, StoredImages] | None) -> pa.Table:
        """Return a span's rows with those of earlier batches that they may repeat, marked as older."""
        tables = [_marked(self._read_groups(span.groups, columns, images), older=False)] if span.groups else []
        for groups, late in ((span.older, False), (span.late, True)):
            if groups:
                older = self._read_groups(groups, columns)
                tables.append(_marked(older, older=True, late=late))
        return pa.concat_tables(tables).unify_dictionaries()

    def _of_table(self, rows: pa.Table, span: Span) -> pa.Table:
        """Return the rows of a span's groups that mean this table, where a clock orders them.

        :raises DataError: only the order of changes of one instant would show it.
        """
        timeline, name = self._timeline, str(self._timeline.last_name)
        rows = next_to_copies(rows, timeline.copies)
        boundaries = {span.start, *timeline.clears, *(version.position for version in timeline.versions)}
        first = pc.min(rows.column("position")).as_py()
        for boundary in sorted(boundaries - {""}):
            if first is None or first >= latest_unordered(boundary):
                continue  # all rows stand behind it, as behind most statements
            if boundary >= span.start and (span.end is None or boundary < span.end):
                behind, doubtful = _behind(rows, boundary)
                if boundary == span.start:  # what the clock cannot order with it becomes the table's, too
                    behind |= doubtful
                rows = without_repeats_across(rows, behind, name)
                if boundary != span.start and doubtful.any():  # rows that may have been before it come again, too
                    behind, doubtful = _behind(rows, boundary)
                    rows = without_repeats_across(rows, behind & ~doubtful, name)
        begun = latest_unordered(max([span.start, *timeline.copies.get(span.start, ())]))
        groups = [*span.groups, *span.older, *span.late]
        if span.end is None and all(group.min_position >= begun for group in groups):
            return rows
        own = rows_of_name(rows, span.start, span.end, span.others)
        if own is None:
            raise order_unknown(timeline, "rows, and statements that give their name to another table,")
        return own


def _behind(rows: pa.Table, boundary: str) -> tuple[BoolArray, BoolArray]:
    """Return which rows stand behind a position by clock, and of which the clock does not say it."""
    positions = rows.column("position")
    behind: BoolArray = pc.greater_equal(positions, boundary).to_numpy(zero_copy_only=False)
    return behind, unordered_with(boundary, positions)


def _pieces(groups: Sequence[RowGroup]) -> Iterator[list[RowGroup]]:
    """Yield row groups, as many at a time as are read at once."""
    some, size = list[RowGroup](), 0
    for group in groups:
        if some and size + group.image_bytes > _PIECE_BYTES:
            yield some
            some, size = [], 0
        some.append(group)
        size += group.image_bytes
    if some:
        yield some


def columns_of(wire: Format, *, verifies: bool = False) -> list[str]:
    """Return the columns of the change log to resolve changes from.

    :param verifies: whether changes are compared with the log and the rows that are there.
    """
    columns = list(RESOLVE_COLUMNS)
    if "build_times" in wire.carries:
        columns.append(BUILT)
    if verifies and "transaction_orders" in wire.carries:
        columns += NUMBERED_COLUMNS
    if "younger_snapshots" in wire.carries or (verifies and wire.snapshot_rows != "shared"):
        columns.append("source_time")  # which changes the rows of a snapshot may have is a question of time
    return [*columns, *(SENT_COLUMNS if wire.order == "clock" else ())]


def before_of(timeline: TableTimeline, wire: Format, *, verifies: bool) -> list[str] | None:
    """Return the operations whose image before counts: updates name their key a second time in many formats.

    :param verifies: whether rows before changes are compared with those that are there.
    """
    keyed = all(version.schema.key for version in timeline.versions)
    return ["delete"] if keyed and not (verifies or wire.updates_move_keys or wire.partial_images) else None


def _between(rows: pa.Table, span: Span) -> pa.Table:
    if span.start and any(group.min_position < span.start for group in span.groups):
        rows = rows.filter(pc.greater_equal(rows.column("position"), span.start))
    if span.end is not None and any(group.max_position >= span.end for group in span.groups):
        rows = rows.filter(pc.less(rows.column("position"), span.end))
    return rows


def _marked(rows: pa.Table, *, older: bool, late: bool = False) -> pa.Table:
    """Return rows of a format ordered by clock with the columns that repeats are recognised by."""
    rows = with_sending(rows)
    for name, mark in (("older", older), ("late", late)):
        rows = rows.append_column(name, pa.chunked_array([pa.repeat(mark, rows.num_rows)]))
    return rows


def _first_compared(fresh: pa.Table, older: pa.Table) -> str | None:
    """Return the position of the first older row that a fresh one may repeat, or one behind it; None without any."""
    first, oldest = None, _oldest(fresh)
    while oldest is not None:
        first = pc.min(older.column("position").filter(pc.greater_equal(older.column("source"), oldest))).as_py()
        further = None if first is None else _oldest(older.filter(pc.greater_equal(older.column("position"), first)))
        oldest = further if further is not None and further < oldest else None
    return first


def _oldest(rows: pa.Table) -> int | None:
    """Return the oldest source time of rows, None where no row has one."""
    times = rows.column("source")
    oldest: int | None = pc.min(times.filter(pc.greater_equal(times, 0))).as_py()
    return oldest


def _not_older(rows: pa.Table) -> pa.Table:
    older = rows.column("older")
    return rows.filter(pc.invert(older)) if pc.any(older).as_py() else rows  # else all images would be copied


def _unknown(fresh: pa.Table, before: pa.Table, wire: Format) -> pa.Table:
    """Return the fresh rows of a table without key that were not applied before: sent again, they would count twice."""
    numbers = identities(pa.concat_tables([fresh, before]).unify_dictionaries(), wire)
    again = pa.array(np.isin(numbers[: fresh.num_rows], numbers[fresh.num_rows :]))
    if wire.snapshot_rows == "numbered":  # else copies of snapshot rows look like the others
        return fresh.filter(pc.invert(again))
    snapshot = pc.equal(fresh.column("op").cast(pa.string()), "snapshot")
    return fresh.filter(pc.or_(pc.invert(again), snapshot))
