# SPDX-License-Identifier: Apache-2.0
"""Wait in the triggerer until a pipeline is at most so far behind the source."""

from __future__ import annotations

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.triggers.condition import ConditionTrigger
from airflow_provider_cdc.watch.lag import LagCondition


class CdcLagTrigger(ConditionTrigger):
    """Wait until a pipeline is at most so far behind the source; its arguments are those of ``LagCondition``."""

    def condition(self, pipeline: CdcPipeline) -> LagCondition:
        """Return what is waited for."""
        return LagCondition(pipeline, **self.arguments)
