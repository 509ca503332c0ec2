# SPDX-License-Identifier: Apache-2.0
"""Secrets leave the driver only encrypted, or where somebody accepted that they travel in the clear."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.config import RunPolicy, TableRules
from airflow_provider_cdc.core.documents import SECRETS_VARIABLE, JobDocument
from airflow_provider_cdc.core.errors import ConfigurationError
from spark_jobs.launch import run
from spark_jobs.workers.encryption import demand_encryption

SECRETS = {"kafka": {"sasl.password": "s3cret"}, "storage": {}}
CLUSTERS = ("yarn", "spark://m:7077", "k8s://https://h:443")
AES = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}


def refuses(conf: dict[str, str], secrets: dict[str, dict[str, str]]) -> bool:
    try:
        demand_encryption(conf, secrets)
    except ConfigurationError:
        return True
    return False


@pytest.mark.parametrize("master", CLUSTERS)
@pytest.mark.parametrize(
    "conf",
    [
        {},
        {"spark.authenticate": "true"},
        {"spark.network.crypto.enabled": "true"},
        {**AES, "spark.authenticate": "false"},
        {"spark.ssl.enabled": "true"},
    ],
)
def test_secrets_do_not_travel_in_the_clear(master: str, conf: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="unencrypted") as refused:
        demand_encryption({"spark.master": master, **conf}, SECRETS)
    assert "s3cret" not in str(refused.value)
    for key in ("spark.authenticate", "spark.network.crypto.enabled", "spark.airflowCdc.allowUnencrypted"):
        assert key in refused.value.hint


@pytest.mark.parametrize("master", CLUSTERS)
@pytest.mark.parametrize(
    "conf",
    [
        AES,
        {"spark.authenticate": "true", "spark.authenticate.enableSaslEncryption": "true"},
        {"spark.ssl.rpc.enabled": "TRUE"},
        {"spark.airflowCdc.allowUnencrypted": "true"},
    ],
)
def test_they_travel_encrypted_or_where_that_was_allowed(master: str, conf: dict[str, str]) -> None:
    assert not refuses({"spark.master": master, **conf}, SECRETS)
    for key in conf:
        assert refuses({"spark.master": master, **conf, key: "false"}, SECRETS), "each part of it is needed"


def test_without_secrets_and_on_one_machine_nothing_is_demanded() -> None:
    assert refuses({"spark.master": "yarn"}, SECRETS)
    assert not refuses({"spark.master": "yarn"}, {"kafka": {}, "storage": {}})
    for master in ("local", "local[*]", "local-cluster[2,1,1024]"):
        assert not refuses({"spark.master": master}, SECRETS)


def write_job(folder: Path) -> None:
    """Write the document of a batch without records that needs a session of Spark."""
    names = ("pipeline", "created_at", "sink_root", "format")
    texts = dict.fromkeys(names, "shop")
    lists: dict[str, Any] = {name: [] for name in ("chunks", "earlier", "schema_changes", "states")}
    mappings: dict[str, Any] = {name: {} for name in ("format_options", "kafka")}
    job = JobDocument(
        seq=1, schema_topic=None, session=True, policy=RunPolicy(), tables=TableRules(), **texts, **lists, **mappings
    )
    (folder / "job.json").write_text(json.dumps(job.document()))


def test_the_batch_fails_before_a_task_was_handed_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handed_out: list[Any] = []
    stopped: list[bool] = []
    engine = (handed_out.append, lambda: stopped.append(True), None, {"spark.master": "yarn"})
    monkeypatch.setattr(run, "_spark", lambda *_, **__: engine)
    monkeypatch.setenv(SECRETS_VARIABLE, json.dumps(SECRETS))
    write_job(tmp_path)
    assert run.main([str(tmp_path / "job.json"), str(tmp_path / "result.json")]) == 0
    result = json.loads((tmp_path / "result.json").read_text())
    assert (result["status"], result["error"]["code"], result["transient"]) == ("failed", "configuration", False)
    assert handed_out == [] and stopped == [True]
    assert "s3cret" not in (tmp_path / "result.json").read_text()


def test_a_result_that_cannot_be_written_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    engine: Any = (None, lambda: None, None, {"spark.master": "yarn"})
    monkeypatch.setattr(run, "_spark", lambda *_, **__: engine)
    monkeypatch.setenv(SECRETS_VARIABLE, json.dumps(SECRETS))
    write_job(tmp_path)
    result = tmp_path / "missing" / "result.json"
    assert run.main([str(tmp_path / "job.json"), str(result)]) == 1
    output = capfd.readouterr()
    assert output.out == f"cannot write the result to {result}: No such file or directory\n" and output.err == ""
