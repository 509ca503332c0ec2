# SPDX-License-Identifier: Apache-2.0
"""Adopt a lake that was copied or moved: it is the pipeline's from now on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from airflow_provider_cdc.batch.job import JobMaker
from airflow_provider_cdc.batch.lake_question import ask
from airflow_provider_cdc.batch.planned_batch import this_process
from airflow_provider_cdc.connections.lookup import ledger_url, sink_options
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import Adoption
from airflow_provider_cdc.core.lake.own_lake import LakeIdentity
from airflow_provider_cdc.core.model.status import BatchStatus
from airflow_provider_cdc.engine.stopper import Stopper
from airflow_provider_cdc.ledger import Batch, Ledger, Owner
from airflow_provider_cdc.ledger.records import SYNC
from airflow_provider_cdc.sinks.pipeline_tables import PipelineTables


def adopt(
    pipeline: CdcPipeline,
    *,
    say: Callable[[str], None] = print,
    kill: Stopper | None = None,
    owner: Owner | None = None,
) -> LakeIdentity:
    """Let the lake at ``lake.root`` be the pipeline's from now on, in the lake and in the ledger; return its identity.

    It gets an id of its own. What it was copied from is not touched, and goes on with its own ledger. It works in a
    process of this machine, and doing it again changes nothing.

    :param say: takes one line of progress.
    :param kill: stops it from outside.
    :param owner: who requests it.
    :raises BusyError: another holder has the pipeline's lease; names it.
    :raises SinkError: ``lake.missing``, there is no lake of the pipeline at the root.
    """
    ledger, seconds = Ledger(ledger_url(pipeline.ledger)), pipeline.policy.lease_seconds
    with ledger.lease(pipeline.name, owner or this_process(), seconds) as lease:
        nothing = Batch(pipeline.name, 0, SYNC, BatchStatus.PLANNED, {}, {}, None, datetime.now(UTC))
        job, secrets = JobMaker(pipeline, ledger, nothing, {}, {}).make()
        job.schema_changes, job.session, job.order = [], False, Adoption()
        result = ask(job, secrets, f"adoption of the lake of {pipeline.name}", say=say, stopper=kill or Stopper())
        if result.error is not None:
            raise result.error
        assert result.lake is not None, "an adoption ends with the lake's identity"
        ledger.adopt(lease, PipelineTables(pipeline, sink_options).lake_document(result.lake))
        return result.lake
