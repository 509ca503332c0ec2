# SPDX-License-Identifier: Apache-2.0
"""Probe a pipeline's sink: a small table is made, merged into and removed there."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow_provider_cdc.batch.job import JobMaker
from airflow_provider_cdc.batch.lake_question import ask
from airflow_provider_cdc.connections.lookup import ledger_url
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import Probe, ProbeStep
from airflow_provider_cdc.core.model.status import BatchStatus
from airflow_provider_cdc.ledger import SYNC, Batch, Ledger


def probe(pipeline: CdcPipeline) -> list[ProbeStep]:
    """Return the steps that were tried, the last of which failed or is the removal; it works in a process of its own.

    No table of the pipeline is touched, and no batch is planned.

    :raises CdcError: nothing was tried.
    """
    nothing = Batch(pipeline.name, 0, SYNC, BatchStatus.PLANNED, {}, {}, None, datetime.now(UTC))
    job, secrets = JobMaker(pipeline, Ledger(ledger_url(pipeline.ledger)), nothing, {}, {}).make()
    job.schema_changes, job.session, job.order = [], False, Probe()
    result = ask(job, secrets, f"probe of the sink of {pipeline.name}")
    if result.error is not None:
        raise result.error
    return result.probed
