# SPDX-License-Identifier: Apache-2.0
"""Maintain a pipeline's tables, next to the batches that run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from airflow_provider_cdc.batch.job import JobMaker
from airflow_provider_cdc.batch.lake_question import ask
from airflow_provider_cdc.batch.result import table_states
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import Maintenance, TableMaintenance
from airflow_provider_cdc.core.ledger import Ledger
from airflow_provider_cdc.engine import Stopper
from airflow_provider_cdc.hooks.connections import ledger_url


def maintain(
    pipeline: CdcPipeline, *, say: Callable[[str], None] = print, kill: Stopper | None = None
) -> list[TableMaintenance]:
    """Put small files of the tables together, remove files of older versions, write checkpoints.

    Files stay as long as ``policy.log_retention``, so a rewind finds its version. It may run next to batches, be
    stopped, and run again: it does only what is due. It works in a process of this machine.

    :param say: takes one line of progress.
    :param kill: stops it from outside.
    :raises CdcError: nothing was done; what goes wrong with one table is in its report.
    """
    ledger = Ledger(ledger_url(pipeline.ledger))
    newest = ledger.last(pipeline.name)
    if newest is None:
        return []
    nothing = replace(newest, seq=newest.seq + 1, start=newest.end)
    job, secrets = JobMaker(pipeline, ledger, nothing, {}, table_states(ledger, pipeline.name)).make()
    job.schema_changes, job.session = [], False
    job.maintenance = Maintenance(pipeline.policy.target_file_bytes, 24 * pipeline.policy.log_retention)
    result = ask(job, secrets, f"maintenance of {pipeline.name}", say=say, stopper=kill or Stopper())
    if result.error is not None:
        raise result.error
    return result.maintained


def maintenance_document(pipeline: CdcPipeline, tables: list[TableMaintenance]) -> dict[str, Any]:
    """Return what maintenance did as plain JSON data."""
    lines = [
        {
            "table": f"{table.database}.{table.table}",
            "compacted": table.compacted,
            "written": table.written,
            "vacuumed": table.vacuumed,
            "checkpoint": table.checkpoint,
            "version": table.version,
            **({} if table.error is None else {"error": table.error}),
        }
        for table in tables
    ]
    return {"pipeline": pipeline.name, "tables": lines}
