# SPDX-License-Identifier: Apache-2.0
"""Describe the sink: Delta tables by path under one root, or Iceberg tables of a catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from airflow_provider_cdc.core.config.checks import Checks
from airflow_provider_cdc.core.config.lake import Lake, check_store
from airflow_provider_cdc.core.config.register import Register
from airflow_provider_cdc.core.config.sink_kinds import SINKS
from airflow_provider_cdc.core.config.table_properties import delta_problem, iceberg_problem
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.lake.roots import canonical_root

WRITES = ("merge-on-read", "copy-on-write")
NAMES = ("exact", "safe")
_OF_TABLES = ("writes", "names")


@dataclass(frozen=True)
class DeltaSink:
    """Delta tables at ``root/<database>/<table>``.

    :param root: absolute local path, or ``file://``, ``s3://``, ``s3a://``; kept in its canonical spelling.
    :param storage_connection: Airflow connection of type ``aws`` with the object store's address and secrets.
    :param storage_options: further options of the store; no secrets.
    :param writes: whether a merge writes the files of its rows again (``copy-on-write``), or deletes rows by their
        positions in deletion vectors (``merge-on-read``), which not all readers can read.
    :param type: kind of the tables (``sink_kinds.SINKS``).
    :param register: catalog that the tables are registered in after a batch; plain data of one is accepted.
    :param names: whether databases and tables are named as the source spells them (``exact``), or in lower case of
        letters, digits and underscores (``safe``); None for ``exact``.
    """

    root: str
    storage_connection: str | None = None
    storage_options: dict[str, str] = field(default_factory=dict)
    writes: str = "copy-on-write"
    type: str = "delta"
    register: Register | None = None
    names: str | None = None
    catalog = None
    partitions = False

    def __post_init__(self) -> None:
        checks = Checks("sink")
        check_store(checks, self.root, self.storage_connection, self.storage_options)
        checks.choice("writes", self.writes, WRITES)
        _check_names(checks, self.names)
        checks.choice("type", self.type, [name for name, kind in SINKS.items() if kind.section == "DeltaSink"])
        try:
            object.__setattr__(self, "register", Register.of(self.register))
        except ConfigurationError as error:
            checks.problems += error.problems
        checks.raise_any()
        object.__setattr__(self, "root", canonical_root(self.root))
        object.__setattr__(self, "storage_options", {key: str(value) for key, value in self.storage_options.items()})

    def own_lake(self) -> Lake:
        """Return the lake of a pipeline that states none: with the tables, in the same store."""
        return Lake(self.root, self.storage_connection, dict(self.storage_options))

    def property_problem(self, name: str, value: str) -> str | None:
        """Return why the tables cannot have a property, None where they can."""
        return delta_problem(name, value)

    def options(self) -> dict[str, str]:
        """Return the options of the tables' kind that no connection holds."""
        writes = {} if self.writes == "copy-on-write" else {"writes": self.writes}
        return {**self.storage_options, **writes, **({"names": self.names} if self.names else {})}

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "type": self.type,
            "root": self.root,
            "writes": self.writes,
            "names": self.names,
            "storage_connection": self.storage_connection,
            "storage_options": dict(self.storage_options),
            "register": None if self.register is None else self.register.document(),
        }


