# SPDX-License-Identifier: Apache-2.0
"""Wait until a pipeline is at most so far behind the source, or fail when it is further behind."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.batch.arguments import PipelineLike
from airflow_provider_cdc.sensors.condition import DEFERRABLE, ConditionSensor

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_cdc.watch.condition import Answer

_STREAK = "cdc_lag_streak"


class CdcLagSensor(ConditionSensor):
    """Wait until a pipeline is at most so far behind the source; with ``raise_above`` fail as soon as it is further.

    Seconds are those of the source's clock. A source that is idle is not behind, but only heartbeats tell it apart from
    a tool that is dead: set ``source.heartbeat_topic``. Without, a lag beyond the newest record's age is unknown.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file. (templated)
    :param max_lag: bound of the lag; a number is seconds; None for no bound in time. (templated)
    :param max_records: bound of the records in Kafka that are not applied; None for no bound in records.
    :param of: ``applied``: how far the tables are behind the source; ``received``: how far the log is.
    :param for_looks: number of looks in a row that must agree, against flapping.
    :param raise_above: fail, without retry, when the lag is above a bound; succeed when it is below.
    :param unknown: what an unknown lag means: ``wait``, ``pass`` (it counts as below) or ``fail``.
    :param deferrable: wait in the triggerer; ``timeout`` and ``execution_timeout`` hold there too.
    """

    condition = "lag"

    template_fields: Sequence[str] = ("pipeline", "max_lag")

    def __init__(
        self,
        *,
        pipeline: PipelineLike,
        max_lag: timedelta | float | str | None = None,
        max_records: int | None = None,
        of: str = "applied",
        for_looks: int = 1,
        raise_above: bool = False,
        unknown: str = "wait",
        deferrable: bool = DEFERRABLE,
        **kwargs: Any,
    ) -> None:
        super().__init__(pipeline=pipeline, deferrable=deferrable, **kwargs)
        self.max_lag = max_lag
        self.max_records = max_records
        self.of = of
        self.for_looks = for_looks
        self.raise_above = raise_above
        self.unknown = unknown

    def look(self, context: Context) -> Answer:
        """Look once; a rescheduled task goes on counting where its last process ended."""
        from airflow_provider_cdc.core.plan.lag import Verdict
        from airflow_provider_cdc.watch.lag import LagCondition

        store = context.get("task_state_store") if self.reschedule and self.for_looks > 1 else None
        if store is None:
            return super().look(context)
        condition = self.prepared()
        assert isinstance(condition, LagCondition)
        verdict, _, count = str(store.get(_STREAK) or "").partition(" ")
        if verdict:
            condition.streak = (Verdict(verdict), int(count))
        answer = condition.check()
        store.set(_STREAK, f"{condition.streak[0]} {condition.streak[1]}")
        return answer

    def arguments(self) -> dict[str, Any]:
        """Return the condition's arguments."""
        from airflow_provider_cdc.watch.lag import as_seconds

        names = ("max_records", "of", "for_looks", "raise_above", "unknown")
        return {"max_seconds": as_seconds("max_lag", self.max_lag), **{name: getattr(self, name) for name in names}}
