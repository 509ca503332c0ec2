# SPDX-License-Identifier: Apache-2.0
"""Maintain the tables of a pipeline, next to the batches that run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from airflow_provider_cdc.core.apply.modes import mode_of
from airflow_provider_cdc.core.apply.stored_layout import is_made_by
from airflow_provider_cdc.core.documents import JobDocument, Maintenance, Result, TableMaintenance, TableState
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.status import ResultStatus, TableStatus
from spark_jobs.driver.log_retention import expire_log
from spark_jobs.driver.task_runner import Runner, Secrets
from spark_jobs.lake.identity import demand_own_lake
from spark_jobs.lake.scratch import lake_of
from spark_jobs.sinks.registry import open_sink
from spark_jobs.tasks.maintain_table import maintain_table, nothing_to_purge
from spark_jobs.workers.progress import advance, begin


def maintain(job: JobDocument, maintenance: Maintenance, secrets: Secrets, run: Runner) -> Result:
    """Maintain the change log, or every table with a location of its own: what a dropped one left is not touched."""
    demand_own_lake(job, lake_of(job, secrets))
    if maintenance.expire_through:
        begin("change log")
        return expire_log(job, maintenance.expire_through, secrets)
    live = [s for s in job.states if s.version is not None and s.state != TableStatus.DROPPED]
    count = Counter(state.location for state in live)
    # a table that waits may go on from older files of a location that another one has taken
    tables = [state for state in live if count[state.location] == 1]
    if maintenance.purge:
        tables = [state for state in tables if f"{state.database}.{state.table}" == maintenance.purge]
        _demand_purgeable(job, maintenance.purge, tables)
    begin("maintain", tables=len(tables))
    reports = run(partial(_task, job.for_tasks(), maintenance, secrets), tables)
    return Result(job.pipeline, job.seq, ResultStatus.DONE, maintained=reports)


def _demand_purgeable(job: JobDocument, table: str, states: Sequence[TableState]) -> None:
    """Demand a table whose newest version is as its rules say.

    :param states: those of the name that have a location of their own.
    :raises DataError: ``maintain.no_table``, ``maintain.rules_pending``.
    """
    if not states:
        raise nothing_to_purge(table)
    if not all(is_made_by(job.tables, table, state.made_with) for state in states):
        raise DataError(
            "maintain.rules_pending",
            f"the newest version of {table} was made by other rules than those of now",
            where={"table": table},
            hint="run a batch, and where it asks `airflow-cdc approve PIPELINE.yaml`; then purge the table",
        )


def _task(job: JobDocument, maintenance: Maintenance, secrets: Secrets, state: TableState) -> TableMaintenance:
    name, expired = f"{state.database}.{state.table}", None
    if maintenance.at and is_made_by(job.tables, name, state.made_with):
        expired = mode_of(job.tables, name).expired(datetime.fromisoformat(maintenance.at))
    where, layout = (job.sink_root, job.pipeline), job.tables.layout(name)
    report = maintain_table(open_sink(job, secrets), state, maintenance, *where, layout, expired)
    advance(tables=1)
    return report
