# SPDX-License-Identifier: Apache-2.0
"""Check what is imported when: nothing heavy before it is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ["pyspark", "pandas", "pyarrow", "confluent_kafka", "deltalake", "airflow_provider_cdc.core.formats.contract"]


def loaded(code: str, tmp_path: Path) -> set[str]:
    """Return the modules that are loaded after some code ran."""
    text = f"import json, sys\n{code}\nprint(json.dumps(list(sys.modules)))"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "AIRFLOW_HOME": str(tmp_path), "SHOP_PIPELINE": ""}
    env.pop("SHOP_PIPELINE")
    run = subprocess.run([sys.executable, "-c", text], env=env, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    return set(json.loads(run.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "module",
    [
        "airflow_provider_cdc",
        "airflow_provider_cdc.get_provider_info",
        "airflow_provider_cdc.cli",
        "airflow_provider_cdc.commands.sync",
        "airflow_provider_cdc.batch.runner",
        "airflow_provider_cdc.batch.planner",
        "airflow_provider_cdc.sources.kafka_log",
    ],
)
def test_the_command_line_loads_no_airflow(module: str, tmp_path: Path) -> None:
    assert not loaded(f"import {module}", tmp_path) & {"airflow", "airflow.sdk", *HEAVY}


def test_the_description_imports_nothing(tmp_path: Path) -> None:
    code = "before = set(sys.modules)\nfrom airflow_provider_cdc.get_provider_info import get_provider_info as g\n"
    code += "g(); print(sorted(set(sys.modules) - before), file=sys.stderr)"
    fresh = loaded(code, tmp_path)
    assert not {name for name in fresh if name.startswith("airflow_provider_cdc.core")}


def test_dags_parse_without_data_libraries(tmp_path: Path) -> None:
    files = sorted(map(str, (ROOT / "example_dags").glob("*.py")))
    code = f"""
import runpy
for file in {files!r}:
    runpy.run_path(file)
    assert not set({HEAVY!r}) & set(sys.modules), file
"""
    assert files and "airflow.sdk" in loaded(code, tmp_path)


def test_operators_and_sensors_load_no_data_library(tmp_path: Path) -> None:
    code = f"""
import importlib
for module in ("hooks.kafka", "hooks.ledger", "triggers.condition", "sensors.received", "operators.sync"):
    importlib.import_module("airflow_provider_cdc." + module)
    assert not set({HEAVY!r}) & set(sys.modules), module
"""
    assert "airflow_provider_cdc.operators.sync" in loaded(code, tmp_path)


def test_a_task_on_a_worker_loads_no_pandas(tmp_path: Path) -> None:
    worker = (
        "import pickle\n"
        "from spark_jobs.workers.task_transport import carried, sent\n"
        "import importlib\n"
        "task = pickle.dumps(carried(importlib.import_module, (set(), set()), pandas=False))\n"
        "assert 'pyarrow' not in sys.modules\n"
        "assert pickle.loads(task)(sent('spark_jobs.tasks.apply'))[0]\n"
        "import gc\n"
        "assert gc.get_threshold()[0] == 50_000\n"
    )
    modules = loaded(worker, tmp_path)
    assert "pyarrow" in modules
    assert "pandas" not in modules


def test_formats_are_opened_without_pandas(tmp_path: Path) -> None:
    opened = "from airflow_provider_cdc.core.formats.registry import format_names, open_format\n"
    opened += "for name in format_names(): open_format(name)"
    modules = loaded(opened, tmp_path)
    assert "pyarrow" in modules
    assert "pandas" not in modules


def test_the_command_line_has_one_thread_for_linear_algebra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    program = "sys.argv = ['airflow-cdc', 'formats', '--json']\nfrom airflow_provider_cdc.cli import program\n"
    program += "program()\nimport os\nassert os.environ['OPENBLAS_NUM_THREADS'] == '1'"
    assert "numpy" in loaded(program, tmp_path)


def test_options_that_are_checked_alone_load_no_data_library(tmp_path: Path) -> None:
    planned = "from airflow_provider_cdc.core.formats.registry import is_planned_unopened\n"
    planned += "options = {'timezone': 'Asia/Shanghai', 'lower_case_table_names': '1'}\n"
    planned += "assert is_planned_unopened('canal-json', options)"
    assert not loaded(planned, tmp_path) & {*HEAVY, "numpy"}


def test_a_batch_loads_no_library_that_only_some_pipelines_need(tmp_path: Path) -> None:
    """Expressions, other sinks, clients of stores, Avro: some cost 0.1 s of every batch."""
    code = "from spark_jobs.workers.task_transport import shut_out_pandas\nshut_out_pandas()\n"
    code += "import spark_jobs.driver.run_batch, spark_jobs.tasks.apply, spark_jobs.tasks.land\n"
    code += "import spark_jobs.sinks.delta.sink"
    modules = loaded(code, tmp_path)
    assert "deltalake" in modules
    assert not modules & {"sqlglot", "pyiceberg", "fastavro", "boto3", "hdfs_native", "obstore", "pandas", "pyspark"}
