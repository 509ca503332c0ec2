# SPDX-License-Identifier: Apache-2.0
"""Logins with a token: who gives it, what is sent for it, and that a broker takes it."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest

from airflow_provider_cdc.core.errors import ConfigurationError, SourceError
from airflow_provider_cdc.core.kafka_login import client_settings
from airflow_provider_cdc.core.model.offsets import OffsetRange
from airflow_provider_cdc.hooks.kafka import KafkaProgressHook
from airflow_provider_cdc.sources.kafka_writer import KafkaWriter
from spark_jobs.readers.task_reader import read_chunks
from tests.services.broker import Broker
from tests.services.token_endpoint import TokenEndpoint, private_key, unsigned_token

from .conftest import Connect

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
MSK = "b-1.shop.x1y2z3.c4.kafka.eu-west-1.amazonaws.com:9098"
AWS = {"bootstrap.servers": MSK, "sasl.mechanism": "AWS_MSK_IAM"}


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[TokenEndpoint]:
    running = TokenEndpoint(tmp_path)
    yield running
    running.stop()


@pytest.fixture
def listener(broker: Broker) -> dict[str, Any]:
    """Return an extra for the listener that wants a token."""
    settings = {**broker.sasl_settings(), "sasl.mechanism": "OAUTHBEARER"}
    del settings["sasl.username"], settings["sasl.password"]
    return settings


def oidc(listener: dict[str, Any], url: str, **more: Any) -> dict[str, Any]:
    own = {name.replace("__", "."): value for name, value in more.items()}
    return {
        **listener,
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": url,
        **{name if name.startswith("https.") else f"sasl.oauthbearer.{name}": value for name, value in own.items()},
    }


def topics(connect: Connect, extra: dict[str, Any]) -> dict[str, list[int]]:
    return KafkaProgressHook(connect("kafka_token", "kafka", extra), timeout=10).topics()


def test_a_client_s_secret_for_an_endpoint_with_a_private_ca(
    broker: Broker, connect: Connect, listener: dict[str, Any], endpoint: TokenEndpoint
) -> None:
    own = {"client.id": "cdc", "client.secret": "s3cret-of-the-client", "scope": "kafka"}
    extra = oidc(listener, endpoint.url, **own, https__ca__location=str(endpoint.certificate))
    broker.create_topic("with_secret")
    assert "with_secret" in topics(connect, extra)
    headers, form = endpoint.requests[0]
    pair = base64.b64decode(headers["authorization"].removeprefix("Basic ")).decode()
    assert pair == "cdc:s3cret-of-the-client"
    assert form == {"grant_type": "client_credentials", "scope": "kafka"}


def test_an_endpoint_that_nobody_vouches_for_gets_no_secret(
    connect: Connect, listener: dict[str, Any], endpoint: TokenEndpoint
) -> None:
    extra = oidc(listener, endpoint.url, **{"client.id": "cdc", "client.secret": "s3cret-of-the-client"})
    with pytest.raises(SourceError) as refused:
        topics(connect, extra)
    assert refused.value.code == "kafka.login_refused"
    assert "self-signed certificate" in str(refused.value) and "s3cret" not in str(refused.value)
    assert refused.value.hint.startswith("check sasl.oauthbearer.*")
    assert not endpoint.requests


def test_a_token_for_an_assertion_that_a_private_key_signs(
    connect: Connect, listener: dict[str, Any], endpoint: TokenEndpoint
) -> None:
    key, text = private_key()
    claims = {"claim.aud": "kafka", "claim.iss": "airflow", "claim.sub": "cdc", "private.key.pem": text}
    own = {f"assertion.{name}": value for name, value in {"algorithm": "RS256", **claims}.items()}
    own |= {"grant.type": JWT_BEARER, "client.id": "cdc"}
    topics(connect, oidc(listener, endpoint.plain_url, **own))
    ((_, form),) = endpoint.requests
    assert form["grant_type"] == JWT_BEARER
    said = jwt.decode(form["assertion"], key.public_key(), algorithms=["RS256"], audience="kafka")
    assert (said["iss"], said["sub"]) == ("airflow", "cdc")


def test_a_managed_identity_of_azure(connect: Connect, listener: dict[str, Any], endpoint: TokenEndpoint) -> None:
    query = "api-version=2018-02-01&resource=api://kafka&client_id=cdc"
    own = {"metadata.authentication.type": "azure_imds", "config": f"query={query}"}
    topics(connect, oidc(listener, endpoint.plain_url, **own))
    ((headers, form),) = endpoint.requests
    assert headers["metadata"] == "true"
    assert form == {"api-version": "2018-02-01", "resource": "api://kafka", "client_id": "cdc"}


# ---- AWS_MSK_IAM


def signed(extra: dict[str, Any]) -> tuple[str, dict[str, str], float]:
    """Return host and query of the token that a connection's client sends, and in how many seconds it expires."""
    settings = client_settings(extra)
    token, expires = settings["oauth_cb"]("")
    url = urlsplit(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    return url.netloc, {name: value for name, (value,) in parse_qs(url.query).items()}, expires - time.time()


def test_whom_the_machine_is_signs_for_the_brokers_region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAOFTHEMACHINE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-machine")
    host, query, seconds = signed(AWS)
    assert host == "kafka.eu-west-1.amazonaws.com"
    assert query["Action"] == "kafka-cluster:Connect"
    assert query["X-Amz-Credential"].split("/")[0] == "AKIAOFTHEMACHINE"
    assert query["X-Amz-Credential"].split("/")[2:] == ["eu-west-1", "kafka-cluster", "aws4_request"]
    assert 600 < seconds <= 900


def test_a_key_pair_of_the_connection_signs_for_a_region_that_it_names(connect: Connect) -> None:
    extra = {"bootstrap.servers": "kafka.corp:9098", "sasl.mechanism": "AWS_MSK_IAM", "region_name": "eu-north-1"}
    connect("kafka_msk", "kafka", extra, login="AKIAOFTHECONNECTION", password="secret-of-the-connection")
    host, query, _ = signed(KafkaProgressHook("kafka_msk").client_config())
    assert host == "kafka.eu-north-1.amazonaws.com"
    assert query["X-Amz-Credential"].startswith("AKIAOFTHECONNECTION/")


def test_its_client_speaks_tls_and_sees_no_key(connect: Connect) -> None:
    connect("kafka_msk", "kafka", AWS, login="AKIA", password="secret-of-the-connection")
    settings = client_settings(KafkaProgressHook("kafka_msk").client_config())
    del settings["oauth_cb"]
    assert settings == {"bootstrap.servers": MSK, "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}


def test_brokers_whose_region_nobody_knows_are_refused(connect: Connect) -> None:
    connect("kafka_msk", "kafka", {"bootstrap.servers": "kafka.corp:9098", "sasl.mechanism": "AWS_MSK_IAM"})
    with pytest.raises(ConfigurationError, match="needs region_name"):
        KafkaProgressHook("kafka_msk").client_config()


def test_every_client_sends_the_token_that_was_signed(
    broker: Broker, connect: Connect, listener: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker of Amazon's checks the signature; the tests' own takes a token that nobody signed."""
    signer = "aws_msk_iam_sasl_signer.MSKAuthTokenProvider.generate_auth_token"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAOFTHEMACHINE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-machine")
    monkeypatch.setattr(signer, lambda region: (unsigned_token(region), 1000 * (time.time() + 600)))
    broker.create_topic("signed")
    extra = {**listener, "sasl.mechanism": "AWS_MSK_IAM", "region_name": "eu-west-1"}
    conn_id = connect("kafka_msk", "kafka", extra)
    hook = KafkaProgressHook(conn_id, timeout=10)
    KafkaWriter("signed", conn_id, 10, "").write([(b"k", b"v")])
    assert hook.topics()["signed"] == [0]
    assert hook.ends(["signed"]).highs == {"signed": {0: 1}}
    (records,) = read_chunks([OffsetRange("signed", 0, 0, 1)], hook.client_config())
    assert list(records.values) == [b"v"]


def test_a_machine_that_is_nobody_is_refused_at_once(
    connect: Connect, listener: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    extra = {**listener, "sasl.mechanism": "AWS_MSK_IAM", "region_name": "eu-west-1"}
    with pytest.raises(SourceError, match="nothing says who this machine is") as refused:
        topics(connect, extra)
    assert refused.value.code == "kafka.login_refused"
