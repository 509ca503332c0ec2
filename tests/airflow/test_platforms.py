# SPDX-License-Identifier: Apache-2.0
"""Batches of Databricks and Kubernetes: what is sent there, and what comes of it; `make compat` has the providers."""

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
from airflow_provider_cdc.commands.doctor import findings
from airflow_provider_cdc.core.config import CdcPipeline, SparkSettings
from airflow_provider_cdc.core.errors import ConfigurationError, UnavailableError
from airflow_provider_cdc.engine.stopper import Stopper
from airflow_provider_cdc.ledger import Ledger
from airflow_provider_cdc.platforms.contract import open_platform
from tests.airflow.shop import demand_data
from tests.services.databricks import Databricks
from tests.services.spark_operator import SparkOperator
from tests.system.recorded_files import FilesSite
from tests.system.verdict import doubled_commits, ledger_faults, unequal

pytestmark = pytest.mark.airflow

SALT = "planted-salt-77b1"
KINDS = (Databricks, SparkOperator)
Service = Databricks | SparkOperator


def installed(kind: type[Service]) -> bool:
    """Return whether a platform's provider and its API's models are here."""
    return all(find_spec(name.partition(".")[0]) and find_spec(name) for name in kind.needs)


def is_missing(kind: type[Service]) -> Any:
    return pytest.mark.skipif(not installed(kind), reason=f"{kind.needs}: `make compat` has them")


@pytest.fixture(params=[pytest.param(kind, marks=is_missing(kind), id=kind.name) for kind in KINDS])
def service(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    (tmp_path / "runs").mkdir()
    there = request.param(tmp_path / "runs", json.dumps({"mask": {"salt": SALT}}))
    monkeypatch.setenv(f"AIRFLOW_CONN_{there.name.upper()}_DEFAULT", json.dumps(there.connection(there.login)))
    yield there
    there.stop()


@pytest.fixture
def site(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FilesSite:
    demand_data()
    made = FilesSite(tmp_path, {})
    made.changes = {
        "mask_connection": "salt",
        "policy": {"engine": "auto"},
        "spark": {"submit": service.name, "conf": {"spark.speculation": True}, "run": service.run},
    }
    monkeypatch.setenv("AIRFLOW_CONN_SALT", json.dumps({"conn_type": "generic", "password": SALT}))
    made.feed(0)
    return made


def test_a_batch_is_equal_and_no_request_has_a_secret(service: Service, site: FilesSite) -> None:
    assert run_batch(CdcPipeline.from_dict(site.document())).status == "done"
    (batch,) = Ledger(f"sqlite:///{site.ledger}").batches("shop")
    run = {"databricks": "1001", "kubernetes": service.tokens[0]}[service.name]
    assert (batch.engine, batch.application_id) == (service.name, run)
    assert json.dumps(service.documents[0]).count(service.tokens[0]) == {"databricks": 2, "kubernetes": 1}[service.name]
    assert '"spark.speculation": "true"' in json.dumps(service.documents[0])
    assert SALT not in json.dumps(service.documents)
    assert unequal(site, 0) == {} and doubled_commits(site.lake) == [] and ledger_faults(site, 1) == []


def test_a_stop_cancels_the_run_and_the_next_request_starts_another(service: Service, site: FilesSite) -> None:
    (hold := site.folder / "runs" / "hold").touch()
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
    assert service.platform.state(service.tokens[0]).text == "killed"
    hold.unlink()
    assert run_batch(pipeline).status == "done"
    assert len({*service.tokens}) == len(service.tokens) == 2
    assert unequal(site, 0) == {} and doubled_commits(site.lake) == []
    assert open_platform(pipeline.spark).state("7").ended, "it does not know the run"


def test_a_refusal_is_corrected_and_an_outage_is_tried_again(
    service: Service, site: FilesSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = SparkSettings(submit=service.name, run=service.run)
    site.changes["spark"] = {"submit": service.name, "run": service.wrong_run}
    with pytest.raises(ConfigurationError, match=r"did not do what was asked.*status=400"):
        run_batch(CdcPipeline.from_dict(site.document()))
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda seconds: None)
    service.answers += [(503, {})] * 3
    with pytest.raises(UnavailableError, match=r"platform\.unavailable"):
        open_platform(settings).state("1001")
    service.answers.clear()
    assert [one.ok for one in findings(CdcPipeline.from_dict(site.document())) if one.check == "platform"] == [True]
    connection = json.dumps(service.connection("another token"))
    monkeypatch.setenv(f"AIRFLOW_CONN_{service.name.upper()}_DEFAULT", connection)
    with pytest.raises(ConfigurationError, match="status=403") as refused:
        open_platform(settings).state("1001")
    (ill,) = [one for one in findings(CdcPipeline.from_dict(site.document())) if one.check == "platform"]
    assert ill.ok is False and "did not do what was asked" in ill.message
    assert "another token" not in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "settings", "problem"),
    [
        pytest.param(kind, settings, problem, marks=is_missing(kind))
        for kind, settings, problem in (
            (Databricks, {"run": {}}, "spark.run.tasks: expected a list of one task"),
            (Databricks, {"run": {**Databricks.run, "run_name": "x"}}, "spark.run.run_name: is stated by the batch"),
            (Databricks, {"run": {"tasks": [{"notebook_task": {}}]}}, r"tasks\[0\].notebook_task: is stated by"),
            (Databricks, {"run": {"tasks": [{}]}, "conf": {"a": 1}}, "spark.conf: only a new_cluster takes it"),
            (SparkOperator, {"run": {}}, "spark.run.spec: expected that of a SparkApplication"),
            (SparkOperator, {"run": {"spec": {"arguments": []}}}, "spark.run.spec.arguments: is stated by the batch"),
            (SparkOperator, {"run": {"spec": {}, "metadata": {"name": "x"}}}, "spark.run.metadata.name: is stated"),
        )
    ],
)
def test_a_document_that_cannot_be_completed_is_refused(
    kind: type[Service], settings: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        open_platform(SparkSettings(submit=kind.name, **settings))


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if not find_spec("airflow.providers") or not installed(kind)], ids=str
)
def test_without_its_provider_the_error_names_it(kind: type[Service]) -> None:
    if find_spec(kind.needs[0]):
        pytest.skip("only the models of the API are missing")
    with pytest.raises(ConfigurationError, match=rf"spark\.submit: {kind.name} needs apache-airflow-providers-"):
        open_platform(SparkSettings(submit=kind.name, run=kind.run))
