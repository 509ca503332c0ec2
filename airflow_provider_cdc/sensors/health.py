# SPDX-License-Identifier: Apache-2.0
"""Wait until a pipeline is healthy."""

from __future__ import annotations

from typing import Any

from airflow_provider_cdc.batch.arguments import PipelineLike
from airflow_provider_cdc.sensors.condition import DEFERRABLE, ConditionSensor


class CdcHealthSensor(ConditionSensor):
    """Wait until a pipeline has no more parked tables, waiting tables and quarantined records than allowed.

    It reads only the ledger. With ``timeout=0`` it is a check that fails at once and names the tables.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file. (templated)
    :param parked: number of tables that may be parked.
    :param waiting: number of tables that may wait for a schema change; None for any.
    :param quarantined: number of records that the last batch may have put into quarantine; None for any.
    :param deferrable: wait in the triggerer; ``timeout`` and ``execution_timeout`` hold there too.
    """

    condition = "health"

    def __init__(
        self,
        *,
        pipeline: PipelineLike,
        parked: int = 0,
        waiting: int | None = None,
        quarantined: int | None = 0,
        deferrable: bool = DEFERRABLE,
        **kwargs: Any,
    ) -> None:
        super().__init__(pipeline=pipeline, deferrable=deferrable, **kwargs)
        self.parked = parked
        self.waiting = waiting
        self.quarantined = quarantined

    def arguments(self) -> dict[str, Any]:
        """Return the condition's arguments."""
        return {"parked": self.parked, "waiting": self.waiting, "quarantined": self.quarantined}
