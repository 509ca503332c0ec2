# SPDX-License-Identifier: Apache-2.0
"""The Spark engine on a standalone cluster: two workers, each a process with executors of its own.

Executors import the project from the zip that the application sends: what is not in it is not there.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_cdc.demo.truth import differing, load
from airflow_provider_cdc.ledger import Ledger
from spark_jobs.sinks.delta.table import DeltaLocation
from tests.airflow.shop import DATA, PHASES, Answer, Shop, commits, demand_data, event_log, feed, rows
from tests.faults.store import FailingStore, Weather
from tests.locations import table_location
from tests.sample import ALL
from tests.services.broker import Broker, OwnBroker
from tests.services.process import SHORT_LIVED_JAVA
from tests.services.s3 import S3
from tests.services.spark_cluster import SparkCluster
from tests.unit.ledger.conftest import new_database

pytestmark = pytest.mark.spark

# the database's own content after the records that the broker has
TRUTH = DATA / ("source_final.jsonl.xz" if ALL else "source_at/1.jsonl.xz")
SECRET = "cluster-secret-93b1"
CONF = {"spark.authenticate": "true", "spark.authenticate.secret": SECRET}


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    with SparkCluster(conf=CONF) as running:
        yield running


if ALL:

    @pytest.fixture(scope="module")
    def filled() -> Iterator[Broker]:
        """Return a broker with the whole log, in place of the one with two phases."""
        demand_data()
        with OwnBroker() as running:
            feed(running, 0, len(PHASES) - 1)
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
        "spark.executor.extraJavaOptions": SHORT_LIVED_JAVA,
        "spark.authenticate": True,
        "spark.network.crypto.enabled": True,
        "spark.io.encryption.enabled": True,
        **event_log(folder),
    }
    shop.changes = {
        "policy": {"engine": "spark", "parallelism": 2, "chunk_records": 500 if ALL else 250},
        "spark": {"connection": "cluster", "conf": conf},
    }
    shop.environment = {
        "AIRFLOW_CONN_CLUSTER": json.dumps({"conn_type": "spark", "host": cluster.master, "password": SECRET})
    }
    return shop


def content(shop: Shop) -> dict[str, list[str]]:
    tables = sorted(folder.name for folder in (shop.lake / "shop").iterdir())
    return {table: sorted(map(repr, rows(shop.lake, "shop", table))) for table in tables}


def demand_success(done: Answer) -> None:
    assert done.code == 0, done.err[-5000:]


@pytest.mark.skipif(not ALL, reason="CDC_SEEDS=2 runs it; the test of a dead worker compares the same tables")
def test_the_demo_runs_on_two_workers_with_its_lake_on_a_store_that_fails(
    cluster: SparkCluster, filled: Broker, s3: S3, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The ledger is on PostgreSQL; slow tasks run twice at once; the tables are equal to what the database had."""
    s3.create_bucket("cluster")
    store = FailingStore(s3.endpoint)
    request.addfinalizer(store.stop)
    ledger = new_database(request)
    shop = on(cluster, tmp_path, filled)
    shop.changes["sink"] = {
        "root": "s3://cluster/lake",
        "storage_connection": "store",
        "storage_options": {"aws_conditional_put": "etag"},
    }
    shop.changes["ledger"] = "ledger"
    extra = {"endpoint_url": store.endpoint, "region_name": s3.region}
    connection = {"conn_type": "aws", "login": s3.access_key, "password": s3.secret_key, "extra": extra}
    shop.environment |= {
        "AIRFLOW_CONN_STORE": json.dumps(connection),
        "AIRFLOW_CONN_LEDGER": ledger.replace("postgresql+psycopg", "postgresql"),
    }
    shop.changes["spark"]["conf"] |= {
        "spark.speculation": True,
        "spark.speculation.interval": "10ms",
        "spark.speculation.multiplier": "1.01",
        "spark.speculation.quantile": "0.01",
        "spark.speculation.minTaskRuntime": "10ms",
        "spark.dynamicAllocation.enabled": True,
        "spark.dynamicAllocation.shuffleTracking.enabled": True,
        "spark.dynamicAllocation.executorIdleTimeout": "1s",
        "spark.dynamicAllocation.minExecutors": 2,
    }
    before = {application["id"] for application in cluster.applications()}
    store.weather = Weather("503", share=0.02)
    done = shop.run("sync", "--json")
    if done.code == 5:  # a request failed as often as it is tried: a scheduler runs the task again
        store.weather = Weather()
        done = shop.run("sync", "--json")
    demand_success(done)
    applications = {one["id"]: one["state"] for one in cluster.applications() if one["id"] not in before}
    (batch,) = Ledger(ledger).batches("shop")
    assert batch.application_id is not None and applications[batch.application_id] == "FINISHED"
    assert len(list(cluster.folder.glob(f"worker-*/{batch.application_id}"))) == 2, "executors of both workers"
    for source in load(TRUTH):
        location = DeltaLocation(table_location("s3://cluster/lake", source.database, source.table), s3.storage_options)
        assert differing(source, location.rows()) == []
    _demand_no_secrets(cluster, shop)


