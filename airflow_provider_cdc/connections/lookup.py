# SPDX-License-Identifier: Apache-2.0
"""Resolve Airflow connections into plain options, also without Airflow (``AIRFLOW_CONN_<ID>`` in the environment)."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

from airflow_provider_cdc.connections.canal_address import CanalAddress
from airflow_provider_cdc.connections.kafka_config import KERBEROS_PRINCIPAL
from airflow_provider_cdc.connections.object_stores import STORE_TYPES
from airflow_provider_cdc.core.errors import ConfigurationError, UnavailableError
from airflow_provider_cdc.core.lake.store_kinds import STORE_SECRETS

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Connection

    from airflow_provider_cdc.core.config.sinks.sections import Sink

_MASTER = re.compile(
    r"local(\[(\d+|\*)(,\s*\d+)?\])?|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]|yarn"
    r"|spark://[^/:,\s]+:\d+(,[^/:,\s]+:\d+)*|k8s://(https?://)?[^\s/]+(/\S*)?|sc://\S+"
)
_SPARK_EXTRA = ("deploy-mode", "namespace", "queue", "rest-scheme", "rest-port", "spark-binary", "principal", "keytab")
# Airflow's Spark provider checks this list only where it reads the name itself, not where it is handed one.
_SPARK_BINARIES = ("spark-submit", "spark2-submit", "spark3-submit")
_POSTGRES_EXTRA = ("sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout", "application_name")
# A secrets backend takes precedence over the environment: then only Airflow can resolve a connection.
_BACKENDS = ("AIRFLOW__SECRETS__BACKEND", "AIRFLOW__WORKERS__SECRETS_BACKEND")
_LEDGER_TYPES = ("postgres", "sqlite", "cdc_ledger")
_CANAL_EXTRA = ("client_id",)
_CATALOG_TYPES = ("iceberg", "generic")

C = TypeVar("C", "Connection", "EnvironmentConnection", "Connection | EnvironmentConnection")


@dataclass(frozen=True)
class SparkTarget:
    """Master, deploy mode and further settings of a Spark connection.

    :param master: Spark's master URL.
    :param deploy_mode: ``client`` or ``cluster``; None leaves it to Spark.
    :param extra: further settings of the connection, allow-listed.
    :param secret: ``spark.authenticate.secret`` of a standalone cluster; None leaves it to Spark.
    """

    master: str
    deploy_mode: str | None
    extra: dict[str, str]
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class EnvironmentConnection:
    """A connection from the environment, read without loading Airflow; with the attributes of Airflow's own."""

    conn_id: str
    conn_type: str
    host: str | None = None
    login: str | None = None
    password: str | None = None
    schema: str | None = None
    port: int | None = None
    extra_dejson: dict[str, Any] = field(default_factory=dict)


_unmasked: list[str] = []


def mask(secret: str | None = None) -> None:
    """Mask a secret, and those seen before Airflow was loaded, in Airflow's logs; does not load Airflow."""
    if secret:
        _unmasked.append(secret)
    if "airflow.sdk" in sys.modules:
        from airflow.providers.common.compat.sdk import mask_secret

        while _unmasked:
            mask_secret(_unmasked.pop())


def find_connection(conn_id: str, kinds: Iterable[str] = ()) -> Connection | EnvironmentConnection:
    """Return an Airflow connection.

    :param kinds: types it may have; any if empty.
    :raises ConfigurationError: it is not defined, cannot be read, or has another type.
    """
    return _accepted(_from_environment(conn_id) or _from_airflow(conn_id, {"connection": conn_id}), conn_id, kinds)


async def async_find_connection(conn_id: str, kinds: Iterable[str] = ()) -> Connection:
    """Return an Airflow connection as :func:`find_connection` does, without blocking the event loop."""
    from airflow.providers.common.compat.connection import get_async_connection

    with _explained(conn_id, {"connection": conn_id}):
        conn = await get_async_connection(conn_id)
    return _accepted(conn, conn_id, kinds)


