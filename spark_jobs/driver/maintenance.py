# SPDX-License-Identifier: Apache-2.0
"""Maintain the tables of a pipeline, next to the batches that run."""

from __future__ import annotations

from collections import Counter
from functools import partial

from airflow_provider_cdc.core.documents import JobDocument, Maintenance, Result, TableMaintenance, TableState
from airflow_provider_cdc.core.model.status import ResultStatus, TableStatus
from spark_jobs.driver.log_retention import expire_log
from spark_jobs.driver.task_runner import Runner, Secrets
from spark_jobs.lake.identity import demand_own_lake
from spark_jobs.lake.scratch import lake_of
from spark_jobs.sinks.registry import open_sink
from spark_jobs.tasks.maintain_table import maintain_table


def maintain(job: JobDocument, maintenance: Maintenance, secrets: Secrets, run: Runner) -> Result:
    """Maintain the change log, or every table with a location of its own: what a dropped one left is not touched."""
    demand_own_lake(job, lake_of(job, secrets))
    if maintenance.expire_through:
        return expire_log(job, maintenance.expire_through, secrets)
    live = [s for s in job.states if s.version is not None and s.state != TableStatus.DROPPED]
    count = Counter(state.location for state in live)
    # a table that waits may go on from older files of a location that another one has taken
    tables = [state for state in live if count[state.location] == 1]
    reports = run(partial(_task, job.for_tasks(), maintenance, secrets), tables)
    return Result(job.pipeline, job.seq, ResultStatus.DONE, maintained=reports)


def _task(job: JobDocument, maintenance: Maintenance, secrets: Secrets, state: TableState) -> TableMaintenance:
    layout = job.tables.layout(f"{state.database}.{state.table}")
    return maintain_table(open_sink(job, secrets), state, maintenance, job.sink_root, job.pipeline, layout)
