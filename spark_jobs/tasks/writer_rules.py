# SPDX-License-Identifier: Apache-2.0
"""Say how the writer of a table is chosen, from the pipeline's policy and the table's own rule."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_cdc.core.documents import JobDocument
from spark_jobs.sinks.commits import Choice
from spark_jobs.sinks.contract import Sink, Stored, WriterRule
from spark_jobs.workers.memory import task_memory


def writer_rule(job: JobDocument, name: str, columns: Sequence[str], sink: Sink[Stored]) -> WriterRule:
    """Return how the writer of each commit of a table is chosen.

    :param name: of the table, ``database.table``.
    :param columns: names of its columns after the batch.
    """
    own = job.tables.rule(name).writer
    stated = own or job.policy.writer
    key = f"tables.{name}.writer" if own else "policy.writer"
    asked, obstacle = stated == "spark", ""
    settled: Choice | None = None
    if stated == "task":
        settled = Choice("task", f"{key} is task")
    elif sink.spark is None:
        settled = Choice("task", f"tables of type {job.sink_type} are written by tasks")
    elif not sink.spark.can_name(columns):
        settled = Choice("task", "Spark cannot write the name of a column")
    else:
        obstacle = sink.spark.obstacle(job, asked=asked)
    if asked and settled is None:
        settled = Choice("task", obstacle) if obstacle else Choice("spark", f"{key} is spark")
    return WriterRule(settled, job.policy.spark_writer_bytes, task_memory(), obstacle)
