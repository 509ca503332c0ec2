# SPDX-License-Identifier: Apache-2.0
"""Apply tables with more changes than one task resolves: by parts of the changes and buckets of keys, in one commit.

Of a table without key the rows themselves are divided into buckets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

from airflow_provider_cdc.core.apply.resolve import all_clears, part_ends, version_of
from airflow_provider_cdc.core.apply.target_schema import target_schema
from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from airflow_provider_cdc.core.values.types import TypeOptions
from spark_jobs.lake.layout import staged_folder
from spark_jobs.lake.storage import Storage
from spark_jobs.tasks.clock_boundaries import is_apart_from_boundaries
from spark_jobs.tasks.part_keys import find_newest, settle, write_events
from spark_jobs.tasks.table_parts import commit_parts, discard_rows, write_rows
from spark_jobs.tasks.table_shape import laid_of, shape_of
from spark_jobs.tasks.table_task import ApplyReport, ApplyTask, PartResult, Span, TablePart
from spark_jobs.workers.progress import advance

_PART_ROWS = 1_000_000  # that one task reads
_PART_BYTES = 1 << 30  # of their images: texts of keys in one batch are less than 2 GiB
_SETTLED_ROWS = 200_000  # changes of keys in doubt that one task reads with their images
Secrets = dict[str, dict[str, str]]
Runner = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]


def bucket_count(job: JobDocument, task: ApplyTask, secrets: Secrets) -> int:
    """Return the number of key buckets that a table is resolved in; 1 if one task resolves all of it.

    Changes are split if each key can be resolved alone, and if no stored rows are written again for a new layout.
    """
    if task.rows <= job.policy.bucket_rows or task.whole or job.scratch:
        return 1
    if task.parents or task.context or task.snapshot_sent or task.snapshot_again or task.rewind_to is not None:
        return 1
    if task.settled and any(group.clears for span in task.spans for group in span.groups):
        return 1  # only the rows show which TRUNCATE still counts
    wire = open_format(job.format, job.format_options)
    timeline = TableTimeline.from_document(task.timeline)
    if wire.order == "clock" and not is_apart_from_boundaries(task, timeline):
        return 1
    schema = timeline.versions[-1].schema
    if not schema.key and wire.row_numbers != "event":  # only all rows of an event show which of them are copies
        return 1
    shape = shape_of(job, timeline, secrets)
    if not shape.goes_in_parts or (shape.names_batch and wire.partial_images):  # of copies each way keeps another one
        return 1
    if len(schema.columns_in_rows) < len(schema.columns) or not _is_one_step(job, task, timeline, secrets):
        return 1
    return -(-task.rows // job.policy.bucket_rows)


def _is_one_step(job: JobDocument, task: ApplyTask, timeline: TableTimeline, secrets: Secrets) -> bool:
    """Return whether the stored rows stay as they are, and no schema change since then is a barrier."""
    base = task.base
    if base is None or base.schema is None:
        return len(part_ends(timeline, 0)) == 1
    policy = job.tables.policy(f"{task.database}.{task.table}", job.policy)
    stored = TableSchema.from_document(base.schema)
    if base.location != task.location or base.pending_seq is not None:
        return False
    options = TypeOptions.of(policy)
    shape = shape_of(job, timeline, secrets)
    is_as_source = shape.is_plain and base.laid is None
    if not is_as_source and shape.laid(timeline.schema, options).of(stored) != laid_of(base).of(stored):
        return False
    if not target_schema(timeline.versions[-1].schema, options).has_same_columns(target_schema(stored, options)):
        return False
    return len(part_ends(timeline, version_of(stored, timeline, base.applied_position))) == 1


def _newest_clear(task: ApplyTask) -> str | None:
    """Return the position of the newest TRUNCATE, None without any."""
    positions = [
        position
        for span in task.spans
        for group in span.groups
        for position in group.clears
        if position >= span.start and (span.end is None or position < span.end)
    ]
    return max(all_clears(positions, TableTimeline.from_document(task.timeline)), default=None)


@dataclass(slots=True)
class _Table:
    """One table's way through its parts and buckets.

    :param count: number of buckets.
    :param cleared: position of the newest TRUNCATE, None without any.
    :ivar reports: of the tasks that are done.
    :ivar report: of the table, once it is known.
    """

    task: ApplyTask
    count: int
    cleared: str | None
    reports: list[ApplyReport] = field(default_factory=list)
    report: ApplyReport | None = None

    def take(self, reports: Sequence[ApplyReport]) -> None:
        """Take the reports of one step; the first without a result is the table's."""
        self.reports += reports
        self.report = next((report for report in reports if report.part is None), None)

    def parts(self) -> list[TablePart]:
        """Return the parts of its changes."""
        older = [replace(span, groups=span.older, older=[]) for span in self.task.spans]
        repeated = [[replace(span, groups=[], older=span.groups) for span in spans] for spans in _parts(older)]
        fresh = _parts([replace(span, older=[]) for span in self.task.spans])
        return [
            TablePart(replace(self.task, spans=spans), number, self.count, self.cleared)
            for number, spans in enumerate([*repeated, *fresh])
        ]

    def buckets(self) -> list[tuple[ApplyTask, int, Sequence[str]]]:
        """Return for each bucket the table, the bucket's number, and the files of key events."""
        task, events = replace(self.task, spans=[]), [result.events for result in self.results()]
        return [(task, bucket, events) for bucket in range(self.count)]

    def settlements(self) -> list[tuple[ApplyTask, list[TablePart], list[str]]]:
        """Return the table, its parts, and files with changes of keys in doubt: of as many buckets as a task holds."""
        doubtful = [result for result in self.results() if result.doubtful]
        some, rows, bundles = list[str](), 0, []
        for result in doubtful:
            if some and rows + result.doubtful_rows > _SETTLED_ROWS:
                bundles.append(some)
                some, rows = [], 0
            some.append(result.doubtful)
            rows += result.doubtful_rows
        task = replace(self.task, spans=[])
        return [(task, self.parts(), files) for files in ([*bundles, some] if some else [])]

    def newest(self) -> list[str]:
        """Return the files with the numbers of the rows to write."""
        return [result.newest for result in self.results() if result.newest]

    def released(self) -> list[str]:
        """Return the files with the numbers of the changes that take away a stored row of a table without key."""
        return [result.released for result in self.results() if result.released]

    def results(self) -> list[PartResult]:
        """Return what the tasks left."""
        return [report.part for report in self.reports if report.part is not None]


