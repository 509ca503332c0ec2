# SPDX-License-Identifier: Apache-2.0
"""Run ``maintain``: put small files together, remove old ones, write checkpoints."""

from __future__ import annotations

import signal
from argparse import Namespace
from typing import TYPE_CHECKING

from airflow_provider_cdc.commands.output import AGAIN, DATA, DONE, print_json, print_table
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.reporting.reporter import at_a_command_line

if TYPE_CHECKING:
    from airflow_provider_cdc.batch.maintenance import MaintenanceReport


def maintain(args: Namespace) -> int:
    """Maintain the pipeline's tables."""
    from airflow_provider_cdc.batch.maintenance import maintain, maintenance_document, purge
    from airflow_provider_cdc.engine.stopper import Stopper

    pipeline = CdcPipeline.from_yaml(args.pipeline)
    stopper = Stopper()
    signal.signal(signal.SIGTERM, lambda *_: stopper("SIGTERM"))
    with at_a_command_line() as say:
        if args.purge:
            done = purge(pipeline, args.purge, say=say, kill=stopper)
        else:
            done = maintain(pipeline, say=say, kill=stopper)
    document = maintenance_document(pipeline, done)
    if args.json:
        print_json(document)
    else:
        expired = ["expired"] if any(table.expired for table in done.tables) else []
        names = ("table", *expired, "compacted", "written", "vacuumed", "checkpoint", "version")
        lines = [[*(line[name] for name in names), _reason(line)] for line in document["tables"]]
        print_table((*names, "error"), lines)
        print()
        print(printable(_purge_line(done) if args.purge else _log_line(done)))
    failed = [table for table in done.tables if table.error is not None]
    if any(not table.transient for table in failed):
        return DATA
    return AGAIN if failed or done.busy else DONE


def _purge_line(done: MaintenanceReport) -> str:
    return f"nothing was removed: {done.busy}" if done.busy else "the change log still has all values of its rows"


def _reason(line: dict[str, object]) -> str | None:
    error = line.get("error")
    return f"[{error['code']}] {error['message']}" if isinstance(error, dict) else None


def _log_line(done: MaintenanceReport) -> str:
    if done.expired is None:
        return f"the change log was not looked at: {done.busy}" if done.busy else "nothing was ever applied"
    removed = f"{done.expired.files} files ({done.expired.file_bytes} bytes) of the change log"
    forgotten = f"{done.states} past states of tables and {done.batches} batches of the ledger"
    return f"removed: {removed}, {done.expired.jobs} job documents, {forgotten}"
