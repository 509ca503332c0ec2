# SPDX-License-Identifier: Apache-2.0
"""The operator that runs batches, by itself: its arguments, and what it does when something is wrong."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.batch.result import BatchResult, UnsettledTable
from airflow_provider_cdc.core.model.status import ResultStatus
from airflow_provider_cdc.engine.inline import as_process
from airflow_provider_cdc.ledger import Ledger
from airflow_provider_cdc.ledger.database import Database
from airflow_provider_cdc.ledger.records import time_text
from airflow_provider_cdc.plugins import pipeline_rows, table_rows
from tests.system import processes

from .shop import Shop, until

pytestmark = pytest.mark.airflow


def operator(shop: Shop, **more: Any) -> Any:
    from airflow_provider_cdc import CdcSyncOperator

    return CdcSyncOperator(task_id="sync", pipeline=shop.document(), **more)


def test_every_template_field_is_an_attribute(shop: Shop) -> None:
    from airflow_provider_cdc import CdcReceivedSensor

    sensor = CdcReceivedSensor(task_id="wait", pipeline=shop.document(), until="{{ data_interval_end }}")
    for task in (operator(shop), sensor):
        assert all(hasattr(task, name) for name in task.template_fields)


def test_construction_looks_at_nothing(tmp_path: Path) -> None:
    from airflow_provider_cdc import CdcSyncOperator

    task = CdcSyncOperator(task_id="sync", pipeline=str(tmp_path / "not there.yaml"), until="{{ nonsense }}")
    assert task.until == "{{ nonsense }}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("empty", [None, "", "None"])
def test_no_time_means_now(shop: Shop, empty: str | None) -> None:
    result = operator(shop, until=empty).execute({})
    assert (result["status"], result["records"] > 3000) == ("done", True)


def test_what_stays_wrong_fails_without_retry_and_what_passes_is_retried(shop: Shop) -> None:
    from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

    shop.changes = {"source": {"topics": "nowhere"}}
    with pytest.raises(AirflowFailException, match=r"kafka\.topic_unknown"):
        operator(shop).execute({})
    with pytest.raises(AirflowFailException, match="is not an ISO time"):
        operator(shop, until="soon").execute({})
    shop.changes = {}
    from airflow_provider_cdc.ledger import Ledger

    with (
        Ledger(f"sqlite:///{shop.ledger}").lease("shop", "somebody else"),
        pytest.raises(AirflowException, match="somebody else") as busy,
    ):
        operator(shop, lease_wait=timedelta(0)).execute({})
    assert not isinstance(busy.value, AirflowFailException)


def test_parked_tables_fail_after_the_others_are_committed(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSkipException

    parked = [UnsettledTable("shop", "orders", "needs rebuild")]
    result = BatchResult("shop", 4, ResultStatus.PARKED, 9, seconds=1.0, parked=parked)
    monkeypatch.setattr("airflow_provider_cdc.batch.runner.run_batch", lambda *_, **__: result)
    with pytest.raises(AirflowFailException, match=r"batch 4 is committed.*shop\.orders: needs rebuild"):
        operator(shop).execute({})
    assert operator(shop, on_parked="warn").execute({})["status"] == "parked"
    with pytest.raises(AirflowSkipException, match=r"shop\.orders: needs rebuild"):
        operator(shop, on_parked="skip").execute({})


def test_the_page_shows_what_real_batches_left(shop: Shop) -> None:
    """Park a table from its first batch on: others wrote to its location."""
    from airflow.providers.common.compat.sdk import AirflowFailException

    foreign = shop.lake / "shop" / "orders" / "of_others.txt"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("not a table")
    with pytest.raises(AirflowFailException, match=r"shop\.orders: .*sink\.not_ours"):
        operator(shop, until=until(0)).execute({})
    assert operator(shop, until=until(1), on_parked="warn").execute({})["status"] == "parked"
    first, second = Ledger(f"sqlite:///{shop.ledger}").batches("shop")
    with Database(f"sqlite:///{shop.ledger}", read_only=True).reading() as connection:
        line = pipeline_rows.pipeline(connection, "shop", set())
        page = table_rows.tables(connection, "shop", state=None, search="", offset=0, limit=50)
    read = first.records + second.records
    assert (line["state"], line["rests"], line["attempt"], line["lag"]["present"]) == ("parked", False, None, True)
    assert (line["unsettled_since"], line["unsettled_records"]) == (time_text(first.planned_at), read)
    orders, *others = page["tables"]
    assert (orders["table"], orders["code"], orders["source_time"]) == ("orders", "sink.not_ours", None)
    since = time_text(first.planned_at)
    assert orders["held"] == {"seq": first.seq, "since": since, "at_least": False, "records": read}
    assert others and all(table["held"] is None and table["source_time"] for table in others)


def test_waiting_tables_end_the_task_as_they_are_asked_to(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSkipException

    waiting = [UnsettledTable("shop", "orders", "a schema change is still missing")]
    result = BatchResult("shop", 4, ResultStatus.WAITING, 9, seconds=1.0, parked=[], waiting=waiting)
    monkeypatch.setattr("airflow_provider_cdc.batch.runner.run_batch", lambda *_, **__: result)
    with pytest.raises(AirflowFailException, match=r"batch 4 .*wait: shop\.orders: a schema change is still missing"):
        operator(shop).execute({})
    assert operator(shop, on_waiting="warn").execute({})["status"] == "waiting"
    with pytest.raises(AirflowSkipException, match=r"shop\.orders: a schema change"):
        operator(shop, on_waiting="skip").execute({})


def test_a_killed_task_stops_its_engine(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    from airflow.providers.common.compat.sdk import AirflowException

    monkeypatch.setattr("airflow_provider_cdc.engine.inline.start", as_process)
    task = operator(shop)

    def kill_when_it_works() -> None:
        while not any("launch/run.py" in processes.command(pid) for pid in processes.descendants(os.getpid())):
            time.sleep(0.002)
        task.on_kill()

    threading.Thread(target=kill_when_it_works, daemon=True).start()
    started = time.monotonic()
    with pytest.raises(AirflowException, match="the task was killed"):
        task.execute({})
    assert time.monotonic() - started < 60
    assert operator(shop).execute({})["status"] == "done"
