# SPDX-License-Identifier: Apache-2.0
"""Metrics of batches and looks, name by name, as Airflow's backend gets them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_cdc.batch.result import BatchResult, TableResult, UnsettledTable
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import BusyError, DataError, SourceError, UnavailableError
from airflow_provider_cdc.core.model.status import ResultStatus
from airflow_provider_cdc.core.plan.lag import Lag, PartitionLag
from airflow_provider_cdc.core.plan.progress import Mark, PartitionFacts
from airflow_provider_cdc.observability.metrics import (
    batch_metrics,
    error_metrics,
    failure_sent,
    lag_metrics,
    quarantine_metrics,
    send,
)
from airflow_provider_cdc.watch.received import ReceivedCondition

PIPELINE = CdcPipeline.from_dict(
    {
        "name": "shop",
        "source": {"topics": ["t"], "format": "canal-json"},
        "sink": {"type": "delta", "root": "/lake"},
        "policy": {"engine": "inline"},
    }
)
TAGS = {"pipeline": "shop", "format": "canal-json", "engine": "inline"}


class Backend:
    """Stands for StatsD or OpenTelemetry behind Airflow."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, Any]] = []
        self.tags: list[dict[str, str]] = []

    def gauge(self, name: str, value: float, *, tags: dict[str, str], **_: Any) -> None:
        self._take("gauge", name, value, tags)

    def incr(self, name: str, count: int = 1, *, tags: dict[str, str], **_: Any) -> None:
        self._take("counter", name, count, tags)

    def timing(self, name: str, dt: Any, *, tags: dict[str, str], **_: Any) -> None:
        self._take("timer", name, dt, tags)

    def _take(self, kind: str, name: str, value: Any, tags: dict[str, str]) -> None:
        self.sent.append((kind, name, value))
        self.tags.append(tags)


@pytest.fixture
def backend() -> Iterator[Backend]:
    made = Backend()
    _send_to(made)
    yield made
    _send_to(None)


def _send_to(backend: Backend | None) -> None:
    """Let Airflow send its metrics to a backend, or to none."""
    try:
        from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger
        from airflow.sdk.observability.stats import initialize
    except ImportError:  # Airflow before 3.3
        from airflow.providers.common.compat.sdk import Stats

        Stats.instance = backend  # type: ignore[misc]
        Stats._instance_pid = os.getpid()  # type: ignore[attr-defined]
        return
    initialize(factory=lambda: backend or NoStatsLogger(), export_legacy_names=False)  # type: ignore[arg-type,return-value]


def batch(status: ResultStatus, **members: Any) -> BatchResult:
    return BatchResult("shop", 4, status, seconds=2.5, **members)