def _accepted(conn: C, conn_id: str, kinds: Iterable[str]) -> C:
    mask(conn.password)
    allowed = tuple(kinds)
    if allowed and conn.conn_type not in allowed:
        text = f"connection {conn_id!r} is of type {conn.conn_type!r}, expected {' or '.join(map(repr, allowed))}"
        raise ConfigurationError([text], where={"connection": conn_id})
    return conn


def _from_environment(conn_id: str) -> EnvironmentConnection | None:
    """Return a connection written as JSON in the environment, None where only Airflow can resolve it.

    Loading Airflow takes longer than most verbs of the command line; where it is loaded already, it resolves the
    connection.
    """
    text = os.environ.get(f"AIRFLOW_CONN_{conn_id.upper()}", "")
    if (
        "airflow.sdk" in sys.modules
        or any(name.startswith(_BACKENDS) for name in os.environ)
        or not text.startswith("{")
    ):
        return None
    try:
        members = json.loads(text)
        extra = members.pop("extra", None) or {}
        extra = json.loads(extra) if isinstance(extra, str) else dict(extra)
        port = members.pop("port", None)
        kind = str(members.pop("conn_type")).replace("-", "_").lower()
        members.pop("description", None)
        texts = {name: None if value is None else str(value) for name, value in members.items()}
        kind = "postgres" if kind == "postgresql" else kind
        return EnvironmentConnection(conn_id, kind, extra_dejson=extra, port=int(port) if port else None, **texts)
    except (ValueError, KeyError, TypeError):
        return None  # Airflow reports the problem


def _from_airflow(conn_id: str, where: dict[str, Any]) -> Connection:
    from airflow.providers.common.compat.sdk import BaseHook

    with _explained(conn_id, where):
        return BaseHook.get_connection(conn_id)


@contextmanager
def _explained(conn_id: str, where: dict[str, Any]) -> Iterator[None]:
    """Turn Airflow's errors about a connection into ours."""
    from airflow.providers.common.compat.sdk import AirflowNotFoundException

    variable = f"AIRFLOW_CONN_{conn_id.upper()}"
    in_environment = variable in os.environ
    try:
        yield
    except AirflowNotFoundException:
        if in_environment:
            raise _unreadable(variable, where) from None
        text = f"there is no connection {conn_id!r}: define it in Airflow, or as {variable} in the environment"
        raise ConfigurationError([text], where=where) from None
    except ValueError:
        if in_environment:
            raise _unreadable(variable, where) from None
        raise ConfigurationError([f"connection {conn_id!r} cannot be read"], where=where) from None
    except Exception as error:
        # Its text may quote the connection.
        text = f"connection {conn_id!r} could not be resolved ({type(error).__name__})"
        raise UnavailableError("airflow.connection", text, where=where) from None


def _unreadable(variable: str, where: dict[str, Any]) -> ConfigurationError:
    text = f"{variable} is neither JSON nor a readable URI; a URI writes [ ] / : @ of values as %5B %5D %2F %3A %40"
    return ConfigurationError([text], where=where)


def _extra(conn_id: str, conn: Connection | EnvironmentConnection, allowed: Iterable[str]) -> dict[str, Any]:
    """Return a connection's extra; reject keys that are not on the list."""
    extra: Mapping[str, Any] = conn.extra_dejson
    unknown = sorted(set(extra) - set(allowed))
    if unknown:
        hint = f"is not allowed; allowed: {', '.join(sorted(allowed))}"
        raise ConfigurationError([f"connection {conn_id}: extra {key!r} {hint}" for key in unknown])
    return dict(extra)


# ---- ledger


def ledger_url(value: str) -> str:
    """Return the ledger's database URL; it may hold a password and is never logged.

    :param value: ``default`` (``[cdc] ledger`` of Airflow's configuration, else a file under AIRFLOW_HOME), a database
        URL, or the id of a connection of type ``cdc_ledger``, ``postgres`` or ``sqlite``.
    """
    value = _configured_ledger() if value == "default" else value
    return _plain_ledger_url(value) or _ledger_url_of(find_connection(value, _LEDGER_TYPES), value)


