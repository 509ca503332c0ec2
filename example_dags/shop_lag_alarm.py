# SPDX-License-Identifier: Apache-2.0
"""Every ten minutes: fail, and so alarm, if the tables are more than half an hour behind the source."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG

from airflow_provider_cdc import CdcLagSensor, CdcPipeline

shop = CdcPipeline.from_yaml(Path(os.environ.get("SHOP_PIPELINE", Path(__file__).with_name("shop.yaml"))))

with DAG(
    "shop_lag_alarm",
    schedule="*/10 * * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    tags=["cdc"],
):
    CdcLagSensor(
        task_id="lag",
        pipeline=shop,
        max_lag=timedelta(minutes=30),
        raise_above=True,
        # Alarm only at changes that are known to wait; without heartbeats an idle source has an unknown lag.
        unknown="pass",
        timeout=300,
    )
