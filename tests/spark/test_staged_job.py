# SPDX-License-Identifier: Apache-2.0
"""A staged job on Spark: submitted with nothing of this project but what lies on the lake, and over Spark Connect."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.batch.staging import publish, stage
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.engine.java import JavaHome
from airflow_provider_cdc.engine.spark import _spark_home
from tests.airflow.shop import ROOT, demand_data
from tests.sample import ALL
from tests.system.recorded_files import FilesSite
from tests.system.verdict import doubled_commits, ledger_faults, unequal

pytestmark = pytest.mark.spark


def submitted(plan: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    """Return command and variables with which a platform submits a job."""
    home = _spark_home()
    assert home is not None
    quick = {"spark.ui.enabled": "false", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    conf = [part for item in {**plan["conf"], **quick}.items() for part in ("--conf", "=".join(item))]
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--name", plan["token"], *conf]
    return [*command, "--py-files", plan["payload"], plan["main"], *plan["arguments"]], {"SPARK_HOME": str(home)}


def by_connection(plan: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    """Return command and variables of a process that has Spark by a connection only."""
    command = [sys.executable, "-m", "airflow_provider_cdc.job", *plan["arguments"]]
    return command, {"SPARK_REMOTE": "local[2]", "PYTHONPATH": str(ROOT)}


@pytest.mark.parametrize(
    ("way", "application"),
    [
        (submitted, r"local-\d+"),
        pytest.param(by_connection, "None", marks=pytest.mark.skipif(not ALL, reason="another start of Spark")),
    ],
)
def test_a_staged_job_runs_on_spark_and_is_equal(
    way: Callable[[dict[str, Any]], tuple[list[str], dict[str, str]]], application: str, tmp_path: Path, java: JavaHome
) -> None:
    demand_data()
    site = FilesSite(tmp_path, {})
    site.changes = {"policy": {"engine": "auto"}}
    site.feed(0)
    pipeline = CdcPipeline.from_dict(site.document())
    plan = stage(pipeline, until=None)
    command, variables = way(plan)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PYSPARK_PYTHON": sys.executable, **variables}
    ran = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    status = json.loads((Path(plan["job"]) / "status.json").read_text())
    assert status["engine"] == "spark" and re.fullmatch(application, str(status["application"]))
    assert publish(pipeline, plan).status == "done"
    (batch,) = site.batches()
    assert batch["application_id"] == status["application"]
    assert unequal(site, 0) == {} and doubled_commits(site.lake) == [] and ledger_faults(site, 1) == []
