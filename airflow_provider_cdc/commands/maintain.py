# SPDX-License-Identifier: Apache-2.0
"""Run ``maintain``: put small files together, remove old ones, write checkpoints."""

from __future__ import annotations

import signal
import sys
from argparse import Namespace

from airflow_provider_cdc.commands.output import AGAIN, DATA, DONE, guarded, print_json, print_table
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.printable import printable


def maintain(args: Namespace) -> int:
    """Maintain the pipeline's tables."""

    def work() -> int:
        from airflow_provider_cdc.batch.maintenance import maintain, maintenance_document
        from airflow_provider_cdc.engine import Stopper

        pipeline = CdcPipeline.from_yaml(args.pipeline)
        stopper = Stopper()
        signal.signal(signal.SIGTERM, lambda *_: stopper("SIGTERM"))
        tables = maintain(pipeline, say=_say, kill=stopper)
        document = maintenance_document(pipeline, tables)
        if args.json:
            print_json(document)
        else:
            names = ("table", "compacted", "written", "vacuumed", "checkpoint", "version")
            lines = [[*(line[name] for name in names), _reason(line)] for line in document["tables"]]
            print_table((*names, "error"), lines)
        failed = [table for table in tables if table.error is not None]
        return DONE if not failed else AGAIN if all(table.transient for table in failed) else DATA

    return guarded(work, as_json=args.json)


def _reason(line: dict[str, object]) -> str | None:
    error = line.get("error")
    return f"[{error['code']}] {error['message']}" if isinstance(error, dict) else None


def _say(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)
