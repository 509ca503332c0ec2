# SPDX-License-Identifier: Apache-2.0
"""One batch on the Spark side: land, between, apply, and the result that names all of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from airflow_provider_cdc.core.documents import JobDocument, Result, TableLine, TableState, shallow_document
from airflow_provider_cdc.core.errors import CdcError, DataError, Transient
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.status import ApplyStatus, ResultStatus, TableStatus
from spark_jobs.driver.approval import demand_approval, refuse_unclear
from spark_jobs.driver.batch_history import History, history_of
from spark_jobs.driver.generations import Generations, has_times
from spark_jobs.driver.key_buckets import apply_in_buckets, bucket_count
from spark_jobs.driver.land_step import land_batch
from spark_jobs.driver.left_out_rows import left_out_after
from spark_jobs.driver.name_options import demand_same_names, name_options
from spark_jobs.driver.new_begins import new_begins
from spark_jobs.driver.one_log import demand_one_log
from spark_jobs.driver.parent_tables import with_tables_below
from spark_jobs.driver.quarantine_entries import carry_out
from spark_jobs.driver.refused_batches import demand_known, is_outdated, refuse
from spark_jobs.driver.repeated_failures import demand_answers, fails_again, not_tried
from spark_jobs.driver.replay import REPLAYED, with_replay
from spark_jobs.driver.schema_changes import due, observed
from spark_jobs.driver.source_formats import formats_after
from spark_jobs.driver.table_planning import ApplyPlan, ApplyPlanner
from spark_jobs.driver.table_states import displaced, failed_rebuild, states_after, still_parked, unowned
from spark_jobs.driver.task_runner import Runner, Secrets
from spark_jobs.lake.batch_log import BatchLog
from spark_jobs.lake.begins import Begin
from spark_jobs.lake.folded_batches import folded_range
from spark_jobs.lake.identity import demand_own_lake
from spark_jobs.lake.layout import staged_folder, staged_root
from spark_jobs.lake.manifest import Manifest
from spark_jobs.lake.row_groups import changes_by_table, forget_row_groups
from spark_jobs.lake.scratch import lake_of
from spark_jobs.lake.storage import Storage
from spark_jobs.lake.stored_result import StoredResult, UnfitRow
from spark_jobs.sinks.delta.spark_writer import SparkWriter
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.tasks.apply import apply
from spark_jobs.tasks.empty_table import empty_location
from spark_jobs.tasks.parking import as_cdc_error
from spark_jobs.tasks.renumber import renumbered, restated, write_again
from spark_jobs.tasks.table_task import ApplyReport, ApplyTask
from spark_jobs.tasks.tables_together import TablesTogether
from spark_jobs.workers.malloc import release_memory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TABLES_EACH = 250  # of one task, about: what it is sent stays below 100 kB, for tables of 20 columns
_GIVEN_UP = 3  # tables in turn for which the store failed, after which no others are tried


def sync(
    job: JobDocument, secrets: Secrets, run: Runner, say: Callable[[str], None], session: SparkSession | None = None
) -> Result:
    """Carry out one batch; the same call again does only what is missing.

    :param run: how tasks are handed out.
    :param say: takes one line of progress for people.
    :param session: lets the Spark reader and the Spark writer be used.
    """
    storage = lake_of(job, secrets)
    job = replace(job, lake=demand_own_lake(job, storage))
    log = BatchLog(storage, job.pipeline)
    unknown = log.unknown_to(job)
    if unknown:
        return Result(job.pipeline, job.seq, ResultStatus.BEHIND, lake_batches=[batch.document() for batch in unknown])
    log.claim(job)
    with log.alive(job):
        return _carry_out(job, secrets, run, say, session, storage, log)


def _carry_out(
    job: JobDocument,
    secrets: Secrets,
    run: Runner,
    say: Callable[[str], None],
    session: SparkSession | None,
    storage: Storage,
    log: BatchLog,
) -> Result:
    stored = log.result(job)
    if stored is not None:
        say(f"done before: batch {job.seq} has its result already")
        return stored.result
    history = history_of(job, storage)
    history.newest_position()  # the lake is the one that earlier batches were written to, or nothing is done
    demand_same_names(job, history, storage)
    if open_format(job.format, job.format_options).order == "clock":
        job = replace(job, clocks=history.clocks())
    begins = [list(begin) for begin in history.generations().begins()]
    job = replace(job, begins=begins, last_records=history.last_records())
    clock = {"land": time.monotonic()}
    landed = log.manifest(job)
    if landed is None or is_outdated(job, landed):
        job, landed = _land_batch(job, secrets, run, say, session, log, history, landed)
    try:
        landed, generations = _in_generations(job, secrets, run, say, storage, log, landed, history)
    except DataError:
        refuse(job, landed, log)
        raise
    landed = _with_orders(job, secrets, say, storage, log, landed, history, generations)
    clock["apply"] = time.monotonic()
    marks = generations.after(landed).positions()
    result, unfit, planner = _apply(replace(job, marks=marks), secrets, run, say, storage, landed, session, history)
    if job.scratch:
        result.row_changes = changes_by_table(storage, landed)
        result.unfit = [shallow_document(row) for row in unfit]
    result.replayed = any(order is not None for order in (job.replay, job.rebuild, job.decision, job.approval))
    end = time.monotonic()
    result.seconds = {"land": round(clock["apply"] - clock["land"], 3), "apply": round(end - clock["apply"], 3)}
    return log.write_result(job, _stored(job, result, unfit, landed, history, generations, planner)).result


def _land_batch(
    job: JobDocument,
    secrets: Secrets,
    run: Runner,
    say: Callable[[str], None],
    session: SparkSession | None,
    log: BatchLog,
    history: History,
    before: Manifest | None,
) -> tuple[JobDocument, Manifest]:
    """Land the batch and make that visible; return the job of what follows, too.

    :param before: what another format or other options landed of it, None where nothing did.
    :raises DataError: ``source.second_log``.
    """
    landed = land_batch(job, secrets, run, say, session)
    demand_one_log(job, landed.log_names, history.log_names())
    if before is None:
        return job, log.write_manifest(job, landed)
    # what operators decided about records of the batch was about those that could not be decoded then
    job = replace(job, decision=None)
    log.replace_manifest(job, landed)
    return job, landed


def _with_orders(
    job: JobDocument,
    secrets: Secrets,
    say: Callable[[str], None],
    storage: Storage,
    log: BatchLog,
    landed: Manifest,
    history: History,
    generations: Generations,
) -> Manifest:
    """Return what was landed with what operators order: a decision, an approval, rows that count again."""
    if job.decision is not None:
        landed = carry_out(job, job.decision, landed, history, generations.after(landed), storage, secrets, say)
        log.replace_manifest(job, landed)
    if job.approval is not None and job.approval not in landed.approvals:
        landed.approvals = [*landed.approvals, job.approval]
        log.replace_manifest(job, landed)
    if job.replay is not None:
        expired = partial(folded_range(storage, job.pipeline).is_expired, storage, job.pipeline)
        landed = with_replay(job.replay, landed, history, expired)
        log.replace_manifest(job, landed)
        say(f"replay: {landed.changes.get(REPLAYED, 0)} rows of the change log")
    return landed


def _stored(
    job: JobDocument,
    result: Result,
    unfit: list[UnfitRow],
    landed: Manifest,
    history: History,
    generations: Generations,
    planner: ApplyPlanner,
) -> StoredResult:
    """Return the result as the lake keeps it, with what only later batches need."""
    groups = [group for group in landed.groups if group.database]
    times = [*(group.max_source_time for group in groups), history.newest_source_time()]
    return StoredResult(
        result,
        max((time for time in times if time is not None), default=None),
        max([*(group.max_position for group in groups), history.newest_position()]),
        landed.clocks,
        generations.after(landed).document(),
        unfit,
        [*history.settled(), *(shallow_document(one) for one in landed.settled)],
        [item.document() for item in planner.asked.every()],
        [shallow_document(item) for item in planner.quarantine.waiting],
        {**landed.log_names, **history.log_names()},
        {**history.last_records(), **landed.last_records},
        left_out=left_out_after(history.left_out(), result, unfit, planner.quarantine.settled),
        topics=planner.quarantine.topics.names,
        name_options=name_options(job),
        formats=formats_after(history.formats(), job),
    )


def _in_generations(
    job: JobDocument,
    secrets: Secrets,
    run: Runner,
    say: Callable[[str], None],
    storage: Storage,
    log: BatchLog,
    landed: Manifest,
    history: History,
) -> tuple[Manifest, Generations]:
    """Return what was landed with the generations that begin in it, and all generations with them.

    :raises DataError: ``source.new_generation``, one begins that nobody approved; ``source.generation_unclear``, the
        records do not show which are of it.
    """
    as_landed, known = landed, [*job.schema_changes, *history.deferred()]
    generations = history.generations().with_begins(Begin(*begin) for begin in landed.begins)
    if (late := generations.read_late(landed)) is not None:
        refuse_unclear(*late)
    while begins := new_begins(landed, generations, storage):
        refuse_unclear(begins[0].name, generations.read_early(begins), timed=has_times(landed))
        approved = demand_approval(job, begins, generations.newest, log, say)
        generations = generations.with_begins(begins)
        every = generations.begins()
        landed = renumbered(landed, every, begins, storage, run, partial(write_again, job, secrets, every))
        landed.restated = [*landed.restated, *restated(known, begins)]
        landed.new_generations = [*landed.new_generations, *approved]
    if landed is not as_landed:
        log.replace_manifest(job, landed)
    return landed, generations


def _apply(
    job: JobDocument,
    secrets: Secrets,
    run: Runner,
    say: Callable[[str], None],
    storage: Storage,
    landed: Manifest,
    session: SparkSession | None,
    history: History,
) -> tuple[Result, list[UnfitRow], ApplyPlanner]:
    """Apply what was landed; return the result, the rows that do not fit their columns, and the planner."""
    read = [*history.deferred(), *landed.schema_changes, *landed.restated]
    fresh, later = due(job, read)
    seen, unclear = observed(job, landed)
    planner = ApplyPlanner(job, landed, fresh, seen, history, unclear, storage)
    demand_known(job, landed, planner.quarantine, BatchLog(storage, job.pipeline))
    plan = planner.plan()
    news = [change for change in planner.fresh if change.copy_of is None]
    say(f"apply: {len(plan.tasks)} tables, {len(news)} new schema changes")
    reports = _run_tasks(job, secrets, run, planner, plan)
    if session is not None:
        _commit_staged(job, session, storage, plan.tasks, reports)
    demand_answers(job, storage, reports)
    states = states_after(job, plan.tasks, reports, planner.states) + plan.settled
    states = with_tables_below(planner.now, job.states, states, planner.referring())
    for left in plan.to_empty:
        report = reports.get(left.table_id)
        if report is None or report.status not in (ApplyStatus.WAITING, ApplyStatus.PARKED):
            states = _emptied(job, left, storage, states)
    for left in plan.never_reached:
        states = _emptied(job, left, storage, states, planner.states)
    result = Result(job.pipeline, job.seq, ResultStatus.DONE)
    result.records, result.fingerprint = landed.records, job.fingerprint
    result.changes = {name[4:]: count for name, count in sorted(landed.changes.items()) if name.startswith("row.")}
    result.schema_changes = len(news)
    result.new_schema_changes = [change.document() for change in planner.fresh]
    result.deferred = later
    result.asked_changes = [item.document() for item in planner.asked.news()]
    result.new_generations = landed.new_generations
    result.statements = [change.statement for change in news if change.statement]
    # also those for which a table could not be rebuilt: an operator repairs them first
    unfit = [row for task in plan.tasks for row in _unfit(task, reports[task.table_id])]
    result.quarantined = landed.changes.get("error", 0) + len(unfit)
    result.quarantine = [*landed.errors, *(row.entry() for row in unfit[:100])][:100]
    for report in reports.values():
        for reason, count in report.lossy.items():
            result.lossy[reason] = result.lossy.get(reason, 0) + count
    states = displaced(job, [*states, *unowned(job, plan)])
    result.states = states
    result.tables = [_line(task, reports[task.table_id]) for task in plan.tasks] + plan.not_rebuilt
    not_rebuilt = [task for task in plan.tasks if failed_rebuild(job, task, reports[task.table_id])]
    if (
        not_rebuilt
        or plan.not_rebuilt
        or any(s.state == TableStatus.PARKED for s in [*states, *still_parked(job, states)])
    ):
        result.status = ResultStatus.PARKED
    return result, unfit, planner


def _unfit(task: ApplyTask, report: ApplyReport) -> list[UnfitRow]:
    """Return the rows of a table that do not fit: they are left out, or the table is parked for them."""
    return [
        UnfitRow(task.table_id, task.database, task.table, **row, parked=parked)
        for parked, rows in ((False, report.failures), (True, report.refused))
        for row in rows
    ]


def _emptied(
    job: JobDocument,
    left: TableState,
    storage: Storage,
    states: list[TableState],
    table_ids: Collection[str] = (),
) -> list[TableState]:
    """Empty a location that no table has any more; return the states, with the table parked where that fails.

    :param table_ids: further tables that may have left rows there.
    """
    if job.scratch:
        return states
    try:
        empty_location(job, left, storage.options, table_ids)
        return states
    except Exception as error:
        cdc_error = as_cdc_error(error, {"table": f"{left.database}.{left.table}", "location": job.at(left.location)})
        if isinstance(cdc_error, Transient) and not fails_again(job, storage, left, cdc_error):
            raise cdc_error from error
        reason = f"its former location cannot be emptied: {cdc_error}"
        return [
            replace(s, state=TableStatus.PARKED, reason=reason, code=cdc_error.code)
            if s.table_id == left.table_id
            else s
            for s in states
        ]


def _bundles(tasks: Sequence[ApplyTask], parallelism: int) -> list[list[ApplyTask]]:
    """Spread tables over tasks so that none is much longer than the others; a task costs more than a small table.

    Small tables that are neighbours in the change log stay together: they share row groups, which a task reads once.
    """
    count = max(1, min(len(tasks), parallelism * 3), -(-len(tasks) // _TABLES_EACH))
    most = sum(map(_load, tasks)) / count / 8  # of neighbours: so many can still be spread evenly
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
    return task.rows + 2_000  # a commit costs about as much as typing so many rows


def _first_rows(task: ApplyTask) -> tuple[str, int, int]:
    return min((group.origin for span in task.spans for group in span.groups), default=("", 0, 0))


def _run_tasks(
    job: JobDocument, secrets: Secrets, run: Runner, planner: ApplyPlanner, plan: ApplyPlan
) -> dict[str, ApplyReport]:
    """Run the tasks and return their reports by table.

    Tables that have to go back are run again from there; those that hold more than the ledger knows, from what they
    hold. Tables that were given up are tried once more, behind those before them.
    """
    reports: dict[str, ApplyReport] = {}
    given_up: set[str] | None = None
    due = plan.tasks
    while due:
        counts = {task.table_id: bucket_count(job, task) for task in due}
        large = [task for task in due if counts[task.table_id] > 1]
        whole = [task for task in due if counts[task.table_id] == 1]
        bundles = _bundles(whole, job.parallelism)
        if given_up is not None:
            bundles = [bundle[::-1] for bundle in bundles]  # the store may fail for the first ones alone
        answers = run(partial(_apply_tasks, job.for_tasks(), secrets), bundles)
        if large:
            storage = lake_of(job, secrets)
            answers.append(apply_in_buckets(job, secrets, run, storage, counts, large))
        reports.update({report.table_id: report for answer in answers for report in answer})
        due = [again for task in due if (again := _again(planner, task, reports[task.table_id])) is not None]
        repeated = {task.table_id: task for task in due}
        plan.tasks = [repeated.get(task.table_id, task) for task in plan.tasks]
        if not due and given_up is None:
            given_up = not_tried(reports.values())
            due = [task for task in plan.tasks if task.table_id in given_up]
    return reports


def _again(planner: ApplyPlanner, task: ApplyTask, report: ApplyReport) -> ApplyTask | None:
    """Return the task that follows a report, None where nothing does; a table that cannot go back is parked."""
    try:
        if report.status == ApplyStatus.REWIND and report.rewind_to is not None:
            return planner.again(task, report.rewind_to)
        if report.status == ApplyStatus.AHEAD and report.state is not None:
            return planner.go_on(task, report.state)
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
    finally:
        forget_row_groups()
        release_memory(large=False)
    return reports


def _commit_staged(
    job: JobDocument,
    session: SparkSession,
    storage: Storage,
    tasks: Sequence[ApplyTask],
    reports: Mapping[str, ApplyReport],
) -> None:
    """Let the Spark writer commit what tasks staged, a few tables at a time, and take over the tables' new versions."""
    writer = SparkWriter(session, storage)

    def commit(task: ApplyTask) -> None:
        report = reports[task.table_id]
        try:
            writer.commit_staged(staged_folder(job.pipeline, job.seq, task.table_id))
            report.version = DeltaLocation(job.at(task.location), storage.options).version
        except Exception as error:
            report.fail(as_cdc_error(error, {"table": f"{task.database}.{task.table}"}))

    # what else is staged is of an attempt that died, and another writer may be chosen now
    staged = [task for task in tasks if reports[task.table_id].is_staged]
    with ThreadPoolExecutor(max_workers=min(4, job.parallelism)) as pool:
        list(pool.map(commit, staged))
    storage.delete_folder(staged_root(job.pipeline, job.seq))


def _line(task: ApplyTask, report: ApplyReport) -> TableLine:
    numbers = report.upserts, report.deletes
    name, touched = (task.database, task.table), (report.files, report.file_bytes)
    writer = ("", "") if report.choice is None else (report.choice.writer, report.choice.reason)
    return TableLine(*name, report.status, report.action, *numbers, report.reason, report.seconds, *touched, *writer)


def failed(job: JobDocument, error: CdcError) -> Result:
    """Return the result of a batch that could not be carried out."""
    return Result(job.pipeline, job.seq, ResultStatus.FAILED, error=error)
