# SPDX-License-Identifier: Apache-2.0
"""Hand the tables of a batch out to tasks, again where one has to go back, and commit what they staged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from airflow_provider_cdc.core.documents import TABLE_ROWS, JobDocument
from airflow_provider_cdc.core.errors import Transient
from airflow_provider_cdc.core.model.status import ApplyStatus
from spark_jobs.driver.apply_plan import ApplyPlan
from spark_jobs.driver.batch_context import BatchContext
from spark_jobs.driver.key_buckets import apply_in_buckets, bucket_count
from spark_jobs.driver.repeated_failures import not_tried
from spark_jobs.driver.task_maker import TaskMaker
from spark_jobs.driver.task_runner import Secrets
from spark_jobs.lake.layout import staged_folder, staged_root
from spark_jobs.lake.row_groups import forget_row_groups
from spark_jobs.sinks.registry import open_sink
from spark_jobs.tasks.apply import apply
from spark_jobs.tasks.parking import as_cdc_error
from spark_jobs.tasks.table_task import ApplyReport, ApplyTask
from spark_jobs.tasks.tables_together import TablesTogether
from spark_jobs.workers.malloc import release_memory
from spark_jobs.workers.progress import advance, begin

_TABLES_EACH = 250  # of one task, about: what it is sent stays below 100 kB, for tables of 20 columns
_LITTLE = 50_000  # rows of a task; of less work, more tasks than run at a time would only cost more
_GIVEN_UP = 3  # tables in turn for which the store failed, after which no others are tried


def run_tables(batch: BatchContext, tasks: TaskMaker, plan: ApplyPlan) -> dict[str, ApplyReport]:
    """Run the tasks and return their reports by table.

    Tables that have to go back are run again from there; those that hold more than the ledger knows, from what they
    hold. Tables that were given up are tried once more, behind those before them.
    """
    job, reports = batch.job, dict[str, ApplyReport]()
    given_up: set[str] | None = None
    due = plan.tasks
    while due:
        begin("apply", sum(task.rows for task in due), len(due))
        counts = {task.table_id: bucket_count(job, task, batch.secrets) for task in due}
        large = [task for task in due if counts[task.table_id] > 1]
        whole = [task for task in due if counts[task.table_id] == 1]
        bundles = _bundles(whole, job.parallelism)
        if given_up is not None:
            bundles = [bundle[::-1] for bundle in bundles]  # the store may fail for the first ones alone
        answers = batch.run(partial(_apply_tasks, job.for_tasks(), batch.secrets), bundles)
        if large:
            answers.append(apply_in_buckets(job, batch.secrets, batch.run, batch.storage, counts, large))
        reports.update({report.table_id: report for answer in answers for report in answer})
        due = [again for task in due if (again := _again(tasks, task, reports[task.table_id])) is not None]
        repeated = {task.table_id: task for task in due}
        plan.tasks = [repeated.get(task.table_id, task) for task in plan.tasks]
        if not due and given_up is None:
            given_up = not_tried(reports.values())
            due = [task for task in plan.tasks if task.table_id in given_up]
    _commit_staged(batch, plan.tasks, reports)
    return reports


def _bundles(tasks: Sequence[ApplyTask], parallelism: int) -> list[list[ApplyTask]]:
    """Spread tables over tasks so that none is much longer than the others; a task costs more than a small table.

    Small tables that are neighbours in the change log stay together: they share row groups, which a task reads once.
    """
    work = sum(map(_load, tasks))
    each = 1 if work <= parallelism * _LITTLE else 3
    count = max(1, min(len(tasks), parallelism * each), -(-len(tasks) // _TABLES_EACH))
    most = work / count / 8  # of neighbours: so many can still be spread evenly
    neighbours: list[list[ApplyTask]] = []
    load = most
    for task in sorted(tasks, key=_first_rows):
        if load + _load(task) > most:
            neighbours.append([])
            load = 0
        neighbours[-1].append(task)
        load += _load(task)
    bundles: list[list[ApplyTask]] = [[] for _ in range(count)]
    loads = [0] * count
    for some in sorted(neighbours, key=lambda some: -sum(map(_load, some))):
        lightest = loads.index(min(loads))
        bundles[lightest] += some
        loads[lightest] += sum(map(_load, some))
    return [bundle for bundle in bundles if bundle]


def _load(task: ApplyTask) -> int:
    return task.rows + TABLE_ROWS


def _first_rows(task: ApplyTask) -> tuple[str, int, int]:
    return min((group.origin for span in task.spans for group in span.groups), default=("", 0, 0))


def _again(tasks: TaskMaker, task: ApplyTask, report: ApplyReport) -> ApplyTask | None:
    """Return the task that follows a report, None where nothing does; a table that cannot go back is parked."""
    try:
        if report.status == ApplyStatus.REWIND and report.rewind_to is not None:
            return tasks.again(task, report.rewind_to)
        if report.status == ApplyStatus.AHEAD and report.state is not None:
            return tasks.go_on(task, report.state)
        if report.status == ApplyStatus.WHOLE:
            return replace(task, whole=True)
    except Exception as error:
        cdc_error = as_cdc_error(error, {"table": f"{task.database}.{task.table}"})
        if isinstance(cdc_error, Transient):
            raise cdc_error from error
        report.fail(cdc_error)
    return None


def _apply_tasks(job: JobDocument, secrets: Secrets, bundle: Sequence[ApplyTask]) -> list[ApplyReport]:
    reports: list[ApplyReport] = []
    try:
        together = TablesTogether(job, bundle, secrets)
        for number, task in enumerate(bundle):
            if [report.status for report in reports[-_GIVEN_UP:]] == [ApplyStatus.UNAVAILABLE] * _GIVEN_UP:
                # the store is away, not one table: each further one would wait for it as long
                reports.append(ApplyReport(task.table_id, ApplyStatus.UNAVAILABLE, reason=reports[-1].reason))
                continue
            reports.append(apply(job, task, secrets, together.resolved(number)))
            advance(task.rows, 1)
    finally:
        forget_row_groups()
        release_memory(large=False)
    return reports


def _commit_staged(batch: BatchContext, tasks: Sequence[ApplyTask], reports: dict[str, ApplyReport]) -> None:
    """Commit what tasks staged, and take over the tables' new versions."""
    job, storage = batch.job, batch.storage
    sink = open_sink(job, batch.secrets)
    committer = None if job.scratch else sink.committer(batch.session, storage, batch.run)
    if committer is None:
        return
    # what else is staged is of an attempt that died, and another writer may be chosen now
    staged = [task for task in tasks if reports[task.table_id].is_staged]
    if staged:
        begin("commit", tables=len(staged))
    folders = [staged_folder(job.pipeline, job.seq, task.table_id) for task in staged]
    for task, problem in zip(staged, committer.commit(folders, job.parallelism), strict=True):
        report = reports[task.table_id]
        try:
            if problem is not None:
                raise problem
            target = sink.open(job.at(task.location))
            report.version, report.added_bytes = target.version, target.added_bytes()
            report.together = committer.together
        except Exception as error:
            report.fail(as_cdc_error(error, {"table": f"{task.database}.{task.table}"}))
    storage.delete_folder(staged_root(job.pipeline, job.seq))
