# SPDX-License-Identifier: Apache-2.0
"""The Spark engine on a standalone cluster: two workers, each a process with executors of its own.

Executors import the project from the zip that the application sends: what is not in it is not there.
"""

from __future__ import annotations

import json
import socket
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_cdc.core.ledger import Ledger
from tests.airflow.shop import Answer, Shop, commits, demand_data, feed, rows
from tests.services.broker import Broker
from tests.services.spark_cluster import SparkCluster

pytestmark = pytest.mark.spark

TABLES = ("customers", "orders", "page_views")
SECRET = "cluster-secret-93b1"
CONF = {"spark.authenticate": "true", "spark.authenticate.secret": SECRET}


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    with SparkCluster(conf=CONF) as running:
        yield running


@pytest.fixture(scope="module")
def filled() -> Iterator[Broker]:
    demand_data()
    with Broker() as running:
        feed(running, 0, 1)
        yield running


@pytest.fixture(scope="module")
def expected(filled: Broker, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    shop = Shop(tmp_path_factory.mktemp("inline"), {"bootstrap.servers": filled.bootstrap})
    assert shop.run("sync").code == 0
    return shop


def on(cluster: SparkCluster, folder: Path, broker: Broker) -> Shop:
    """Return a pipeline with secrets on a cluster, in tasks small enough for both workers."""
    shop = Shop(folder, broker.sasl_settings())
    conf = {
        "spark.executor.memory": "512m",
        "spark.authenticate": True,
        "spark.network.crypto.enabled": True,
        "spark.io.encryption.enabled": True,
    }
    shop.changes = {
        "policy": {"engine": "spark", "parallelism": 2, "chunk_records": 200},
        "spark": {"connection": "cluster", "conf": conf},
    }
    shop.environment = {
        "AIRFLOW_CONN_CLUSTER": json.dumps({"conn_type": "spark", "host": cluster.master, "password": SECRET})
    }
    return shop


def content(shop: Shop) -> dict[str, list[str]]:
    return {table: sorted(map(repr, rows(shop.lake, "shop", table))) for table in TABLES}


def demand_success(done: Answer) -> None:
    assert done.code == 0, done.err[-5000:]


def test_a_batch_runs_on_executors_of_two_workers(
    cluster: SparkCluster, filled: Broker, expected: Shop, tmp_path: Path
) -> None:
    shop = on(cluster, tmp_path, filled)
    before = {application["id"] for application in cluster.applications()}
    demand_success(shop.run("sync", "--json"))
    assert content(shop) == content(expected)
    (application,) = [one for one in cluster.applications() if one["id"] not in before]
    assert application["state"] == "FINISHED"
    assert len(list(cluster.folder.glob(f"worker-*/{application['id']}"))) == 2, "executors of both workers"
    (batch,) = Ledger(f"sqlite:///{shop.ledger}").batches("shop")
    assert batch.application_id == application["id"]
    left = [file for file in cluster.folder.glob("worker-*/**/*") if file.is_file()]
    assert left and [file for file in left if _holds_secret(file, shop)] == []


def _holds_secret(file: Path, shop: Shop) -> bool:
    content = file.read_bytes()
    return any(secret.encode() in content for secret in (SECRET, str(shop.connection["sasl.password"])))


def test_a_batch_survives_the_death_of_a_worker_and_its_executor(
    cluster: SparkCluster, filled: Broker, expected: Shop, tmp_path: Path
) -> None:
    shop = on(cluster, tmp_path, filled)
    before = {application["id"] for application in cluster.applications()}
    process = shop.start("sync", "--json")
    deadline = time.monotonic() + 300
    while not _executors(cluster, before) >= {0, 1}:
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.02)
    cluster.kill_worker(0)
    out, err = process.communicate(timeout=300)
    demand_success(Answer(process.returncode, out, err, 0))
    assert content(shop) == content(expected)
    assert commits(shop.lake) == commits(expected.lake), "nothing is committed twice"
    cluster.replace_worker(0)


def _executors(cluster: SparkCluster, before: set[str]) -> set[int]:
    """Return the numbers of the workers whose executor of a new application has begun to write its log."""
    logs = cluster.folder.glob("worker-*/app-*/*/stderr")
    return {int(log.parts[-4].removeprefix("worker-")) for log in logs if log.parts[-3] not in before}


def test_executors_without_the_packages_are_named(cluster: SparkCluster, filled: Broker, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    venv.create(bare, symlinks=True)
    shop = on(cluster, tmp_path, filled)
    shop.changes["spark"]["conf"] |= {
        "spark.pyspark.python": str(bare / "bin" / "python"),
        "spark.pyspark.driver.python": sys.executable,
    }
    done = shop.run("sync", "--json")
    assert done.code == 2, done.err[-5000:]
    error = done.json["error"]
    assert error["code"] == "configuration"
    assert f"{bare}/bin/python on {socket.gethostname()}, which runs the executors' tasks, lacks " in error["message"]
