# SPDX-License-Identifier: Apache-2.0
"""Apply: one table's changes become one commit."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.clock_order import next_to_copies, order_unknown, rows_of_name, unordered_with
from airflow_provider_cdc.core.apply.foreign_key_actions import Lost, RowsUnknown, lost_values, referring
from airflow_provider_cdc.core.apply.merge_plan import ImagesLack, MergePlan, MergeStep
from airflow_provider_cdc.core.apply.partial_images import RewindNeeded
from airflow_provider_cdc.core.apply.repeated_rows import SENT_COLUMNS, with_sending, without_repeats_across
from airflow_provider_cdc.core.apply.resolve import RESOLVE_COLUMNS, resolve
from airflow_provider_cdc.core.apply.row_copies import identities
from airflow_provider_cdc.core.apply.row_sets import group_numbers, without_keys
from airflow_provider_cdc.core.apply.row_typing import SchemaMissing
from airflow_provider_cdc.core.apply.schema_mapping import Mapper, arrow_schema
from airflow_provider_cdc.core.apply.table_rewrite import after_steps
from airflow_provider_cdc.core.documents import JobDocument, TableState
from airflow_provider_cdc.core.errors import CASCADED, CdcError, SinkError, UnavailableError
from airflow_provider_cdc.core.faults import course, may_be_caught
from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA, Format
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.clock_position import latest_unordered
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.model.status import ApplyStatus
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.core.timeline.barriers import barriers
from airflow_provider_cdc.core.timeline.timeline import Reference, TableTimeline
from airflow_provider_cdc.core.values.types import TypeOptions
from spark_jobs.driver.parking import as_cdc_error
from spark_jobs.lake import pending_deletes
from spark_jobs.lake.change_log import RowGroup, StoredImages, read_groups, read_without_images, without_settled
from spark_jobs.lake.layout import begun_file
from spark_jobs.lake.scratch import lake_of
from spark_jobs.sinks.contract import Action, Writer
from spark_jobs.sinks.delta.preview_writer import PreviewWriter
from spark_jobs.sinks.delta.spark_writer import StageWriter
from spark_jobs.sinks.delta.table import Commit, DeltaLocation
from spark_jobs.sinks.delta.task_writer import TaskWriter
from spark_jobs.tasks.committed_state import committed_state
from spark_jobs.tasks.table_task import ApplyReport, ApplyTask, Span
from spark_jobs.workers.malloc import keep_memory

_REFUSED = 1_000  # rows that a report names of a table that is parked for them


def apply(
    job: JobDocument, task: ApplyTask, secrets: dict[str, dict[str, str]], stage: str | None = None
) -> ApplyReport:
    """Resolve and commit one table; an error is reported, not raised.

    :param stage: folder for what the Spark writer is to commit afterwards; None lets the task commit itself.
    """
    begin = time.monotonic()
    keep_memory()
    table = _Table(job, task, secrets, stage)
    try:
        try:
            report = table.run()
        except UnavailableError as error:
            if error.code != "sink.commit_conflict":
                raise
            table = _Table(job, task, secrets, stage)  # maintenance may have come in between; it changes no rows
            report = table.run()
    except SchemaMissing as error:
        report = ApplyReport(task.table_id, ApplyStatus.WAITING, reason=str(error), error=error)
    except RowsUnknown as error:
        report = ApplyReport(task.table_id, ApplyStatus.PARKED, reason=f"needs rebuild: {error}", error=error)
    except RewindNeeded as error:
        report = ApplyReport(task.table_id, ApplyStatus.REWIND, reason=str(error), rewind_to=error.position)
    except BaseException as error:
        if not may_be_caught(error):
            raise
        report = _set_aside(task, error, table.first, table.seen_version)
        if report.status == ApplyStatus.PARKED and table.may_hold_batch():
            report.status = ApplyStatus.UNAVAILABLE  # the repeat of the batch finds what is committed
        report.refused = table.refused
    pa.default_memory_pool().release_unused()  # the worker lives on next to others that need it now
    report.seconds = round(time.monotonic() - begin, 3)
    return report


def _set_aside(task: ApplyTask, error: BaseException, first: dict[str, Any], seen_version: int | None) -> ApplyReport:
    """Report an error: that the batch should run again, or why the table is parked.

    :param first: topic, partition and offset of the first record that has to wait.
    :param seen_version: version that the table's location has, None where no table could be opened.
    """
    table = f"{task.database}.{task.table}"
    cdc_error = as_cdc_error(error, {"table": table, **first})
    if cdc_error is not error:
        print(f"{cdc_error.code} in table {printable(table)}: {course(error)}", file=sys.stderr)
    report = ApplyReport(task.table_id, ApplyStatus.PARKED, seen_version)
    report.fail(cdc_error)
    return report


class _Table:
    """One table's way through apply.

    :ivar first: topic, partition and offset of its first record, once changes were read.
    :ivar refused: rows that do not fit, where they are too many, the first of them.
    """

    def __init__(
        self, job: JobDocument, task: ApplyTask, secrets: dict[str, dict[str, str]], stage: str | None
    ) -> None:
        self._job, self._task = job, task
        self._options = {**job.storage, **secrets.get("storage", {})}
        self._storage = lake_of(job, secrets)
        self._app = f"cdc/{job.pipeline}/{task.table_id}/0"
        self._policy = job.tables.policy(f"{task.database}.{task.table}", job.policy)
        self._types = TypeOptions(self._policy.tinyint1_as_boolean, self._policy.zero_dates)
        self._timeline = TableTimeline.from_document(task.timeline)
        self._format = open_format(job.format, job.format_options)
        self._by_clock = self._format.order == "clock"
        self._has_pending = False
        self._committing = False
        self.seen_version: int | None = None
        self.first: dict[str, Any] = {}
        self.refused: list[dict[str, Any]] = []
        self._begun = begun_file(job.pipeline, task.table_id)  # says where the table was first written to
        self._writer: Writer = TaskWriter() if stage is None else StageWriter(self._storage, stage)
        self._preview = PreviewWriter()
        if job.scratch:
            self._writer = self._preview

    def run(self) -> ApplyReport:
        task = self._task
        target = DeltaLocation(task.location, self._options)
        self.seen_version = target.version
        done = target.applied(self._app)
        if done is not None and done > task.applied_seq:
            return self._held(target, done)
        self._guard(target)
        base_schema = TableSchema.from_document(task.base.schema) if task.base and task.base.schema else None
        try:
            return self._resolved(target, base_schema, in_pieces=self._is_large())
        except ImagesLack:
            return self._resolved(target, base_schema, in_pieces=False)

    def _is_large(self) -> bool:
        """Return whether the images of the changes are left in the change log until rows are made of them.

        Late rows are compared with applied ones, rows with what parents lost, and rows that may be repeats with those
        that they may repeat, all at once.
        """
        task = self._task
        compared = bool(task.parents) or (task.late_from is not None and bool(task.context))
        compared = compared or any(span.older for span in task.spans)
        return task.image_bytes > self._job.policy.apply_bytes and not compared

    def _resolved(self, target: DeltaLocation, base_schema: TableSchema | None, *, in_pieces: bool) -> ApplyReport:
        """Resolve the changes and commit what comes of them.

        :raises ImagesLack: rows typed in pieces lack columns.
        """
        task = self._task
        images = {name: StoredImages(self._storage, name) for name in ("before", "after")} if in_pieces else None
        fresh, applied = self._changes(images)
        plan = resolve(
            fresh,
            self._timeline,
            base_schema,
            self._format,
            self._types,
            base_position=task.base.applied_position if task.base else "",
            truncates=self._policy.on_truncate == "apply",
            applied=applied,
            read=self._stored,
            snapshot_position=task.snapshot_position,
            stored_images=images,
        )
        del fresh, applied  # as large as what is written now
        self._demand_fit(plan)
        self._check_foreign_keys(base_schema, plan)
        action, version, upserts = self._commit(target, base_schema, plan)
        return ApplyReport(
            task.table_id,
            ApplyStatus.COMMITTED if action else ApplyStatus.UNCHANGED,
            version,
            upserts,
            plan.steps[-1].deletes.num_rows,
            failures=[asdict(item) for item in plan.failures],
            lossy=dict(plan.lossy),
            action=action,
            state=self._state(committed=bool(action)),
            files=self._preview.files,
            file_bytes=self._preview.file_bytes,
        )

    def _demand_fit(self, plan: MergePlan) -> None:
        """Refuse a table of which too many rows do not fit."""
        budget = self._policy.quarantine_limit
        if len(plan.failures) > budget:
            first = plan.failures[0]
            self.refused = [asdict(failure) for failure in plan.failures[:_REFUSED]]
            raise SinkError(
                "apply.quarantine_exceeded",
                f"{len(plan.failures)} rows do not fit their columns, policy.quarantine_limit is {budget}",
                where=asdict(first),
                hint="correct the column's type or raise the limit; the table goes on from its present version",
            )

    def _check_foreign_keys(self, base_schema: TableSchema | None, plan: MergePlan) -> None:
        """Compare the table as it will be with what its parents lost.

        :raises RowsUnknown: a row refers to a value that its parent lost: a foreign key removed or changed it.
        """
        if not self._task.parents:
            return
        cleared = max([*self._timeline.clears, *self._clears()], default="")
        truncates = self._policy.on_truncate == "apply"
        for parent in self._task.parents:
            reference = Reference.from_document(parent.reference)
            since = max(reference.position, cleared) if truncates else reference.position
            timeline = TableTimeline.from_document(parent.timeline)
            lost = [
                lost_values(
                    _inside(self._read(spans), since, reference.until), timeline, reference, self._format, self._types
                )
                for spans in (parent.spans, [*parent.spans, *parent.earlier])
            ]
            if self._refers(base_schema, plan, reference, *lost):
                raise RowsUnknown(
                    CASCADED,
                    f"a foreign key to {timeline.last_name} removed or changed rows without row events",
                    where={"table": f"{self._task.database}.{self._task.table}"},
                    hint="TRUNCATE TABLE, or DROP TABLE and CREATE TABLE, at the source makes the table known again; "
                    "policy.on_cascade: ignore keeps such rows",
                )

    def _refers(
        self, base_schema: TableSchema | None, plan: MergePlan, reference: Reference, lost: Lost, ever: Lost
    ) -> bool:
        """Return whether a row of the table as it will be refers to what its parent lost.

        :param lost: what the stored rows were not compared with yet.
        :param ever: that, and what rows arriving late have to be compared with.
        """
        step = plan.steps[-1]
        columns = [step.schema.column(i) for i in reference.columns]
        names = [column.name for column in columns if column is not None]
        if len(names) < len(columns):
            return False
        stored = None
        if base_schema is not None and not plan.steps[0].clear and lost.values.num_rows:
            stored = self._stored(_as_keys(lost.values, base_schema, reference, self._types))
        mapper = Mapper(self._timeline.versions, self._timeline.fills, self._types)
        if len(plan.steps) > 1 or not step.keyed or step.positions is None:
            rows, _ = after_steps(stored, pa.table({}), base_schema, plan.steps, mapper)
            return bool(pc.sum(referring(rows, names, ever)).as_py())
        if pc.sum(referring(step.upserts, names, ever, step.positions())).as_py():
            return True
        if stored is None or base_schema is None:
            return False
        remaining = mapper.content(stored, base_schema, step.version)
        remaining = remaining.filter(referring(remaining, names, lost))
        keys = [column.name for column in step.schema.key_columns]
        gone = pa.concat_tables([step.deletes, step.upserts.select(keys)])
        return bool(without_keys(remaining, gone, keys).num_rows)

    def _clears(self) -> list[str]:
        """Return where rows say TRUNCATE."""
        return [
            position
            for span in self._task.spans
            for group in span.groups
            for position in group.clears
            if position >= span.start and (span.end is None or position < span.end)
        ]

    def _state(self, *, committed: bool) -> TableState:
        """Return the table's state after this batch."""
        pending_seq = None
        if self._has_pending:
            pending_seq = self._job.seq if committed or self._task.base is None else self._task.base.debts_seq
        return committed_state(self._task, self._timeline, self._job.seq, pending_seq)

    def may_hold_batch(self) -> bool:
        """Return whether this attempt's commit may have gone through: such a table is never parked for the batch."""
        if not self._committing:
            return False
        try:
            done = DeltaLocation(self._task.location, self._options).applied(self._app)
        except CdcError:
            return True
        return done is not None and done >= self._job.seq

    def _held(self, target: DeltaLocation, done: int) -> ApplyReport:
        """Report what the table holds already, as its own newest commit states it.

        :param done: batch of that commit: this one, or an earlier one that was not recorded as applied.
        :raises UnavailableError: a later batch is applied, so this one is carried out by somebody else.
        """
        task = self._task
        where = {"table": f"{task.database}.{task.table}", "location": task.location, "seq": done}
        if done > self._job.seq:
            raise UnavailableError(
                "apply.superseded",
                f"the table holds batch {done} already, batch {self._job.seq} ended elsewhere",
                where=where,
                hint="run again; it goes on with the newest batch",
            )
        facts = target.facts(self._app)
        if facts is None or "state" not in facts:
            raise SinkError(
                "sink.commit_unknown",
                "the table holds a batch that is not known as applied, and the batch's commit is no longer readable",
                where=where,
                hint="keep delta.logRetentionDuration longer than the time between batches; rebuild the table",
            )
        state = replace(TableState.from_document(facts["state"]), version=target.version)
        if done < self._job.seq:
            return ApplyReport(task.table_id, ApplyStatus.AHEAD, target.version, state=state)
        counts = {name: facts[name] for name in ("upserts", "deletes", "lossy")}
        return ApplyReport(task.table_id, ApplyStatus.REPEATED, target.version, state=state, **counts)

    def _guard(self, target: DeltaLocation) -> None:
        """Refuse a location that is not what the ledger remembers."""
        task = self._task
        where = {"table": f"{task.database}.{task.table}", "location": task.location}
        if not target.exists:
            if task.expected is not None:
                raise SinkError(
                    "sink.missing", "the table is gone", where=where, hint="restore it, or rebuild the table"
                )
            # a process that dies while it makes a table leaves files without a log: they are ours if we began there
            holds_files = self._storage.holds_files(task.location[len(self._storage.root) + 1 :])
            if holds_files and self._storage.read_json(self._begun) != {"location": task.location}:
                raise SinkError(
                    "sink.not_ours",
                    "the location holds files but no Delta table",
                    where=where,
                    hint="empty it or choose another root",
                )
            return
        if task.expected is None:
            if not target.is_ours(f"cdc/{self._job.pipeline}/"):
                raise SinkError(
                    "sink.not_ours",
                    "a Delta table that this pipeline did not make lies there",
                    where=where,
                    hint="move it away",
                )
            return
        other = target.foreign_commit(task.expected)
        if other is not None and target.holds_same(DeltaLocation(task.location, self._options, task.expected)):
            other = None  # it was restored since
        if other is not None or (target.version or 0) < task.expected:
            raise SinkError(
                "sink.changed_by_other",
                f"another writer changed the table ({other or 'older version'})",
                where={**where, "expected_version": task.expected, "found_version": target.version},
                hint="restore the table to the expected version, then run again",
            )

    def _changes(self, images: dict[str, StoredImages] | None) -> tuple[pa.Table, pa.Table | None]:
        """Return the changes to resolve, and those applied before that late ones have to be compared with.

        :param images: takes where the images are stored, which are not read then.
        """
        task = self._task
        fresh = self._read(task.spans, images)
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
        unknown = _unknown(counted.filter(pc.invert(self._in_keyed_version(counted))), before, self._format)
        if older is not None:
            again = pa.concat_tables([again, older.filter(pc.less(older.column("position"), task.late_from))])
        return pa.concat_tables([fresh.filter(keyed), unknown]), again

    def _without_replayed(self, fresh: pa.Table) -> pa.Table:
        """Return the changes without those of row groups that the table holds: some rows look all alike.

        :param fresh: the changes of all spans.
        """
        applied = {(group.file, group.row_group) for span in self._task.context for group in span.groups}
        spans = []
        for span in self._task.spans:
            groups = [group for group in span.groups if (group.file, group.row_group) not in applied]
            spans.append(replace(span, groups=groups))
        if all(len(new.groups) == len(span.groups) for new, span in zip(spans, self._task.spans, strict=True)):
            return fresh
        rows = self._read([span for span in spans if span.groups])
        return _not_older(rows) if self._by_clock else rows

    def _applied_from(self, late_from: str) -> pa.Table:
        """Return the applied changes to compare late ones with; where a clock orders, those before are marked older."""
        rows = self._read(self._task.context)
        before = pc.less(rows.column("position"), late_from)
        if not self._by_clock:
            return rows.filter(pc.invert(before))
        older = pc.or_(rows.column("older"), before)
        return rows.set_column(rows.schema.get_field_index("older"), "older", older)

    def _maybe_repeated(self, rows: pa.Table) -> pa.Table | None:
        """Return the rows of earlier batches that fresh ones may repeat, and those behind them; None without any.

        Rows before a change of the key's columns cannot be repeated behind it.
        """
        fresh = rows.column("source").filter(pc.invert(rows.column("older")))
        oldest = pc.min(fresh.filter(pc.greater_equal(fresh, 0))).as_py()
        older = self._older_once(rows)
        alike = older.column("position").filter(pc.greater_equal(older.column("source"), oldest if oldest else 0))
        if oldest is None or not len(alike) or self._task.base is None:
            return None
        applied = self._task.base.applied_position
        positions = [self._timeline.versions[index].position for index in barriers(self._timeline.versions)]
        begins = max([pc.min(alike).as_py(), *(position for position in positions if position <= applied)])
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
            since = pc.greater_equal(rows.column("position"), version.position)
            keyed = pc.if_else(since, bool(version.schema.key), keyed)
        return keyed

    def _read(self, spans: list[Span], images: dict[str, StoredImages] | None = None) -> pa.Table:
        tables, sent = [], self._task.snapshot_sent
        columns = [*RESOLVE_COLUMNS, *(SENT_COLUMNS if self._by_clock else ["kafka_time"] if sent else [])]
        for span in spans:
            read = self._read_groups(span.groups, columns, images)
            if self._by_clock:
                tables.append(self._of_table(self._with_older(read, span, columns), span))
                continue
            rows = _between(read, span)
            tables.append(self._without_broken_off(rows) if sent else rows)
        if not tables:
            return self._no_changes()
        rows = pa.concat_tables(tables).unify_dictionaries()
        if rows.num_rows and not self.first:
            self.first = rows.slice(0, 1).select(["topic", "partition", "offset"]).to_pylist()[0]
        return rows

    def _read_groups(
        self, groups: list[RowGroup], columns: list[str], images: dict[str, StoredImages] | None = None
    ) -> pa.Table:
        """Return the rows of row groups without those that operators replaced or discarded."""
        before_of = self._before_of()

        def read(some: list[RowGroup]) -> pa.Table:
            if images is None:
                return read_groups(self._storage, some, columns, before_of=before_of)
            return read_without_images(self._storage, some, columns, images, before_of=before_of)

        settled = self._task.settled
        if not settled:
            return read(groups)
        files = sorted({group.file for group in groups})
        tables = [without_settled(read([g for g in groups if g.file == file]), file, settled) for file in files]
        return pa.concat_tables(tables, promote_options="permissive")

    def _no_changes(self) -> pa.Table:
        none = CHANGE_SCHEMA.empty_table()
        topic = none.schema.get_field_index("topic")
        none = none.set_column(topic, "topic", none.column(topic).dictionary_encode())  # as the change log is read
        if self._by_clock:
            return _marked(none.select([*RESOLVE_COLUMNS, *SENT_COLUMNS]), older=False)
        return none.select(RESOLVE_COLUMNS)

    def _without_broken_off(self, rows: pa.Table) -> pa.Table:
        """Leave out rows of the snapshot's earlier attempts at the same position."""
        older = pc.less(rows.column("kafka_time").cast(pa.int64()), self._task.snapshot_sent)
        there = pc.equal(rows.column("position"), self._task.snapshot_position)
        snapshot = pc.equal(rows.column("op").cast(pa.string()), "snapshot")
        broken = pc.fill_null(pc.and_(pc.and_(snapshot, there), older), False)
        return rows.filter(pc.invert(broken)).drop_columns(["kafka_time"])

    def _with_older(self, newer: pa.Table, span: Span, columns: list[str]) -> pa.Table:
        """Return a span's rows with those of earlier batches that they may repeat, marked as older."""
        tables = [_marked(newer, older=False)]
        for groups, late in ((span.older, False), (span.late, True)):
            if groups:
                older = self._read_groups(groups, columns)
                tables.append(_marked(older, older=True, late=late))
        return pa.concat_tables(tables).unify_dictionaries()

    def _of_table(self, rows: pa.Table, span: Span) -> pa.Table:
        """Return the rows of a span's groups that mean this table, where a clock orders them.

        :raises DataError: only the order of changes of one instant would show it.
        """
        timeline = self._timeline
        rows = next_to_copies(rows, timeline.copies)
        clears = timeline.clears if self._policy.on_truncate == "apply" else []
        boundaries = {span.start, *clears, *(version.position for version in timeline.versions)}
        for boundary in sorted(boundaries - {""}):
            if boundary >= span.start and (span.end is None or boundary < span.end):
                behind = pc.greater_equal(rows.column("position"), boundary).to_numpy(zero_copy_only=False)
                if boundary == span.start:  # what the clock cannot order with it becomes the table's, too
                    behind |= unordered_with(boundary, rows.column("position"))
                rows = without_repeats_across(rows, behind, str(timeline.last_name))
        begun = latest_unordered(max([span.start, *timeline.copies.get(span.start, ())]))
        groups = [*span.groups, *span.older, *span.late]
        if span.end is None and all(group.min_position >= begun for group in groups):
            return rows
        own = rows_of_name(rows, span.start, span.end, span.others)
        if own is None:
            raise order_unknown(timeline, "rows, and statements that give their name to another table,")
        return own

    def _before_of(self) -> list[str] | None:
        """Return the operations whose image before counts: updates name their key a second time in many formats."""
        keyed = all(version.schema.key for version in self._timeline.versions)
        return ["delete"] if keyed and not self._format.updates_move_keys and not self._format.partial_images else None

    def _commit(
        self, target: DeltaLocation, base_schema: TableSchema | None, plan: MergePlan
    ) -> tuple[str, int | None, int]:
        """Make the cheapest commit that makes the table right; return what it does, its version and its upserts."""
        task, step = self._task, plan.steps[-1]
        moved = task.base is not None and task.base.location != task.location
        facts = {
            "app": self._app,
            "seq": self._job.seq,
            "changes": plan.changes,
            "upserts": step.upserts.num_rows,
            "deletes": step.deletes.num_rows,
            "lossy": plan.lossy,
        }
        commit = Commit(self._app, self._job.seq, facts)
        pending = pending_deletes.read(self._storage, self._job.pipeline, task.base)
        stays = (
            base_schema is not None and not moved and task.rewind_to is None and len(plan.steps) == 1 and not step.clear
        )
        same = stays and _same_layout(base_schema, step.schema, self._types)
        stays = same or (stays and self._adds_columns(target, base_schema, step))
        self._has_pending = pending.num_rows > 0
        if same and not step.adds and not step.deletes.num_rows:
            return "", task.expected, 0
        if stays and not pending.num_rows and not step.deletes.num_rows and (not step.keyed or target.is_empty()):
            action = Action("append", commit, step.upserts, later=step.later)
        elif stays and step.keyed:
            key = [column.name for column in step.schema.key_columns]
            action = Action("merge", commit, step.upserts, step.deletes, key, step.later)
        else:
            keeps = base_schema is not None and not plan.steps[0].clear
            later = step.later
            if keeps or (step.deletes.num_rows and not step.keyed):
                step.type_now()
                later = None
            mapper = Mapper(self._timeline.versions, self._timeline.fills, self._types, plan.lossy)
            rows, pending = after_steps(self._stored() if keeps else None, pending, base_schema, plan.steps, mapper)
            pending_deletes.write(self._storage, self._job.pipeline, task.table_id, self._job.seq, pending)
            self._has_pending = pending.num_rows > 0
            action = Action("overwrite" if target.exists else "create", commit, rows, later=later)

        def typed(rows: int) -> None:
            if action.later is not None:
                self._demand_fit(plan)
                facts["upserts"] = rows

        action.typed = typed
        if action.verb == "create":
            self._storage.write_json(self._begun, {"location": task.location})
        facts["state"] = self._state(committed=True).document()
        self._committing = True
        version = self._writer.commit(target, action)
        return action.verb, version, int(facts["upserts"])

    def _adds_columns(self, target: DeltaLocation, old: TableSchema | None, step: MergeStep) -> bool:
        """Return whether the new schema only has further columns behind the old ones, which are NULL in stored rows."""
        new = step.schema
        if old is None or old.key != new.key or new.columns[: len(old.columns)] != old.columns:
            return False
        fills = [self._timeline.fills.get(column.id) for column in new.columns[len(old.columns) :]]
        null = all(fill is None or fill.kind != "constant" or fill.text is None for fill in fills)
        null = null and all(column.nullable for column in new.columns[len(old.columns) :])
        computed = any(version.computed for version in self._timeline.versions)
        if not null or computed:
            return False
        merges = step.keyed and (step.adds or step.deletes.num_rows > 0)
        return self._writer.adds_columns(target, arrow_schema(new, self._types), merges=merges)

    def _stored(self, keys: pa.Table | None = None) -> pa.Table:
        """Return the rows that the result starts from; with keys those that may have one of them."""
        base = self._task.base
        assert base is not None and base.version is not None
        try:
            return DeltaLocation(base.location, self._options, base.version).rows(keys)
        except SinkError:
            if self._task.rewind_to is None:
                raise
            # that version is gone: all that the change log has, from the beginning
            text = "the version to go back to is gone"
            raise RewindNeeded("apply.version_gone", text) from None


