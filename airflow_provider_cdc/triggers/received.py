# SPDX-License-Identifier: Apache-2.0
"""Wait in the triggerer until a pipeline's log is complete up to a time."""

from __future__ import annotations

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.triggers.condition import ConditionTrigger
from airflow_provider_cdc.watch.received import ReceivedCondition


class CdcReceivedTrigger(ConditionTrigger):
    """Wait until everything that the source committed before ``until`` (ISO time) is in Kafka."""

    def condition(self, pipeline: CdcPipeline) -> ReceivedCondition:
        """Return what is waited for."""
        return ReceivedCondition(pipeline, **self.arguments)
