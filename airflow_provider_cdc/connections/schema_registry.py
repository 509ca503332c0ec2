# SPDX-License-Identifier: Apache-2.0
"""Build the settings of a schema registry's client from an Airflow connection, by an allow-list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_provider_cdc.connections.lookup import async_find_connection, find_connection, mask
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.schema_registry.client import SECRETS

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Connection

    from airflow_provider_cdc.connections.lookup import EnvironmentConnection

_TYPES = ("http", "https", "generic")
_ALLOWED = (
    "bearer.auth.token",
    "bearer.auth.logical.cluster",
    "bearer.auth.identity.pool.id",
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "timeout",
)


def registry_settings(conn_id: str | None) -> dict[str, str]:
    """Return the settings of a registry's client, secrets included; empty without a connection.

    :param conn_id: connection of type ``http``, ``https`` or ``generic``: the host is the registry's URL, login and
        password are those of basic authentication, extra holds the other settings of ``RegistryClient``.
    :raises ConfigurationError: it is not defined, names no URL, or has an extra that is not allowed.
    """
    return {} if conn_id is None else _settings(find_connection(conn_id, _TYPES), conn_id)


async def async_registry_settings(conn_id: str | None) -> dict[str, str]:
    """Return the settings as :func:`registry_settings` does, without blocking the event loop."""
    return {} if conn_id is None else _settings(await async_find_connection(conn_id, _TYPES), conn_id)


def _settings(conn: Connection | EnvironmentConnection, conn_id: str) -> dict[str, str]:
    extra: dict[str, Any] = {key: value for key, value in conn.extra_dejson.items() if value not in (None, "")}
    problems = [
        f"connection {conn_id}: extra {key!r} is not allowed; allowed: {', '.join(sorted(_ALLOWED))}"
        for key in sorted(set(extra) - set(_ALLOWED))
    ]
    settings = {key: str(value) for key, value in extra.items()}
    for name in SECRETS:
        mask(settings.get(name))
    settings["url"] = _url(conn)
    parts = urlsplit(settings["url"])
    if parts.scheme not in ("http", "https") or not parts.hostname:
        problems.append(f"connection {conn_id}: host is to be the registry's URL, as https://registry:8081")
    if "@" in parts.netloc or parts.query:
        problems.append(f"connection {conn_id}: the URL holds a login or a query: use login, password and extra")
    if conn.login:
        settings |= {"username": conn.login, "password": conn.password or ""}
    elif conn.password:
        problems.append(f"connection {conn_id}: a password without a login; a token is bearer.auth.token of the extra")
    if conn.login and "bearer.auth.token" in settings:
        problems.append(f"connection {conn_id}: has both a login and bearer.auth.token")
    try:
        valid = float(settings.get("timeout", 10)) > 0
    except ValueError:
        valid = False
    if not valid:
        problems.append(f"connection {conn_id}: timeout is to be a number of seconds")
    if problems:
        raise ConfigurationError(problems, where={"connection": conn_id})
    return settings


def _url(conn: Connection | EnvironmentConnection) -> str:
    """Return the address; a connection written as a URI has its parts in host, port and schema, which is the path."""
    host, schema = conn.host or "", conn.schema or ""
    if "://" in host:
        scheme, _, host = host.partition("://")
    else:
        scheme = schema if schema in ("http", "https") else "https" if conn.conn_type == "https" else "http"
    host, _, path = host.partition("/")
    path = path or ("" if schema in ("http", "https") else schema)
    port = f":{conn.port}" if conn.port and ":" not in host else ""
    return f"{scheme}://{host}{port}/{path}".rstrip("/")
