# SPDX-License-Identifier: Apache-2.0
"""A staged job that spark-submit starts, with nothing of this project but what lies on the lake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_provider_cdc.batch.staging import publish, stage
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.engine.java import JavaHome
from airflow_provider_cdc.engine.spark import _spark_home
from tests.airflow.shop import demand_data
from tests.system.recorded_files import FilesSite
from tests.system.verdict import doubled_commits, ledger_faults, unequal

pytestmark = pytest.mark.spark


def test_a_staged_job_runs_on_spark_from_the_lake_alone(tmp_path: Path, java: JavaHome) -> None:
    demand_data()
    site = FilesSite(tmp_path, {})
    site.changes = {"policy": {"engine": "auto"}}
    site.feed(0)
    pipeline = CdcPipeline.from_dict(site.document())
    plan = stage(pipeline, until=None)
    home = _spark_home()
    assert home is not None
    quick = {"spark.ui.enabled": "false", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    conf = [part for item in {**plan["conf"], **quick}.items() for part in ("--conf", "=".join(item))]
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--name", plan["token"], *conf]
    command += ["--py-files", plan["payload"], plan["main"], *plan["arguments"]]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    ran = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    status = json.loads((Path(plan["job"]) / "status.json").read_text())
    assert status["engine"] == "spark" and status["application"].startswith("local-")
    applications: list[str] = []
    assert publish(pipeline, plan, on_application=applications.append).status == "done"
    (batch,) = site.batches()
    assert applications == [batch["application_id"]] == [status["application"]]
    assert unequal(site, 0) == {} and doubled_commits(site.lake) == [] and ledger_faults(site, 1) == []
