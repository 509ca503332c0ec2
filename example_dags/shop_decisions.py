# SPDX-License-Identifier: Apache-2.0
"""Ask a person about the changes that tables wait for, and carry out the answer; all other tables go on.

The question stands under "Required Actions" in Airflow. What is left, or not answered in time, is asked again after the
next hour.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG
from airflow.timetables.interval import CronDataIntervalTimetable

from airflow_provider_cdc import CdcApprovalOperator, CdcPipeline, CdcSyncOperator

shop = CdcPipeline.from_yaml(Path(os.environ.get("SHOP_PIPELINE", Path(__file__).with_name("shop.yaml"))))

with DAG(
    "shop_decisions",
    schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    tags=["cdc"],
):
    sync = CdcSyncOperator(task_id="sync", pipeline=shop, on_parked="warn", on_waiting="warn", deferrable=True)
    ask = CdcApprovalOperator(
        task_id="ask",
        pipeline=shop,
        defaults=CdcApprovalOperator.LEAVE,
        response_timeout=timedelta(hours=8),
    )
    sync >> ask
