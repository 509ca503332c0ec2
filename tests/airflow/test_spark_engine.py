# SPDX-License-Identifier: Apache-2.0
"""The Spark engine through the provider's hook: same tables as inline, no secret on the way, gone with its command."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_cdc.connections.lookup import SparkTarget
from airflow_provider_cdc.core.config import SparkSettings
from airflow_provider_cdc.core.errors import ConfigurationError, UnavailableError
from airflow_provider_cdc.engine import EngineTask, Stopper
from airflow_provider_cdc.engine.payload import payload
from airflow_provider_cdc.engine.spark import _conf, local_cores, run_spark
from airflow_provider_cdc.ledger import Ledger
from tests.system import processes

from .shop import Shop, rows

if TYPE_CHECKING:
    from tests.services.broker import Broker

    from .conftest import Connect


@pytest.fixture
def task(tmp_path: Path) -> EngineTask:
    secrets = {"kafka": {"sasl.password": 'pa"ss\\word'}, "storage": {}}
    job, result = tmp_path / "job.json", tmp_path / "result.json"
    return EngineTask(job, result, secrets, payload(), "shop 1", tmp_path, print, Stopper())


def test_who_knows_the_cores() -> None:
    assert local_cores("local[3]") == 3
    assert local_cores("local[*]") == local_cores("spark://m:7077") == (os.cpu_count() or 2)


def test_the_users_configuration_wins(task: EngineTask) -> None:
    settings = SparkSettings(conf={"spark.driver.memory": "3g", "spark.ui.enabled": True})
    conf = _conf(task, settings, SparkTarget("local[*]", None, {}))
    assert (conf["spark.driver.memory"], conf["spark.ui.enabled"]) == ("3g", "true")
    assert conf["spark.python.worker.reuse"] == "true"


def test_processes_of_tasks_get_their_settings_where_the_user_states_none(
    task: EngineTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MIMALLOC_ALLOW_THP", raising=False)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    environment = task.environment()
    assert (environment["MIMALLOC_ALLOW_THP"], environment["OPENBLAS_NUM_THREADS"]) == ("0", "3")
    stated = SparkSettings(conf={"spark.executorEnv.OPENBLAS_NUM_THREADS": "2"})
    conf = _conf(task, stated, SparkTarget("spark://m:7077", None, {}))
    names = ("MIMALLOC_ALLOW_THP", "OPENBLAS_NUM_THREADS")
    assert [conf[f"spark.executorEnv.{name}"] for name in names] == ["0", "2"]
    alone = _conf(task, stated, SparkTarget("local[2]", None, {}))  # executors have the driver's environment
    assert "spark.executorEnv.MIMALLOC_ALLOW_THP" not in alone


@pytest.mark.parametrize(
    ("stated", "on_s3", "fetched"),
    [
        ({}, False, ["delta-spark"]),
        ({}, True, ["delta-spark", "hadoop-aws"]),
        ({"spark.jars": "/jars/functions.jar"}, True, ["delta-spark", "hadoop-aws"]),
        ({"spark.jars": "/jars/delta-spark_4.1_2.13-4.4.0.jar"}, True, ["hadoop-aws"]),
        ({"spark.jars.packages": "org.apache.hadoop:hadoop-aws:3.4.2"}, True, ["delta-spark"]),
        ({"spark.jars.packages": "io.delta:delta-spark_4.1_2.13:4.4.0"}, False, []),
        ({"spark.jars": ""}, True, []),
    ],
)
def test_a_session_gets_the_jars_that_the_settings_lack(
    stated: dict[str, str], on_s3: bool, fetched: list[str], task: EngineTask
) -> None:
    session = replace(task, session=True, session_on_s3=on_s3)
    conf = _conf(session, SparkSettings(conf=stated), SparkTarget("local[*]", None, {}))
    jars = conf.get("spark.jars", "").split(",")
    assert stated.get("spark.jars", "") in conf.get("spark.jars", "")
    named = stated.get("spark.jars", "")
    known = ("delta-spark", "hadoop-aws")
    assert [name for name in known if any(name in jar for jar in jars if jar not in named)] == fetched
    assert "spark.jars" not in _conf(
        replace(session, session=False), SparkSettings(), SparkTarget("local[*]", None, {})
    )


@pytest.mark.parametrize("master", ["yarn", "k8s://https://h:6443"])
@pytest.mark.parametrize("kind", ["kafka", "storage", "spark"])
def test_no_secret_reaches_a_submitter_that_writes_it_down(
    master: str, kind: str, task: EngineTask, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hadoop exports the driver's environment in a shell script that prints and runs what stands there in quotes."""
    secret = "$(id>/tmp/pwned) correct horse"

    password = {"password": secret} if kind == "spark" else {}
    connect("far", "spark", {"deploy-mode": "cluster"}, host=master, **password)
    if kind != "spark":
        task = replace(task, secrets={kind: {"sasl.password": secret}})
    monkeypatch.setattr("airflow_provider_cdc.engine.spark._submit", lambda *arguments: pytest.fail("submitted"))
    with pytest.raises(ConfigurationError, match="deploy-mode cluster would show secrets") as refused:
        run_spark(task, SparkSettings(connection="far"))
    assert "horse" not in str(refused.value)
    assert kind in str(refused.value)
    assert [file for file in task.scratch.rglob("*") if file.is_file() and b"horse" in file.read_bytes()] == []


