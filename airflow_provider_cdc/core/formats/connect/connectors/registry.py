# SPDX-License-Identifier: Apache-2.0
"""Name the connectors of Debezium that are read, and those that are known and refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats.connect.connectors.contract import Connector
from airflow_provider_cdc.core.formats.connect.connectors.mysql import MySqlConnector
from airflow_provider_cdc.core.formats.connect.connectors.postgresql import PostgreSqlConnector

CONNECTORS: dict[str, type[Connector[Any]]] = {"mysql": MySqlConnector, "postgresql": PostgreSqlConnector}
"""What a pipeline states in ``source.options.connector`` -> the connector."""

NOT_READ: dict[str, str] = {
    "cassandra": "Cassandra",
    "cockroachdb": "CockroachDB",
    "db2": "Db2",
    "db2as400": "Db2 for i",
    "informix": "Informix",
    "mongodb": "MongoDB",
    "oracle": "Oracle",
    "spanner": "Spanner",
    "sqlserver": "SQL Server",
    "vitess": "Vitess",
}
"""``source.connector`` of those that no format reads -> the database."""

CONNECTOR, DEFAULT_CONNECTOR = "connector", "mysql"
_NAMES = " | ".join(CONNECTORS)
CONNECTOR_MEANING = f"the connector that writes the records: {_NAMES} (default {DEFAULT_CONNECTOR}, of MariaDB too)"
_TICDC = (
    "TiCDC's Debezium protocol, which no format reads: DECIMAL comes as a floating number, NULL may come as the "
    "column's default, and not every DDL comes. Let the changefeed write canal-json, and read that"
)


def databases() -> str:
    """Return the databases whose connectors are read, for people."""
    return ", ".join(name for kind in CONNECTORS.values() for name in kind.databases)


def place_members() -> str:
    """Return what a flattened row has to keep of each connector's messages, for people."""
    return "; ".join(f"{kind.databases[0]}: {', '.join(kind.place_members)}" for kind in CONNECTORS.values())


def refusal(writer: str) -> str | None:
    """Return what is to be said of records of a connector that no format reads, None where nothing is known of it.

    :param writer: as in ``source.connector``.
    """
    if writer == "TiCDC":
        return _TICDC
    database = NOT_READ.get(writer)
    return database and f"a record of Debezium's connector for {database} ({writer}), which no format reads"


def connector_options() -> dict[str, str]:
    """Return the options of all connectors, with their meanings."""
    return {name: meaning for kind in CONNECTORS.values() for name, meaning in kind.options.items()}


def connector_of(writer: str | None) -> str | None:
    """Return what a pipeline states for records with this ``source.connector``, None for one that is not read."""
    return next((name for name, kind in CONNECTORS.items() if writer in kind.writers), None)


def open_connector(options: Mapping[str, str]) -> Connector[Any]:
    """Return the connector that a pipeline's options name.

    :raises ConfigurationError: there is none of this name, or it has no such option or value.
    """
    name = options.get(CONNECTOR, DEFAULT_CONNECTOR)
    if name not in CONNECTORS:
        raise ConfigurationError([f"source.options.{CONNECTOR}: {name!r} is not one of {', '.join(CONNECTORS)}"])
    kind, every = CONNECTORS[name], connector_options()
    others = [
        f"source.options.{key}: is not an option of the connector {name}"
        for key in options
        if key in every and key not in kind.options
    ]
    if others:
        raise ConfigurationError(others)
    return kind({key: value for key, value in options.items() if key in kind.options})
