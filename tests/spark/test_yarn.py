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
from deltalake import DeltaTable

from airflow_provider_cdc.demo.truth import differing, load
from airflow_provider_cdc.engine.spark import _spark_home
from airflow_provider_cdc.ledger import Ledger
from spark_jobs.sinks.delta.table import DeltaLocation
from tests.airflow.shop import DATA, Answer, Shop, event_log
from tests.locations import table_location
from tests.sample import ALL
from tests.services.broker import Broker
from tests.services.process import SHORT_LIVED_JAVA, NotAvailable
from tests.services.s3 import S3
from tests.services.yarn import YarnCluster

pytestmark = pytest.mark.spark

TRUTH = DATA / "source_at/1.jsonl.xz"  # the database's own content after the records that the broker has
HOSTILE = "$(id>/tmp/pwned)'\" correct battery"
longer = pytest.mark.skipif(not ALL, reason="an application more: set CDC_SEEDS=2")


@pytest.fixture(scope="module")
def yarn() -> Iterator[YarnCluster]:
    try:
        running = YarnCluster()
    except NotAvailable as reason:
        pytest.skip(str(reason))
    with running:
        yield running


def on(yarn: YarnCluster, folder: Path, broker: Broker, s3: S3 | None = None) -> Shop:
    """Return a pipeline with secrets on YARN, whose nodes have this machine's Spark and Python.

    :param s3: has the lake of a pipeline whose driver runs in the cluster.
    """
    shop = Shop(folder, broker.sasl_settings())
    conf = {
        "spark.yarn.jars": f"local:{_spark_home()}/jars/*",
        "spark.yarn.report.interval": "200ms",
        "spark.executor.instances": 1,
        "spark.executor.cores": 2,
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": SHORT_LIVED_JAVA,
        "spark.airflowCdc.allowUnencrypted": True,  # Hadoop's own calls: without Kerberos nothing encrypts them
        "spark.authenticate": True,
        "spark.network.crypto.enabled": True,
        "spark.io.encryption.enabled": True,
        **event_log(folder),
    }
    shop.changes = {"policy": {"engine": "spark", "lease_seconds": 5}, "spark": {"connection": "yarn", "conf": conf}}
    connection = {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster" if s3 else "client"}}
    shop.environment = {"HADOOP_CONF_DIR": str(yarn.conf), "AIRFLOW_CONN_YARN": json.dumps(connection)}
    conf["spark.yarn.am.extraJavaOptions" if s3 is None else "spark.driver.extraJavaOptions"] = SHORT_LIVED_JAVA
    if s3 is not None:
        root = f"{s3.create_bucket(folder.name.replace('_', '-'))}/lake"
        shop.changes["sink"] = {"root": root, "storage_connection": "store"}
        shop.changes["sink"]["storage_options"] = {"aws_conditional_put": "etag"}
        extra = {"endpoint_url": s3.endpoint, "region_name": s3.region}
        store = {"conn_type": "aws", "login": "key-4711", "password": HOSTILE, "extra": extra}
        shop.environment["AIRFLOW_CONN_STORE"] = json.dumps(store)
    return shop


def demand_equal(shop: Shop, done: Answer, s3: S3) -> None:
    assert done.code == 0, done.err[-5000:]
    root = shop.document()["sink"]["root"]
    options = s3.storage_options if root.startswith("s3") else {}
    for source in load(TRUTH):
        address = table_location(root, source.database, source.table)
        assert differing(source, DeltaLocation(address, options).rows()) == []
        assert DeltaTable(address, storage_options=options).version() == 0, "nothing is committed twice"


def ledger(shop: Shop) -> Ledger:
    return Ledger(f"sqlite:///{shop.ledger}")


def demand_no_secrets(yarn: YarnCluster, shop: Shop, said: str) -> None:
    """Demand that nothing has a secret once YARN has removed the folders of the containers; it keeps their scripts."""
    secrets = [secret.encode() for secret in secrets_of(shop)]
    deadline = time.monotonic() + 60
    while any(yarn.folder.glob("nodes/**/container_tokens")) or any(yarn.folder.glob("nodes/**/*.tokens")):
        assert time.monotonic() < deadline, "YARN removes them itself"
        time.sleep(0.1)
    left = [file for folder in (yarn.folder, shop.folder) for file in folder.rglob("*") if file.is_file()]
    names = {file.name for file in left}
    assert {"launch_container.sh", "stderr", "__spark_conf__.properties"} <= names
    assert any(name.startswith("blk_") for name in names), "files of HDFS"
    assert any("EnvironmentUpdate" in file.read_text() for file in shop.folder.glob("events/**/events_*"))
    assert [file for file in left if any(secret in file.read_bytes() for secret in secrets)] == []
    demand_secrecy(shop, said + yarn.diagnostics())


def demand_secrecy(shop: Shop, said: str) -> None:
    assert not any(secret in said for secret in secrets_of(shop)) and not Path("/tmp/pwned").exists()


def secrets_of(shop: Shop) -> tuple[str, str]:
    return str(shop.connection["sasl.password"]), HOSTILE.rpartition(" ")[2]


@pytest.fixture(params=["client", "cluster"])
def shop(yarn: YarnCluster, filled: Broker, s3: S3, tmp_path: Path, request: pytest.FixtureRequest) -> Shop:
    """Return a pipeline in either mode, in cluster mode also with its lake on HDFS."""
    made = on(yarn, tmp_path, filled, None if request.param == "client" else s3)
    if request.param == "cluster, HDFS":
        made.changes["sink"] = {"root": f"{yarn.hdfs}/lake"}
    return made


@pytest.mark.parametrize(
    "shop", ["cluster", *(pytest.param(way, marks=longer) for way in ("client", "cluster, HDFS"))], indirect=True
)
def test_a_batch_is_equal_and_shows_no_secret(yarn: YarnCluster, s3: S3, shop: Shop) -> None:
    done = shop.run("sync", "--json")
    demand_equal(shop, done, s3)
    (batch,) = ledger(shop).batches("shop")
    assert yarn.applications()[str(batch.application_id)] in ("FINISHING", "FINISHED")
    demand_no_secrets(yarn, shop, done.out + done.err)


@longer
def test_a_submit_that_fails_shows_no_secret(yarn: YarnCluster, shop: Shop) -> None:
    shop.changes["spark"]["conf"]["spark.yarn.queue"] = "nowhere"
    done = shop.run("sync", "--json")
    assert done.code == 5 and "unknown queue: nowhere" in done.err, done.err[-5000:]
    demand_secrecy(shop, done.out + done.err + yarn.diagnostics())


@longer
@pytest.mark.parametrize("master", [True, False], ids=["application master", "executor"])
def test_a_batch_survives_the_death_of_a_container(yarn: YarnCluster, s3: S3, shop: Shop, master: bool) -> None:
    process = shop.start("sync", "--json")
    os.kill(_container(yarn, process, master), signal.SIGKILL)
    out, err = process.communicate(timeout=300)
    demand_equal(shop, Answer(process.returncode, out, err, 0), s3)


@longer
@pytest.mark.parametrize(
    ("shop", "number"), [("client", signal.SIGKILL), ("cluster", signal.SIGTERM)], indirect=["shop"]
)
def test_an_application_ends_with_its_command_and_the_batch_is_equal_when_it_runs_again(
    yarn: YarnCluster, s3: S3, shop: Shop, number: signal.Signals
) -> None:
    process = shop.start("sync", "--json")
    _container(yarn, process, master=False)
    process.send_signal(number)
    process.communicate(timeout=60)
    deadline = time.monotonic() + 120
    while {*yarn.applications().values()} & {"ACCEPTED", "RUNNING"} or ledger(shop).holder("shop"):
        assert time.monotonic() < deadline, yarn.applications()
        time.sleep(0.2)
    demand_equal(shop, shop.run("sync", "--json"), s3)


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
