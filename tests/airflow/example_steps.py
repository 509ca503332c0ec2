# SPDX-License-Identifier: Apache-2.0
"""Steps that run example DAGs, and sensors that wait too long, over pipelines of their own."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from airflow_provider_cdc import CdcSyncOperator
from tests.airflow.dag_steps import Step
from tests.airflow.shop import ROOT, Shop
from tests.services.rest_catalog import shared_catalog

if TYPE_CHECKING:
    from tests.services.broker import Broker

HOURLY, REPORTED, MINUTES = "2026-11-20T16:00:00+00:00", "2026-11-20T17:00:00+00:00", "2026-11-20T16:21:00+00:00"

DAGS = """
from datetime import datetime
from airflow.sdk import DAG, Asset
from airflow_provider_cdc import CdcReceivedSensor, CdcSyncOperator
import os
for name, more in (("overdue", {}), ("overdue_and_soft", {"soft_fail": True})):
    with DAG(name, schedule=None, start_date=datetime(2026, 1, 1)):
        given = dict(pipeline=os.environ["SHOP_PIPELINE"], until="2030-01-01T00:00:00+00:00")
        wait = CdcReceivedSensor(task_id="wait", deferrable=True, poke_interval=1, timeout=3, **more, **given)
        sync = CdcSyncOperator(task_id="sync", outlets=[Asset("tables")], **given)
        wait >> sync
"""


class CatalogShop(Shop):
    """The shop's pipeline with Iceberg tables of the REST catalog."""

    @property
    def namespace(self) -> str:
        return f"dags{abs(hash(self.folder))}"

    def document(self) -> dict[str, Any]:
        example = yaml.safe_load((ROOT / "example_dags" / "shop_iceberg.yaml").read_text())
        mine = {name: super(CatalogShop, self).document()[name] for name in ("source", "policy", "ledger")}
        sink = {**example["sink"], "namespace": self.namespace}
        return {**example, **mine, "sink": sink, "lake": {"root": str(self.lake)}}

    def env(self) -> dict[str, str]:
        catalog = {"conn_type": "iceberg", "host": shared_catalog().uri}
        return {**super().env(), "AIRFLOW_CONN_LAKEHOUSE": json.dumps(catalog)}


class ModesShop(Shop):
    """The shop's pipeline whose tables have modes and masks."""

    def document(self) -> dict[str, Any]:
        example = yaml.safe_load((ROOT / "example_dags" / "shop_modes.yaml").read_text())
        mine = {name: super(ModesShop, self).document()[name] for name in ("source", "sink", "policy", "ledger")}
        return {**example, **mine}

    def env(self) -> dict[str, str]:
        salt = {"conn_type": "generic", "password": "a pinch"}
        return {**super().env(), "AIRFLOW_CONN_MASK_SALT": json.dumps(salt)}


def example_steps(folder: Path, broker: Broker) -> dict[str, Step]:
    """Write pipelines and DAGs, and return their steps by name; tables to report on are made at once."""

    def on(name: str, dags: Path, kind: type[Shop] = Shop) -> dict[str, Any]:
        shop = shop_of(folder / name, broker, kind)
        connections = {name: value for name, value in shop.env().items() if name.startswith("AIRFLOW_CONN_")}
        return {"folder": str(dags), "environment": {**connections, "SHOP_PIPELINE": str(shop.file())}}

    with pytest.MonkeyPatch.context() as patch:
        report = shop_of(folder / "report", broker)
        patch.setenv("AIRFLOW_CONN_SHOP_KAFKA", report.env()["AIRFLOW_CONN_SHOP_KAFKA"])
        CdcSyncOperator(task_id="sync", pipeline=report.document(), until=REPORTED).execute({})
    (folder / "overdue dags").mkdir()
    (folder / "overdue dags" / "overdue.py").write_text(DAGS)
    hourly = on("hourly", ROOT / "example_dags")
    overdue = on("overdue", folder / "overdue dags")
    steps = {
        "alarm": Step("shop_lag_alarm", HOURLY, **on("alarm", _copied(folder, "shop_lag_alarm"))),
        "report": Step("shop_table_report", REPORTED, **on("report", _copied(folder, "shop_table_report"))),
        "modes": Step("shop_modes", REPORTED, **on("modes", _copied(folder, "shop_modes"), ModesShop)),
        "overdue": Step("overdue", REPORTED, **overdue),
        "overdue and soft": Step("overdue_and_soft", REPORTED, **overdue),
        "hourly": Step("shop_hourly", HOURLY, **hourly),
        "hourly again": Step("shop_hourly", HOURLY, **hourly),
        "hourly by hand": Step("shop_hourly", "", **hourly),
    }
    if find_spec("pyiceberg") is None:
        return steps
    # the log is of some minutes
    iceberg = on("catalog", _copied(folder, "shop_iceberg", ("@hourly", "* * * * *")), CatalogShop)
    return {
        "iceberg": Step("shop_iceberg", MINUTES, **iceberg),
        "iceberg maintained": Step("shop_iceberg_maintain", MINUTES, **iceberg),
        **steps,
    }


def shop_of(folder: Path, broker: Broker, kind: type[Shop] = Shop) -> Shop:
    """Return a pipeline with lake and ledger of its own."""
    folder.mkdir(exist_ok=True)
    return kind(folder, {"bootstrap.servers": broker.bootstrap})


def _copied(folder: Path, example: str, change: tuple[str, str] = ("", "")) -> Path:
    """Return a folder with one example DAG, in which one text is replaced by another."""
    dags = folder / f"dags of {example}"
    dags.mkdir()
    (dags / f"{example}.py").write_text((ROOT / "example_dags" / f"{example}.py").read_text().replace(*change))
    return dags
