# SPDX-License-Identifier: Apache-2.0
"""Name what a round's pipeline writes: tables of some kind below a root, as its file, its hosts and a test see them."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.config import DeltaSink, IcebergSink
from airflow_provider_cdc.core.config.sinks.kinds import SINKS
from airflow_provider_cdc.core.model.safe_names import safe_name
from tests.faults.lakes import Lake
from tests.histories.source import Name
from tests.locations import table_location

TABLES: Mapping[str, Mapping[str, str]] = {
    "delta": {"type": "delta"},
    "delta merge-on-read": {"type": "delta", "writes": "merge-on-read"},
    "iceberg": {"type": "iceberg"},
    "iceberg copy-on-write": {"type": "iceberg", "writes": "copy-on-write"},
    "iceberg rest": {"type": "iceberg"},
    "iceberg at once": {"type": "iceberg", "commit": "batch"},
}
"""Kinds of tables: what a pipeline's file says of each."""

BY_REST = ("iceberg rest", "iceberg at once")
_CATALOG = "fault_catalog"


@dataclass
class Target:
    """Tables of one pipeline.

    :param kind: one of :data:`TABLES`.
    :param root: a folder, or an address in a store.
    :param catalog: address of an Iceberg catalog, empty for the one in the warehouse.
    :param namespace: of the pipeline's own in the catalog.
    :param lake: the store of the root, None for a folder.
    """

    kind: str
    root: str
    catalog: str = ""
    namespace: str = ""
    lake: Lake | None = None
    _section: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self._section = dict(TABLES[self.kind])
        self._section["root" if self._section["type"] == "delta" else "warehouse"] = self.root
        if self.catalog:
            self._section |= {"connection": _CATALOG, "namespace": self.namespace}

    def section(self) -> dict[str, Any]:
        """Return what stands below ``sink`` in the pipeline's file."""
        return self._section | (self.lake.address.section() if self.lake else {})

    def environment(self) -> dict[str, str]:
        """Return the variables with the connections of a host."""
        variables = self.lake.address.environment() if self.lake else {}
        if self.catalog:
            extra = {"uri": self.catalog, "type": "rest" if self.kind in BY_REST else "sql"}
            variables[f"AIRFLOW_CONN_{_CATALOG.upper()}"] = json.dumps({"conn_type": "iceberg", "extra": extra})
        return variables

    def rows(self, name: Name) -> pa.Table | None:
        """Return the rows of a table, None where there is none."""
        sink = DeltaSink(**self._section) if self._section["type"] == "delta" else IcebergSink(**self._section)
        options = sink.options()
        if self.catalog:
            options |= {"iceberg.type": "rest" if self.kind in BY_REST else "sql", "iceberg.uri": self.catalog}
        root = self.root
        if self.lake is not None:
            options |= self.lake.direct.storage_options()
            root = root.replace(self.lake.address.root, self.lake.direct.root)
            if self.lake.address.safe_names:
                name = safe_name(name[0]), safe_name(name[1])
        opened = importlib.import_module(SINKS[sink.type].writer).open_sink(options)
        table = opened.open(table_location(root, *name))
        return table.rows() if table.exists else None
