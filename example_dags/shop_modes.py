# SPDX-License-Identifier: Apache-2.0
"""Every hour: a batch of tables that keep what the source forgets, then a report of prices that changed."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from airflow.sdk import DAG, task
from airflow.timetables.interval import CronDataIntervalTimetable

from airflow_provider_cdc import CdcHook, CdcPipeline, CdcSyncOperator

shop = CdcPipeline.from_yaml(Path(os.environ.get("SHOP_PIPELINE", Path(__file__).with_name("shop_modes.yaml"))))

with DAG(
    "shop_modes",
    schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    tags=["cdc"],
):
    sync = CdcSyncOperator(task_id="sync", pipeline=shop, retries=3)

    @task
    def report() -> dict[str, int]:
        """Count the products, the versions that they had, customers who were deleted, and changes of orders."""
        hook = CdcHook(shop)
        versions = hook.read("shop.products", columns=["id", "_cdc_current"])
        customers = hook.read("shop.customers", columns=["_cdc_deleted"])
        return {
            "products": versions.filter(versions["_cdc_current"]).num_rows,
            "versions": versions.num_rows,
            "deleted customers": customers.filter(customers["_cdc_deleted"]).num_rows,
            "changes of orders": hook.read("shop.orders", columns=["_cdc_op"]).num_rows,
        }

    sync >> report()
