# SPDX-License-Identifier: Apache-2.0
"""Past hours in order, one batch each.

``airflow backfill create --dag-id shop_backfill --from-date … --to-date … --reprocess-behavior failed``

An hour that was done before returns its stored result, so a backfill may be repeated.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG
from airflow.timetables.interval import CronDataIntervalTimetable

from airflow_provider_cdc import CdcPipeline, CdcSyncOperator

shop = CdcPipeline.from_yaml(Path(os.environ.get("SHOP_PIPELINE", Path(__file__).with_name("shop.yaml"))))

with DAG(
    "shop_backfill",
    schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    # A backfill has its own limit of runs; only this keeps the hours in order.
    default_args={"depends_on_past": True, "retries": 3, "retry_delay": timedelta(minutes=1)},
    tags=["cdc"],
):
    CdcSyncOperator(task_id="sync", pipeline=shop)
