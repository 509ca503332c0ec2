# SPDX-License-Identifier: Apache-2.0
"""Import what a command and its inline engine import; each command is a fork of the process that did so."""

from __future__ import annotations

import gc
import importlib
import pkgutil

from spark_jobs.workers.task_transport import shut_out_pandas

_OWN = ("batch", "commands", "connections", "core", "engine", "ledger", "sources")
_HEAVY = ("airflow_provider_cdc.connections.settings", "spark_jobs.sinks.iceberg")  # imports Airflow; PyIceberg
_LIBRARIES = (
    "confluent_kafka.admin",
    "deltalake",
    "numpy.ma",
    "pyarrow.acero",
    "pyarrow.dataset",
    "pyroaring",
    "sqlalchemy.dialects.sqlite",
    "tests.services.forked",
    "yaml",
)


def _modules() -> list[str]:
    """Return the modules to import: those of the commands, and of Spark's side what runs without Spark."""
    own = [name for part in _OWN for name in _below(f"airflow_provider_cdc.{part}")]
    return [name for name in [*own, *_below("spark_jobs"), *_LIBRARIES] if not name.startswith(_HEAVY)]


def _below(package: str) -> list[str]:
    folders = importlib.import_module(package).__path__
    return [module.name for module in pkgutil.walk_packages(folders, f"{package}.")]


shut_out_pandas()  # as an engine does, before anything makes arrays
for _name in _modules():
    importlib.import_module(_name)
gc.freeze()
