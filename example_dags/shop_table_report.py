# SPDX-License-Identifier: Apache-2.0
"""Every hour: wait until another DAG has applied the hour to two tables, then read them as of its last batch."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from airflow.sdk import DAG, task
from airflow.timetables.interval import CronDataIntervalTimetable

from airflow_provider_cdc import CdcAppliedSensor, CdcHook, CdcPipeline

shop = CdcPipeline.from_yaml(Path(os.environ.get("SHOP_PIPELINE", Path(__file__).with_name("shop.yaml"))))

with DAG(
    "shop_table_report",
    schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    tags=["cdc"],
):
    applied = CdcAppliedSensor(
        task_id="applied",
        pipeline=shop,
        tables=["shop.customers", "shop.orders"],
        deferrable=True,
        timeout=3600,
    )

    @task
    def report() -> dict[str, int]:
        """Count the customers and their orders."""
        hook = CdcHook(shop)
        return {name: hook.read(f"shop.{name}", columns=["id"]).num_rows for name in ("customers", "orders")}

    applied >> report()
