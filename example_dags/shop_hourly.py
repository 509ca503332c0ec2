# SPDX-License-Identifier: Apache-2.0
"""Every hour: wait until the hour's changes are in Kafka, then bring the tables up to its end."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from airflow.sdk import DAG, Asset
from airflow.timetables.interval import CronDataIntervalTimetable

from airflow_provider_cdc import CdcPipeline, CdcReceivedSensor, CdcSyncOperator

shop = CdcPipeline.from_yaml(Path(os.environ.get("SHOP_PIPELINE", Path(__file__).with_name("shop.yaml"))))

with DAG(
    "shop_hourly",
    # A plain cron string gives intervals of no length; this timetable says from when to when.
    schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    tags=["cdc"],
):
    received = CdcReceivedSensor(task_id="received", pipeline=shop, deferrable=True, timeout=3600)
    sync = CdcSyncOperator(task_id="sync", pipeline=shop, outlets=[Asset("shop_tables")], retries=3)
    received >> sync
