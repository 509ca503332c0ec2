# SPDX-License-Identifier: Apache-2.0
"""Import what a batch of a server imports: the fork server loads this module before its first fork."""

from __future__ import annotations

import contextlib
import gc
import importlib

from airflow_provider_cdc.serving.imports import import_batches

# what Airflow imports to look up a connection in its database, some of it in some versions only
_AIRFLOW = (
    "airflow.providers.common.compat.sdk",
    "airflow.secrets.metastore",
    "airflow.sdk.bases.hook",
    "airflow.sdk.definitions.connection",
    "airflow.sdk.execution_time.supervisor",
)

import_batches("serving")
importlib.import_module("airflow.models").import_all_models()
for _name in _AIRFLOW:
    with contextlib.suppress(ImportError):
        importlib.import_module(_name)
gc.freeze()  # they stay, and each look of the garbage collector at them costs
