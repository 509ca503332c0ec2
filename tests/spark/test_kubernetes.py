# SPDX-License-Identifier: Apache-2.0
"""The Spark engine on Kubernetes: what is created there, and a batch whose executors are pods."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from airflow_provider_cdc.demo.truth import differing, load
from spark_jobs.sinks.delta.table import DeltaLocation
from tests.airflow.shop import DATA, Shop
from tests.locations import table_location
from tests.services.broker import Broker
from tests.services.kubernetes import Kubernetes
from tests.services.process import SHORT_LIVED_JAVA

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        find_spec("airflow.providers.cncf") is None or find_spec("kubernetes_validate") is None,
        reason="apache-airflow-providers-cncf-kubernetes and kubernetes-validate: `make compat` has them",
    ),
]

TRUTH = DATA / "source_at/1.jsonl.xz"


@pytest.fixture(scope="module")
def kubernetes() -> Iterator[Kubernetes]:
    with Kubernetes() as running:
        yield running


def test_a_batch_in_client_mode_is_equal_and_no_object_shows_a_secret(
    kubernetes: Kubernetes, filled: Broker, tmp_path: Path
) -> None:
    from kubernetes_validate import validate

    shop = Shop(tmp_path, filled.sasl_settings())
    conf = {
        "spark.kubernetes.container.image": "registry.invalid/spark",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.instances": 1,
        "spark.executor.cores": 2,
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": SHORT_LIVED_JAVA,
        "spark.authenticate": True,
        "spark.network.crypto.enabled": True,
    }
    shop.changes = {"policy": {"engine": "spark"}, "spark": {"connection": "kubernetes", "conf": conf}}
    shop.environment["AIRFLOW_CONN_KUBERNETES"] = json.dumps({"conn_type": "spark", "host": kubernetes.master})
    done = shop.run("sync", "--json")
    assert done.code == 0, done.err[-5000:]
    for source in load(TRUTH):
        address = table_location(str(shop.lake), source.database, source.table)
        assert differing(source, DeltaLocation(address, {}).rows()) == []
    assert {kind for kind, _ in kubernetes.seen} == {"pods", "configmaps"}
    for document in kubernetes.seen.values():
        validate(document, "1.33", strict=True)
    secret = str(shop.connection["sasl.password"])
    logs = [log.read_text() for log in kubernetes.folder.glob("*/log")]
    assert logs and secret not in json.dumps([*kubernetes.seen.values()]) + "".join(logs) + done.out + done.err
