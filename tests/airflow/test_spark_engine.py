# SPDX-License-Identifier: Apache-2.0
"""The Spark engine through the provider's hook: same tables as inline, no secret on the way, gone with its command."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_cdc.connections.lookup import SparkTarget
from airflow_provider_cdc.core.config import RunPolicy, SparkSettings, TableRules
from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.errors import ConfigurationError, UnavailableError
from airflow_provider_cdc.engine.spark import _conf, local_cores, run_spark
from airflow_provider_cdc.engine.stopper import Stopper
from airflow_provider_cdc.engine.task import EngineTask
from airflow_provider_cdc.ledger import Ledger
from tests.sample import ALL
from tests.system import processes

from .shop import Shop, event_log, rows

if TYPE_CHECKING:
    from tests.services.broker import Broker

    from .conftest import Connect


@pytest.fixture
def task(tmp_path: Path) -> EngineTask:
    secrets = {"kafka": {"sasl.password": 'pa"ss\\word'}, "storage": {}}
    job, result = tmp_path / "job.json", tmp_path / "result.json"
    return EngineTask(job, result, secrets, "shop 1", tmp_path, print, Stopper())


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


HOSTILE = "$(id>/tmp/pwned) correct horse"

# Writes down what it is given, answers as a submit that fails, and ends so.
SUBMIT = """\
#!/bin/sh
printf '%s\\n' "$@" > "$CDC_TEST_FOLDER/arguments"
env > "$CDC_TEST_FOLDER/variables"
cat "$CDC_TEST_FOLDER/arguments"
exit 1
"""


@pytest.fixture
def submit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a program in place of Spark's that captures arguments and variables; return the folder it writes to."""
    home, captured = tmp_path / "spark", tmp_path / "captured"
    for folder in (home / "bin", captured):
        folder.mkdir(parents=True)
    (home / "bin" / "spark-submit").write_text(SUBMIT)
    (home / "bin" / "spark-submit").chmod(0o755)
    monkeypatch.setenv("CDC_TEST_FOLDER", str(captured))
    monkeypatch.setattr("airflow_provider_cdc.engine.spark._spark_home", lambda: home)
    monkeypatch.setattr("airflow_provider_cdc.engine.spark._class_archive", lambda *_: None)
    return captured


def holding(folder: Path, text: str) -> list[str]:
    return sorted(f.name for f in folder.rglob("*") if f.is_file() and text.encode() in f.read_bytes())


KINDS = ("kafka", "storage", "registry", "mask", "sink")


