# SPDX-License-Identifier: Apache-2.0
"""Past hours with a batch for each, although several runs work at a time.

``airflow backfill create --dag-id shop_backfill_exact --from-date … --to-date … --max-active-runs 3``

A run waits in the triggerer for the hours before its own, so the batches come in order, and no try is spent.
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
    "shop_backfill_exact",
    schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    tags=["cdc"],
):
    CdcSyncOperator(
        task_id="sync",
        pipeline=shop,
        window="exact",
        after="{{ data_interval_start }}",
        until="{{ data_interval_end }}",
        lease_wait=timedelta(hours=2),
        deferrable=True,
    )
