# SPDX-License-Identifier: Apache-2.0
"""Import what a batch imports; a fork server loads this module before its first fork."""

from __future__ import annotations

import contextlib
import gc
import importlib
import pkgutil

from airflow_provider_cdc.engine.here import reach_spark_jobs

_PARTS = ("batch", "connections", "core", "engine", "ledger", "observability", "reporting", "sources")
_SELDOM = "spark_jobs.sinks.iceberg"  # PyIceberg is imported by batches whose tables need it
# what Airflow imports to look up a connection in its database, some of it in some versions only
_AIRFLOW = (
    "airflow.providers.common.compat.sdk",
    "airflow.secrets.metastore",
    "airflow.sdk.bases.hook",
    "airflow.sdk.definitions.connection",
    "airflow.sdk.execution_time.supervisor",
)
_FURTHER = (
    "airflow_provider_cdc.serving.batch",
    "confluent_kafka.admin",
    "deltalake",
    "numpy.ma",
    "pyarrow.acero",
    "pyarrow.dataset",
    "pyroaring",
    "spark_jobs.launch.run",
    "sqlalchemy.dialects.sqlite",
    "yaml",
)


def _below(package: str) -> list[str]:
    folders = importlib.import_module(package).__path__
    return [module.name for module in pkgutil.walk_packages(folders, f"{package}.")]


def _import_all() -> None:
    reach_spark_jobs()
    # as an engine does, before anything makes arrays
    importlib.import_module("spark_jobs.workers.task_transport").shut_out_pandas()
    own = [name for part in _PARTS for name in _below(f"airflow_provider_cdc.{part}")]
    for name in (*own, *_below("spark_jobs"), *_FURTHER):
        if not name.startswith(_SELDOM):
            importlib.import_module(name)
    importlib.import_module("airflow.models").import_all_models()
    for name in _AIRFLOW:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()  # they stay, and each look of the garbage collector at them costs


_import_all()
