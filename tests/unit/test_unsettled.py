# SPDX-License-Identifier: Apache-2.0
"""A changed configuration is applied by the next run, also where the log has nothing new."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from airflow_provider_cdc.batch.course import Course
from airflow_provider_cdc.batch.result import BatchResult
from airflow_provider_cdc.batch.runner import NewestChanges
from airflow_provider_cdc.batch.unsettled import Unsettled
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.model.status import ResultStatus, TableStatus
from airflow_provider_cdc.ledger import Batch, Lease, Ledger
from airflow_provider_cdc.sources.kafka_reading import Watermarks

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)


def pipeline(root: Path, **more: object) -> CdcPipeline:
    source = {"topics": "t", "format": "debezium-json"}
    return CdcPipeline.from_dict({"name": "shop", "source": source, "sink": {"root": str(root)}, **more})


@pytest.mark.parametrize(
    ("changed", "applies"),
    [
        ({}, False),
        ({"policy": {"engine": "inline"}}, False),
        ({"policy": {"zero_dates": "text"}}, True),
        ({"policy": {"on_truncate": "ignore"}}, True),
        ({"policy": {"quarantine_limit": 5}}, True),
        ({"tables": {"exclude": ["shop.t"]}}, True),
        ({"tables": {"shop.t*": {"tinyint1_as_boolean": True}}}, True),
    ],
)
def test_what_decides_content_is_applied_without_new_records(
    tmp_path: Path, changed: dict[str, object], applies: bool
) -> None:
    before, after = pipeline(tmp_path), pipeline(tmp_path, **changed)
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    state = TableState("1", "shop", "t", "shop/t", 1)
    with ledger.lease("shop", "ann", 30) as lease:
        assert Unsettled(after, ledger, lease).why_continue() == ""
        batch = ledger.plan(lease, {}, {}, None)
        ledger.commit(lease, batch.seq, {}, {"1": state.document()}, fingerprint=before.fingerprint())
        assert bool(Unsettled(after, ledger, lease).why_continue()) is applies
        batch = ledger.plan(lease, {}, {}, None)
        ledger.commit(
            lease, batch.seq, {}, {"1": replace(state, applied_seq=2).document()}, fingerprint=after.fingerprint()
        )
        assert Unsettled(after, ledger, lease).why_continue() == ""


# ---- a request whose tables wait


@dataclass
class Log:
    """A topic of one partition."""

    end: int
    schemas: None = None  # no registry

    def collect(self, until: object = None) -> None:
        """Fetch nothing: all is there."""

    def topics(self) -> dict[str, list[int]]:
        return {"t": [0]}

    def offsets_at(self, topics: list[str], timestamp_ms: int) -> dict[str, dict[int, int]]:
        return {}  # no record is later

    def read(self, windows: object, count: int) -> dict[tuple[str, int], list[object]]:
        return {}

    def ends(self, topics: list[str]) -> Watermarks:
        return Watermarks({name: {0: 0} for name in topics}, {name: {0: self.end} for name in topics})

    def topic_ids(self, topics: object) -> dict[str, str]:
        return {"t": "id"}


def test_waiting_makes_no_batch_unless_the_log_has_something_new(tmp_path: Path) -> None:
    shop, ledger = pipeline(tmp_path), Ledger(f"sqlite:///{tmp_path}/ledger.db")
    since = datetime.now(UTC).isoformat()
    state = TableState("1", "shop", "t", "shop/t", 1, state=TableStatus.WAITING, waiting_since=since)

    def request(end: int, lease: Lease) -> Batch | BatchResult:
        course = Course(shop, ledger, lease, Log(end), lambda line: None, 0.0)
        return NewestChanges(TEN).next_batch(course)

    with ledger.lease("shop", "ann", 30) as lease:
        batch = ledger.plan(lease, {"t": {0: 0}}, {"t": {0: 10}}, TEN, topics={"t": "id"})
        ledger.commit(lease, batch.seq, {"status": "done"}, {"1": state.document()}, fingerprint=shop.fingerprint())
        for _ in range(3):  # a retry or a clear of the same request
            result = request(10, lease)
            assert isinstance(result, BatchResult)
            assert (result.seq, result.status, result.repeated) == (1, ResultStatus.WAITING, True)
        assert [batch.seq for batch in ledger.batches("shop")] == [1]
        further = request(12, lease)
        assert isinstance(further, Batch)
        assert (further.seq, further.start, further.end) == (2, {"t": {0: 10}}, {"t": {0: 12}})