@pytest.mark.parametrize(
    ("master", "kind", "conf"),
    [
        *(("yarn", kind, {}) for kind in KINDS),
        ("k8s://https://h:6443", "kafka", {}),
        ("yarn", "kafka", {"keytab": "a"}),
    ],
)
def test_no_secret_reaches_a_submitter_that_writes_it_down(
    master: str,
    kind: str,
    conf: dict[str, Any],
    task: EngineTask,
    connect: Connect,
    submit: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Hadoop exports the driver's environment in a shell script that prints and runs what stands there in quotes."""
    monkeypatch.setattr("airflow_provider_cdc.engine.spark.find_spec", lambda name: True)
    connect("far", "spark", {"deploy-mode": "cluster"}, host=master)
    task = replace(task, secrets={kind: {"any": HOSTILE}})
    with pytest.raises(ConfigurationError, match="deploy-mode cluster would show secrets") as refused:
        run_spark(task, SparkSettings(connection="far", conf=conf))
    assert "horse" not in str(refused.value)
    assert kind in str(refused.value)
    assert list(submit.iterdir()) == [] == holding(task.scratch, "horse")


CORE = "<configuration>{}</configuration>"
STATED = "<property><name>{}</name><value>{}</value></property>"


@pytest.mark.parametrize(
    ("site", "conf"),
    [
        ({"hadoop.security.authentication": "kerberos", "hadoop.rpc.protection": "privacy"}, {}),
        ({"hadoop.security.authentication": "kerberos"}, {"spark.hadoop.hadoop.rpc.protection": "privacy"}),
        ({}, {"spark.airflowCdc.allowUnencrypted": True}),
    ],
)
def test_secrets_go_to_yarn_as_credentials_only(
    site: dict[str, str],
    conf: dict[str, Any],
    task: EngineTask,
    connect: Connect,
    submit: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (tmp_path / "core-site.xml").write_text(CORE.format("".join(STATED.format(*item) for item in site.items())))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", "/checkout")
    connect("far", "spark", {"deploy-mode": "cluster"}, host="yarn")
    said: list[str] = []
    task = with_job(replace(task, secrets={"kafka": {"sasl.password": HOSTILE}}, say=said.append))
    with pytest.raises(UnavailableError, match="ended without a result") as failed:
        run_spark(task, SparkSettings(connection="far", conf=conf))
    assert "horse" not in f"{failed.value} {failed.value.__cause__} {said}"
    assert holding(task.scratch, "horse") == ["credentials"]
    assert (task.scratch / "credentials").stat().st_mode & 0o777 == 0o600
    variables = dict(line.split("=", 1) for line in (submit / "variables").read_text().splitlines() if "=" in line)
    assert variables["HADOOP_TOKEN_FILE_LOCATION"] == str(task.scratch / "credentials")
    assert "PYTHONPATH" not in variables, "YARN would put it before the code that is sent"


@pytest.mark.parametrize(
    "rest", [{"hadoop.rpc.protection": "authentication"}, {"hadoop.rpc.protection": "privacy,integrity"}]
)
def test_a_cluster_that_may_send_secrets_in_the_clear_gets_none(
    rest: dict[str, str], task: EngineTask, connect: Connect, submit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = {"hadoop.security.authentication": "kerberos", **rest}
    (submit / "core-site.xml").write_text(CORE.format("".join(STATED.format(*item) for item in site.items())))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(submit))
    connect("far", "spark", {"deploy-mode": "cluster"}, host="yarn")
    with pytest.raises(ConfigurationError, match="to the network: Hadoop's calls are not encrypted"):
        run_spark(task, SparkSettings(connection="far"))


def with_job(task: EngineTask) -> EngineTask:
    """Return a task whose job lies where its engine looks for it."""
    job = JobDocument(
        "shop", 1, "2026-01-01T00:00:00+00:00", str(task.scratch / "lake"), "debezium-json", {}, None, {}, [],
        RunPolicy(), TableRules(), [], [], [],
    )  # fmt: skip
    task.job.write_text(json.dumps(job.document()))
    return task


@pytest.mark.parametrize("master", ["yarn", "spark://m:7077"])
def test_a_submit_that_fails_shows_no_secret(master: str, task: EngineTask, connect: Connect, submit: Path) -> None:
    """In client mode the environment of the driver has the secrets, which no submitter hands on."""
    said: list[str] = []
    password = {} if master == "yarn" else {"password": HOSTILE}
    connect("far", "spark", {"deploy-mode": "client"}, host=master, **password)
    task = replace(task, secrets={"kafka": {"sasl.password": HOSTILE}}, say=said.append)
    with pytest.raises(UnavailableError, match="ended without a result") as failed:
        run_spark(task, SparkSettings(connection="far"))
    assert master in said, "the arguments are part of its output"
    assert "horse" not in f"{failed.value} {failed.value.__cause__} {said}"
    assert holding(task.scratch, "horse") == ["variables"]
    lines = (submit / "variables").read_text().splitlines()
    names = {line.partition("=")[0] for line in lines if "horse" in line}
    assert names - {"AIRFLOW_CONN_FAR"} == {"AIRFLOW_CDC_SECRETS"}
    assert not Path("/tmp/pwned").exists()


def test_an_error_of_java_is_shown_without_its_frames(task: EngineTask, connect: Connect, submit: Path) -> None:
    frames = "for n in $(seq 99); do printf '\\tat org.apache.Client.run(Client.scala:%s)\\n' $n; done"
    lines = [
        "#!/bin/sh",
        "echo 'Exception in thread \"main\": please specify a path'",
        frames,
        "echo '\t... 9 more'",
        "exit 1",
    ]
    (submit.parent / "spark" / "bin" / "spark-submit").write_text("\n".join(lines))
    connect("far", "spark", host="spark://m:7077")
    said: list[str] = []
    with pytest.raises(UnavailableError, match="please specify a path") as failed:
        run_spark(replace(task, say=said.append), SparkSettings(connection="far"))
    assert "Client.scala" not in str(failed.value) and sum("Client.scala" in line for line in said) == 99


def test_kubernetes_without_its_provider_is_named(task: EngineTask, connect: Connect) -> None:
    connect("far", "spark", host="k8s://https://h:6443")
    with pytest.raises(ConfigurationError, match="pip install apache-airflow-providers-cncf-kubernetes"):
        run_spark(task, SparkSettings(connection="far"))


def test_a_driver_in_the_cluster_gets_no_variable_for_secrets(
    task: EngineTask, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect("far", "spark", {"deploy-mode": "cluster"}, host="yarn")
    seen: list[dict[str, str]] = []

    def submit(hook: object, task: EngineTask, environment: dict[str, str], end: object) -> str:
        seen.append(environment)
        return "ended"

    monkeypatch.setattr("airflow_provider_cdc.engine.spark.submit", submit)
    with pytest.raises(UnavailableError):
        run_spark(with_job(replace(task, secrets={"kafka": {}})), SparkSettings(connection="far"))
    assert [name for name in seen[0] if "SECRETS" in name or "TOKEN" in name] == []


def test_two_releases_of_spark_that_lie_over_each_other_are_named(
    task: EngineTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow's Spark provider brings a client of Spark 4, whose files replace those of an older Spark."""
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "3.5.8" if name == "pyspark" else real(name))
    with pytest.raises(ConfigurationError, match=r"pyspark 3\.5\.8 and pyspark-client 4\.1\.\d+ lie over"):
        run_spark(task, SparkSettings())


def test_python_drivers_do_not_run_on_standalone_clusters(task: EngineTask, connect: Connect) -> None:
    connect("far", "spark", {"deploy-mode": "cluster"}, host="spark://m:7077")
    with pytest.raises(ConfigurationError, match="does not run Python drivers"):
        run_spark(task, SparkSettings(connection="far"))


@pytest.mark.spark
@pytest.mark.parametrize("writer", ["auto", *(["spark"] if ALL else [])])  # tests/airflow/test_spark_writer_on_s3.py
def test_a_batch_on_spark_equals_the_inline_one_and_shows_no_secret(
    filled: Broker, tmp_path: Path, writer: str
) -> None:
    for engine in ("spark", "inline"):
        (tmp_path / engine).mkdir()
    inline = Shop(tmp_path / "inline", {"bootstrap.servers": filled.bootstrap})
    assert inline.run("sync").code == 0
    spark = {"conf": event_log(tmp_path / "spark")}
    policy = {"engine": "spark", "writer": writer}
    shop = Shop(tmp_path / "spark", filled.sasl_settings(), {"policy": policy, "spark": spark})
    process = shop.start("sync", "--json")
    arguments = _arguments_below(process.pid, lambda: process.poll() is None)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    secret = str(shop.connection["sasl.password"])
    assert any("spark-submit" in line or "SparkSubmit" in line for line in arguments)
    assert [line for line in arguments if secret in line] == []
    assert secret not in out + err
    assert "spark.local.dir" not in err and "WARN" not in err
    (batch,) = Ledger(f"sqlite:///{shop.ledger}").batches("shop")
    assert batch.application_id is not None and batch.application_id.startswith("local-")
    assert f"Spark application {batch.application_id}" in err
    assert {table["writer"] for table in json.loads(out)["tables"]} == {"task" if writer == "auto" else "spark"}
    assert holding(shop.folder, "SparkListenerEnvironmentUpdate") != []
    assert holding(shop.folder, secret) == []
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
