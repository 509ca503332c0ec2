# SPDX-License-Identifier: Apache-2.0
"""Wait in the triggerer until a run may work on its pipeline."""

from __future__ import annotations

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.triggers.condition import ConditionTrigger
from airflow_provider_cdc.watch.lease import LeaseCondition


class CdcLeaseTrigger(ConditionTrigger):
    """Wait until nobody works on the pipeline, and everything before ``window`` (two ISO times, or None) is applied."""

    def condition(self, pipeline: CdcPipeline) -> LeaseCondition:
        """Return what is waited for."""
        return LeaseCondition(pipeline, **self.arguments)
