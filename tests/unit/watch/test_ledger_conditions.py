# SPDX-License-Identifier: Apache-2.0
"""Conditions that only the ledger decides: tables applied up to a time, and a pipeline's health."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.model.status import ResultStatus, TableStatus
from airflow_provider_cdc.ledger import Ledger
from airflow_provider_cdc.watch.applied import AppliedCondition
from airflow_provider_cdc.watch.condition import Answer
from airflow_provider_cdc.watch.health import HealthCondition

TEN, ELEVEN = (datetime(2026, 11, 20, hour, tzinfo=UTC) for hour in (10, 11))


class Shop:
    """A pipeline whose batches are written straight into its ledger."""

    def __init__(self, folder: Path) -> None:
        source = {"topics": ["t"], "format": "canal-json"}
        sink = {"type": "delta", "root": str(folder / "lake")}
        url = f"sqlite:///{folder}/ledger.db"
        self.pipeline = CdcPipeline.from_dict({"name": "shop", "source": source, "sink": sink, "ledger": url})
        self.ledger = Ledger(url)
        self._end = 0

    def commit(self, until: datetime | None, quarantined: int = 0, **states: TableStatus) -> int:
        """Commit a batch after which tables have these states; return its number."""
        with self.ledger.lease("shop", "a test") as lease:
            start, self._end = self._end, self._end + 10
            batch = self.ledger.plan(lease, {"t": {0: start}}, {"t": {0: self._end}}, until)
            tables = {
                f"id-{name}": TableState(
                    f"id-{name}", "shop", name, f"/lake/{name}", version=batch.seq, state=state,
                    reason="" if state == TableStatus.OK else "its key is gone",
                ).document()
                for name, state in states.items()
            }  # fmt: skip
            result = {"status": ResultStatus.DONE, "quarantined": quarantined}
            self.ledger.commit(lease, batch.seq, result, tables)
        return batch.seq

    def applied(self, until: datetime, **arguments: Any) -> Answer:
        answer = AppliedCondition(self.pipeline, until.isoformat(), **arguments).check()
        assert json.loads(json.dumps(answer.document)) == answer.document
        return answer

    def health(self, **arguments: Any) -> Answer:
        return HealthCondition(self.pipeline, **arguments).check()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    yield Shop(tmp_path)


OK, PARKED, WAITING, DROPPED = TableStatus.OK, TableStatus.PARKED, TableStatus.WAITING, TableStatus.DROPPED


def test_nothing_is_applied_before_the_first_batch(shop: Shop) -> None:
    answer = shop.applied(TEN)
    assert not answer.reached and "nothing yet" in answer.message


def test_a_batch_that_reaches_the_time_applies_it(shop: Shop) -> None:
    shop.commit(TEN, orders=OK, customers=OK)
    answer = shop.applied(TEN)
    assert answer.reached
    assert answer.document["seq"] == 1 and answer.document["versions"] == {"shop.orders": 1, "shop.customers": 1}
    later = shop.applied(ELEVEN)
    assert not later.reached and f"up to {TEN.isoformat()}" in later.message
    shop.commit(ELEVEN, orders=OK)
    assert shop.applied(ELEVEN).document["versions"] == {"shop.orders": 2, "shop.customers": 1}


def test_a_request_of_what_is_there_now_proves_no_time(shop: Shop) -> None:
    shop.commit(None, orders=OK)
    assert not shop.applied(TEN).reached


def test_single_tables_do_not_wait_for_parked_ones(shop: Shop) -> None:
    shop.commit(TEN, orders=PARKED, customers=OK, items=WAITING)
    assert shop.applied(TEN, tables=["shop.customers"]).reached
    for name in ("orders", "items"):
        answer = shop.applied(TEN, tables=["shop.customers", f"shop.{name}"])
        assert not answer.reached and answer.holds == (f"shop.{name}",)
        assert "its key is gone" in answer.message
    assert set(shop.applied(TEN).holds) == {"shop.orders", "shop.items"}
    assert not shop.applied(TEN, max_parked=1).reached
    assert shop.applied(TEN, max_parked=2).document["versions"] == {"shop.customers": 1}
    shop.commit(ELEVEN, orders=OK)
    assert shop.applied(TEN, tables=["shop.orders"]).reached, "it was retried"


def test_a_table_that_is_not_known_holds_back(shop: Shop) -> None:
    shop.commit(TEN, orders=OK)
    answer = shop.applied(TEN, tables=["shop.ordres"])
    assert not answer.reached and "no such table" in answer.message


def test_a_dropped_table_is_complete(shop: Shop) -> None:
    shop.commit(TEN, orders=DROPPED)
    assert shop.applied(TEN, tables=["shop.orders"]).reached


def test_wrong_arguments_are_refused(shop: Shop) -> None:
    with pytest.raises(ConfigurationError, match=r"tables.*max_parked"):
        shop.applied(TEN, tables=[], max_parked=-1)


def test_a_healthy_pipeline(shop: Shop) -> None:
    assert shop.health().reached, "nothing has happened yet"
    shop.commit(TEN, orders=OK)
    assert shop.health(waiting=0).reached


def test_each_way_of_being_unhealthy_is_named(shop: Shop) -> None:
    shop.commit(TEN, quarantined=3, orders=PARKED, items=WAITING, customers=OK)
    answer = shop.health(waiting=0)
    assert not answer.reached
    assert answer.holds == ("shop.orders", "shop.items", "quarantine")
    assert "its key is gone" in answer.message and "3 records into quarantine" in answer.message
    assert answer.document["counts"] == {"parked": 1, "waiting": 1, "quarantined": 3}
    assert shop.health().holds == ("shop.orders", "quarantine"), "waiting passes by itself"
    assert shop.health(parked=1, quarantined=3).reached
    assert shop.health(parked=1, quarantined=None).reached
    shop.commit(ELEVEN, orders=OK, items=OK)
    assert shop.health(waiting=0).reached