async def async_ledger_url(value: str) -> str:
    """Return the ledger's database URL as :func:`ledger_url` does, without blocking the event loop."""
    value = _configured_ledger() if value == "default" else value
    return _plain_ledger_url(value) or _ledger_url_of(await async_find_connection(value, _LEDGER_TYPES), value)


def postgres_url(conn_id: str) -> str:
    """Return the URL of a PostgreSQL database; it may hold a password and is never logged.

    :param conn_id: connection of type ``postgres``.
    :raises ConfigurationError: it is not defined, has another type, or an extra that is not allowed.
    """
    return _ledger_url_of(find_connection(conn_id, ("postgres",)), conn_id)


def _configured_ledger() -> str:
    """Return ``[cdc] ledger``; Airflow is loaded only where its configuration has that section."""
    named = any(name.startswith("AIRFLOW__CDC__LEDGER") for name in os.environ)
    if "airflow.sdk" not in sys.modules and not named:
        try:
            file = Path(os.environ.get("AIRFLOW_CONFIG") or _home() / "airflow.cfg").expanduser()
            named = "[cdc]" in file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return "default"
        if not named:
            return "default"
    from airflow.providers.common.compat.sdk import conf

    return conf.get("cdc", "ledger", fallback="default").strip() or "default"


def _home() -> Path:
    return Path(os.environ.get("AIRFLOW_HOME") or Path.home() / "airflow").expanduser().absolute()


def _plain_ledger_url(value: str) -> str | None:
    """Return the URL of a ledger that is not named by a connection."""
    if value == "default":
        return f"sqlite:///{_home() / 'cdc' / 'ledger.db'}"
    return value if "://" in value else None


def _ledger_url_of(conn: Connection | EnvironmentConnection, value: str) -> str:
    if conn.conn_type == "cdc_ledger" and conn.extra_dejson.get("sqlite_file"):
        return f"sqlite:///{conn.extra_dejson['sqlite_file']}"
    if conn.conn_type == "sqlite":
        path = conn.host or conn.schema
        if not path:
            raise ConfigurationError([f"connection {value}: names no file"], where={"connection": value})
        return f"sqlite:///{path}"
    extra = _extra(value, conn, (*_POSTGRES_EXTRA, "sqlite_file"))
    query = urlencode({key: text for key, text in extra.items() if text is not None and key != "sqlite_file"})
    login = quote(conn.login or "", safe="")
    if conn.password:
        login += f":{quote(conn.password, safe='')}"
    host = f"{conn.host or 'localhost'}:{conn.port or 5432}"
    database = quote(conn.schema or "", safe="")
    return f"postgresql://{login}{'@' if login else ''}{host}/{database}{'?' if query else ''}{query}"


# ---- Canal


def canal_address(conn_id: str) -> CanalAddress:
    """Return the Canal server of a connection of type ``canal``; extra may hold ``client_id``.

    :raises ConfigurationError: it is not defined, has another type, or an extra that is not allowed.
    """
    return _canal_address_of(find_connection(conn_id, ("canal",)), conn_id)


async def async_canal_address(conn_id: str) -> CanalAddress:
    """Return the Canal server of a connection as :func:`canal_address` does, without blocking the event loop."""
    return _canal_address_of(await async_find_connection(conn_id, ("canal",)), conn_id)


def _canal_address_of(conn: Connection | EnvironmentConnection, conn_id: str) -> CanalAddress:
    extra = _extra(conn_id, conn, _CANAL_EXTRA)
    client_id = str(extra.get("client_id") or 1001)
    # a short of Java
    if not client_id.isascii() or not client_id.isdecimal() or not 0 < int(client_id) < 1 << 15:
        raise ConfigurationError([f"connection {conn_id}: client_id is a whole number from 1 to 32767"])
    if not conn.host:
        raise ConfigurationError([f"connection {conn_id}: names no host"], where={"connection": conn_id})
    port = conn.port or CanalAddress.port
    return CanalAddress(conn.host, port, conn.login or "", conn.password or "", int(client_id))


