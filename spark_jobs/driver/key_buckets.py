# SPDX-License-Identifier: Apache-2.0
"""Apply tables with more changes than one task resolves: split them by key, resolve each bucket, make one commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from airflow_provider_cdc.core.apply.key_buckets import KeyBucket
from airflow_provider_cdc.core.apply.resolve import part_ends, version_of
from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.model.status import ApplyStatus
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from airflow_provider_cdc.core.values.types import TypeOptions
from spark_jobs.lake.change_log import RowGroup
from spark_jobs.lake.layout import bucket_folder, staged_folder
from spark_jobs.lake.storage import Storage
from spark_jobs.tasks.apply import apply, commit_buckets, same_layout, split
from spark_jobs.tasks.table_task import ApplyReport, ApplyTask, Span

_PART_ROWS = 1_000_000  # that one task splits
_FINE = (ApplyStatus.COMMITTED, ApplyStatus.UNCHANGED)
Secrets = dict[str, dict[str, str]]
Runner = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]


def bucket_count(job: JobDocument, task: ApplyTask) -> int:
    """Return the number of key buckets that a table is resolved in; 1 if one task resolves all of it.

    Changes are split if each key can be resolved alone, and if no stored rows are written again for a new layout.
    """
    if task.rows <= job.policy.bucket_rows or task.whole or job.scratch:
        return 1
    compared = bool(task.parents or task.context) or any(span.older or span.late for span in task.spans)
    if compared or task.snapshot_sent or task.rewind_to is not None:
        return 1
    if open_format(job.format, job.format_options).order == "clock":  # repeats are recognised among all rows
        return 1
    timeline = TableTimeline.from_document(task.timeline)
    schema = timeline.versions[-1].schema
    if not schema.key or len(schema.columns_in_rows) < len(schema.columns) or not _is_one_step(job, task, timeline):
        return 1
    return -(-task.rows // job.policy.bucket_rows)


def _is_one_step(job: JobDocument, task: ApplyTask, timeline: TableTimeline) -> bool:
    """Return whether the stored rows stay as they are, and no schema change since then is a barrier."""
    base = task.base
    if base is None or base.schema is None:
        return len(part_ends(timeline, 0)) == 1
    policy = job.tables.policy(f"{task.database}.{task.table}", job.policy)
    stored = TableSchema.from_document(base.schema)
    if base.location != task.location or base.debts_seq is not None:
        return False
    if not same_layout(
        stored, timeline.versions[-1].schema, TypeOptions(policy.tinyint1_as_boolean, policy.zero_dates)
    ):
        return False
    return len(part_ends(timeline, version_of(stored, timeline, base.applied_position))) == 1


@dataclass(slots=True)
class _Table:
    """One table's way through its buckets.

    :param stage: folder for the Spark writer, None where a task commits.
    :ivar report: of the table, once it is known.
    """

    task: ApplyTask
    count: int
    stage: str | None
    buckets: list[list[RowGroup]] = field(default_factory=list)
    changes: Counter[str] = field(default_factory=Counter)
    resolved: list[ApplyReport] = field(default_factory=list)
    report: ApplyReport | None = None

    def take_split(self, reports: Sequence[ApplyReport]) -> None:
        """Take the reports of the tasks that split the changes."""
        self.buckets = [[] for _ in range(self.count)]
        for report in reports:
            if report.split is None:
                self.report = report
                return
            self.changes.update(report.split.counts)
            for bucket, groups in zip(self.buckets, report.split.groups, strict=True):
                bucket += groups

    def take_resolved(self, reports: Sequence[ApplyReport]) -> None:
        """Take the reports of the buckets; the first that is not fine is the table's."""
        self.resolved = list(reports)
        self.report = next((report for report in reports if report.status not in _FINE), None)

    def parts(self) -> list[ApplyTask]:
        """Return the tasks that split the changes."""
        parts: list[list[Span]] = [[]]
        rows = 0
        for span in self.task.spans:
            for group in span.groups:
                if rows >= _PART_ROWS:
                    parts.append([])
                    rows = 0
                rows += group.rows
                if parts[-1] and parts[-1][-1].start == span.start and parts[-1][-1].end == span.end:
                    parts[-1][-1].groups.append(group)
                else:
                    parts[-1].append(replace(span, groups=[group]))
        return [replace(self.task, spans=spans) for spans in parts]

    def bucket_tasks(self) -> list[ApplyTask]:
        """Return the tasks that resolve a bucket each; what an operator settled is left out of them already."""
        return [
            replace(
                self.task,
                spans=[Span(groups, "", None)] if groups else [],
                settled=[],
                bucket=KeyBucket(number, self.count),
            )
            for number, groups in enumerate(self.buckets)
        ]


def apply_in_buckets(
    job: JobDocument,
    secrets: Secrets,
    run: Runner,
    storage: Storage,
    counts: Mapping[str, int],
    tasks: Sequence[ApplyTask],
    stage: Callable[[ApplyTask], str | None],
) -> list[ApplyReport]:
    """Apply tables in key buckets; return a report for each table.

    :param counts: number of buckets by table id.
    :param stage: returns the folder for the Spark writer, None where a task commits.
    """
    tables = [_Table(task, counts[task.table_id], stage(task)) for task in tasks]
    slim = job.for_tasks()

    def each(work: Callable[[Any], ApplyReport], items: Mapping[str, Sequence[Any]]) -> dict[str, list[ApplyReport]]:
        """Run work for the items of all tables at once; return the reports by table."""
        owners = [table_id for table_id, of_table in items.items() for _ in of_table]
        reports: dict[str, list[ApplyReport]] = {table_id: [] for table_id in items}
        for table_id, report in zip(owners, run(work, [i for of in items.values() for i in of]), strict=True):
            reports[table_id].append(report)
        return reports

    def going_on() -> list[_Table]:
        return [table for table in tables if table.report is None]

    parts = {table.task.table_id: [(part, table.count) for part in table.parts()] for table in tables}
    reports = each(partial(_split, slim, secrets), parts)
    for table in tables:
        table.take_split(reports[table.task.table_id])
    reports = each(
        partial(_resolve, slim, secrets), {table.task.table_id: table.bucket_tasks() for table in going_on()}
    )
    for table in going_on():
        table.take_resolved(reports[table.task.table_id])
    commits = {t.task.table_id: [(t.task, t.stage, t.resolved, dict(t.changes))] for t in going_on()}
    reports = each(partial(_commit, slim, secrets), commits)
    for table in going_on():
        (table.report,) = reports[table.task.table_id]
    for table in tables:
        if table.stage is None or table.report is None or table.report.status != ApplyStatus.COMMITTED:
            storage.delete_folder(staged_folder(job.pipeline, job.seq, table.task.table_id))
    return [table.report for table in tables if table.report is not None]


def _split(job: JobDocument, secrets: Secrets, part: tuple[ApplyTask, int]) -> ApplyReport:
    return split(job, part[0], secrets, part[1])


def _resolve(job: JobDocument, secrets: Secrets, task: ApplyTask) -> ApplyReport:
    assert task.bucket is not None
    folder = staged_folder(job.pipeline, job.seq, task.table_id)
    return apply(job, task, secrets, bucket_folder(folder, task.bucket.number))


def _commit(
    job: JobDocument,
    secrets: Secrets,
    table: tuple[ApplyTask, str | None, Sequence[ApplyReport], Mapping[str, int]],
) -> ApplyReport:
    task, stage, resolved, counts = table
    return commit_buckets(job, task, secrets, stage, resolved, counts)
