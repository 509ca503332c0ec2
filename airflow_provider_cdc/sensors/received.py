# SPDX-License-Identifier: Apache-2.0
"""Wait until everything the source committed before a time is in Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.batch.arguments import PipelineLike, as_instant, as_pipeline
from airflow_provider_cdc.core.errors import CdcError, ConfigurationError
from airflow_provider_cdc.operators.pipeline import task_try
from airflow_provider_cdc.sensors.condition import DEFERRABLE, ConditionSensor

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_cdc.core.config import CdcPipeline
    from airflow_provider_cdc.triggers.received import CdcReceivedTrigger
    from airflow_provider_cdc.watch.received import ReceivedCondition


class CdcReceivedSensor(ConditionSensor):
    """Wait until every partition of a pipeline is known to hold everything the source committed before a time.

    It reads the ends of partitions by assignment, joins no consumer group and commits nothing. An error of the
    configuration fails the task, also with ``soft_fail``.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file. (templated)
    :param until: the time. (templated)
    :param deferrable: wait in the triggerer; ``timeout`` and ``execution_timeout`` hold there too.
    """

    template_fields: Sequence[str] = ("pipeline", "until")

    def __init__(
        self,
        *,
        pipeline: PipelineLike,
        until: str | datetime,
        deferrable: bool = DEFERRABLE,
        **kwargs: Any,
    ) -> None:
        super().__init__(pipeline=pipeline, deferrable=deferrable, **kwargs)
        self.until = until

    def condition(self, pipeline: CdcPipeline) -> ReceivedCondition:
        """Return what is waited for."""
        from airflow_provider_cdc.watch.received import ReceivedCondition

        until = as_instant(self.until)
        if until is None:
            raise ConfigurationError(["until: a sensor needs a time"])
        return ReceivedCondition(pipeline, until.isoformat())

    def note_failure(self, code: str, context: Context) -> None:
        """Record in the ledger that no batch was tried: the sync behind the sensor does not run."""
        from airflow_provider_cdc.batch.attempts import note_attempt

        with suppress(CdcError, OSError):  # an invalid pipeline names no ledger
            note_attempt(as_pipeline(self.pipeline), code, task_try(context))

    def trigger_class(self) -> type[CdcReceivedTrigger]:
        """Return the trigger that waits for the condition."""
        from airflow_provider_cdc.triggers.received import CdcReceivedTrigger

        return CdcReceivedTrigger
