# SPDX-License-Identifier: Apache-2.0
"""Apply what was landed: plan, run the tables' tasks, and report the outcome of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from airflow_provider_cdc.core.documents import JobDocument, Result, TableLine, TableState
from airflow_provider_cdc.core.errors import Transient
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.model.status import ApplyStatus, ResultStatus, TableStatus
from airflow_provider_cdc.core.timeline.timeline import SchemaChange
from spark_jobs.driver.apply_plan import ApplyPlan
from spark_jobs.driver.batch_context import BatchContext
from spark_jobs.driver.parent_tables import with_tables_below
from spark_jobs.driver.planning import Planning
from spark_jobs.driver.refused_batches import demand_known
from spark_jobs.driver.repeated_failures import demand_answers, fails_again
from spark_jobs.driver.schema_changes import due, observed
from spark_jobs.driver.table_planning import ApplyPlanner
from spark_jobs.driver.table_states import displaced, failed_rebuild, states_after, still_parked, unowned
from spark_jobs.driver.table_tasks import run_tables
from spark_jobs.driver.tried_rules import note_rules
from spark_jobs.lake.manifest import Manifest
from spark_jobs.lake.stored_result import UnfitRow
from spark_jobs.sinks.registry import open_sink
from spark_jobs.tasks.empty_table import empty_location
from spark_jobs.tasks.parking import as_cdc_error
from spark_jobs.tasks.table_shape import salt_of
from spark_jobs.tasks.table_task import ApplyReport, ApplyTask

_SHOWN = 100  # quarantined records and rows that a result names


@dataclass(frozen=True, slots=True)
class Applied:
    """Hold the outcome of a batch.

    :param unfit: rows that do not fit their columns.
    :param planner: knows what the batch asks and decides.
    """

    result: Result
    unfit: list[UnfitRow]
    planner: ApplyPlanner


def apply_batch(batch: BatchContext, landed: Manifest, lost: Sequence[SchemaChange] = ()) -> Applied:
    """Apply what was landed.

    :param lost: what tables lack, as the log's own counts show.
    """
    job = batch.job
    fresh, later = due(job, [*batch.history.deferred(), *landed.schema_changes, *landed.restated])
    fresh += lost
    seen, unclear = observed(job, landed)
    sink = open_sink(job, batch.secrets)
    salt = salt_of(batch.secrets)
    planner = ApplyPlanner(Planning(job, landed, fresh, seen, batch.history, unclear, batch.storage, sink, salt))
    demand_known(job, landed, planner.quarantine, batch.log)
    note_rules(job, landed, batch.log)
    plan = planner.plan()
    news = [change for change in planner.fresh if change.copy_of is None]
    batch.say(f"apply: {len(plan.tasks)} tables, {len(news)} new schema changes")
    reports = run_tables(batch, planner.tasks, plan)
    demand_answers(job, batch.storage, reports)
    result = Result(job.pipeline, job.seq, ResultStatus.DONE, deferred=later, fingerprint=job.fingerprint)
    result.states = _states(batch, planner, plan, reports)
    # also those for which a table could not be rebuilt: an operator repairs them first
    unfit = [row for task in plan.tasks for row in _unfit(task, reports[task.table_id])]
    _state_tables(batch, result, plan, reports)
    _state_changes(result, planner, landed, news)
    _state_quarantined(result, landed, unfit, reports)
    return Applied(result, unfit, planner)


def _states(
    batch: BatchContext, planner: ApplyPlanner, plan: ApplyPlan, reports: Mapping[str, ApplyReport]
) -> list[TableState]:
    """Return the states of the tables that the batch touched, once the locations that they left are emptied."""
    job = batch.job
    states = states_after(job, plan.tasks, reports, planner.states) + plan.settled
    states = with_tables_below(planner.now, job.states, states, planner.referring())
    for left in plan.to_empty:
        report = reports.get(left.table_id)
        if report is None or report.status not in (ApplyStatus.WAITING, ApplyStatus.PARKED):
            states = _emptied(batch, left, states)
    for left in plan.never_reached:
        states = _emptied(batch, left, states, planner.states)
    return displaced(job, [*states, *unowned(job, plan)])


def _state_tables(batch: BatchContext, result: Result, plan: ApplyPlan, reports: Mapping[str, ApplyReport]) -> None:
    """State the outcome of each table, and whether one is parked."""
    job = batch.job
    was_at = {state.table_id: state.location for state in job.states if state.version is not None}
    result.tables = [_line(job, task, reports[task.table_id], was_at.get(task.table_id, "")) for task in plan.tasks]
    result.tables += plan.not_rebuilt
    result.contradictions = [
        {"table": f"{task.database}.{task.table}", **contradiction.document()}
        for task in plan.tasks
        for contradiction in reports[task.table_id].findings.first
    ][:_SHOWN]
    committed = [report for report in reports.values() if report.status == ApplyStatus.COMMITTED]
    result.together = bool(committed) and all(report.together for report in committed)
    not_rebuilt = plan.not_rebuilt or any(failed_rebuild(job, task, reports[task.table_id]) for task in plan.tasks)
    every = [*result.states, *still_parked(job, result.states)]
    if not_rebuilt or any(state.state == TableStatus.PARKED for state in every):
        result.status = ResultStatus.PARKED


def _state_changes(result: Result, planner: ApplyPlanner, landed: Manifest, news: list[SchemaChange]) -> None:
    """State the row changes and schema changes of the batch.

    :param news: the schema changes that no batch before knew.
    """
    result.records = landed.records
    result.changes = {name[4:]: count for name, count in sorted(landed.changes.items()) if name.startswith("row.")}
    result.schema_changes = len(news)
    result.new_schema_changes = [change.document() for change in planner.fresh]
    result.asked_changes = [item.document() for item in planner.asked.news()]
    result.new_generations = landed.new_generations
    result.statements = [change.statement for change in news if change.statement]


def _state_quarantined(
    result: Result, landed: Manifest, unfit: list[UnfitRow], reports: Mapping[str, ApplyReport]
) -> None:
    """State the records and rows that could not be carried, and the values that did not stay as they were."""
    result.quarantined = landed.changes.get("error", 0) + len(unfit)
    result.quarantine = [*landed.errors, *(row.entry() for row in unfit[:_SHOWN])][:_SHOWN]
    for report in reports.values():
        for reason, count in report.lossy.items():
            result.lossy[reason] = result.lossy.get(reason, 0) + count


def _unfit(task: ApplyTask, report: ApplyReport) -> list[UnfitRow]:
    """Return the rows of a table that do not fit: they are left out, or the table is parked for them."""
    return [
        UnfitRow(task.table_id, task.database, task.table, **row, parked=parked)
        for parked, rows in ((False, report.failures), (True, report.refused))
        for row in rows
    ]


def _emptied(
    batch: BatchContext, left: TableState, states: list[TableState], table_ids: Collection[str] = ()
) -> list[TableState]:
    """Empty a location that no table has any more; return the states, with the table parked where that fails.

    :param table_ids: further tables that may have left rows there.
    """
    job, storage = batch.job, batch.storage
    if job.scratch:
        return states
    try:
        empty_location(job, left, batch.secrets, table_ids)
        return [replace(s, to_empty="") if s.to_empty == left.location else s for s in states]
    except Exception as error:
        cdc_error = as_cdc_error(error, {"table": f"{left.database}.{left.table}", "location": job.at(left.location)})
        if isinstance(cdc_error, Transient) and not fails_again(job, storage, left, cdc_error):
            raise cdc_error from error
        reason = f"its former location cannot be emptied: {cdc_error}"
        return [
            replace(s, state=TableStatus.PARKED, reason=reason, code=cdc_error.code, to_empty=left.location)
            if s.table_id == left.table_id
            else s
            for s in states
        ]


def _line(job: JobDocument, task: ApplyTask, report: ApplyReport, was_at: str) -> TableLine:
    """Return the outcome of a table.

    :param was_at: location of its rows before the batch, empty for none.
    """
    numbers, reason = (report.upserts, report.deletes), report.reason
    layout, state = job.tables.layout(f"{task.database}.{task.table}"), report.state
    if layout.cluster_by and report.status == ApplyStatus.COMMITTED and state is not None and state.schema is not None:
        names = [column.name for column in TableSchema.from_document(state.schema).columns]
        reason = reason or layout.unclustered(names)
    if report.status == ApplyStatus.COMMITTED and was_at not in ("", task.location):
        reason = reason or f"moved from {was_at}"
    name, touched = (task.database, task.table), (report.files, report.file_bytes)
    writer = ("", "") if report.choice is None else (report.choice.writer, report.choice.reason)
    line = TableLine(*name, report.status, report.action, *numbers, reason, report.seconds, *touched, *writer)
    line.contradictions, line.agreed = report.findings.counts, report.findings.agreed
    line.differences, line.added_bytes = report.differences, report.added_bytes
    return line
