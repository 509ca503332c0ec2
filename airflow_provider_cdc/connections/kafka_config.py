# SPDX-License-Identifier: Apache-2.0
"""Build librdkafka's configuration from an Airflow connection of type ``kafka`` by an allow-list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.kafka_login import REGION, check_login

# Who may edit a connection may not run code or read files of the worker's choice through it: nothing here names a
# program, a plug-in or a callback (sasl.kerberos.kinit.cmd, ssl.engine.location, plugin.library.paths, *_cb).
_KEYS = """
    bootstrap.servers client.id client.rack client.dns.lookup
    security.protocol sasl.mechanism sasl.mechanisms sasl.username sasl.password
    sasl.kerberos.service.name sasl.kerberos.principal sasl.kerberos.keytab
    sasl.oauthbearer.method sasl.oauthbearer.client.id sasl.oauthbearer.client.secret sasl.oauthbearer.scope
    sasl.oauthbearer.extensions sasl.oauthbearer.token.endpoint.url sasl.oauthbearer.grant.type
    sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
    sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.private.key.file
    sasl.oauthbearer.assertion.private.key.pem sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.sub
    sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.nbf.seconds
    sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.sub.claim.name
    sasl.oauthbearer.metadata.authentication.type sasl.oauthbearer.config https.ca.location https.ca.pem
    ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem ssl.key.location ssl.key.pem
    ssl.key.password ssl.keystore.location ssl.keystore.password ssl.crl.location ssl.cipher.suites ssl.curves.list
    ssl.sigalgs.list ssl.endpoint.identification.algorithm enable.ssl.certificate.verification
    socket.timeout.ms socket.connection.setup.timeout.ms socket.keepalive.enable socket.nagle.disable
    socket.send.buffer.bytes socket.receive.buffer.bytes socket.max.fails
    broker.address.family broker.address.ttl connections.max.idle.ms reconnect.backoff.ms reconnect.backoff.max.ms
    metadata.max.age.ms topic.metadata.refresh.interval.ms receive.message.max.bytes message.max.bytes
    fetch.wait.max.ms fetch.min.bytes fetch.max.bytes fetch.message.max.bytes max.partition.fetch.bytes
    fetch.error.backoff.ms queued.min.messages queued.max.messages.kbytes check.crcs
"""
ALLOWED = frozenset({*_KEYS.split(), REGION})
SECRETS = (
    "sasl.password",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.assertion.private.key.pem",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "ssl.key.pem",
    "ssl.key.password",
    "ssl.keystore.password",
)
KERBEROS_PRINCIPAL = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*(@\w[\w.-]*)?", re.ASCII)
# librdkafka pastes these values into the shell command sasl.kerberos.kinit.cmd (CONFIGURATION.md), which runs kinit.
_SHELL_VALUES = {
    "sasl.kerberos.principal": (KERBEROS_PRINCIPAL, "name@REALM or name/host@REALM of letters, digits, '_', '.', '-'"),
    "sasl.kerberos.service.name": (re.compile(r"\w[\w.-]*", re.ASCII), "a name of letters, digits, '_', '.', '-'"),
    "sasl.kerberos.keytab": (
        re.compile(r"[\w/][\w/.:@+=-]*", re.ASCII),
        "a path of letters, digits, '_', '/', '.', ':', '@', '+', '=', '-'",
    ),
}
# Fields of the connection form; a name with dots would be several names in a form.
_FORM = {
    "security_protocol": "security.protocol",
    "sasl_mechanism": "sasl.mechanism",
    "ca_file": "ssl.ca.location",
    "ca_certificate": "ssl.ca.pem",
}
_OURS = {
    "group.id": "we read by assignment and never join a group",
    "group.instance.id": "we read by assignment and never join a group",
    "enable.auto.commit": "we never commit offsets; the ledger keeps them",
    "auto.offset.reset": "an offset that is gone is an error, never a silent jump",
    "isolation.level": "it is always read_committed",
}


def client_config(
    conn_id: str,
    extra: Mapping[str, Any],
    *,
    host: str | None,
    port: int | None,
    login: str | None,
    password: str | None,
) -> dict[str, str]:
    """Return librdkafka's configuration of a connection.

    :param extra: the connection's extra: librdkafka keys.
    :param host: address to use when the extra has no ``bootstrap.servers``.
    :param login: user name to use when the extra has no ``sasl.username``; ``password`` goes with it.
    :raises ConfigurationError: names every key and value that is not allowed.
    """
    problems = []
    config: dict[str, str] = {}
    for key, value in _from_form(extra).items():
        if key in _OURS:
            problems.append(f"connection {conn_id}: {key} cannot be set: {_OURS[key]}")
        elif key not in ALLOWED:
            problems.append(f"connection {conn_id}: {key} is not allowed{_reason(key)}")
        elif isinstance(value, bool):
            config[key] = "true" if value else "false"
        elif isinstance(value, (str, int, float)):
            config[key] = str(value)
        elif value is not None:
            problems.append(f"connection {conn_id}: {key} must be text, a number or true/false")
    for key, (pattern, shape) in _SHELL_VALUES.items():
        if key in config and not pattern.fullmatch(config[key]):
            problems.append(f"connection {conn_id}: {key} must be {shape}: it becomes part of a shell command")
    if "bootstrap.servers" not in config and host:
        config["bootstrap.servers"] = f"{host}:{port or 9092}" if ":" not in host else host
    if login and "sasl.username" not in config:
        config["sasl.username"] = login
        config.setdefault("sasl.password", password or "")
    if not config.get("bootstrap.servers"):
        problems.append(f"connection {conn_id}: bootstrap.servers is missing in its extra")
    try:
        check_login(config)
    except ConfigurationError as error:
        problems += [f"connection {conn_id}: {problem}" for problem in error.problems]
    if problems:
        raise ConfigurationError(problems)
    return config


def _from_form(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return an extra in which fields of the connection form have librdkafka's names; empty fields are left out."""
    filled = {_FORM[key]: value for key, value in extra.items() if key in _FORM and value not in (None, "")}
    return {**filled, **{key: value for key, value in extra.items() if key not in _FORM}}


def _reason(key: str) -> str:
    if key.endswith("_cb") or "callback" in key or key in ("logger", "on_commit"):
        return ": a connection never names code"
    if key in ("plugin.library.paths", "ssl.engine.location", "ssl.providers", "sasl.kerberos.kinit.cmd"):
        return ": it would run a program or load a library on the worker"
    if key in ("sasl.oauthbearer.assertion.file", "sasl.oauthbearer.assertion.jwt.template.file"):
        return ": it would send a file of the worker to an address that the connection names"
    family = key.split(".")[0]
    near = sorted(name for name in ALLOWED if name.split(".")[0] == family)
    return f"; allowed are {', '.join(near)}" if near else ", only addresses, security, sockets and fetch sizes are"