@dataclass(frozen=True)
class IcebergSink:
    """Iceberg tables ``<database>.<table>`` of a catalog.

    :param warehouse: where files of new tables go, spelled as a root of Delta tables; empty where the catalog says it.
    :param connection: Airflow connection of type ``iceberg`` with the catalog's address and secrets; without one the
        catalog is the SQLite file ``catalog.db`` in the warehouse, a local folder then.
    :param namespace: in front of all databases, levels separated by dots; a SQL catalog and Glue know one level, so
        there it is ``<namespace>_<database>``.
    :param writes: whether a merge deletes rows by their positions (``merge-on-read``), or writes their files again.
    :param commit: whether each table is committed by itself (``table``), or all tables of a batch at once (``batch``),
        which a REST catalog can do.
    :param storage_connection: Airflow connection of type ``aws`` with the object store's address and secrets; not
        needed where the catalog hands out credentials.
    :param storage_options: further options of the store; no secrets.
    :param names: whether databases and tables are named as the source spells them (``exact``), or in lower case of
        letters, digits and underscores (``safe``); None for what suits the kind of the catalog.
    """

    warehouse: str = ""
    connection: str | None = None
    namespace: str = ""
    writes: str = "merge-on-read"
    commit: str = "table"
    storage_connection: str | None = None
    storage_options: dict[str, str] = field(default_factory=dict)
    type: str = "iceberg"
    register = None
    names: str | None = None
    partitions = True

    def __post_init__(self) -> None:
        checks = Checks("sink")
        checks.choice("type", self.type, ["iceberg"])
        checks.choice("writes", self.writes, WRITES)
        _check_names(checks, self.names)
        checks.choice("commit", self.commit, ("table", "batch"))
        if self.commit == "batch" and self.connection is None:
            checks.problem("commit", "a batch is committed at once by a REST catalog only: name its connection")
        checks.connection("connection", self.connection, optional=True)
        if self.namespace != "":
            checks.text("namespace", self.namespace)
        if self.warehouse != "" or self.connection is None:
            check_store(checks, self.warehouse, self.storage_connection, self.storage_options, root_key="warehouse")
        checks.raise_any()
        warehouse = canonical_root(self.warehouse) if self.warehouse else ""
        if self.connection is None and not warehouse.startswith("/"):
            checks.problem("connection", "is missing; without one the warehouse is a local folder")
            checks.raise_any()
        object.__setattr__(self, "warehouse", warehouse)
        object.__setattr__(self, "storage_options", {key: str(value) for key, value in self.storage_options.items()})

    @property
    def root(self) -> str:
        """Return what all tables lie below, in words of the sink."""
        return self.warehouse or f"iceberg://{self.connection}"

    @property
    def catalog(self) -> str | None:
        """Return the connection of the catalog."""
        return self.connection

    def own_lake(self) -> Lake:
        """Return the lake of a pipeline that states none: in the warehouse."""
        if not self.warehouse:
            return Lake()
        return Lake(self.warehouse, self.storage_connection, dict(self.storage_options))

    def property_problem(self, name: str, value: str) -> str | None:
        """Return why the tables cannot have a property, None where they can."""
        return iceberg_problem(name, value)

    def options(self) -> dict[str, str]:
        """Return the options of the tables' kind that no connection holds."""
        catalog = {}
        if self.connection is None:
            catalog = {"iceberg.type": "sql", "iceberg.uri": f"sqlite:///{self.warehouse}/catalog.db"}
        if self.warehouse:
            catalog["iceberg.warehouse"] = (
                f"file://{self.warehouse}" if self.warehouse.startswith("/") else self.warehouse
            )
        own = {"namespace": self.namespace, "writes": self.writes, "commit": self.commit}
        if self.names:
            own["names"] = self.names
        return {**self.storage_options, **catalog, **own}

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "type": self.type,
            "warehouse": self.warehouse,
            "connection": self.connection,
            "namespace": self.namespace,
            "writes": self.writes,
            "commit": self.commit,
            "names": self.names,
            "storage_connection": self.storage_connection,
            "storage_options": dict(self.storage_options),
        }


def store_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a sink of Delta tables that are those of its object store."""
    return {name: value for name, value in options.items() if name not in _OF_TABLES}


def _check_names(checks: Checks, names: object) -> None:
    if names is not None:
        checks.choice("names", names, NAMES)


Sink: TypeAlias = DeltaSink | IcebergSink

SECTIONS: dict[str, type[Sink]] = {"DeltaSink": DeltaSink, "IcebergSink": IcebergSink}
"""The sections of sinks by the names that ``sink_kinds.SINKS`` gives."""