PARKED = UnsettledTable("shop", "orders", "its key is gone")
RESULTS = {
    "first": (
        batch(
            ResultStatus.DONE, records=90, schema_changes=2, quarantined=1, parked=[], waiting=[],
            tables=[TableResult("shop", "a", "append", 50, 0), TableResult("shop", "b", "merge", 7, 3)],
            lossy={"rounded": 4}, phases={"land": 1.0, "apply": 0.5}, cpu_seconds=1.25, added_bytes=4096,
        ),
        [
            ("counter", "cdc.batch.done", 1),
            ("counter", "cdc.records", 90),
            ("counter", "cdc.quarantined", 1),
            ("counter", "cdc.applied.upserts", 57),
            ("counter", "cdc.applied.deletes", 3),
            ("counter", "cdc.added.bytes", 4096),
            ("counter", "cdc.ddl.applied", 2),
            ("counter", "cdc.lossy.rounded", 4),
            ("gauge", "cdc.tables.parked", 0),
            ("gauge", "cdc.tables.waiting", 0),
            ("timer", "cdc.batch.duration", timedelta(seconds=2.5)),
            ("timer", "cdc.batch.cpu", timedelta(seconds=1.25)),
            ("timer", "cdc.phase.apply", timedelta(seconds=0.5)),
            ("timer", "cdc.phase.land", timedelta(seconds=1)),
        ],
    ),
    "empty": (
        batch(ResultStatus.EMPTY),
        [("counter", "cdc.batch.empty", 1), ("timer", "cdc.batch.duration", timedelta(seconds=2.5))],
    ),
    "repeated": (batch(ResultStatus.DONE, records=90, repeated=True), [("counter", "cdc.batch.repeated", 1)]),
    "parked": (
        batch(ResultStatus.PARKED, records=5, parked=[PARKED], waiting=[PARKED, PARKED]),
        [
            ("counter", "cdc.batch.parked", 1),
            ("counter", "cdc.records", 5),
            ("gauge", "cdc.tables.parked", 1),
            ("gauge", "cdc.tables.waiting", 2),
            ("timer", "cdc.batch.duration", timedelta(seconds=2.5)),
        ],
    ),
    "failed": (
        batch(ResultStatus.FAILED, error=DataError("land.memory", "too large")),
        [("counter", "cdc.batch.failed", 1)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", RESULTS)
def test_a_batch_sends_these(case: str, backend: Backend) -> None:
    result, expected = RESULTS[case]
    send(PIPELINE, batch_metrics(result))
    assert backend.sent == expected
    assert all(tags == TAGS for tags in backend.tags)


def test_a_look_sends_what_it_knows(backend: Backend) -> None:
    part = PartitionLag("t", 0, 7, 40_000, 40_000, 95_000)
    send(PIPELINE, lag_metrics(Lag(100_000, (part,), heartbeats=True)))
    assert backend.sent == [
        ("gauge", "cdc.lag.seconds", 60.0),
        ("gauge", "cdc.lag.records", 7),
        ("gauge", "cdc.received.age_seconds", 5.0),
    ]
    backend.sent.clear()
    unknown = PartitionLag("t", 0, 7, None, None, None, "no time")
    send(PIPELINE, lag_metrics(Lag(100_000, (unknown,), heartbeats=False)))
    assert backend.sent == [("gauge", "cdc.lag.records", 7)]


def test_errors_send_a_counter_of_their_own(backend: Backend) -> None:
    for error in (
        BusyError("ledger.busy", "x"),
        UnavailableError("kafka.unavailable", "x"),
        SourceError("kafka.topic_unknown", "x"),
    ):
        send(PIPELINE, error_metrics(error))
    assert backend.sent == [("counter", "cdc.lease.busy", 1), ("counter", "cdc.kafka.unavailable", 1)]


def test_a_request_that_has_no_batch_yet_counts_as_failed(backend: Backend) -> None:
    with pytest.raises(UnavailableError), failure_sent(PIPELINE):
        raise UnavailableError("kafka.unavailable", "x")
    assert backend.sent == [("counter", "cdc.batch.failed", 1), ("counter", "cdc.kafka.unavailable", 1)]


def test_a_look_for_what_is_received_sends_its_age(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    then = int(time.time() * 1000) - 60_000
    facts = [PartitionFacts("t", 0, 0, 1, (Mark(0, then),))]
    monkeypatch.setattr("airflow_provider_cdc.watch.received.observe", lambda pipeline, log: (facts, []))
    condition: Any = ReceivedCondition(PIPELINE, "2026-01-01T00:00:00+00:00")
    condition.seen(None, None)
    ((kind, name, age),) = backend.sent
    assert (kind, name) == ("gauge", "cdc.received.age_seconds") and 60 <= age < 120


def test_tables_have_metrics_of_their_own_if_asked_for(backend: Backend) -> None:
    result, together = RESULTS["first"]
    send(PIPELINE, batch_metrics(result, of_tables=True))
    sent = list(zip(backend.sent, backend.tags, strict=True))
    applied = [(metric, tags) for metric, tags in sent if metric[1].startswith("cdc.applied.")]
    assert applied == [
        (("counter", "cdc.applied.upserts", 50), {**TAGS, "table": "shop.a"}),
        (("counter", "cdc.applied.upserts", 7), {**TAGS, "table": "shop.b"}),
        (("counter", "cdc.applied.deletes", 3), {**TAGS, "table": "shop.b"}),
    ]
    others = [metric for metric, tags in sent if tags == TAGS]
    assert others == [metric for metric in together if not metric[1].startswith("cdc.applied.")]


def test_the_open_quarantine_is_a_gauge(backend: Backend) -> None:
    send(PIPELINE, quarantine_metrics(3))
    assert backend.sent == [("gauge", "cdc.quarantine.open", 3)]


def test_the_page_lists_every_name() -> None:
    from tests.architecture.imports import ROOT

    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    names = {name for _, expected in RESULTS.values() for _, name, _ in expected}
    names |= {"cdc.lag.seconds", "cdc.lag.records", "cdc.received.age_seconds", "cdc.look.duration"}
    names |= {"cdc.lease.busy", "cdc.kafka.unavailable", "cdc.batch.waiting", "cdc.quarantine.open"}
    families = {"cdc.lossy.rounded": "cdc.lossy.KIND", "cdc.phase.land": "cdc.phase.NAME"}
    families["cdc.phase.apply"] = "cdc.phase.NAME"
    missing = {name for name in names if f"`{families.get(name, name)}`" not in page}
    assert not missing
