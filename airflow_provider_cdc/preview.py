"""What the next batch would read, without recording anything."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.ledger import SYNC, Batch, Ledger, Offsets
from airflow_provider_cdc.core.ledger.records import COMMITTED, PLANNED
from airflow_provider_cdc.hooks.connections import ledger_url
from airflow_provider_cdc.hooks.kafka_log import KafkaLog
from airflow_provider_cdc.planner import observe, plan_batch

_STATUS = {PLANNED: "planned", COMMITTED: "done"}


class _Unrecorded:
    """A ledger that is read and never written."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.fresh: Batch | None = None

    def __getattr__(self, name: str) -> Any:
        if name not in ("planned", "open", "covering", "last"):
            raise AttributeError(name)
        return getattr(self._ledger, name)

    def plan(
        self, lease: Any, start: Offsets, end: Offsets, until: datetime | None, kind: str = SYNC, **_: object
    ) -> Batch:
        seq = 1 + max((batch.seq for batch in self._ledger.batches(lease)), default=0)
        self.fresh = Batch(lease, seq, kind, PLANNED, start, end, until, datetime.now(UTC))
        return self.fresh

    def commit(self, lease: Any, seq: int, result: Mapping[str, Any]) -> Batch:
        assert self.fresh is not None
        return self.fresh


def preview(pipeline: CdcPipeline, until: datetime | None) -> dict[str, Any]:
    """Return what a sync of this request would do: ``nothing_to_do``, ``new``, ``planned`` or ``done`` before.

    :param until: as for the sync; with it the answer names the partitions that are not there yet.
    """
    ledger = _Unrecorded(Ledger(ledger_url(pipeline.ledger)))
    log = KafkaLog(pipeline.source.connection)
    # Nothing is written, so the pipeline's name stands for the lease.
    batch = plan_batch(pipeline, ledger, pipeline.name, log, until)  # type: ignore[arg-type]
    document = batch.document()
    seen = {name: document[name] for name in ("pipeline", "seq", "start", "end", "until")}
    seen["records"] = records = _records(pipeline, batch)
    if batch is ledger.fresh:
        seen["status"] = "new" if records else "nothing_to_do"
    else:
        seen["status"] = _STATUS[batch.status]
    if until is not None and seen["status"] == "new":
        seen["holds"] = holds(pipeline, log, until)
    return seen


def holds(pipeline: CdcPipeline, log: KafkaLog, until: datetime) -> list[dict[str, Any]]:
    """Return the partitions that do not hold everything committed before a time yet."""
    from airflow_provider_cdc.core.plan.progress import received

    facts, beats = observe(pipeline, log)
    found = received(int(until.timestamp() * 1000), facts, beats)
    return [{"topic": hold.topic, "partition": hold.partition, "why": hold.why} for hold in found.holds]


def _records(pipeline: CdcPipeline, batch: Batch) -> int:
    """Offsets to read; heartbeats alone are nothing to do."""
    beats = pipeline.source.heartbeat_topic
    return sum(
        end - batch.start.get(topic, {}).get(partition, end)
        for topic, partitions in batch.end.items()
        if topic != beats
        for partition, end in partitions.items()
    )
