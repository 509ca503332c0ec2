# SPDX-License-Identifier: Apache-2.0
"""Land a batch: hand its chunks of records to tasks, and put what they report together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.model.offsets import OffsetRange
from airflow_provider_cdc.core.plan.chunks import group_chunks
from spark_jobs.driver.refused_batches import decoding_of
from spark_jobs.driver.task_runner import Runner, Secrets
from spark_jobs.lake.manifest import LandReport, Manifest, merged
from spark_jobs.lake.tables_of_topics import joined_topics
from spark_jobs.readers.spark_reader import read_with_spark
from spark_jobs.tasks.land import chunks_of, demand_same_topics, land_chunks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def land_batch(
    job: JobDocument, secrets: Secrets, run: Runner, say: Callable[[str], None], session: SparkSession | None
) -> Manifest:
    """Land the records of a batch in the change log; return its manifest, which is not written yet.

    :param session: reads through Spark's Kafka source where the policy says so.
    """
    demand_same_topics(job)
    total = sum(chunk.end - chunk.start for chunk in job.chunks)
    if session is not None and job.policy.reader == "spark":
        say(f"land: up to {total} records of {len(job.chunks)} partitions through Spark's Kafka source")
        reports = read_with_spark(session, job, secrets)
    else:
        chunks = chunks_of(job)
        groups = group_chunks(chunks, job.parallelism, job.policy.chunk_records)
        say(f"land: up to {total} records of {len(chunks)} chunks in {len(groups)} tasks")
        reports = run(partial(_land_task, job.for_tasks(), secrets), groups)
    manifest = _manifest(job, reports)
    say(f"land: {manifest.records} records, {len(manifest.schema_changes)} schema changes")
    return manifest


def _manifest(job: JobDocument, reports: Sequence[LandReport]) -> Manifest:
    """Return the manifest of a batch that was landed by some tasks."""
    manifest = Manifest(seq=job.seq, records=sum(report.records for report in reports), landed_with=decoding_of(job))
    manifest.progress = max((report.progress for report in reports if report.progress is not None), default=None)
    changes: Counter[str] = Counter()
    clocks = {(topic, partition): clock for topic, partition, *clock in job.clocks}
    for report in reports:
        manifest.groups += report.groups
        manifest.schema_changes += report.schema_changes
        manifest.errors += report.errors
        manifest.descriptions += report.descriptions
        manifest.stretches += report.stretches
        manifest.statements += report.statements
        manifest.log_names = {**report.log_names, **manifest.log_names}
        for partition, last in report.last_records.items():  # chunks of one partition may be read apart
            manifest.last_records[partition] = max(last, manifest.last_records.get(partition, last))
        manifest.unreadable = merged(manifest.unreadable, report.unreadable)
        manifest.topics = joined_topics(manifest.topics, report.topics)
        changes.update(report.changes)
        clocks |= {(topic, partition): clock for topic, partition, *clock in report.clocks}
    manifest.changes = dict(changes)
    manifest.clocks = [[*partition, *clock] for partition, clock in sorted(clocks.items())]
    return manifest


def _land_task(job: JobDocument, secrets: Secrets, chunks: Sequence[OffsetRange]) -> LandReport:
    return land_chunks(job, chunks, secrets)
