# SPDX-License-Identifier: Apache-2.0
"""Pipelines become task groups, and a folder of them a DAG."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from airflow.sdk import DAG
from airflow.timetables.interval import CronDataIntervalTimetable

from airflow_provider_cdc import (
    CdcDag,
    CdcDoctorOperator,
    CdcMaintainOperator,
    CdcPlanOperator,
    CdcReceivedSensor,
    CdcSyncOperator,
    CdcVerifyOperator,
    NoParked,
    cdc_task_group,
)
from airflow_provider_cdc.batch.coming_ddl import DdlKind, kind_of
from airflow_provider_cdc.core.errors import ConfigurationError

ROOT = Path(__file__).parents[2]
SCHEDULE: dict[str, Any] = {
    "schedule": CronDataIntervalTimetable("@hourly", timezone="UTC"),
    "start_date": datetime(2026, 1, 1),
}


def document(name: str) -> dict[str, Any]:
    """Return a pipeline as plain data."""
    source = {"topics": [f"{name}.things"], "format": "debezium-json", "connection": "k"}
    return {"name": name, "source": source, "sink": {"type": "delta", "root": f"/data/{name}"}}


def test_a_group_waits_syncs_and_checks() -> None:
    with DAG("one", **SCHEDULE) as dag:
        cdc_task_group(document("shop.eu"), checks=[NoParked()], operator_args={"lease_wait": timedelta(hours=1)})
    assert {task.task_id: sorted(task.downstream_task_ids) for task in dag.tasks} == {
        "shop_eu.received": ["shop_eu.sync"],
        "shop_eu.sync": ["shop_eu.check"],
        "shop_eu.check": [],
    }
    sync: Any = dag.get_task("shop_eu.sync")
    assert (sync.on_parked, sync.on_waiting) == ("warn", "warn")
    assert (sync.lease_wait, sync.deferrable) == (timedelta(hours=1), True)


def test_without_checks_a_parked_table_fails_the_sync() -> None:
    with DAG("one", **SCHEDULE) as dag:
        cdc_task_group(document("shop"), group_id="mine", received=False)
    sync: Any = dag.get_task("mine.sync")
    assert (dag.task_ids, sync.on_parked) == (["mine.sync"], "fail")


def write(folder: Path, *names: str) -> Path:
    for number, name in enumerate(names):
        (folder / f"{number:03}.yaml").write_text(yaml.safe_dump(document(name)))
    return folder


def test_a_folder_becomes_one_group_for_each_file(tmp_path: Path) -> None:
    (write(tmp_path, "b", "a") / "README.md").write_text("no pipeline")
    dag = CdcDag("folder", pipelines=tmp_path, group_args={"received": False}, **SCHEDULE)
    assert dag.task_ids == ["b.sync", "a.sync"]
    listed = CdcDag("listed", pipelines=[document("x")], group_args={"received": False}, **SCHEDULE)
    assert listed.task_ids == ["x.sync"]


def test_tasks_can_be_copied_as_parts_of_a_dag_are() -> None:
    with DAG("whole", **SCHEDULE) as dag:
        operators = CdcSyncOperator, CdcPlanOperator, CdcMaintainOperator, CdcVerifyOperator, CdcDoctorOperator
        for operator in operators:
            operator(task_id=operator.__name__, pipeline=document("x"))
        CdcReceivedSensor(task_id="received", pipeline=document("x"), until="2026-01-01")
    copied = copy.deepcopy(dag)
    assert copied.task_ids == dag.task_ids
    assert copied.get_task("CdcSyncOperator") is not dag.get_task("CdcSyncOperator")


def test_an_empty_folder_and_a_name_that_comes_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="has no YAML file"):
        CdcDag("none", pipelines=tmp_path, **SCHEDULE)
    with pytest.raises(ConfigurationError, match="several have the name shop"):
        CdcDag("twice", pipelines=write(tmp_path, "shop", "other", "shop"), **SCHEDULE)


def test_a_folder_of_200_pipelines_parses_without_data_libraries(tmp_path: Path) -> None:
    write(tmp_path, *(f"p{number}" for number in range(200)))
    code = f"""
import sys, time
from datetime import datetime
from airflow.timetables.interval import CronDataIntervalTimetable
import airflow_provider_cdc.task_group, airflow_provider_cdc.operators.sync
import airflow_provider_cdc.operators.check, airflow_provider_cdc.sensors.received
before = time.process_time()
dag = airflow_provider_cdc.CdcDag(
    "many", pipelines={str(tmp_path)!r}, group_args={{"checks": [airflow_provider_cdc.NoParked()]}},
    schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"), start_date=datetime(2026, 1, 1),
)
print("CPU seconds:", time.process_time() - before, file=sys.stderr)
print(len(dag.tasks), *{{"pyspark", "pyarrow", "confluent_kafka"}} & set(sys.modules))
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "AIRFLOW_HOME": str(tmp_path / "home")}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    tasks, *heavy = run.stdout.splitlines()[-1].split()  # behind what Airflow logs
    assert (tasks, heavy) == ("600", [])


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ALTER TABLE t ADD COLUMN a int", DdlKind.MAPPING),
        ("ALTER TABLE t MODIFY a bigint, DROP COLUMN b", DdlKind.DESTRUCTIVE),
        ("ALTER TABLE t MODIFY a bigint", DdlKind.BARRIER),
        ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (a)", DdlKind.BARRIER),
        ("TRUNCATE TABLE t", DdlKind.DESTRUCTIVE),
        ("DROP TABLE a, b", DdlKind.DESTRUCTIVE),
        ("DROP DATABASE d", DdlKind.DESTRUCTIVE),
        ("ALTER TABLE t DROP PARTITION p", DdlKind.DESTRUCTIVE),
        ("RENAME TABLE t TO u", DdlKind.MAPPING),
        ("CREATE TABLE t (a int)", DdlKind.MAPPING),
        ("FROBNICATE t", DdlKind.UNKNOWN),
    ],
)
def test_what_a_statement_does_to_stored_rows(text: str, kind: DdlKind) -> None:
    assert kind_of(text) == kind
