# SPDX-License-Identifier: Apache-2.0
"""Check the tables after each batch: rows as many as at the source, no table parked, nothing older than two hours.

Set ``SHOP_SOURCE`` to the Airflow connection of the source database to compare the numbers of rows.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG
from airflow.timetables.interval import CronDataIntervalTimetable

from airflow_provider_cdc import CdcPipeline, Freshness, NoContradictions, NoParked, RowCount, cdc_task_group

shop = CdcPipeline.from_yaml(Path(os.environ.get("SHOP_PIPELINE", Path(__file__).with_name("shop.yaml"))))
source = os.environ.get("SHOP_SOURCE")

with DAG(
    "shop_checked",
    schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    tags=["cdc"],
):
    cdc_task_group(
        shop,
        # The source is counted a little later than the batch: allow for what happens in between.
        checks=[
            NoParked(),
            NoContradictions(),
            Freshness(timedelta(hours=2)),
            *([RowCount(tolerance=100)] if source else []),
        ],
        source_conn_id=source,
    )
