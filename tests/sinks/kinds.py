# SPDX-License-Identifier: Apache-2.0
"""Name the kinds of tables that tests run over, each with the options of a sink whose tables lie below a folder."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path

from airflow_provider_cdc.core.config import DeltaSink, IcebergSink
from airflow_provider_cdc.core.config.sinks.kinds import SINKS
from spark_jobs.sinks.contract import Sink, Stored
from tests.services.rest_catalog import shared_catalog

OPTIONS: Mapping[str, Callable[[Path], dict[str, str]]] = {
    "delta": lambda root: {},
    "delta merge-on-read": lambda root: DeltaSink(str(root), writes="merge-on-read").options(),
    "iceberg": lambda root: IcebergSink(str(root)).options(),
    "iceberg copy-on-write": lambda root: IcebergSink(str(root), writes="copy-on-write").options(),
    "iceberg rest": lambda root: {**shared_catalog().options(), "namespace": f"n{abs(hash(root))}"},
    "iceberg at once": lambda root: {**options_of("iceberg rest", root), "commit": "batch"},
    "parquet folder": lambda root: {},
}


def type_of(kind: str) -> str:
    """Return ``sink.type`` of a kind."""
    return kind.partition(" ")[0]


def sink_of(kind: str, root: Path) -> Sink[Stored]:
    """Return a sink of a kind."""
    sink: Sink[Stored] = importlib.import_module(SINKS[type_of(kind)].writer).open_sink(options_of(kind, root))
    return sink


def options_of(kind: str, root: Path) -> dict[str, str]:
    """Return the options of a sink of a kind."""
    return OPTIONS[kind](root)
