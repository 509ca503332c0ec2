# SPDX-License-Identifier: Apache-2.0
"""Apply rows of the change log again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_cdc.batch.arguments import PipelineLike, as_instant
from airflow_provider_cdc.core.documents import Replay
from airflow_provider_cdc.core.model.status import ResultStatus, TableStatus
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.engine.task import Stopper
from airflow_provider_cdc.operators.pipeline import PipelineOperator, airflow_error, airflow_errors, task_try

if TYPE_CHECKING:
    from airflow.sdk import Context

_SHOWN = 50


class CdcReplayOperator(PipelineOperator):
    """Apply rows of the change log again, in a batch that reads nothing new; no table moves backwards.

    It fails with retry while another run works on the pipeline, and without retry where a table is parked.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file. (templated)
    :param tables: ``database.table`` of each; all tables if empty. (templated)
    :param since: source time of the first rows, a time or ISO text; None from the first on. (templated)
    :param until: source time behind the last rows; None up to the last. (templated)
    """

    template_fields: Sequence[str] = ("pipeline", "tables", "since", "until")
    ui_color = "#fef3c7"

    def __init__(
        self,
        *,
        pipeline: PipelineLike,
        tables: Sequence[str] = (),
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(pipeline=pipeline, **kwargs)
        self.tables = tables
        self.since = since
        self.until = until
        self._stopper = Stopper()

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the batch and return the small result."""
        from airflow_provider_cdc.batch.runner import run_replay
        from airflow_provider_cdc.operators.sync import small

        with airflow_errors():
            pipeline = self.configured(context)
            since, until = (_micros(as_instant(time, name)) for time, name in self._times())
            replay = Replay(list(self.tables), since, until)
            result = run_replay(pipeline, replay, say=self._say, kill=self._stopper, owner=task_try(context))
        if result.error is not None:
            raise airflow_error(result.error)
        if result.status == ResultStatus.PARKED:
            parked = result.describe_unsettled(TableStatus.PARKED, _SHOWN)
            raise AirflowFailException(printable(f"batch {result.seq} is committed, but tables are parked: {parked}"))
        return small(result, _SHOWN)

    def _times(self) -> list[tuple[object, str]]:
        return [(self.since, "since"), (self.until, "until")]

    def on_kill(self) -> None:
        """Stop the engine."""
        self._stopper("the task was killed")

    def _say(self, line: str) -> None:
        self.log.info("%s", printable(line))


def _micros(instant: datetime | None) -> int | None:
    return None if instant is None else (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
