# SPDX-License-Identifier: Apache-2.0
"""A registry's connection and client: settings, logins, certificates, where secrets travel."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.batch.job import JobMaker
from airflow_provider_cdc.connections.schema_registry import registry_settings
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import ConfigurationError, UnavailableError
from airflow_provider_cdc.core.schema_registry.client import ask, registry_digest
from airflow_provider_cdc.ledger import SYNC, Ledger
from spark_jobs.lake.schemas import LakeSchemas
from spark_jobs.lake.storage import Storage
from tests.services.registered_schemas import ServedSchemas

SCHEMAS = {number: {"schema": json.dumps({"type": "string", "n": number})} for number in range(1, 101)}


@pytest.fixture
def server() -> Iterator[ServedSchemas]:
    served = ServedSchemas(SCHEMAS)
    yield served
    served.stop()


def settings_of(monkeypatch: pytest.MonkeyPatch, **members: Any) -> dict[str, str]:
    monkeypatch.setenv("AIRFLOW_CONN_REGISTRY", json.dumps({"conn_type": "http", **members}))
    return registry_settings("registry")


@pytest.mark.parametrize(
    ("members", "url"),
    [
        ({"host": "https://r:8081"}, "https://r:8081"),
        ({"host": "https://r:8081/apis/ccompat/v7/"}, "https://r:8081/apis/ccompat/v7"),
        ({"host": "r", "port": 8081}, "http://r:8081"),
        ({"host": "r", "port": 8081, "schema": "https"}, "https://r:8081"),
        ({"host": "r", "port": 8081, "schema": "apis/ccompat/v7"}, "http://r:8081/apis/ccompat/v7"),
        ({"conn_type": "https", "host": "r"}, "https://r"),
    ],
)
def test_the_address_is_put_together(members: dict[str, Any], url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings_of(monkeypatch, **members)["url"] == url


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({}, "host is to be the registry's URL"),
        ({"host": "ftp://r"}, "host is to be the registry's URL"),
        ({"host": "http://u:p@r"}, "holds a login"),
        ({"host": "http://r", "password": "p"}, "a password without a login"),
        ({"host": "http://r", "login": "u", "extra": {"bearer.auth.token": "t"}}, "both a login and"),
        ({"host": "http://r", "extra": {"timeout": "soon"}}, "number of seconds"),
        ({"host": "http://r", "extra": {"ssl.verify": "no"}}, "'ssl.verify' is not allowed"),
    ],
)
def test_a_connection_that_cannot_be_used_is_named(
    members: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        settings_of(monkeypatch, **members)


def test_login_and_token_are_sent(server: ServedSchemas) -> None:
    ask({"url": server.url, "username": "ann", "password": "a:secret"}, [1])
    ask({"url": server.url, "bearer.auth.token": "token"}, [1])
    ask({"url": server.url}, [1])
    basic = base64.b64encode(b"ann:a:secret").decode()
    assert server.logins == {f"Basic {basic}", "Bearer token", None}


def test_a_certificate_that_cannot_be_read_is_a_matter_of_configuration(tmp_path: Path) -> None:
    for name in ("ssl.ca.location", "ssl.certificate.location"):
        with pytest.raises(ConfigurationError, match="certificate or key cannot be read"):
            ask({"url": "https://127.0.0.1:9", name: str(tmp_path / "missing.pem")}, [1])
    with pytest.raises(ConfigurationError, match="certificate or key cannot be read"):
        ask({"url": "https://127.0.0.1:9", "ssl.ca.pem": "no certificate"}, [1])


def test_secrets_are_not_in_the_job_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "hush-hush"
    members = {"host": "https://r", "login": "ann", "password": secret, "extra": {"ssl.key.password": secret + "2"}}
    monkeypatch.setenv("AIRFLOW_CONN_REGISTRY", json.dumps({"conn_type": "http", **members}))
    source = {"topics": "t", "format": "debezium-avro", "schema_registry": "registry"}
    pipeline = CdcPipeline.from_dict(
        {"name": "p", "source": source, "sink": {"root": str(tmp_path / "lake")}, "policy": {"engine": "inline"}}
    )
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    with ledger.lease(pipeline.name, "test") as lease:
        batch = ledger.plan(lease, {"t": {0: 0}}, {"t": {0: 5}}, None, SYNC)
        job, secrets = JobMaker(pipeline, ledger, batch, {}, {}).make()
    assert job.registry == {"url": "https://r", "username": "ann"}
    assert secrets["registry"] == {"password": secret, "ssl.key.password": secret + "2"}
    assert secret not in json.dumps(job.document())


def test_many_schemas_are_asked_for_once_and_stay_in_the_lake(server: ServedSchemas, tmp_path: Path) -> None:
    settings = {"url": server.url}
    assert LakeSchemas("p", Storage(str(tmp_path)), settings)(list(SCHEMAS)) == SCHEMAS
    server.stop()
    again = LakeSchemas("p", Storage(str(tmp_path)), settings)(list(SCHEMAS))
    assert {identity: schema and schema["schema"] for identity, schema in again.items()} == {
        identity: schema["schema"] for identity, schema in SCHEMAS.items()
    }
    with pytest.raises(UnavailableError, match=r"registry\.unreachable"):
        LakeSchemas("p", Storage(str(tmp_path)), settings)([5000])
    with pytest.raises(UnavailableError):  # ids of another registry mean something else
        LakeSchemas("p", Storage(str(tmp_path)), {"url": "http://127.0.0.1:9", "timeout": "1"})([1])


def test_a_damaged_schema_of_the_lake_is_asked_for_again(server: ServedSchemas, tmp_path: Path) -> None:
    schemas = LakeSchemas("p", Storage(str(tmp_path)), {"url": server.url})
    assert schemas([7]) == {7: SCHEMAS[7]}
    (file,) = tmp_path.glob(f"_cdc/p/schemas/{registry_digest(server.url)}/7.json")
    for content in (b"", b"{", b"[]", b'{"id": 7}'):
        file.write_bytes(content)
        assert schemas([7]) == {7: SCHEMAS[7]}


def test_an_id_that_the_registry_lacks_is_not_kept(server: ServedSchemas, tmp_path: Path) -> None:
    schemas = LakeSchemas("p", Storage(str(tmp_path)), {"url": server.url})
    assert schemas([99_999]) == {99_999: None}
    assert list(tmp_path.rglob("99999.json")) == []
