# SPDX-License-Identifier: Apache-2.0
"""Many tables, one of them parked: the others' consumers start, and a task of its own fails for the parked one."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from airflow.sdk import DAG, AssetAlias
from airflow.timetables.interval import CronDataIntervalTimetable

from airflow_provider_cdc import CdcCheckOperator, CdcPipeline, CdcSyncOperator, NoParked

shop = CdcPipeline.from_yaml(Path(os.environ.get("SHOP_PIPELINE", Path(__file__).with_name("shop.yaml"))))

with DAG(
    "shop_tables",
    schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    tags=["cdc"],
):
    # Each changed table sends an event to cdc://shop/<database>/<table>; schedule=[cdc_asset("shop", "shop.orders")]
    # starts a DAG for one of them.
    sync = CdcSyncOperator(
        task_id="sync",
        pipeline=shop,
        on_parked="warn",
        on_waiting="warn",
        outlets=[AssetAlias("tables of shop")],
        retries=3,
    )
    sync >> CdcCheckOperator(task_id="no_table_is_parked", pipeline=shop, checks=[NoParked()])
