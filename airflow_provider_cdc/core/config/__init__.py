# SPDX-License-Identifier: Apache-2.0
"""Define a pipeline and its parts (source, tables, sink, policy) as plain data that is cheap to import."""

from __future__ import annotations

from airflow_provider_cdc.core.config.column_rules import ColumnRules
from airflow_provider_cdc.core.config.lake import Lake
from airflow_provider_cdc.core.config.pipeline import CdcPipeline
from airflow_provider_cdc.core.config.policy import RunPolicy, SparkSettings
from airflow_provider_cdc.core.config.sinks.delta import DeltaSink
from airflow_provider_cdc.core.config.sinks.iceberg import IcebergSink
from airflow_provider_cdc.core.config.source import CanalSource, FilesSource, KafkaSource
from airflow_provider_cdc.core.config.tables import TableRule, TableRules
from airflow_provider_cdc.core.config.target import TargetRule

__all__ = [
    "CanalSource",
    "CdcPipeline",
    "ColumnRules",
    "DeltaSink",
    "FilesSource",
    "IcebergSink",
    "KafkaSource",
    "Lake",
    "RunPolicy",
    "SparkSettings",
    "TableRule",
    "TableRules",
    "TargetRule",
]
