# SPDX-License-Identifier: Apache-2.0
"""Import what a batch of a server imports: the fork server loads this module before its first fork."""

from __future__ import annotations

import contextlib
import gc
import importlib

from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.engine import kept_spark
from airflow_provider_cdc.engine.payload import payload
from airflow_provider_cdc.serving.imports import import_batches

# what Airflow imports to look up a connection in its database, some of it in some versions only
_AIRFLOW = (
    "airflow.providers.common.compat.sdk",
    "airflow.secrets.metastore",
    "airflow.sdk.bases.hook",
    "airflow.sdk.definitions.connection",
    "airflow.sdk.execution_time.supervisor",
)

# what a driver of Spark imports, the last to see whether numpy is there
_SPARK = ("py4j.clientserver", "pyspark.java_gateway", "pyspark.testing")

import_batches("serving")
with contextlib.suppress(CdcError):  # a cache that cannot be written: batches that need it say so
    kept_spark.loaded = payload()
importlib.import_module("airflow.models").import_all_models()
for _name in (*_AIRFLOW, *_SPARK):
    with contextlib.suppress(ImportError):
        importlib.import_module(_name)
gc.freeze()  # they stay, and each look of the garbage collector at them costs
