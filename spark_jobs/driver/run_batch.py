# SPDX-License-Identifier: Apache-2.0
"""One batch on the Spark side: claim, land, generations, orders, apply, and the result that names all of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_provider_cdc.core.documents import JobDocument, Result
from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.clock_position import at_tool_time
from airflow_provider_cdc.core.model.status import ResultStatus
from spark_jobs.driver.apply_step import Applied, apply_batch
from spark_jobs.driver.batch_context import BatchContext
from spark_jobs.driver.batch_history import history_of
from spark_jobs.driver.counted_changes import OpenCommits, compare_counts
from spark_jobs.driver.generation_step import in_generations
from spark_jobs.driver.generations import Generations
from spark_jobs.driver.land_step import landed_batch
from spark_jobs.driver.left_out_rows import left_out_after
from spark_jobs.driver.name_options import demand_lower_case, demand_same_names, name_options
from spark_jobs.driver.order_step import with_orders
from spark_jobs.driver.source_formats import formats_after
from spark_jobs.driver.task_runner import Runner, Secrets
from spark_jobs.driver.tried_rules import rules_of
from spark_jobs.lake.batch_log import BatchLog
from spark_jobs.lake.identity import demand_own_lake
from spark_jobs.lake.manifest import Manifest
from spark_jobs.lake.row_groups import changes_by_table
from spark_jobs.lake.scratch import lake_of
from spark_jobs.lake.stored_result import StoredResult
from spark_jobs.sinks.registry import open_sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
        stored = log.result(job)
        if stored is not None:
            say(f"done before: batch {job.seq} has its result already")
            return stored.result
        return _carry_out(BatchContext(job, secrets, run, say, session, storage, log, history_of(job, storage)))


def _carry_out(batch: BatchContext) -> Result:
    """Take a batch through its steps."""
    _begin(batch)
    begun = time.monotonic()
    landed = landed_batch(batch)
    demand_lower_case(batch.job, landed)
    landed, generations = in_generations(batch, landed)
    landed = with_orders(batch, landed, generations)
    applying = time.monotonic()
    by_clock = {f"{topic}/{partition}": at_tool_time(tool) for topic, partition, tool, _ in landed.clocks}
    batch.job = replace(batch.job, marks=by_clock or generations.after(landed).positions())
    counted = compare_counts(batch, landed, generations)
    applied = apply_batch(batch, landed, counted.lost)
    end = time.monotonic()
    applied.result.seconds = {"land": round(applying - begun, 3), "apply": round(end - applying, 3)}
    return _settle(batch, landed, generations, applied, counted.open)


def _begin(batch: BatchContext) -> None:
    """Take over from the lake what the job needs of the batches before.

    :raises DataError: this lake, or the options of the source, are not those of the batches before.
    """
    job, history = batch.job, batch.history
    history.newest_position()  # the lake is the one that earlier batches were written to, or nothing is done
    demand_same_names(job, history, open_sink(job, batch.secrets))
    if open_format(job.format, job.format_options).order == "clock":
        job = replace(job, clocks=history.clocks())
    begins = [list(begin) for begin in history.generations().begins()]
    batch.job = replace(job, begins=begins, last_records=history.last_records())


def _settle(
    batch: BatchContext, landed: Manifest, generations: Generations, applied: Applied, commits: OpenCommits
) -> Result:
    """Write the result, with what only later batches need; return the one that counts."""
    job, history, result = batch.job, batch.history, applied.result
    if job.scratch:
        result.row_changes = changes_by_table(batch.storage, landed)
        result.unfit = [row.document() for row in applied.unfit]
    result.replayed = job.order is not None
    quarantine = applied.planner.quarantine
    groups = [group for group in landed.groups if group.database]
    times = [*(group.max_source_time for group in groups), history.newest_source_time()]
    stored = StoredResult(
        result,
        max((moment for moment in times if moment is not None), default=None),
        max([*(group.max_position for group in groups), history.newest_position()]),
        landed.clocks,
        generations.after(landed).document(),
        applied.unfit,
        [*history.settled(), *(one.document() for one in landed.settled)],
        [item.document() for item in applied.planner.asked.every()],
        [item.document() for item in quarantine.waiting],
        {**landed.log_names, **history.log_names()},
        {**history.last_records(), **landed.last_records},
        left_out=left_out_after(history.left_out(), result, applied.unfit, quarantine.settled),
        topics=quarantine.topics.names,
        name_options=name_options(job),
        formats=formats_after(history.formats(), job),
        commits=commits.document(),
        target_rules=rules_of(job),
    )
    return batch.log.write_result(job, stored).result


def failed(job: JobDocument, error: CdcError) -> Result:
    """Return the result of a batch that could not be carried out."""
    return Result(job.pipeline, job.seq, ResultStatus.FAILED, error=error)