def _same_layout(old: TableSchema | None, new: TableSchema, options: TypeOptions) -> bool:
    if old is None:
        return False
    return arrow_schema(old, options) == arrow_schema(new, options) and [c.id for c in old.columns] == [
        c.id for c in new.columns
    ]


def _between(rows: pa.Table, span: Span) -> pa.Table:
    if span.start and any(group.min_position < span.start for group in span.groups):
        rows = rows.filter(pc.greater_equal(rows.column("position"), span.start))
    if span.end is not None and any(group.max_position >= span.end for group in span.groups):
        rows = rows.filter(pc.less(rows.column("position"), span.end))
    return rows


def _as_keys(values: pa.Table, base: TableSchema, reference: Reference, options: TypeOptions) -> pa.Table | None:
    """Return values as stored rows have them, None where they must be compared in another way than by equality."""
    stored = arrow_schema(base, options)
    columns = [base.column(i) for i in reference.columns]
    fields = [stored.field(column.name) for column in columns if column is not None]
    same = len(fields) == len(columns) and [field.type for field in fields] == values.schema.types
    if not same or any(pa.types.is_string(field.type) for field in fields):
        return None
    return values.rename_columns([field.name for field in fields])


def _inside(rows: pa.Table, start: str, end: str | None) -> pa.Table:
    """Return the changes between two positions."""
    rows = rows.filter(pc.greater_equal(rows.column("position"), start))
    return rows if end is None else rows.filter(pc.less(rows.column("position"), end))


def _marked(rows: pa.Table, *, older: bool, late: bool = False) -> pa.Table:
    """Return rows of a format ordered by clock with the columns that repeats are recognised by."""
    rows = with_sending(rows)
    for name, mark in (("older", older), ("late", late)):
        rows = rows.append_column(name, pa.chunked_array([pa.repeat(mark, rows.num_rows)]))
    return rows


def _not_older(rows: pa.Table) -> pa.Table:
    return rows.filter(pc.invert(rows.column("older")))


def _unknown(fresh: pa.Table, before: pa.Table, wire: Format) -> pa.Table:
    """Return the fresh rows of a table without key that were not applied before: sent again, they would count twice."""
    numbers = identities(pa.concat_tables([fresh, before]).unify_dictionaries(), wire)
    again = pa.array(np.isin(numbers[: fresh.num_rows], numbers[fresh.num_rows :]))
    if wire.snapshot_rows == "numbered":  # else copies of snapshot rows look like the others
        return fresh.filter(pc.invert(again))
    snapshot = pc.equal(fresh.column("op").cast(pa.string()), "snapshot")
    return fresh.filter(pc.or_(pc.invert(again), snapshot))
