# SPDX-License-Identifier: Apache-2.0
"""Wait in the triggerer until a pipeline is healthy."""

from __future__ import annotations

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.triggers.condition import ConditionTrigger
from airflow_provider_cdc.watch.health import HealthCondition


class CdcHealthTrigger(ConditionTrigger):
    """Wait until a pipeline is healthy; its arguments are those of ``HealthCondition``."""

    def condition(self, pipeline: CdcPipeline) -> HealthCondition:
        """Return what is waited for."""
        return HealthCondition(pipeline, **self.arguments)
