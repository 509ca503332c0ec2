# SPDX-License-Identifier: Apache-2.0
"""Every ten minutes: bring the tables up to what a Canal server has, without Kafka."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG

from airflow_provider_cdc import CanalSource, CdcPipeline, CdcSyncOperator, DeltaSink, RunPolicy

shop = CdcPipeline(
    name="shop_canal",
    source=CanalSource("example", connection="canal_default"),
    sink=DeltaSink(root=os.environ.get("SHOP_LAKE", str(Path.home() / "lake"))),
    policy=RunPolicy(engine="inline"),
)

with DAG(
    "canal_without_kafka",
    schedule=timedelta(minutes=10),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    tags=["cdc"],
):
    # What the server has now; a retry reads the segments in the lake, not the server.
    CdcSyncOperator(task_id="sync", pipeline=shop, until="now", retries=3)
