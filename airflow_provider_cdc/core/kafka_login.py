# SPDX-License-Identifier: Apache-2.0
"""Log in to Kafka in a way that librdkafka leaves to its user."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from airflow_provider_cdc.core.errors import ConfigurationError, SourceError

MSK_IAM = "AWS_MSK_IAM"
"""The mechanism's name in Amazon's clients: OAUTHBEARER with a token that an AWS identity signs."""
REGION = "region_name"

_MECHANISM = ("sasl.mechanism", "sasl.mechanisms")
# b-1.shop.x1y2z3.c4.kafka.eu-west-1.amazonaws.com:9098, boot-x1y2z3.c1.kafka-serverless.eu-west-1.amazonaws.com:9098
_ADDRESS = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com", re.ASCII)
# of Debian and Alpine, of Red Hat, of SUSE
_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem")


def client_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with which confluent-kafka makes a client.

    :param config: librdkafka's configuration of a connection; ``sasl.mechanism`` may be ``AWS_MSK_IAM``, too, for the
        region in the brokers' addresses or in ``region_name``. It signs with the key pair in ``sasl.username`` and
        ``sasl.password``, without one as botocore finds out who the machine is.
    :raises ConfigurationError: as :func:`check_login`.
    :raises SourceError: ``kafka.login_refused``: nothing says who the machine is.
    """
    check_login(config)
    settings = {**config}
    settings.pop(REGION, None)
    region = _region(config)
    if not _is_signed(config) or region is None:
        return {**_certificates(config), **settings}
    for name in _MECHANISM:
        settings.pop(name, None)
    pair = settings.pop("sasl.username", None), settings.pop("sasl.password", None)
    if pair[0] is None:
        _demand_credentials()
    return {
        "security.protocol": "SASL_SSL",
        **settings,
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": partial(_token, region, *pair),
    }


def check_login(config: Mapping[str, Any]) -> None:
    """Refuse a login that no client of this installation can make.

    :raises ConfigurationError: the region is not known, or the package that signs is not installed.
    """
    if not _is_signed(config):
        return
    if not _region(config):
        raise ConfigurationError([f"{MSK_IAM} needs {REGION}: no region is in the brokers' addresses"])
    if find_spec("aws_msk_iam_sasl_signer") is None:
        raise ConfigurationError([f"{MSK_IAM} needs the package aws-msk-iam-sasl-signer-python: install the extra msk"])


def _certificates(config: Mapping[str, Any]) -> dict[str, str]:
    """Return where this machine has the certificates that a token's endpoint is trusted by.

    The client's wheel looks only where the distribution has them that it was built on, `probe` or not.
    """
    if config.get("sasl.oauthbearer.method") != "oidc" or "https.ca.pem" in config:
        return {}
    return next(({"https.ca.location": file} for file in _BUNDLES if Path(file).is_file()), {})


def _is_signed(config: Mapping[str, Any]) -> bool:
    return any(config.get(name) == MSK_IAM for name in _MECHANISM)


def _region(config: Mapping[str, Any]) -> str | None:
    address = _ADDRESS.search(str(config.get("bootstrap.servers")))
    return config.get(REGION) or (address[1] if address else None)


def _demand_credentials() -> None:
    """Say it at once: the client would wait for a token that never comes, and not say why."""
    from botocore.session import Session

    if Session().get_credentials() is None:
        hint = "give the machine a role, or the connection a login and password: an access key's id and secret"
        raise SourceError("kafka.login_refused", f"{MSK_IAM}: nothing says who this machine is", hint=hint)


def _token(region: str, key: str | None, secret: str | None, _: str) -> tuple[str, float]:
    """Return a token and when it expires, in seconds since 1970."""
    from aws_msk_iam_sasl_signer import MSKAuthTokenProvider as signer
    from botocore.credentials import CredentialProvider, Credentials

    class Pair(CredentialProvider):  # type: ignore[misc]  # untyped
        def load(self) -> Credentials:
            return Credentials(key, secret)

    if key is None:
        token, expires = signer.generate_auth_token(region)
    else:
        token, expires = signer.generate_auth_token_from_credentials_provider(region, Pair())
    return token, expires / 1000
