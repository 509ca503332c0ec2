# SPDX-License-Identifier: Apache-2.0
"""Land a batch: hand its chunks of records to tasks, put what they report together, and make it visible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from airflow_provider_cdc.core.documents import Decision, JobDocument
from airflow_provider_cdc.core.model.offsets import OffsetRange
from airflow_provider_cdc.core.plan.chunks import group_chunks
from spark_jobs.driver.batch_context import BatchContext
from spark_jobs.driver.one_log import demand_one_log
from spark_jobs.driver.refused_batches import decoding_of, is_outdated
from spark_jobs.driver.task_runner import Secrets
from spark_jobs.driver.tried_rules import rules_of
from spark_jobs.lake.manifest import LandReport, Manifest, merged
from spark_jobs.lake.tables_of_topics import joined_topics
from spark_jobs.lake.transaction_counts import joined_commits
from spark_jobs.readers.spark_reader import read_with_spark
from spark_jobs.tasks.land import chunks_of, demand_same_topics, land, land_chunks
from spark_jobs.workers.progress import begin


def landed_batch(batch: BatchContext) -> Manifest:
    """Return the manifest of the batch, landed now unless it was before with the same format and options.

    :raises DataError: ``source.second_log``.
    """
    before = batch.log.manifest(batch.job)
    if before is not None and not is_outdated(batch.job, before):
        return before
    landed = _land(batch)
    demand_one_log(batch.job, landed.log_names, batch.history.log_names())
    if before is None:
        return batch.log.write_manifest(batch.job, landed)
    if isinstance(batch.job.order, Decision):  # it was about the records that could not be decoded then
        batch.job = replace(batch.job, order=None)
    batch.log.replace_manifest(batch.job, landed)
    return landed


def _land(batch: BatchContext) -> Manifest:
    """Land the records of a batch in the change log; return its manifest, which is not written yet."""
    job = batch.job
    demand_same_topics(job)
    total = sum(chunk.end - chunk.start for chunk in job.chunks)
    begin("land", rows=total)
    if batch.session is not None and job.policy.reader == "spark":
        batch.say(f"land: up to {total} records of {len(job.chunks)} partitions through Spark's Kafka source")
        reports = read_with_spark(batch.session, job, batch.secrets, land)
    else:
        chunks = chunks_of(job)
        groups = group_chunks(chunks, job.parallelism, job.policy.chunk_records)
        batch.say(f"land: up to {total} records of {len(chunks)} chunks in {len(groups)} tasks")
        reports = batch.run(partial(_land_task, job.for_tasks(), batch.secrets), groups)
    manifest = _manifest(job, reports)
    batch.say(f"land: {manifest.records} records, {len(manifest.schema_changes)} schema changes")
    return manifest


def _manifest(job: JobDocument, reports: Sequence[LandReport]) -> Manifest:
    """Return the manifest of a batch that was landed by some tasks."""
    manifest = Manifest(seq=job.seq, records=sum(report.records for report in reports), landed_with=decoding_of(job))
    manifest.target_rules = [rules_of(job)] if job.target else []
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
        manifest.commits = joined_commits(manifest.commits, report.commits)
        changes.update(report.changes)
        clocks |= {(topic, partition): clock for topic, partition, *clock in report.clocks}
    manifest.changes = dict(changes)
    manifest.clocks = [[*partition, *clock] for partition, clock in sorted(clocks.items())]
    return manifest


def _land_task(job: JobDocument, secrets: Secrets, chunks: Sequence[OffsetRange]) -> LandReport:
    return land_chunks(job, chunks, secrets)
