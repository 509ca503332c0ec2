# SPDX-License-Identifier: Apache-2.0
"""Wait until everything the source committed before a time is in Kafka."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.batch.arguments import as_pipeline
from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.operators.pipeline import task_try
from airflow_provider_cdc.sensors.until import UntilSensor

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_cdc.watch.condition import Answer


class CdcReceivedSensor(UntilSensor):
    """Wait until every partition of a pipeline is known to hold everything the source committed before a time.

    It reads the ends of partitions by assignment, joins no consumer group and commits nothing. An error of the
    configuration fails the task, also with ``soft_fail``.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file. (templated)
    :param until: the time. Without it the run decides, by the rule of ``CdcSyncOperator``: the end of its data
        interval, else the time in the asset event that started the run, else now. ``now`` waits for nothing: the sync
        takes what is in Kafka then. (templated)
    :param deferrable: wait in the triggerer; ``timeout`` and ``execution_timeout`` hold there too.
    """

    condition = "received"

    def look(self, context: Context) -> Answer:
        """Look once, unless the run asks for what is in Kafka now."""
        from airflow_provider_cdc.watch.condition import Answer

        until = self.until_of_run(context)
        if until.at is not None:
            return super().look(context)
        return Answer(True, f"nothing to wait for: {until.rule}", {"until": None, "received": None, "holds": []})

    def note_failure(self, code: str, context: Context) -> None:
        """Record in the ledger that no batch was tried: the sync behind the sensor does not run."""
        from airflow_provider_cdc.batch.attempts import note_attempt

        with suppress(CdcError, OSError):  # an invalid pipeline names no ledger
            note_attempt(as_pipeline(self.pipeline), code, task_try(context))

    def arguments(self) -> dict[str, Any]:
        """Return the condition's arguments."""
        return {"until": self.until_text()}
