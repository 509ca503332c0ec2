# SPDX-License-Identifier: Apache-2.0
"""Maintain the tables and the change log of a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

from airflow_provider_cdc.batch.arguments import PipelineLike
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.engine.stopper import Stopper
from airflow_provider_cdc.operators.pipeline import PipelineOperator, airflow_errors, task_try

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context


class CdcMaintainOperator(PipelineOperator):
    """Put small files of the tables together, write checkpoints, remove what is older than ``policy.log_retention``.

    It may run next to batches. The change log is only shortened while nobody else works on the pipeline; ``busy`` of
    the result names who did. A table that cannot be maintained fails the task after the others are done.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file. (templated)
    :param purge: ``database.table`` of which every file goes that its newest version does not have, at once, and
        nothing else is done: nobody can read an older version then. The task fails while somebody else works on the
        pipeline. (templated)
    """

    template_fields: Sequence[str] = ("pipeline", "purge")
    ui_color = "#dcfce7"

    def __init__(self, *, pipeline: PipelineLike, purge: str = "", **kwargs: Any) -> None:
        super().__init__(pipeline=pipeline, **kwargs)
        self.purge = purge
        self._stopper = Stopper()

    def execute(self, context: Context) -> dict[str, Any]:
        """Return what was done: ``tables``, ``log``, ``states``, ``batches``, ``busy``."""
        from airflow_provider_cdc.batch.maintenance import maintain, maintenance_document, purge

        with airflow_errors():
            pipeline = self.configured(context)
            if self.purge:
                done = purge(pipeline, self.purge, say=self._say, kill=self._stopper, owner=task_try(context))
            else:
                done = maintain(pipeline, say=self._say, kill=self._stopper, owner=task_try(context))
        if self.purge and done.busy:
            raise AirflowException(printable(f"{self.purge} was not purged: {done.busy}"))
        failed = [table for table in done.tables if table.error is not None]
        if failed:
            texts = [f"{t.database}.{t.table}: {(t.error or {}).get('message')}" for t in failed]
            kind = AirflowException if all(table.transient for table in failed) else AirflowFailException
            raise kind(printable(f"tables could not be maintained: {'; '.join(texts)}"))
        return maintenance_document(pipeline, done)

    def on_kill(self) -> None:
        """Stop the process."""
        self._stopper("the task was killed")

    def _say(self, line: str) -> None:
        self.log.info("%s", printable(line))
