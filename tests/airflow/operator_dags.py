# SPDX-License-Identifier: Apache-2.0
"""DAGs that show what each operator does: of the ends that a run may have, one each."""

from __future__ import annotations

DAGS = """
import os
from datetime import datetime, timedelta
from pathlib import Path
from airflow.sdk import DAG, Asset, AssetAlias
from airflow.providers.standard.operators.bash import BashOperator
from airflow_provider_cdc import (
    CdcDoctorOperator, CdcPipeline, CdcPlanOperator, CdcPublishOperator, CdcSyncOperator, cdc_asset,
)

folder = Path(os.environ["SHOP_FOLDER"])
shop, torn, ddl, away = (CdcPipeline.from_yaml(folder / f"{name}.yaml") for name in ("shop", "torn", "ddl", "away"))
outlets = [Asset("tables"), cdc_asset(shop), AssetAlias("each table")]
args = dict(schedule=None, start_date=datetime(2026, 1, 1))
at = "{{ dag_run.conf['until'] }}"

with DAG("events", **args):
    CdcSyncOperator(task_id="sync", pipeline=shop, until=at, outlets=outlets)
with DAG("leased", **args):
    CdcSyncOperator(task_id="sync", pipeline=shop, until=at, deferrable=True, poll_interval=0.5)
with DAG("late", **args):
    CdcSyncOperator(task_id="sync", pipeline=shop, until=at, deferrable=True, poll_interval=0.5,
                    execution_timeout=timedelta(seconds=2))
with DAG("impatient", **args):
    CdcSyncOperator(task_id="sync", pipeline=shop, until=at, deferrable=True, poll_interval=0.5,
                    lease_wait=timedelta(seconds=1))
for on_parked in ("fail", "skip", "warn"):
    with DAG(f"parked_{on_parked}", **args):
        CdcSyncOperator(task_id="sync", pipeline=torn, until=at, on_parked=on_parked,
                        outlets=[Asset("torn"), cdc_asset(torn), AssetAlias("each torn table")])
with DAG("mapped", **args):
    CdcSyncOperator.partial(task_id="sync", until=at).expand(pipeline=[str(folder / "shop.yaml"), torn.to_dict()])
with DAG("from_a_file", params={"name": "shop"}, **args):
    CdcSyncOperator(task_id="sync", pipeline="{{ params.name }}.yaml")
with DAG("plans", **args):
    CdcPlanOperator(task_id="plan", pipeline=ddl, until="now")
    CdcPlanOperator(task_id="refuse", pipeline=ddl, until="now", fail_on=["destructive"])
    CdcDoctorOperator(task_id="doctor", pipeline=ddl)
with DAG("away", **args):
    stage = CdcPlanOperator(task_id="stage", pipeline=away, until=at, stage=True)
    # as the operator of another provider does it; its first try is killed once the batch has landed
    run = BashOperator(task_id="run", retries=1, retry_delay=timedelta(0), append_env=True, bash_command='''
        {% set plan = ti.xcom_pull("stage") %}
        "$PYTHON" -m airflow_provider_cdc.job {% for argument in plan["arguments"] %} '{{ argument }}'{% endfor %} &
        job=$! manifest='{{ plan["job"] }}/../../../log/00000001/manifest.json'
        if [ {{ ti.try_number }} = 1 ]; then
            until [ -e "$manifest" ]; do sleep 0.02; done
            kill -9 $job
        fi
        wait $job''')
    publish = CdcPublishOperator(task_id="publish", pipeline=away, plan=stage.output,
                                 outlets=[cdc_asset(away), AssetAlias("each table of away")])
    stage >> run >> publish
"""
