# SPDX-License-Identifier: Apache-2.0
"""Import what batches and their inline engines import, for processes whose forks run them."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil

from airflow_provider_cdc.engine.here import reach_spark_jobs

_PACKAGE = "airflow_provider_cdc"
_PARTS = ("batch", "connections", "core", "engine", "ledger", "observability", "reporting", "sources")
_LATER = f"{_PACKAGE}.connections.settings"  # imports Airflow
# what their functions import
_LIBRARIES = (
    "confluent_kafka.admin",
    "numpy.ma",
    "pyarrow.acero",
    "pyarrow.dataset",
    "sqlalchemy.dialects.sqlite",
    "yaml",
)


def import_batches(*further: str) -> None:
    """Import all modules of batches but those that import Airflow, and leave out what this installation lacks.

    :param further: packages of the provider that are needed, too.
    """
    reach_spark_jobs()
    # as an engine does, before anything makes arrays
    importlib.import_module("spark_jobs.workers.task_transport").shut_out_pandas()
    own = [name for part in (*_PARTS, *further) for name in _below(f"{_PACKAGE}.{part}")]
    for name in (*own, *_below("spark_jobs"), "spark_jobs.launch.run", *_LIBRARIES):
        if name != _LATER:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def _below(package: str) -> list[str]:
    folders = importlib.import_module(package).__path__
    return [module.name for module in pkgutil.walk_packages(folders, f"{package}.", onerror=lambda name: None)]
