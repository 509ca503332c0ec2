# SPDX-License-Identifier: Apache-2.0
"""Wait until everything the source committed before a time is in Kafka."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue, conf
from airflow.sdk.exceptions import AirflowFailException, AirflowSensorTimeout

from airflow_provider_cdc.batch.arguments import PipelineLike, as_instant, as_pipeline
from airflow_provider_cdc.core.errors import CdcError, ConfigurationError, Transient

if TYPE_CHECKING:
    from airflow.sdk import Context

_GRACE = timedelta(seconds=60)
"""Time after the trigger's own timeout, which says why; Airflow's timeout then is for a trigger that is gone."""


class CdcReceivedSensor(BaseSensorOperator):
    """Wait until every partition of a pipeline is known to hold everything the source committed before a time.

    It reads the ends of partitions by assignment, joins no consumer group and commits nothing.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file.
    :param until: the time. (templated)
    :param deferrable: wait in the triggerer.
    """

    template_fields: Sequence[str] = ("until",)
    ui_color = "#e0f2fe"

    def __init__(
        self,
        *,
        pipeline: PipelineLike,
        until: str | datetime,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline
        self.until = until
        self.deferrable = deferrable

    def execute(self, context: Context) -> Any:
        """Check once; then wait here or in the triggerer."""
        if not self.deferrable:
            return super().execute(context)
        started = time.time()
        reached = self._poke_or_skip(context)
        if reached:
            return reached.xcom_value
        from airflow_provider_cdc.triggers.received import CdcReceivedTrigger

        pipeline, until = as_pipeline(self.pipeline), as_instant(self.until)
        assert until is not None
        trigger = CdcReceivedTrigger(
            pipeline=pipeline.to_dict(),
            until=until.isoformat(),
            poke_interval=float(self.poke_interval),
            deadline=started + float(self.timeout),
        )
        left = timedelta(seconds=max(0.0, float(self.timeout))) + _GRACE
        self.defer(trigger=trigger, method_name="execute_complete", timeout=left)

    def execute_complete(self, context: Context, event: dict[str, Any] | None = None) -> Any:
        """Return the trigger's answer, or raise its error."""
        answer = event or {}
        if answer.get("status") == "reached":
            self.log.info("%s", answer["told"])
            return answer["seen"]
        if answer.get("status") == "timeout":
            raise AirflowSensorTimeout(answer["told"])
        raise AirflowFailException(answer.get("told", "the trigger ended without an event"))

    def poke(self, context: Context) -> PokeReturnValue:
        """Check once."""
        from airflow_provider_cdc.batch.received import check_received
        from airflow_provider_cdc.hooks.kafka_log import KafkaLog

        try:
            pipeline, until = as_pipeline(self.pipeline), as_instant(self.until)
            if until is None:
                raise ConfigurationError(["until: a sensor needs a time"])
            status = check_received(pipeline, until, KafkaLog(pipeline.source.connection))
        except CdcError as error:
            if not isinstance(error, Transient):
                raise AirflowFailException(str(error)) from error
            self.log.warning("%s", error)
            return PokeReturnValue(False)
        self.log.info("%s", status.message)
        return PokeReturnValue(status.reached, status.document() if status.reached else None)

    def _poke_or_skip(self, context: Context) -> PokeReturnValue | None:
        from airflow.sdk.exceptions import AirflowSkipException

        try:
            poked = self.poke(context)
        except AirflowFailException as error:
            if self.soft_fail or self.never_fail:
                raise AirflowSkipException(f"skipped because soft_fail is set: {error}") from error
            raise
        return poked if poked else None
