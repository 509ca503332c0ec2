# SPDX-License-Identifier: Apache-2.0
"""Start on news: one DAG syncs every ten minutes, another starts only when the tables have changed.

The second DAG syncs nothing itself: it reads the versions of the tables from the event that started it.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, dag, task

from airflow_provider_cdc import CdcPipeline, CdcSyncOperator, cdc_asset

shop = CdcPipeline.from_yaml(Path(os.environ.get("SHOP_PIPELINE", Path(__file__).with_name("shop.yaml"))))
shop_tables = cdc_asset(shop)

with DAG("shop_sync", schedule="*/10 * * * *", start_date=datetime(2026, 1, 1), catchup=False, tags=["cdc"]):
    CdcSyncOperator(task_id="sync", pipeline=shop, deferrable=True, outlets=[shop_tables], retries=3)


@dag(schedule=[shop_tables], start_date=datetime(2026, 1, 1), catchup=False, tags=["cdc"])
def shop_report() -> None:
    """Read the tables at one position of the source."""

    @task
    def versions(triggering_asset_events: Any = None) -> dict[str, Any]:
        newest = max((event.extra for event in triggering_asset_events[shop_tables]), key=lambda extra: extra["seq"])
        return dict(newest["versions"])

    versions()


shop_report()
