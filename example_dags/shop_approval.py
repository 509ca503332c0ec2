# SPDX-License-Identifier: Apache-2.0
"""Ask a person before a batch that would remove rows, columns or a table; all others run by themselves.

The question stands under "Required Actions" in Airflow. After a rejected or forgotten batch the next run asks again.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, task
from airflow.timetables.interval import CronDataIntervalTimetable

from airflow_provider_cdc import CdcPipeline, CdcPlanOperator, CdcSyncOperator

shop = CdcPipeline.from_yaml(Path(os.environ.get("SHOP_PIPELINE", Path(__file__).with_name("shop.yaml"))))

with DAG(
    "shop_approval",
    schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,  # one question at a time: later hours wait for its answer
    tags=["cdc"],
):
    plan = CdcPlanOperator(task_id="plan", pipeline=shop)

    @task.branch
    def is_destructive(proposal: Any) -> str:
        """Choose the next task."""
        return "approve" if "destructive" in proposal["ddl_kinds"] else "sync"

    approve = ApprovalOperator(
        task_id="approve",
        subject="The next batch of shop removes data",
        body="{% for ddl in ti.xcom_pull(task_ids='plan')['ddl'] %}* {{ ddl.kind }}: {{ ddl.text }}\n{% endfor %}",
        defaults=ApprovalOperator.REJECT,
        response_timeout=timedelta(hours=8),
    )
    sync = CdcSyncOperator(task_id="sync", pipeline=shop, deferrable=True, trigger_rule="none_failed_min_one_success")
    is_destructive(plan.output) >> [approve, sync]
    approve >> sync
