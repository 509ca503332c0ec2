# SPDX-License-Identifier: Apache-2.0
"""Watchers in Airflow: arguments survive serialisation, and what was rung survives the triggerer."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.errors import ConfigurationError

from .shop import Shop, until

pytestmark = pytest.mark.airflow


class Store:
    """Stands for the asset's store in Airflow's database, which outlives the triggerer."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    async def aget(self, key: str, default: Any = None) -> Any:
        return json.loads(self.values[key]) if key in self.values else default

    async def aset(self, key: str, value: Any) -> None:
        self.values[key] = json.dumps(value)


def pipeline(folder: Path) -> dict[str, Any]:
    source = {"topics": ["t"], "format": "canal-json"}
    return {"name": "shop", "source": source, "sink": {"root": str(folder)}, "ledger": f"sqlite:///{folder}/ledger.db"}


def every_watcher(document: dict[str, Any]) -> list[Any]:
    from airflow_provider_cdc import CdcLagExceededTrigger, CdcNewRecordsTrigger, CdcTableParkedTrigger

    return [
        CdcNewRecordsTrigger(document, quiet=timedelta(minutes=1)),
        CdcLagExceededTrigger(document, max_lag=timedelta(minutes=5)),
        CdcTableParkedTrigger(document),
    ]


def test_watchers_are_equal_after_a_journey_through_a_dag(tmp_path: Path) -> None:
    from airflow.sdk import DAG, Asset, AssetWatcher
    from airflow.triggers.base import BaseEventTrigger

    for trigger in every_watcher(pipeline(tmp_path)):
        path, arguments = trigger.serialize()
        again = type(trigger)(**json.loads(json.dumps(arguments)))
        assert again.serialize() == (path, arguments)
        assert BaseEventTrigger.hash(*again.serialize()) == BaseEventTrigger.hash(path, arguments)
        asset = Asset("shop_news", watchers=[AssetWatcher(name="news", trigger=trigger)])
        with DAG("watched", schedule=[asset]) as dag:
            pass
        assert path in json.dumps(_serialized(dag))


def _serialized(dag: Any) -> Any:
    """Return a DAG as Airflow stores it."""
    try:
        from airflow.serialization.serialized_objects import DagSerialization
    except ImportError:  # Airflow before 3.2
        from airflow.serialization.serialized_objects import SerializedDAG as DagSerialization
    return DagSerialization.to_dict(dag)


def test_a_watcher_of_a_wrong_pipeline_is_an_error_of_the_dag(tmp_path: Path) -> None:
    from airflow_provider_cdc import CdcLagExceededTrigger, CdcNewRecordsTrigger

    with pytest.raises(ConfigurationError, match="sink"):
        CdcNewRecordsTrigger({"name": "shop"})
    with pytest.raises(ConfigurationError, match="needs a bound"):
        CdcLagExceededTrigger(pipeline(tmp_path))


async def rung(trigger: Any, looks: int) -> list[dict[str, Any]]:
    """Return what a trigger rings in its first looks; its process dies after them."""
    payloads: list[dict[str, Any]] = []
    enough = asyncio.Event()
    slept = 0
    sleep = asyncio.sleep

    async def count(seconds: float) -> None:
        nonlocal slept
        slept += 1
        if slept >= looks:
            enough.set()
        await sleep(0.01)

    async def listen() -> None:
        async for event in trigger.run():
            payloads.append(event.payload)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("airflow_provider_cdc.triggers.watcher.asyncio.sleep", count)
        listening = asyncio.create_task(listen())
        await enough.wait()
        listening.cancel()
    return payloads


def test_a_restarted_watcher_rings_nothing_twice(shop: Shop) -> None:
    from airflow_provider_cdc import CdcNewRecordsTrigger, CdcSyncOperator

    store = Store()

    def listen() -> list[dict[str, Any]]:
        trigger = CdcNewRecordsTrigger(shop.document(), quiet=0, at_most_every=0, poke_interval=0.01)
        trigger.asset_state_store = store  # type: ignore[assignment]
        return asyncio.run(rung(trigger, 3))

    (first,) = listen()
    assert (first["pipeline"], first["records"] > 3000) == ("shop", True)
    assert "shopdb.shop.customers" in first["ends"]
    assert listen() == []
    CdcSyncOperator(task_id="sync", pipeline=shop.document(), until=until(0)).execute({})
    assert listen() == [], "the rest was rung for"


def test_a_watcher_survives_what_it_cannot_read(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    from airflow_provider_cdc import CdcNewRecordsTrigger

    shop.changes = {"source": {"topics": "nowhere"}}
    assert asyncio.run(rung(CdcNewRecordsTrigger(shop.document(), poke_interval=0.01), 3)) == []
    assert capsys.readouterr().out.count("kafka.topic_unknown") == 1
