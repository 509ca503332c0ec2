# SPDX-License-Identifier: Apache-2.0
"""The Spark engine on YARN: containers are processes of their own, which get the project as the application's zip."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_cdc.demo.truth import differing, load
from airflow_provider_cdc.engine.spark import _spark_home
from airflow_provider_cdc.ledger import Ledger
from spark_jobs.sinks.delta.table import DeltaLocation
from tests.airflow.shop import DATA, Answer, Shop, commits, event_log
from tests.locations import table_location
from tests.sample import ALL
from tests.services.broker import Broker
from tests.services.process import SHORT_LIVED_JAVA, NotAvailable
from tests.services.yarn import YarnCluster

pytestmark = pytest.mark.spark

TRUTH = DATA / "source_at/1.jsonl.xz"  # the database's own content after the records that the broker has
longer = pytest.mark.skipif(not ALL, reason="an application more: set CDC_SEEDS=2")


@pytest.fixture(scope="module")
def yarn() -> Iterator[YarnCluster]:
    try:
        running = YarnCluster()
    except NotAvailable as reason:
        pytest.skip(str(reason))
    with running:
        yield running


def on(yarn: YarnCluster, folder: Path, broker: Broker, deploy_mode: str = "client") -> Shop:
    """Return a pipeline with secrets on YARN, whose nodes have this machine's Spark and Python."""
    shop = Shop(folder, broker.sasl_settings())
    conf = {
        "spark.yarn.jars": f"local:{_spark_home()}/jars/*",
        "spark.executor.instances": 1,
        "spark.executor.cores": 2,
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": SHORT_LIVED_JAVA,
        "spark.yarn.am.extraJavaOptions": SHORT_LIVED_JAVA,
        "spark.authenticate": True,
        "spark.network.crypto.enabled": True,
        "spark.io.encryption.enabled": True,
        **event_log(folder),
    }
    shop.changes = {"policy": {"engine": "spark", "lease_seconds": 5}, "spark": {"connection": "yarn", "conf": conf}}
    connection = {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": deploy_mode}}
    shop.environment = {"HADOOP_CONF_DIR": str(yarn.conf), "AIRFLOW_CONN_YARN": json.dumps(connection)}
    return shop


def demand_equal(shop: Shop, done: Answer) -> None:
    assert done.code == 0, done.err[-5000:]
    for source in load(TRUTH):
        location = DeltaLocation(table_location(str(shop.lake), source.database, source.table), {})
        assert differing(source, location.rows()) == []
    assert {*commits(shop.lake).values()} == {1}, "nothing is committed twice"


def ledger(shop: Shop) -> Ledger:
    return Ledger(f"sqlite:///{shop.ledger}")


def demand_no_secrets(yarn: YarnCluster, shop: Shop, said: str) -> None:
    secret = str(shop.connection["sasl.password"])
    left = [*yarn.files(), *(file for file in shop.folder.rglob("*") if file.is_file())]
    names = {file.name for file in left}
    assert {"launch_container.sh", "stderr", "__spark_conf__.properties"} <= names
    assert any(name.startswith("blk_") for name in names), "files of HDFS"
    assert any("EnvironmentUpdate" in file.read_text() for file in shop.folder.glob("events/**/events_*"))
    assert [file for file in left if secret.encode() in file.read_bytes()] == []
    assert secret not in said + yarn.diagnostics()


def test_a_batch_in_client_mode_is_equal_and_shows_no_secret(yarn: YarnCluster, filled: Broker, tmp_path: Path) -> None:
    shop = on(yarn, tmp_path, filled)
    done = shop.run("sync", "--json")
    demand_equal(shop, done)
    (batch,) = ledger(shop).batches("shop")
    assert yarn.applications()[str(batch.application_id)] == "FINISHED"
    demand_no_secrets(yarn, shop, done.out + done.err)


@longer
@pytest.mark.parametrize("deploy_mode", ["client"])
def test_a_submit_that_fails_shows_no_secret(
    yarn: YarnCluster, filled: Broker, tmp_path: Path, deploy_mode: str
) -> None:
    shop = on(yarn, tmp_path, filled, deploy_mode)
    shop.changes["spark"]["conf"]["spark.yarn.queue"] = "nowhere"
    done = shop.run("sync", "--json")
    assert done.code == 5 and "unknown queue: nowhere" in done.err, done.err[-5000:]
    assert str(shop.connection["sasl.password"]) not in done.out + done.err + yarn.diagnostics()


@longer
@pytest.mark.parametrize("master", [True, False], ids=["application master", "executor"])
def test_a_batch_in_client_mode_survives_the_death_of_a_container(
    yarn: YarnCluster, filled: Broker, tmp_path: Path, master: bool
) -> None:
    shop = on(yarn, tmp_path, filled)
    process = shop.start("sync", "--json")
    os.kill(_container(yarn, process, master), signal.SIGKILL)
    out, err = process.communicate(timeout=300)
    demand_equal(shop, Answer(process.returncode, out, err, 0))


@longer
def test_an_application_ends_with_its_command_and_the_batch_is_equal_when_it_runs_again(
    yarn: YarnCluster, filled: Broker, tmp_path: Path
) -> None:
    shop = on(yarn, tmp_path, filled)
    process = shop.start("sync", "--json")
    _container(yarn, process, master=False)
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 120
    while {*yarn.applications().values()} & {"ACCEPTED", "RUNNING"} or ledger(shop).holder("shop"):
        assert time.monotonic() < deadline, yarn.applications()
        time.sleep(0.2)
    demand_equal(shop, shop.run("sync", "--json"))


def _container(yarn: YarnCluster, process: subprocess.Popen[str], master: bool) -> int:
    """Wait for a new application's executor, with which its master is there too; return the process of one of them."""
    before = {*yarn.applications()}
    deadline = time.monotonic() + 300
    while True:
        for application in {*yarn.applications()} - before:
            running = yarn.containers(application)
            masters = {pid for pid, name in running.items() if name.endswith("_000001")}
            if len(running) > len(masters) > 0:
                return (masters if master else running.keys() - masters).pop()
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.05)
