# SPDX-License-Identifier: Apache-2.0
"""Wait in the triggerer until a run may work on its pipeline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from airflow.triggers.base import TriggerEvent

from airflow_provider_cdc.triggers.condition import CdcConditionTrigger


class CdcLeaseTrigger(CdcConditionTrigger):
    """Wait until nobody works on the pipeline, and everything before ``window`` (two ISO times, or None) is applied."""

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Pause before the first look, then yield one event: reached, timeout or failed.

        The operator has just looked. And Airflow's scheduler fails a task that runs again before it has processed that
        the task's process ended with the deferral.
        """
        await asyncio.sleep(max(0.0, min(self.poke_interval, self.deadline - time.time())))
        async for event in super().run():
            yield event
