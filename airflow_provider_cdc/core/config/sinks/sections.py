# SPDX-License-Identifier: Apache-2.0
"""List the sections of all kinds of sinks."""

from __future__ import annotations

from typing import TypeAlias

from airflow_provider_cdc.core.config.sinks.delta import DeltaSink
from airflow_provider_cdc.core.config.sinks.iceberg import IcebergSink

Sink: TypeAlias = DeltaSink | IcebergSink

SECTIONS: dict[str, type[Sink]] = {"DeltaSink": DeltaSink, "IcebergSink": IcebergSink}
"""The sections of sinks by the names that ``kinds.SINKS`` gives."""
