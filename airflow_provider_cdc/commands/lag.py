# SPDX-License-Identifier: Apache-2.0
"""Run ``lag``: show how far the tables are behind the source, now and over time."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from airflow_provider_cdc.commands.output import DONE, print_json, print_table
from airflow_provider_cdc.core.config import CdcPipeline

if TYPE_CHECKING:
    from airflow_provider_cdc.core.plan.lag import Lag
    from airflow_provider_cdc.ledger import ProgressSample

_SAMPLES = 20


def lag(args: Namespace) -> int:
    """Show the lag of a pipeline, by partition, and the samples that sensors and batches recorded."""
    from airflow_provider_cdc.batch.source_log import open_log
    from airflow_provider_cdc.connections.lookup import ledger_url
    from airflow_provider_cdc.ledger import Ledger
    from airflow_provider_cdc.watch.lag import applied_offsets, observe_lag

    pipeline = CdcPipeline.from_yaml(args.pipeline)
    ledger = Ledger(ledger_url(pipeline.ledger))
    applied = applied_offsets(ledger, pipeline.name)
    now = observe_lag(pipeline, open_log(pipeline), applied)
    limit = _SAMPLES if args.since is None else None
    history = ledger.progress(pipeline.name, since=args.since, limit=limit)
    if args.json:
        print_json({**now.document(), "history": [sample.document() for sample in history]})
    else:
        _print(now, history)
    return DONE


def _print(now: Lag, history: list[ProgressSample]) -> None:
    from airflow_provider_cdc.core.plan.lag import iso_time
    from airflow_provider_cdc.watch.lag import describe

    print(describe(now))
    parts = [
        (part.name, part.records, iso_time(part.applied_ms), iso_time(part.received_ms), part.why)
        for part in now.behind()
        if part.records or part.why
    ]
    if parts:
        print()
        print_table(("partition", "records", "applied up to", "received up to", "note"), parts)
    if history:
        columns = ("seen_at", "lag_seconds", "lag_records", "applied", "received")
        rows = [tuple(document[column] for column in columns) for document in (s.document() for s in history)]
        print()
        print_table(("seen at", "seconds", "records", "applied up to", "received up to"), rows)
