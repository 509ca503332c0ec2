# SPDX-License-Identifier: Apache-2.0
"""Wait in the triggerer until tables hold everything the source committed before a time."""

from __future__ import annotations

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.triggers.condition import ConditionTrigger
from airflow_provider_cdc.watch.applied import AppliedCondition


class CdcAppliedTrigger(ConditionTrigger):
    """Wait until tables hold everything that the source committed before ``until``.

    Its arguments are those of ``AppliedCondition``.
    """

    def condition(self, pipeline: CdcPipeline) -> AppliedCondition:
        """Return what is waited for."""
        return AppliedCondition(pipeline, **self.arguments)
