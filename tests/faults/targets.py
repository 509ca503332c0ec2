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
from tests.histories.source import Name
from tests.locations import table_location
from tests.services.s3 import S3

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
_CATALOG, _STORE = "fault_catalog", "fault_store"


@dataclass
class Target:
    """Tables of one pipeline.

    :param kind: one of :data:`TABLES`.
    :param root: a folder, or ``s3://...``.
    :param catalog: address of an Iceberg catalog, empty for the one in the warehouse.
    :param namespace: of the pipeline's own in the catalog.
    :param s3: the store of an ``s3://`` root; ``endpoint`` is how the pipeline's hosts reach it.
    """

    kind: str
    root: str
    catalog: str = ""
    namespace: str = ""
    s3: S3 | None = None
    endpoint: str = ""
    _section: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self._section = dict(TABLES[self.kind])
        self._section["root" if self._section["type"] == "delta" else "warehouse"] = self.root
        if self.catalog:
            self._section |= {"connection": _CATALOG, "namespace": self.namespace}

    def section(self) -> dict[str, Any]:
        """Return what stands below ``sink`` in the pipeline's file."""
        if self.s3 is None:
            return self._section
        options = {"aws_conditional_put": "etag"}
        return {**self._section, "storage_connection": _STORE, "storage_options": options}

    def environment(self) -> dict[str, str]:
        """Return the variables with the connections of a host."""
        variables = {}
        if self.s3 is not None:
            extra = {"endpoint_url": self.endpoint, "region_name": S3.region}
            store = {"conn_type": "aws", "login": S3.access_key, "password": S3.secret_key, "extra": extra}
            variables[_variable(_STORE)] = json.dumps(store)
        if self.catalog:
            extra = {"uri": self.catalog, "type": "rest" if self.kind in BY_REST else "sql"}
            variables[_variable(_CATALOG)] = json.dumps({"conn_type": "iceberg", "extra": extra})
        return variables

    def rows(self, name: Name) -> pa.Table | None:
        """Return the rows of a table, None where there is none."""
        sink = DeltaSink(**self._section) if self._section["type"] == "delta" else IcebergSink(**self._section)
        options = sink.options()
        if self.catalog:
            options |= {"iceberg.type": "rest" if self.kind in BY_REST else "sql", "iceberg.uri": self.catalog}
        if self.s3 is not None:
            options |= self.s3.storage_options
        opened = importlib.import_module(SINKS[sink.type].writer).open_sink(options)
        table = opened.open(table_location(self.root, *name))
        return table.rows() if table.exists else None


def _variable(connection: str) -> str:
    return f"AIRFLOW_CONN_{connection.upper()}"
