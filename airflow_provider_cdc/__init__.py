# SPDX-License-Identifier: Apache-2.0
"""CDC logs in Kafka to lakehouse tables equal to the source, in bounded, repeatable batches.

Public names are lazy: provider discovery imports this package while Airflow's configuration is still loading.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from airflow_provider_cdc.core.config import (
        CanalSource,
        CdcPipeline,
        ColumnRules,
        DeltaSink,
        FilesSource,
        IcebergSink,
        KafkaSource,
        Lake,
        RunPolicy,
        TableRule,
        TableRules,
        TargetRule,
    )
    from airflow_provider_cdc.hooks.canal import CanalHook
    from airflow_provider_cdc.hooks.kafka import KafkaProgressHook
    from airflow_provider_cdc.hooks.ledger import CdcLedgerHook
    from airflow_provider_cdc.hooks.pipeline import CdcHook
    from airflow_provider_cdc.operators.approval import CdcApprovalOperator
    from airflow_provider_cdc.operators.approve import CdcApproveOperator
    from airflow_provider_cdc.operators.canal import CanalDrainOperator
    from airflow_provider_cdc.operators.check import CdcCheckOperator
    from airflow_provider_cdc.operators.doctor import CdcDoctorOperator
    from airflow_provider_cdc.operators.maintain import CdcMaintainOperator
    from airflow_provider_cdc.operators.plan import CdcPlanOperator
    from airflow_provider_cdc.operators.publish import CdcPublishOperator
    from airflow_provider_cdc.operators.rebuild import CdcRebuildOperator
    from airflow_provider_cdc.operators.replay import CdcReplayOperator
    from airflow_provider_cdc.operators.sync import CdcSyncOperator
    from airflow_provider_cdc.operators.table_state import CdcTableStateOperator
    from airflow_provider_cdc.operators.verify import CdcVerifyOperator
    from airflow_provider_cdc.sensors.applied import CdcAppliedSensor
    from airflow_provider_cdc.sensors.health import CdcHealthSensor
    from airflow_provider_cdc.sensors.lag import CdcLagSensor
    from airflow_provider_cdc.sensors.received import CdcReceivedSensor
    from airflow_provider_cdc.sensors.schema_change import CdcSchemaChangeSensor
    from airflow_provider_cdc.sources.canal_targets import KafkaTarget, LandingFolder
    from airflow_provider_cdc.surface.assets import cdc_asset
    from airflow_provider_cdc.surface.checks import (
        Freshness,
        NoContradictions,
        NoParked,
        QuarantineBelow,
        RowCount,
        SourceEquals,
    )
    from airflow_provider_cdc.surface.links import CdcBatchLink, CdcPipelineLink
    from airflow_provider_cdc.surface.notifier import CdcNotifier
    from airflow_provider_cdc.surface.retries import CdcRetryPolicy
    from airflow_provider_cdc.task_group import CdcDag, cdc_task_group
    from airflow_provider_cdc.triggers.watcher import (
        CdcLagExceededTrigger,
        CdcNewRecordsTrigger,
        CdcTableParkedTrigger,
    )

_HOMES = {
    "CanalDrainOperator": "airflow_provider_cdc.operators.canal",
    "KafkaTarget": "airflow_provider_cdc.sources.canal_targets",
    "LandingFolder": "airflow_provider_cdc.sources.canal_targets",
    "CanalHook": "airflow_provider_cdc.hooks.canal",
    "CanalSource": "airflow_provider_cdc.core.config",
    "CdcPipeline": "airflow_provider_cdc.core.config",
    "DeltaSink": "airflow_provider_cdc.core.config",
    "FilesSource": "airflow_provider_cdc.core.config",
    "IcebergSink": "airflow_provider_cdc.core.config",
    "KafkaSource": "airflow_provider_cdc.core.config",
    "Lake": "airflow_provider_cdc.core.config",
    "RunPolicy": "airflow_provider_cdc.core.config",
    "ColumnRules": "airflow_provider_cdc.core.config",
    "TableRule": "airflow_provider_cdc.core.config",
    "TableRules": "airflow_provider_cdc.core.config",
    "TargetRule": "airflow_provider_cdc.core.config",
    "CdcHook": "airflow_provider_cdc.hooks.pipeline",
    "CdcLedgerHook": "airflow_provider_cdc.hooks.ledger",
    "KafkaProgressHook": "airflow_provider_cdc.hooks.kafka",
    "CdcCheckOperator": "airflow_provider_cdc.operators.check",
    "CdcApprovalOperator": "airflow_provider_cdc.operators.approval",
    "CdcApproveOperator": "airflow_provider_cdc.operators.approve",
    "CdcDoctorOperator": "airflow_provider_cdc.operators.doctor",
    "CdcMaintainOperator": "airflow_provider_cdc.operators.maintain",
    "CdcPlanOperator": "airflow_provider_cdc.operators.plan",
    "CdcPublishOperator": "airflow_provider_cdc.operators.publish",
    "CdcRebuildOperator": "airflow_provider_cdc.operators.rebuild",
    "CdcVerifyOperator": "airflow_provider_cdc.operators.verify",
    "CdcReplayOperator": "airflow_provider_cdc.operators.replay",
    "CdcDag": "airflow_provider_cdc.task_group",
    "cdc_task_group": "airflow_provider_cdc.task_group",
    "Freshness": "airflow_provider_cdc.surface.checks",
    "NoContradictions": "airflow_provider_cdc.surface.checks",
    "NoParked": "airflow_provider_cdc.surface.checks",
    "QuarantineBelow": "airflow_provider_cdc.surface.checks",
    "RowCount": "airflow_provider_cdc.surface.checks",
    "SourceEquals": "airflow_provider_cdc.surface.checks",
    "CdcSyncOperator": "airflow_provider_cdc.operators.sync",
    "CdcAppliedSensor": "airflow_provider_cdc.sensors.applied",
    "CdcHealthSensor": "airflow_provider_cdc.sensors.health",
    "CdcLagSensor": "airflow_provider_cdc.sensors.lag",
    "cdc_asset": "airflow_provider_cdc.surface.assets",
    "CdcReceivedSensor": "airflow_provider_cdc.sensors.received",
    "CdcSchemaChangeSensor": "airflow_provider_cdc.sensors.schema_change",
    "CdcTableStateOperator": "airflow_provider_cdc.operators.table_state",
    "CdcNotifier": "airflow_provider_cdc.surface.notifier",
    "CdcRetryPolicy": "airflow_provider_cdc.surface.retries",
    "CdcPipelineLink": "airflow_provider_cdc.surface.links",
    "CdcBatchLink": "airflow_provider_cdc.surface.links",
    "CdcLagExceededTrigger": "airflow_provider_cdc.triggers.watcher",
    "CdcNewRecordsTrigger": "airflow_provider_cdc.triggers.watcher",
    "CdcTableParkedTrigger": "airflow_provider_cdc.triggers.watcher",
}

__all__ = [
    "CanalDrainOperator",
    "CanalHook",
    "CanalSource",
    "CdcAppliedSensor",
    "CdcApprovalOperator",
    "CdcApproveOperator",
    "CdcBatchLink",
    "CdcCheckOperator",
    "CdcDag",
    "CdcDoctorOperator",
    "CdcHealthSensor",
    "CdcHook",
    "CdcLagExceededTrigger",
    "CdcLagSensor",
    "CdcLedgerHook",
    "CdcMaintainOperator",
    "CdcNewRecordsTrigger",
    "CdcNotifier",
    "CdcPipeline",
    "CdcPipelineLink",
    "CdcPlanOperator",
    "CdcPublishOperator",
    "CdcRebuildOperator",
    "CdcReceivedSensor",
    "CdcReplayOperator",
    "CdcRetryPolicy",
    "CdcSchemaChangeSensor",
    "CdcSyncOperator",
    "CdcTableParkedTrigger",
    "CdcTableStateOperator",
    "CdcVerifyOperator",
    "ColumnRules",
    "DeltaSink",
    "FilesSource",
    "Freshness",
    "IcebergSink",
    "KafkaProgressHook",
    "KafkaSource",
    "KafkaTarget",
    "Lake",
    "LandingFolder",
    "NoContradictions",
    "NoParked",
    "QuarantineBelow",
    "RowCount",
    "RunPolicy",
    "SourceEquals",
    "TableRule",
    "TableRules",
    "TargetRule",
    "__version__",
    "cdc_asset",
    "cdc_task_group",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
