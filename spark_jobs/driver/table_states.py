# SPDX-License-Identifier: Apache-2.0
"""Compute the state of each table after a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from airflow_provider_cdc.core.documents import JobDocument, TableState
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.model.status import ApplyStatus, TableStatus
from spark_jobs.driver.apply_plan import ApplyPlan, is_waiting_name, unowned_id
from spark_jobs.driver.unsettled import set_aside, waiting
from spark_jobs.tasks.table_task import ApplyReport, ApplyTask


def states_after(
    job: JobDocument,
    tasks: Sequence[ApplyTask],
    reports: Mapping[str, ApplyReport],
    before: Mapping[str, TableState],
) -> list[TableState]:
    """Return the tables' states after their tasks; a table whose rebuild failed stays as it was.

    :param reports: by table id.
    :param before: the states before the batch, by table id.
    """
    return [
        state_after(job, task, reports[task.table_id], before.get(task.table_id))
        for task in tasks
        if task.table_id not in before or not failed_rebuild(job, task, reports[task.table_id])
    ]


def displaced(job: JobDocument, states: Sequence[TableState]) -> list[TableState]:
    """Return states without the versions of dropped tables at whose locations a rebuild may have made a table again.

    :param states: what the batch leaves; those that it does not touch are added where they change.
    """
    before = {state.table_id: state.rebuilt_seq for state in job.states}
    rebuilt = {s.location: s.table_id for s in states if s.rebuilt_seq > before.get(s.table_id, 0)}
    after = {state.table_id: state for state in (*job.states, *states)}
    gone = {
        table_id: replace(state, version=None)
        for table_id, state in after.items()
        if state.state == TableStatus.DROPPED and rebuilt.get(state.location, table_id) != table_id
    }
    return [*(state for state in states if state.table_id not in gone), *gone.values()]


def failed_rebuild(job: JobDocument, task: ApplyTask, report: ApplyReport) -> bool:
    """Return whether a table was to be rebuilt and was not."""
    return task.rebuilt_seq == job.seq and report.status in (ApplyStatus.WAITING, ApplyStatus.PARKED)


def state_after(job: JobDocument, task: ApplyTask, report: ApplyReport, old: TableState | None) -> TableState:
    """Return a table's state after its task.

    :param old: its state before the batch.
    """
    base = old or TableState(task.table_id, task.database, task.table, task.location)
    base = replace(base, location=base.location or task.location)
    if report.status == ApplyStatus.WAITING:
        return waiting(
            job, replace(base, database=task.database, table=task.table, rewind_to=task.rewind_to), report.reason
        )
    if report.status == ApplyStatus.PARKED:
        parked = replace(base, database=task.database, table=task.table, rewind_to=task.rewind_to)
        return set_aside(job, parked, report.reason, report.error.code if report.error else "", report.version)
    assert report.state is not None, f"{report.status} comes with a state"
    return replace(report.state, version=report.version if report.version is not None else base.version)


def unowned(job: JobDocument, plan: ApplyPlan) -> list[TableState]:
    """Return the states of names whose table nobody has created yet: their rows wait in the change log."""
    states = []
    known = {TableName(state.database, state.table): state for state in job.states if is_waiting_name(state)}
    for item in plan.unowned:
        old = known.get(item.name) or TableState(unowned_id(item.name), *item.name, "", applied_seq=job.seq - 1)
        state = replace(old, rewind_to=item.first)
        if item.reason is not None:
            states.append(set_aside(job, state, item.reason))
            continue
        reason = "rows arrived but no CREATE TABLE: state tables.<name>.create or check source.schema_topic"
        if item.alike not in ("", str(item.name)):
            reason = f"rows arrived but no CREATE TABLE; there is one of {item.alike}: "
            reason += "state source.options.lower_case_table_names: 1 if the server has it so"
        states.append(waiting(job, state, reason))
    return states


def still_parked(job: JobDocument, states: Sequence[TableState]) -> list[TableState]:
    """Return the states of the job's tables that this batch did not touch."""
    touched = {state.table_id for state in states}
    return [state for state in job.states if state.table_id not in touched]
