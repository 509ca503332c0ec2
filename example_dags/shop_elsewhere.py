# SPDX-License-Identifier: Apache-2.0
"""Every hour: stage the batch on the lake, let another operator run it, publish what came of it."""

from __future__ import annotations

import os
import shlex
from datetime import datetime
from pathlib import Path

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, Asset
from airflow.timetables.interval import CronDataIntervalTimetable

from airflow_provider_cdc import CdcPipeline, CdcPlanOperator, CdcPublishOperator

shop = CdcPipeline.from_yaml(Path(os.environ.get("SHOP_PIPELINE", Path(__file__).with_name("shop.yaml"))))

with DAG(
    "shop_elsewhere",
    schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    user_defined_filters={"quoted": shlex.join},  # a place may have spaces, and whatever else a shell understands
    max_active_runs=1,  # a run would find the batch of the one before it, and run it a second time
    tags=["cdc"],
):
    stage = CdcPlanOperator(task_id="stage", pipeline=shop, stage=True, retries=3)
    # in its place: the operator of Databricks, EMR, Dataproc, Livy or Kubernetes
    run = BashOperator(
        task_id="run",
        bash_command="python -m airflow_provider_cdc.job {{ ti.xcom_pull('stage')['arguments'] | quoted }}",
        retries=2,
    )
    publish = CdcPublishOperator(task_id="publish", pipeline=shop, plan=stage.output, outlets=[Asset("shop_tables")])
    stage >> run >> publish
