# SPDX-License-Identifier: Apache-2.0
"""Describe Iceberg tables of a catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from airflow_provider_cdc.core.config.checks import Checks
from airflow_provider_cdc.core.config.lake import ON_S3, Lake, check_store
from airflow_provider_cdc.core.config.sinks.iceberg_options import PREFIX
from airflow_provider_cdc.core.config.sinks.names import WRITES, check_names
from airflow_provider_cdc.core.lake.roots import canonical_root

# properties that a pipeline may set
_PREFIXES = ("write.", "read.", "history.", "commit.")
_WORDS = ("comment", "owner")
# where files lie, what they are, and commits that nobody sees: writers and maintenance of ours count on what they do
_REFUSED = (
    "write.data.path",
    "write.delete.format.default",
    "write.folder-storage.path",
    "write.format.default",
    "write.location-provider.impl",
    "write.metadata.compression-codec",
    "write.metadata.path",
    "write.object-storage.",
    "write.parquet.compression-codec",
    "write.py-location-provider.impl",
    "write.wap.enabled",
)


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
        check_names(checks, self.names)
        checks.choice("commit", self.commit, ("table", "batch"))
        if self.commit == "batch" and self.connection is None:
            checks.problem("commit", "a batch is committed at once by a REST catalog only: name its connection")
        checks.connection("connection", self.connection, optional=True)
        if self.namespace != "":
            checks.text("namespace", self.namespace)
        if self.warehouse != "" or self.connection is None:
            where = self.warehouse, self.storage_connection, self.storage_options
            check_store(checks, *where, root_key="warehouse", schemes=ON_S3)
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
        return _property_problem(name, value)

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

    def naming(self, options: Mapping[str, str]) -> dict[str, str]:
        """Return those of all options that say how a table is named (``identifier_of``); no secrets."""
        return {name: options[name] for name in ("namespace", f"{PREFIX}type") if options.get(name)}

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)


def _property_problem(name: str, value: str) -> str | None:
    """Return why an Iceberg table cannot have a property, None where it can."""
    if name.startswith(_REFUSED):
        return "the pipeline's files and commits would not be as it says"
    if name.startswith(_PREFIXES) or name in _WORDS:
        return None
    known = ", ".join([*(f"{prefix}*" for prefix in _PREFIXES), *_WORDS])
    return f"is not a property that a pipeline may set; those are {known}"
