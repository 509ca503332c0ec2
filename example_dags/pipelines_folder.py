# SPDX-License-Identifier: Apache-2.0
"""One DAG for a folder of pipelines: each YAML file is a task group, and a new file needs no code."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from airflow.timetables.interval import CronDataIntervalTimetable

from airflow_provider_cdc import CdcDag, NoParked

CdcDag(
    "pipelines_folder",
    pipelines=Path(os.environ.get("CDC_PIPELINES", Path(__file__).parent)),
    group_args={"checks": [NoParked()], "operator_args": {"retries": 3}},
    schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    tags=["cdc"],
)
