# SPDX-License-Identifier: Apache-2.0
"""CDC logs in Kafka to lakehouse tables equal to the source, in bounded, repeatable batches.

Public names are lazy: provider discovery imports this package while Airflow's configuration is still loading.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from airflow_provider_cdc.assets import cdc_asset
    from airflow_provider_cdc.core.config import CanalSource, CdcPipeline, DeltaSink, KafkaSource, RunPolicy, TableRules
    from airflow_provider_cdc.hooks.canal import CanalHook
    from airflow_provider_cdc.hooks.kafka import KafkaProgressHook
    from airflow_provider_cdc.hooks.ledger import CdcLedgerHook
    from airflow_provider_cdc.hooks.pipeline import CdcHook
    from airflow_provider_cdc.operators.sync import CdcSyncOperator
    from airflow_provider_cdc.sensors.applied import CdcAppliedSensor
    from airflow_provider_cdc.sensors.health import CdcHealthSensor
    from airflow_provider_cdc.sensors.lag import CdcLagSensor
    from airflow_provider_cdc.sensors.received import CdcReceivedSensor
    from airflow_provider_cdc.triggers.watcher import (
        CdcLagExceededTrigger,
        CdcNewRecordsTrigger,
        CdcTableParkedTrigger,
    )

_HOMES = {
    "CanalHook": "airflow_provider_cdc.hooks.canal",
    "CanalSource": "airflow_provider_cdc.core.config",
    "CdcPipeline": "airflow_provider_cdc.core.config",
    "DeltaSink": "airflow_provider_cdc.core.config",
    "KafkaSource": "airflow_provider_cdc.core.config",
    "RunPolicy": "airflow_provider_cdc.core.config",
    "TableRules": "airflow_provider_cdc.core.config",
    "CdcHook": "airflow_provider_cdc.hooks.pipeline",
    "CdcLedgerHook": "airflow_provider_cdc.hooks.ledger",
    "KafkaProgressHook": "airflow_provider_cdc.hooks.kafka",
    "CdcSyncOperator": "airflow_provider_cdc.operators.sync",
    "CdcAppliedSensor": "airflow_provider_cdc.sensors.applied",
    "CdcHealthSensor": "airflow_provider_cdc.sensors.health",
    "CdcLagSensor": "airflow_provider_cdc.sensors.lag",
    "cdc_asset": "airflow_provider_cdc.assets",
    "CdcReceivedSensor": "airflow_provider_cdc.sensors.received",
    "CdcLagExceededTrigger": "airflow_provider_cdc.triggers.watcher",
    "CdcNewRecordsTrigger": "airflow_provider_cdc.triggers.watcher",
    "CdcTableParkedTrigger": "airflow_provider_cdc.triggers.watcher",
}

__all__ = [
    "CanalHook",
    "CanalSource",
    "CdcAppliedSensor",
    "CdcHealthSensor",
    "CdcHook",
    "CdcLagExceededTrigger",
    "CdcLagSensor",
    "CdcLedgerHook",
    "CdcNewRecordsTrigger",
    "CdcPipeline",
    "CdcReceivedSensor",
    "CdcSyncOperator",
    "CdcTableParkedTrigger",
    "DeltaSink",
    "KafkaProgressHook",
    "KafkaSource",
    "RunPolicy",
    "TableRules",
    "__version__",
    "cdc_asset",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
