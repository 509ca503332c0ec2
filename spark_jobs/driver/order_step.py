# SPDX-License-Identifier: Apache-2.0
"""Carry out what operators order with a batch: a decision, an approval, rows that count again."""

from __future__ import annotations

from functools import partial

from airflow_provider_cdc.core.documents import Approval, Decision, Replay
from spark_jobs.driver.batch_context import BatchContext
from spark_jobs.driver.generations import Generations
from spark_jobs.driver.quarantine_entries import carry_out
from spark_jobs.driver.replay import REPLAYED, with_replay
from spark_jobs.lake.folded_batches import folded_range
from spark_jobs.lake.manifest import Manifest


def with_orders(batch: BatchContext, landed: Manifest, generations: Generations) -> Manifest:
    """Return what was landed with what operators order; it is written to the lake."""
    job, storage = batch.job, batch.storage
    match job.order:
        case Decision() as decision:
            after = generations.after(landed)
            landed = carry_out(job, decision, landed, batch.history, after, storage, batch.secrets, batch.say)
        case Approval(change) if change not in landed.approvals:
            landed.approvals = [*landed.approvals, change]
        case Replay() as replay:
            expired = partial(folded_range(storage, job.pipeline).is_expired, storage, job.pipeline)
            landed = with_replay(replay, landed, batch.history, expired)
            batch.say(f"replay: {landed.changes.get(REPLAYED, 0)} rows of the change log")
        case _:  # a rebuild needs nothing of the records
            return landed
    batch.log.replace_manifest(job, landed)
    return landed
