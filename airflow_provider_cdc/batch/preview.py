# SPDX-License-Identifier: Apache-2.0
"""Preview the next batch without recording it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from airflow_provider_cdc.batch.coming_ddl import coming_ddl
from airflow_provider_cdc.batch.explain import explain
from airflow_provider_cdc.batch.planner import observe, propose_batch
from airflow_provider_cdc.batch.source_log import SourceLog, open_log
from airflow_provider_cdc.connections.lookup import ledger_url
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.model.status import BatchStatus, ResultStatus
from airflow_provider_cdc.core.plan.ranges import Range
from airflow_provider_cdc.ledger import Batch, Ledger
from airflow_provider_cdc.ledger.records import offsets_document, time_text

_STATUS = {BatchStatus.PLANNED: "planned", BatchStatus.COMMITTED: "done"}


def preview(
    pipeline: CdcPipeline, until: datetime | None, *, explained: bool = False, say: Callable[[str], None] = print
) -> dict[str, Any]:
    """Return the batch of a request; its status is ``nothing_to_do``, ``new``, ``planned`` or ``done``.

    :param until: as for the sync; with it the answer names the partitions that have not reached it.
    :param explained: add what the batch would do to each table, as ``explain``; nothing is written.
    :param say: takes one line of progress of that.
    """
    ledger = Ledger(ledger_url(pipeline.ledger))
    log = open_log(pipeline)
    proposal = propose_batch(pipeline, ledger, log, until)
    records = _records(pipeline, proposal)
    if isinstance(proposal, Batch):
        seq, until_of, status = proposal.seq, proposal.until, _STATUS[proposal.status]
    else:
        last = ledger.last(pipeline.name, abandoned=True)
        seq = 1 if last is None else last.seq + 1
        until_of = until if proposal.cut_at is None else None
        status = "new" if records else str(ResultStatus.NOTHING_TO_DO)
    document = {
        "pipeline": pipeline.name,
        "seq": seq,
        "start": offsets_document(proposal.start),
        "end": offsets_document(proposal.end),
        "until": time_text(until_of),
        "cut_at": time_text(proposal.cut_at),
        "records": records,
        "status": status,
    }
    if status in ("new", "planned"):
        document["ddl"] = coming_ddl(pipeline, log, proposal.start, proposal.end)
    tries = status == ResultStatus.NOTHING_TO_DO and ledger.fingerprint(pipeline.name) != pipeline.fingerprint()
    if explained and (status in ("new", "planned") or tries):
        document["explain"] = explain(pipeline, ledger, log, proposal, seq, until_of, say)
    if until is not None and status == "new":
        document["holds"] = holds(pipeline, log, until)
    return document


def holds(pipeline: CdcPipeline, log: SourceLog, until: datetime) -> list[dict[str, Any]]:
    """Return the partitions that do not yet hold everything committed before a time."""
    from airflow_provider_cdc.core.plan.progress import received

    facts, beats = observe(pipeline, log)
    progress = received(int(until.timestamp() * 1000), facts, beats)
    return [{"topic": hold.topic, "partition": hold.partition, "why": hold.why} for hold in progress.holds]


def _records(pipeline: CdcPipeline, batch: Batch | Range) -> int:
    """Return the number of offsets to read, without those of heartbeats."""
    beats = pipeline.source.heartbeat_topic
    return sum(
        end - batch.start.get(topic, {}).get(partition, end)
        for topic, partitions in batch.end.items()
        if topic != beats
        for partition, end in partitions.items()
    )
