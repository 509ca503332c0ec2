# SPDX-License-Identifier: Apache-2.0
"""Batches that Databricks runs: what it is sent, and what comes of it; ``make compat`` has its provider."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.batch.runner import run_batch
from airflow_provider_cdc.core.config import CdcPipeline, SparkSettings
from airflow_provider_cdc.core.errors import ConfigurationError, UnavailableError
from airflow_provider_cdc.engine.stopper import Stopper
from airflow_provider_cdc.ledger import Ledger
from airflow_provider_cdc.platforms.contract import open_platform
from tests.airflow.shop import demand_data
from tests.services.databricks import Databricks
from tests.system.recorded_files import FilesSite
from tests.system.verdict import doubled_commits, ledger_faults, unequal

needs_provider = pytest.mark.skipif(
    find_spec("airflow.providers.databricks") is None or find_spec("databricks.sdk") is None,
    reason="apache-airflow-providers-databricks and databricks-sdk: `make compat` has them",
)
pytestmark = pytest.mark.airflow

SALT = "planted-salt-77b1"
RUN: dict[str, Any] = {
    "tasks": [
        {
            "new_cluster": {
                "spark_version": "17.3.x-scala2.13",
                "node_type_id": "m6gd.large",
                "num_workers": 2,
                "data_security_mode": "SINGLE_USER",
                "spark_env_vars": {"AIRFLOW_CDC_SECRETS": "{{secrets/cdc/shop}}"},
            }
        }
    ],
    "timeout_seconds": 3600,
}


@pytest.fixture
def databricks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Databricks]:
    workspace = Databricks(tmp_path / "runs", {("cdc", "shop"): json.dumps({"mask": {"salt": SALT}})})
    monkeypatch.setenv("AIRFLOW_CONN_DATABRICKS_DEFAULT", workspace.connection())
    yield workspace
    workspace.stop()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FilesSite:
    demand_data()
    made = FilesSite(tmp_path, {})
    made.changes = {
        "mask_connection": "salt",
        "policy": {"engine": "auto"},
        "spark": {"submit": "databricks", "conf": {"spark.speculation": True}, "run": RUN},
    }
    monkeypatch.setenv("AIRFLOW_CONN_SALT", json.dumps({"conn_type": "generic", "password": SALT}))
    made.feed(0)
    return made


@needs_provider
def test_a_batch_is_equal_and_no_request_has_a_secret(databricks: Databricks, site: FilesSite) -> None:
    assert run_batch(CdcPipeline.from_dict(site.document())).status == "done"
    (batch,) = Ledger(f"sqlite:///{site.ledger}").batches("shop")
    assert (batch.engine, batch.application_id) == ("databricks", "1001")
    submitted = databricks.requests[0]
    cluster = submitted["tasks"][0]["new_cluster"]
    assert submitted["idempotency_token"] == submitted["run_name"] and submitted["timeout_seconds"] == 3600
    assert cluster["spark_conf"]["spark.speculation"] == "true" and cluster["num_workers"] == 2
    assert SALT not in json.dumps(databricks.requests)
    assert unequal(site, 0) == {} and doubled_commits(site.lake) == [] and ledger_faults(site, 1) == []


@needs_provider
def test_a_stop_cancels_the_run_and_the_token_of_a_run_is_given_once(databricks: Databricks, site: FilesSite) -> None:
    (hold := site.folder / "runs" / "hold").parent.mkdir()
    hold.touch()
    pipeline, ledger, stopper = CdcPipeline.from_dict(site.document()), Ledger(f"sqlite:///{site.ledger}"), Stopper()

    def work() -> None:
        with pytest.raises(UnavailableError, match=r"engine\.stopped"):
            run_batch(pipeline, kill=stopper)

    worker = threading.Thread(target=work)
    worker.start()
    deadline = time.monotonic() + 60
    while not [batch for batch in ledger.batches("shop") if batch.application_id]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    stopper("the task was killed")
    worker.join()
    platform = open_platform(pipeline.spark)
    assert platform.state("1001").text == "TERMINATED CANCELED killed"
    hold.unlink()
    assert run_batch(pipeline).status == "done"
    tokens = [request["idempotency_token"] for request in databricks.requests if "idempotency_token" in request]
    assert len(tokens) == 3 and tokens[0] == tokens[1] != tokens[2]
    assert unequal(site, 0) == {} and doubled_commits(site.lake) == []
    assert platform.state("7").ended, "it does not know the run"


@needs_provider
def test_a_refusal_is_corrected_and_an_outage_is_tried_again(
    databricks: Databricks, site: FilesSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.changes["spark"] = {**site.changes["spark"], "run": {"tasks": [{**RUN["tasks"][0], "task_keys": "one"}]}}
    with pytest.raises(ConfigurationError, match=r"INVALID_PARAMETER_VALUE.*status=400"):
        run_batch(CdcPipeline.from_dict(site.document()))
    platform = open_platform(SparkSettings(submit="databricks", run=RUN))
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda seconds: None)
    databricks.answers += [(503, {})] * 3
    with pytest.raises(UnavailableError, match=r"platform\.unavailable"):
        platform.state("1001")
    monkeypatch.setenv("AIRFLOW_CONN_DATABRICKS_DEFAULT", databricks.connection("another token"))
    with pytest.raises(ConfigurationError, match="403") as refused:
        open_platform(SparkSettings(submit="databricks", run=RUN)).state("1001")
    assert "another token" not in str(refused.value)


@needs_provider
@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"run": {}}, "spark.run.tasks: expected a list of one task"),
        ({"run": {**RUN, "run_name": "mine"}}, "spark.run.run_name: is stated by the batch"),
        ({"run": {"tasks": [{"notebook_task": {}}]}}, r"spark.run.tasks\[0\].notebook_task: is stated by the batch"),
        ({"run": {"tasks": [{"existing_cluster_id": "1"}]}, "conf": {"a": 1}}, "spark.conf: only a new_cluster"),
    ],
)
def test_a_document_that_cannot_be_completed_is_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        open_platform(SparkSettings(submit="databricks", **settings))


@pytest.mark.skipif(find_spec("airflow.providers.databricks") is not None, reason="the provider is installed")
def test_without_its_provider_the_error_names_it() -> None:
    with pytest.raises(ConfigurationError, match="needs apache-airflow-providers-databricks"):
        open_platform(SparkSettings(submit="databricks", run=RUN))
