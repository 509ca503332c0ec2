# SPDX-License-Identifier: Apache-2.0
"""Wait in the triggerer until a schema change waits in the log."""

from __future__ import annotations

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.triggers.condition import ConditionTrigger
from airflow_provider_cdc.watch.schema_change import SchemaChangeCondition


class CdcSchemaChangeTrigger(ConditionTrigger):
    """Wait until a schema change waits in the log; its arguments are those of ``SchemaChangeCondition``."""

    def condition(self, pipeline: CdcPipeline) -> SchemaChangeCondition:
        """Return what is waited for."""
        return SchemaChangeCondition(pipeline, **self.arguments)