# ---- object store


def storage_options(conn_id: str | None) -> dict[str, str]:
    """Return options of the object store as delta-rs reads them; empty without a connection.

    :param conn_id: connection of one of :data:`STORE_TYPES`; what it does not state, the environment may.
    """
    return {} if conn_id is None else _storage_options_of(find_connection(conn_id, STORE_TYPES), conn_id)


async def async_storage_options(conn_id: str | None) -> dict[str, str]:
    """Return options of the object store as :func:`storage_options` does, without blocking the event loop."""
    return {} if conn_id is None else _storage_options_of(await async_find_connection(conn_id, STORE_TYPES), conn_id)


def _storage_options_of(conn: Connection | EnvironmentConnection, conn_id: str) -> dict[str, str]:
    options = STORE_TYPES[str(conn.conn_type)](conn, conn_id, partial(_extra, conn_id, conn))
    for name in STORE_SECRETS:
        mask(options.get(name))
    return options


# ---- catalog


def sink_options(sink: Sink) -> dict[str, str]:
    """Return all options of a sink, secrets included: of its catalog, of its object store, and its own."""
    catalog = {}
    if sink.catalog is not None:
        from airflow_provider_cdc.connections.iceberg_catalog import catalog_properties

        catalog = catalog_properties(find_connection(sink.catalog, _CATALOG_TYPES), sink.catalog, mask)
    return {**catalog, **storage_options(sink.storage_connection), **sink.options()}


# ---- Spark


def spark_target(conn_id: str | None) -> SparkTarget:
    """Return the target of a Spark connection; without one ``local[*]``, never silently YARN.

    :param conn_id: connection of type ``spark``.
    :raises ConfigurationError: it is not defined, or its master is not one that Spark knows.
    """
    if conn_id is None:
        return SparkTarget("local[*]", None, {})
    conn = find_connection(conn_id, ("spark", "k8s", "yarn", "local"))
    extra = {key: str(value) for key, value in _extra(conn_id, conn, _SPARK_EXTRA).items() if value is not None}
    master = _master(conn)
    if not _MASTER.fullmatch(master):
        known = "local[*], spark://host:7077, k8s://https://host, yarn"
        text = f"connection {conn_id}: {master!r} is not a Spark master; known: {known}"
        raise ConfigurationError([text], where={"connection": conn_id})
    binary = extra.get("spark-binary", "spark-submit")
    if binary not in _SPARK_BINARIES:
        raise ConfigurationError([f"connection {conn_id}: spark-binary {binary!r} is not one of {_SPARK_BINARIES}"])
    # The provider makes it part of a file's name.
    if not KERBEROS_PRINCIPAL.fullmatch(extra.get("principal", "nobody")):
        raise ConfigurationError([f"connection {conn_id}: principal must be name@REALM or name/host@REALM"])
    deploy_mode = extra.pop("deploy-mode", None)
    if deploy_mode not in (None, "client", "cluster"):
        raise ConfigurationError([f"connection {conn_id}: deploy-mode {deploy_mode!r} is neither client nor cluster"])
    mask(extra.get("keytab"))
    if conn.password and master.startswith(("yarn", "k8s://")):  # spark.SecurityManager
        text = "YARN and Kubernetes make spark.authenticate.secret themselves: leave the password empty"
        raise ConfigurationError([f"connection {conn_id}: {text}"])
    return SparkTarget(master, deploy_mode, extra, conn.password or None)


def _master(conn: Connection | EnvironmentConnection) -> str:
    host = conn.host or ""
    if conn.conn_type in ("yarn", "local") and not host:
        return conn.conn_type
    # A URI's scheme became the connection's type; a connection made in the form has the whole master as host.
    if conn.conn_type == "spark" and host and ("://" in host or not conn.port):
        master = host
    else:
        master = f"{conn.conn_type}://{host}"
    return f"{master}:{conn.port}" if conn.port else master