def test_a_driver_in_the_cluster_gets_no_variable_for_secrets(
    task: EngineTask, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect("far", "spark", {"deploy-mode": "cluster"}, host="yarn")
    seen: list[dict[str, str]] = []

    def submit(hook: object, task: EngineTask, environment: dict[str, str]) -> str:
        seen.append(environment)
        return "ended"

    monkeypatch.setattr("airflow_provider_cdc.engine.spark._submit", submit)
    with pytest.raises(UnavailableError):
        run_spark(replace(task, secrets={"kafka": {}}), SparkSettings(connection="far"))
    assert [name for name in seen[0] if "SECRETS" in name] == []


def test_python_drivers_do_not_run_on_standalone_clusters(task: EngineTask, connect: Connect) -> None:
    connect("far", "spark", {"deploy-mode": "cluster"}, host="spark://m:7077")
    with pytest.raises(ConfigurationError, match="does not run Python drivers"):
        run_spark(task, SparkSettings(connection="far"))


@pytest.mark.spark
def test_a_batch_on_spark_equals_the_inline_one_and_shows_no_secret(filled: Broker, tmp_path: Path) -> None:
    for engine in ("spark", "inline"):
        (tmp_path / engine).mkdir()
    inline = Shop(tmp_path / "inline", {"bootstrap.servers": filled.bootstrap})
    assert inline.run("sync").code == 0
    shop = Shop(tmp_path / "spark", filled.sasl_settings(), {"policy": {"engine": "spark"}})
    process = shop.start("sync", "--json")
    arguments = _arguments_below(process.pid, lambda: process.poll() is None)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    secret = str(shop.connection["sasl.password"])
    assert any("spark-submit" in line or "SparkSubmit" in line for line in arguments)
    assert [line for line in arguments if secret in line] == []
    assert secret not in out + err
    (batch,) = Ledger(f"sqlite:///{shop.ledger}").batches("shop")
    assert batch.application_id is not None and batch.application_id.startswith("local-")
    assert f"Spark application {batch.application_id}" in err
    assert [f for f in shop.folder.rglob("*") if f.is_file() and secret.encode() in f.read_bytes()] == []
    for table in ("customers", "orders", "page_views"):
        mine, theirs = (rows(side.lake, "shop", table) for side in (shop, inline))
        assert sorted(map(repr, mine)) == sorted(map(repr, theirs))


@pytest.mark.spark
def test_spark_goes_with_its_command(filled: Broker, tmp_path: Path) -> None:
    shop = Shop(tmp_path, {"bootstrap.servers": filled.bootstrap}, {"policy": {"engine": "spark"}})
    process = shop.start("sync")
    seen: set[int] = set()
    deadline = time.monotonic() + 120
    while not any("run.py" in (line := processes.command(pid)) and "python" in line for pid in seen):
        seen |= {*processes.descendants(process.pid)}
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.1)
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 90
    while left := [pid for pid in seen if processes.state(pid) not in "ZX"]:
        assert time.monotonic() < deadline, [processes.command(pid) for pid in left]
        time.sleep(0.2)


def _arguments_below(pid: int, going: object) -> set[str]:
    lines: set[str] = set()
    while going():  # type: ignore[operator]
        lines |= {processes.command(child) for child in processes.descendants(pid)}
        time.sleep(0.05)
    return lines
