# SPDX-License-Identifier: Apache-2.0
"""Iceberg tables of a REST catalog: every hour a batch, all tables in one commit; once a day maintenance."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from airflow.sdk import DAG
from airflow.timetables.interval import CronDataIntervalTimetable

from airflow_provider_cdc import CdcMaintainOperator, CdcPipeline, CdcReceivedSensor, CdcSyncOperator, cdc_asset

shop = CdcPipeline.from_yaml(Path(os.environ.get("SHOP_PIPELINE", Path(__file__).with_name("shop_iceberg.yaml"))))

with DAG(
    "shop_iceberg",
    schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    tags=["cdc"],
):
    received = CdcReceivedSensor(task_id="received", pipeline=shop, deferrable=True, timeout=3600)
    # With sink.commit: batch a reader never sees half a batch, so one asset stands for all tables.
    received >> CdcSyncOperator(task_id="sync", pipeline=shop, outlets=[cdc_asset(shop)], retries=3)

# It may run next to a batch: a DAG of its own never holds one up.
with DAG(
    "shop_iceberg_maintain",
    schedule="@daily",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    tags=["cdc"],
):
    CdcMaintainOperator(task_id="maintain", pipeline=shop, retries=3)
