# SPDX-License-Identifier: Apache-2.0
"""Say how the writer of a table is chosen, from the pipeline's policy and the table's own rule."""

from __future__ import annotations

from airflow_provider_cdc.core.documents import JobDocument
from spark_jobs.sinks.commits import Choice
from spark_jobs.sinks.delta.spark_writer import can_name
from spark_jobs.sinks.delta.writer_choice import WriterRule
from spark_jobs.tasks.table_task import ApplyTask
from spark_jobs.workers.memory import task_memory


def writer_rule(job: JobDocument, task: ApplyTask) -> WriterRule:
    """Return how the writer of each commit of a table is chosen."""
    name = f"{task.database}.{task.table}"
    own = job.tables.rule(name).writer
    stated = own or job.policy.writer
    key = f"tables.{name}.writer" if own else "policy.writer"
    columns = [column["name"] for column in task.timeline["epochs"][-1][1]["columns"]]
    settled: Choice | None = None
    obstacle = "" if job.session else "the batch has no Spark session"
    if stated == "task":
        settled = Choice("task", f"{key} is task")
    elif not can_name(columns):
        settled = Choice("task", "Spark cannot write the name of a column")
    elif stated == "spark" and not job.session:
        settled = Choice("task", obstacle)
    elif stated == "spark":
        settled = Choice("spark", f"{key} is spark")
    if not obstacle and not job.spark_reaches_sink:
        obstacle = "spark.conf names no hadoop-aws"
    return WriterRule(settled, job.policy.spark_writer_bytes, task_memory(), obstacle)
