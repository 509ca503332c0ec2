# SPDX-License-Identifier: Apache-2.0
"""Wait for something up to a time that the run decides, by the same rule as a sync."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.batch.arguments import PipelineLike
from airflow_provider_cdc.sensors.condition import DEFERRABLE, ConditionSensor

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_cdc.batch.window import Until
    from airflow_provider_cdc.watch.condition import Answer


class UntilSensor(ConditionSensor):
    """Wait for a condition up to a time.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file. (templated)
    :param until: the time, ``now``, or nothing: the run decides then, as of ``CdcSyncOperator``. (templated)
    :param deferrable: wait in the triggerer.
    """

    template_fields: Sequence[str] = ("pipeline", "until")

    def __init__(
        self,
        *,
        pipeline: PipelineLike,
        until: str | datetime | None = None,
        deferrable: bool = DEFERRABLE,
        **kwargs: Any,
    ) -> None:
        super().__init__(pipeline=pipeline, deferrable=deferrable, **kwargs)
        self.until = until
        self._until_of_run: Until | None = None

    def look(self, context: Context) -> Answer:
        """Look once; the first look chooses the time, and the trigger gets what was chosen."""
        self.until_of_run(context)
        return super().look(context)

    def until_of_run(self, context: Context) -> Until:
        """Return the time that is waited for, and say which rule chose it.

        :raises ConfigurationError: ``until`` is not a time.
        """
        from airflow_provider_cdc.batch.window import choose_until

        if self._until_of_run is None:
            self._until_of_run = choose_until(self.until, context)
            self.log.info("waiting for everything %s", self._until_of_run)
        return self._until_of_run

    def until_text(self) -> str | None:
        """Return the chosen time as ISO text, None for what is there now."""
        assert self._until_of_run is not None
        return None if self._until_of_run.at is None else self._until_of_run.at.isoformat()
