# SPDX-License-Identifier: Apache-2.0
"""Maintain a pipeline's tables and change log, next to the batches that run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_provider_cdc.batch.job import JobMaker
from airflow_provider_cdc.batch.lake_question import ask
from airflow_provider_cdc.batch.orders import demand_tables
from airflow_provider_cdc.batch.planned_batch import this_process
from airflow_provider_cdc.batch.recovery import folded_batch
from airflow_provider_cdc.batch.result import table_states
from airflow_provider_cdc.connections.lookup import ledger_url
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import ExpiredLog, Maintenance, Result, TableMaintenance
from airflow_provider_cdc.core.errors import BusyError
from airflow_provider_cdc.engine.stopper import Stopper
from airflow_provider_cdc.ledger import Batch, Ledger, Owner


@dataclass(frozen=True)
class MaintenanceReport:
    """Hold what maintenance did.

    :param tables: each table.
    :param expired: what was removed from the change log, None where somebody worked on the pipeline.
    :param busy: who did, empty without.
    :param states: past states of tables that the ledger forgot; ``batches`` that it no longer has one by one.
    """

    tables: list[TableMaintenance] = field(default_factory=list)
    expired: ExpiredLog | None = None
    busy: str = ""
    states: int = 0
    batches: int = 0


def maintain(
    pipeline: CdcPipeline,
    *,
    say: Callable[[str], None] = print,
    kill: Stopper | None = None,
    owner: Owner | None = None,
    now: datetime | None = None,
) -> MaintenanceReport:
    """Put small files together, write checkpoints, and remove what is older than ``policy.log_retention``.

    Of the tables files of older versions are removed; of the change log rows that every table has applied, and that
    neither the quarantine nor a replay needs; of the ledger past states. Old batches become one, in the lake and in the
    ledger. It may run next to batches, be stopped, and
    run again: it does only what is due. It works in a process of this machine.

    :param say: takes one line of progress.
    :param kill: stops it from outside.
    :param owner: who requests it.
    :param now: time that ages are counted from; the present if None.
    :raises CdcError: what is done stays; what goes wrong with one table is in its report.
    """
    ledger = Ledger(ledger_url(pipeline.ledger))
    newest = ledger.last(pipeline.name)
    if newest is None:
        return MaintenanceReport()
    now = now or datetime.now(UTC)
    days = pipeline.policy.log_retention
    order = Maintenance(pipeline.policy.target_file_bytes, 24 * days, at=now.isoformat())
    tables = _ask(pipeline, ledger, newest, order, say, kill).maintained
    cutoff = now - timedelta(days=days)
    ages = [(batch.seq, batch.committed_at) for batch in ledger.batches(pipeline.name)]
    old = [seq for seq, committed_at in ages if committed_at is not None and committed_at < cutoff]
    if not old:
        return MaintenanceReport(tables, ExpiredLog())
    try:
        with ledger.lease(pipeline.name, owner or this_process(), pipeline.policy.lease_seconds) as lease:
            expire = replace(order, expire_through=max(old))
            result = _ask(pipeline, ledger, newest, expire, say, kill)
            states = ledger.forget_states(lease, result.expired.through)
            batches = sum(ledger.fold(lease, folded_batch(pipeline.name, one)) for one in result.lake_batches)
            batches += ledger.forget_empty(lease, cutoff)
            return MaintenanceReport(tables, result.expired, states=states, batches=batches)
    except BusyError as error:
        return MaintenanceReport(tables, busy=str(error))


def purge(
    pipeline: CdcPipeline,
    table: str,
    *,
    say: Callable[[str], None] = print,
    kill: Stopper | None = None,
    owner: Owner | None = None,
) -> MaintenanceReport:
    """Remove all files of a table that its newest version does not have, at once, and do nothing else.

    Nobody can read an older version then, and no batch can go back to one. Nobody else may work on the pipeline
    meanwhile: ``busy`` says that nothing was done.

    :param table: ``database.table``.
    :param say: takes one line of progress.
    :param kill: stops it from outside.
    :param owner: who requests it.
    :raises CdcError: as :func:`maintain`; the pipeline has no such table.
    """
    ledger = Ledger(ledger_url(pipeline.ledger))
    demand_tables([table], table_states(ledger, pipeline.name).values())
    newest = ledger.last(pipeline.name)
    assert newest is not None, "there are tables"
    say(f"purging {table}: its older versions go, so nobody can read them, and no batch can go back to one of them")
    order = Maintenance(pipeline.policy.target_file_bytes, 0, purge=table)
    try:
        with ledger.lease(pipeline.name, owner or this_process(), pipeline.policy.lease_seconds):
            return MaintenanceReport(_ask(pipeline, ledger, newest, order, say, kill).maintained)
    except BusyError as error:
        return MaintenanceReport(busy=str(error))


def _ask(
    pipeline: CdcPipeline,
    ledger: Ledger,
    newest: Batch,
    order: Maintenance,
    say: Callable[[str], None],
    kill: Stopper | None,
) -> Result:
    """Return what a process of maintenance did."""
    nothing = replace(newest, seq=newest.seq + 1, start=newest.end)
    job, secrets = JobMaker(pipeline, ledger, nothing, {}, table_states(ledger, pipeline.name)).make()
    job.schema_changes, job.session, job.order = [], False, order
    result = ask(job, secrets, f"maintenance of {pipeline.name}", say=say, stopper=kill or Stopper())
    if result.error is not None:
        raise result.error
    return result


def maintenance_document(pipeline: CdcPipeline, done: MaintenanceReport) -> dict[str, Any]:
    """Return what maintenance did as plain JSON data."""
    lines = [
        {
            "table": f"{table.database}.{table.table}",
            "expired": table.expired,
            "compacted": table.compacted,
            "written": table.written,
            "vacuumed": table.vacuumed,
            "checkpoint": table.checkpoint,
            "version": table.version,
            **({} if table.error is None else {"error": table.error}),
        }
        for table in done.tables
    ]
    log = None if done.expired is None else done.expired.document()
    ledger = {"states": done.states, "batches": done.batches}
    return {"pipeline": pipeline.name, "tables": lines, "log": log, **ledger, "busy": done.busy or None}
