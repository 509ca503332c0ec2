# SPDX-License-Identifier: Apache-2.0
"""Wait until tables hold everything the source committed before a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from airflow_provider_cdc.batch.arguments import PipelineLike
from airflow_provider_cdc.sensors.condition import DEFERRABLE
from airflow_provider_cdc.sensors.until import UntilSensor


class CdcAppliedSensor(UntilSensor):
    """Wait until tables of a pipeline hold everything the source committed before a time.

    It reads only the ledger: the sync may run in another DAG, and Kafka need not be reachable. Only requests that named
    a time count; a sync of "what is there now" names none.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file. (templated)
    :param until: the time. Without it the run decides, by the rule of ``CdcSyncOperator``: the end of its data
        interval, else the time in the asset event that started the run, else now. ``now`` is what the newest batch
        holds. (templated)
    :param tables: names ``database.table`` to wait for; parked tables among the others do not matter. Without names all
        tables of the pipeline count. (templated)
    :param max_parked: number of tables that may be parked or wait, where no tables are named.
    :param deferrable: wait in the triggerer; ``timeout`` and ``execution_timeout`` hold there too.
    """

    condition = "applied"

    template_fields: Sequence[str] = ("pipeline", "until", "tables")

    def __init__(
        self,
        *,
        pipeline: PipelineLike,
        until: str | datetime | None = None,
        tables: Sequence[str] | None = None,
        max_parked: int = 0,
        deferrable: bool = DEFERRABLE,
        **kwargs: Any,
    ) -> None:
        super().__init__(pipeline=pipeline, until=until, deferrable=deferrable, **kwargs)
        self.tables = tables
        self.max_parked = max_parked

    def arguments(self) -> dict[str, Any]:
        """Return the condition's arguments."""
        return {"until": self.until_text(), "tables": self.tables, "max_parked": self.max_parked}