def _demand_no_secrets(cluster: SparkCluster, shop: Shop) -> None:
    left = [file for file in cluster.folder.glob("worker-*/**/*") if file.is_file()]
    events = [file for file in shop.folder.glob("events/**/events_*") if b"EnvironmentUpdate" in file.read_bytes()]
    assert left and events and [file for file in [*left, *events] if _holds_secret(file, shop)] == []


def _holds_secret(file: Path, shop: Shop) -> bool:
    content = file.read_bytes()
    return any(secret.encode() in content for secret in (SECRET, str(shop.connection["sasl.password"])))


def test_a_batch_survives_the_death_of_a_worker_and_its_executor(
    cluster: SparkCluster, filled: Broker, expected: Shop, tmp_path: Path
) -> None:
    shop = on(cluster, tmp_path, filled)
    process = shop.start("sync", "--json")
    _wait_for_executors(cluster, process, 2)
    cluster.kill_worker(0)
    _demand_equal(shop, process, expected)
    _demand_no_secrets(cluster, shop)
    if ALL:  # others follow
        cluster.replace_worker(0)


@pytest.mark.skipif(not ALL, reason="CDC_SEEDS=2 runs it; the test of a dead worker kills its executor, too")
def test_a_batch_survives_the_death_of_an_executor(
    cluster: SparkCluster, filled: Broker, expected: Shop, tmp_path: Path
) -> None:
    shop = on(cluster, tmp_path, filled)
    process = shop.start("sync", "--json")
    os.kill(_wait_for_executors(cluster, process, 2)[0], signal.SIGKILL)
    _demand_equal(shop, process, expected)


def _wait_for_executors(cluster: SparkCluster, process: subprocess.Popen[str], count: int) -> list[int]:
    """Wait until executors write their logs; return their processes."""
    deadline = time.monotonic() + 300
    while True:
        ready = [pid for pid, folder in cluster.executors().items() if (folder / "stderr").exists()]
        if len(ready) >= count:
            return ready
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.02)


def _demand_equal(shop: Shop, process: subprocess.Popen[str], expected: Shop) -> None:
    out, err = process.communicate(timeout=300)
    demand_success(Answer(process.returncode, out, err, 0))
    assert content(shop) == content(expected)
    assert commits(shop.lake) == commits(expected.lake), "nothing is committed twice"


@pytest.mark.skipif(not ALL, reason="starts Spark for one sentence: set CDC_SEEDS=2")
def test_executors_without_the_packages_are_named(cluster: SparkCluster, filled: Broker, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    venv.create(bare, symlinks=True)
    shop = on(cluster, tmp_path, filled)
    shop.changes["spark"]["conf"] |= {
        "spark.pyspark.python": str(bare / "bin" / "python"),
        "spark.pyspark.driver.python": sys.executable,
        "spark.cores.max": 1,  # one executor
    }
    done = shop.run("sync", "--json")
    assert done.code == 2, done.err[-5000:]
    error = done.json["error"]
    assert error["code"] == "configuration"
    assert f"{bare}/bin/python on {socket.gethostname()}, which runs the executors' tasks, lacks " in error["message"]
