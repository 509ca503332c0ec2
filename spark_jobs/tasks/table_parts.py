# SPDX-License-Identifier: Apache-2.0
"""Write the rows of a table that is split, part by part, and commit them (the keys: :mod:`spark_jobs.tasks.part_keys`).

Only keys go from task to task: an image is typed by the task that reads it. Of a table without key it is the digests of
rows that are added and removed, and what is left of both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.merge_plan import ImagesLack, LaterRows, MergePlan, MergeStep, RowFailure
from airflow_provider_cdc.core.apply.resolve import RESOLVE_COLUMNS, ordered, typer_of
from airflow_provider_cdc.core.apply.row_images import SchemaMissing
from airflow_provider_cdc.core.apply.row_typing import RowTyper
from airflow_provider_cdc.core.arrays import IntArray
from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.errors import DataError, SinkError
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.model.status import ApplyStatus
from spark_jobs.lake.layout import staged_folder
from spark_jobs.lake.staged_batches import one_batch, read_batch, write_batches
from spark_jobs.sinks.commits import Commit
from spark_jobs.sinks.contract import RowFiles
from spark_jobs.sinks.registry import open_sink
from spark_jobs.tasks.apply import TableApply
from spark_jobs.tasks.reporting import reported
from spark_jobs.tasks.table_task import ApplyReport, ApplyTask, PartResult, TablePart

Secrets = dict[str, dict[str, str]]


def write_rows(
    job: JobDocument, part: TablePart, secrets: Secrets, newest: Sequence[str], released: Sequence[str]
) -> ApplyReport:
    """Write the rows of a part's changes that are the newest of their keys; an error is reported, not raised.

    :param newest: files of the buckets; so is ``released``, of a table without key.
    """
    return reported(SplitTable(job, part.task, secrets), lambda table: table.write_rows(part, newest, released))


def commit_parts(
    job: JobDocument,
    task: ApplyTask,
    secrets: Secrets,
    reports: Sequence[ApplyReport],
    cleared: str | None,
) -> ApplyReport:
    """Commit a table whose rows are written; an error is reported, not raised.

    :param task: of the whole table.
    :param reports: of all tasks that had a part or a bucket of it.
    :param cleared: position of the newest TRUNCATE, None without any.
    """
    return reported(SplitTable(job, task, secrets), lambda table: table.commit(reports, cleared))


def discard_rows(job: JobDocument, task: ApplyTask, secrets: Secrets, reports: Sequence[ApplyReport]) -> None:
    """Remove the files that parts of a table wrote and that no commit tried to add."""
    rows = [report.part.rows for report in reports if report.part is not None and report.part.rows.added]
    if rows:
        open_sink(job, secrets).discard(job.at(task.location), rows)


class SplitTable(TableApply):
    """One table's way through apply, in one of the tasks that share it."""

    def write_rows(self, part: TablePart, newest: Sequence[str], released: Sequence[str]) -> ApplyReport:
        """Write the rows of these numbers; those that the changes ``released`` take away are for the commit."""
        target = self._target.open()
        if isinstance(target, ApplyReport):
            return target
        row_numbers, gone = self._row_numbers(newest, part), self._row_numbers(released, part)
        result, failures, lossy = PartResult(), list[RowFailure](), Counter[str]()
        before = [self._nothing]
        for rows, typer in self._typed(gone, "before"):
            before.append(rows)
            result.removed_until = max(result.removed_until, pc.max(typer.changes.rows.column("position")).as_py())
        removed = pa.concat_tables(before)
        if removed.num_rows:
            result.removed = write_batches(self._storage, self.staged, "removed", [one_batch(removed)])
        if not len(row_numbers):
            return self.done(result, deletes=removed.num_rows)
        if not target.exists:
            self._target.note_begin()
        files = self._writer.row_files(target, self._columns)
        assert files is not None  # the first step looked
        try:
            count = self._write_rows(row_numbers, files, failures, lossy)
            result.rows = files.written()
        except BaseException:
            files.discard()
            raise
        report = self.done(result, failures, lossy, deletes=removed.num_rows)
        report.upserts = count
        return report

    def _row_numbers(self, names: Sequence[str], part: TablePart) -> IntArray:
        """Return the numbers of a part's rows that files of the buckets name, ascending."""
        numbers = [read_batch(self._storage, name, part.number).column("row").to_numpy() for name in names]
        row_numbers: IntArray = np.sort(np.concatenate([np.empty(0, np.int64), *numbers]))
        return row_numbers

    def _write_rows(
        self, row_numbers: IntArray, files: RowFiles, failures: list[RowFailure], lossy: Counter[str]
    ) -> int:
        """Type and write rows; return how many there are.

        :param failures: takes the rows that do not fit.
        :param lossy: takes the counts of values that do not stay as they are.
        """
        count = 0
        for rows, typer in self._typed(row_numbers, "after"):
            files.add(rows)
            count += rows.num_rows
            failures += typer.failures
            if self.key:  # all rows of the others were typed for their digests
                lossy.update(typer.lossy)
            self._demand_fit(failures)
        return count

    def picked(self, row_numbers: IntArray, columns: Sequence[str]) -> Iterator[tuple[pa.Table, IntArray]]:
        """Yield the changes of these numbers, with their numbers, some at a time.

        :param row_numbers: ascending.
        :param columns: of the change log.
        """
        start = 0
        for rows in self._changes.pieces(columns) if len(row_numbers) else ():
            first, end = np.searchsorted(row_numbers, [start, start + rows.num_rows])
            some = row_numbers[first:end]
            if len(some):
                yield rows.take(pa.array(some - start)), some
            start += rows.num_rows

    def _typed(self, row_numbers: IntArray, image: str) -> Iterator[tuple[pa.Table, RowTyper]]:
        """Type an image of the rows of these numbers, some at a time.

        :param row_numbers: ascending.
        :raises ImagesLack: an update lacks columns, which changes of other parts may have.
        """
        last = len(self._timeline.versions) - 1
        other = {"after": "before", "before": "after"}[image]
        unread = set() if self._format.updates_name_changes and image == "before" else {other}
        read = [name for name in (*RESOLVE_COLUMNS, *self._shape.rules.of_change) if name not in unread]
        for mine, _ in self.picked(row_numbers, read):
            for name in unread:
                mine = mine.append_column(name, pa.nulls(mine.num_rows, pa.string()))
            try:
                typer = typer_of(ordered(mine), self._timeline, self._format, self._types, self._shape.rules)
                typed = typer.typed(np.arange(mine.num_rows), image, last, partial=self._format.partial_images)
            except SchemaMissing:  # rows of other parts may show which columns a row has
                raise ImagesLack from None
            if typed.absent:
                raise ImagesLack
            yield typed.rows, typer

    def commit(self, reports: Sequence[ApplyReport], cleared: str | None) -> ApplyReport:
        """Commit what the tasks wrote."""
        target = self._target.open()
        if isinstance(target, ApplyReport):
            return target
        task, base = self.task, self.task.base
        plan, upserts, cancelled = self._plan(
            reports, clear=cleared is not None and cleared > (base.applied_position if base else "")
        )
        try:
            self._demand_fit(plan.failures)
        except SinkError:
            discard_rows(self.job, task, self._secrets, reports)
            raise
        step = plan.steps[-1]
        base_schema = TableSchema.from_document(base.schema) if base and base.schema else None
        upserts, deletes = upserts + cancelled, step.deletes.num_rows + cancelled
        facts = self._facts(plan, upserts, deletes)
        action = self._action(target, base_schema, plan, Commit(self._app, self.job.seq, facts))
        facts["upserts"] = upserts  # rows of other tasks
        report = ApplyReport(
            task.table_id, ApplyStatus.UNCHANGED, task.expected, upserts, deletes, lossy=dict(plan.lossy)
        )
        report.failures = [asdict(failure) for failure in plan.failures]
        if action is not None:
            written = [each.part.rows for each in reports if each.part is not None]
            parts = [rows for rows in written if rows.added or rows.staged]
            report.status, report.action = ApplyStatus.COMMITTED, action.verb
            action = replace(action, later=None, parts=parts, unmatched=self._settles(facts, plan))
            self._is_compared = self._verification is not None and not self.key  # by whole rows
            try:
                report.version = self._carry_out(target, action)
            except DataError:  # before the commit: a removed row is not there
                discard_rows(self.job, task, self._secrets, reports)
                raise
            report.choice, report.added_bytes = self._writer.choice, self._added_bytes
        report.state = self._state(committed=action is not None)
        return report

    def _plan(self, reports: Sequence[ApplyReport], *, clear: bool) -> tuple[MergePlan, int, int]:
        """Return the plan that the tasks carried out but for its commit, and how many rows they wrote and cancelled."""
        counts, lossy, upserts = Counter[str](), Counter[str](), sum(report.upserts for report in reports)
        removed, cancelled = [self._nothing.select(self.key or self._nothing.column_names)], 0
        until = [pa.array([], pa.string())]
        for report in reports:
            assert report.part is not None
            counts.update(report.part.changes)
            lossy.update(report.lossy)
            cancelled += report.part.cancelled
            if report.deletes:
                removed.append(as_table(read_batch(self._storage, report.part.removed, 0)))
                until.append(pa.repeat(report.part.removed_until, removed[-1].num_rows))
        last, later = len(self._timeline.versions) - 1, LaterRows(upserts, _no_pieces)
        gone = pa.concat_tables(removed)
        open_until = None if self.key else partial(pa.concat_arrays, until)
        step = MergeStep(last, self._schema, clear, self._nothing, gone, later=later, open_until=open_until)
        failures = [RowFailure(**failure) for report in reports for failure in report.failures]
        return MergePlan([step], failures, lossy, dict(counts)), upserts, cancelled

    @property
    def _schema(self) -> TableSchema:
        return self._timeline.versions[-1].schema

    @property
    def key(self) -> list[str]:
        """The names of the columns that identify a row."""
        return self._columns.key_names

    @property
    def staged(self) -> str:
        """The folder of what the table's tasks hand to each other."""
        return staged_folder(self.job.pipeline, self.job.seq, self.task.table_id)

    @property
    def _nothing(self) -> pa.Table:
        return self._columns.columns.empty_table()

    def done(
        self,
        result: PartResult,
        failures: Sequence[RowFailure] = (),
        lossy: Counter[str] | None = None,
        deletes: int = 0,
    ) -> ApplyReport:
        """Return the report of a task that has a part or a bucket."""
        report = ApplyReport(self.task.table_id, ApplyStatus.UNCHANGED, lossy=dict(lossy or {}), part=result)
        report.deletes = deletes
        report.failures = [asdict(failure) for failure in failures]
        return report


def by_number(rows: pa.Table, numbers: IntArray, count: int) -> list[pa.RecordBatch]:
    """Return a batch of the rows of each number.

    :param numbers: of each row.
    :param count: of batches, for the numbers from 0.
    """
    batch = one_batch(rows.take(pa.array(np.argsort(numbers, kind="stable"))))
    bounds = np.cumsum([0, *np.bincount(numbers, minlength=count)])
    return [batch.slice(start, end - start) for start, end in pairwise(bounds)]


def as_table(batch: pa.RecordBatch) -> pa.Table:
    """Return a batch as a table."""
    return pa.Table.from_batches([batch])


def _no_pieces() -> Iterator[pa.Table]:
    """Yield nothing: other tasks wrote the rows."""
    return iter(())
