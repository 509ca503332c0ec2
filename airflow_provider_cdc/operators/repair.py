# SPDX-License-Identifier: Apache-2.0
"""Hold what operators share that run a batch of repairs, which reads nothing new."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_cdc.core.model.status import ResultStatus
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.engine.stopper import Stopper
from airflow_provider_cdc.operators.pipeline import PipelineOperator, airflow_error, airflow_errors, task_try

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_cdc.batch.result import BatchResult
    from airflow_provider_cdc.core.config import CdcPipeline

_SHOWN = 50


class RepairOperator(PipelineOperator):
    """Run a batch that reads nothing new.

    It fails with retry while another run works on the pipeline, and without retry where a table is parked.
    """

    ui_color = "#fef3c7"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._stopper = Stopper()

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the batch and return the small result."""
        from airflow_provider_cdc.operators.sync_result import small

        with airflow_errors():
            pipeline = self.configured(context)
            result = self._run(pipeline, say=self._say, kill=self._stopper, owner=task_try(context))
        if result.error is not None:
            raise airflow_error(result.error)
        if result.status == ResultStatus.PARKED:
            raise not_for_all(result, _why(result))
        return small(result, _SHOWN)

    def _run(self, pipeline: CdcPipeline, **course: Any) -> BatchResult:
        """Run the batch.

        :param course: ``say``, ``kill`` and ``owner`` as of ``run_batch``.
        """
        raise NotImplementedError

    def on_kill(self) -> None:
        """Stop the engine."""
        self._stopper("the task was killed")

    def _say(self, line: str) -> None:
        self.log.info("%s", printable(line))


def not_for_all(result: BatchResult, reasons: str) -> AirflowFailException:
    """Return the error of a batch after which tables are parked."""
    return AirflowFailException(printable(f"batch {result.seq} is committed, but not for all tables: {reasons}"))


def _why(result: BatchResult) -> str:
    """Name the tables that are parked, or were not repaired, with their reasons."""
    tables = [*(result.parked or ()), *(table for table in result.tables if table.reason)]
    reasons = {table.name: table.reason for table in tables}
    return "; ".join(f"{name}: {reason}" for name, reason in list(reasons.items())[:_SHOWN])