def _parts(spans: Sequence[Span]) -> list[list[Span]]:
    """Return the row groups of spans, as many together as one task reads."""
    parts: list[list[Span]] = []
    rows = size = 0
    for span in spans:
        for group in span.groups:
            if not parts or rows >= _PART_ROWS or size >= _PART_BYTES:
                parts.append([])
                rows = size = 0
            rows, size = rows + group.rows, size + group.image_bytes
            if parts[-1] and parts[-1][-1].start == span.start and parts[-1][-1].end == span.end:
                parts[-1][-1].groups.append(group)
            else:
                parts[-1].append(replace(span, groups=[group]))
    return parts


def apply_in_buckets(
    job: JobDocument,
    secrets: Secrets,
    run: Runner,
    storage: Storage,
    counts: Mapping[str, int],
    tasks: Sequence[ApplyTask],
) -> list[ApplyReport]:
    """Apply tables in parts and key buckets; return a report for each table.

    :param counts: number of buckets by table id.
    """
    tables = [_Table(task, counts[task.table_id], _newest_clear(task)) for task in tasks]
    slim = job.for_tasks()

    def step(work: Callable[..., ApplyReport], items: Callable[[_Table], Sequence[tuple[Any, ...]]]) -> None:
        """Run work for all tables that go on at once."""
        open_tables = [(table, list(items(table))) for table in tables if table.report is None]
        every = [item for _, some in open_tables for item in some]
        reports = iter(run(partial(work, slim, secrets), every) if every else ())
        for table, some in open_tables:
            table.take(list(islice(reports, len(some))))

    step(_write_events, lambda table: [(part,) for part in table.parts()])
    step(_find_newest, _Table.buckets)
    step(_settle, _Table.settlements)
    step(_write_rows, lambda table: [(part, table.newest(), table.released()) for part in table.parts()])
    going_on = [table for table in tables if table.report is None]
    reports = run(partial(_commit, slim, secrets), [(table.task, table.reports, table.cleared) for table in going_on])
    for table in tables:
        if table.report is not None:
            discard_rows(job, table.task, secrets, table.reports)
    for table, report in zip(going_on, reports, strict=True):
        table.report = report  # from here on the files stay: a commit that seems to fail may have gone through
    for table in tables:
        if not (table.report is not None and table.report.is_staged):
            storage.delete_folder(staged_folder(job.pipeline, job.seq, table.task.table_id))
    return [table.report for table in tables if table.report is not None]


def _write_events(job: JobDocument, secrets: Secrets, item: tuple[TablePart]) -> ApplyReport:
    report = write_events(job, item[0], secrets)
    advance(rows=item[0].task.rows // 2)  # the other half of the work is to write them
    return report


def _find_newest(job: JobDocument, secrets: Secrets, item: tuple[ApplyTask, int, Sequence[str]]) -> ApplyReport:
    task, bucket, events = item
    return find_newest(job, task, secrets, bucket, events)


def _settle(
    job: JobDocument, secrets: Secrets, item: tuple[ApplyTask, Sequence[TablePart], Sequence[str]]
) -> ApplyReport:
    task, parts, doubtful = item
    return settle(job, task, secrets, parts, doubtful)


def _write_rows(
    job: JobDocument, secrets: Secrets, item: tuple[TablePart, Sequence[str], Sequence[str]]
) -> ApplyReport:
    part, newest, released = item
    report = write_rows(job, part, secrets, newest, released)
    advance(rows=part.task.rows - part.task.rows // 2)
    return report


def _commit(
    job: JobDocument, secrets: Secrets, item: tuple[ApplyTask, Sequence[ApplyReport], str | None]
) -> ApplyReport:
    task, reports, cleared = item
    report = commit_parts(job, task, secrets, reports, cleared)
    advance(tables=1)
    return report
