# SPDX-License-Identifier: Apache-2.0
"""Run one batch of a pipeline as an Airflow task."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from airflow_provider_cdc.batch.arguments import PipelineLike, as_instant, as_pipeline
from airflow_provider_cdc.core.errors import CdcError, Transient
from airflow_provider_cdc.core.model.status import ResultStatus, TableStatus
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.engine.task import Stopper

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_cdc.batch.result import BatchResult

_SHOWN = 50
_LEFT_OUT = ("statements", "quarantine", "phases")  # of a result in XCom


class CdcSyncOperator(BaseOperator):
    """Bring a pipeline's tables up to a time: plan, land, apply, publish.

    The same request again (retry, clear, backfill) finds its batch done and returns the stored result. Every asset
    among the task's ``outlets`` gets the cut in its event's extra.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file.
    :param until: the tables then hold everything the source committed before it; empty means what is there
        now. (templated)
    :param fail_on_parked: whether parked tables fail the task, without retry, after the others are committed. Tables
        that wait for a schema change always fail it, with retry: the change may arrive meanwhile.
    :param new_generation: the record with which a new log of the source may begin, as the error
        ``source.new_generation`` names it. It approves this one record; a later run with it has no effect. (templated)
    """

    template_fields: Sequence[str] = ("until", "new_generation")
    ui_color = "#dbeafe"

    def __init__(
        self,
        *,
        pipeline: PipelineLike,
        until: str | datetime | None = None,
        fail_on_parked: bool = True,
        new_generation: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline
        self.until = until
        self.fail_on_parked = fail_on_parked
        self.new_generation = new_generation
        self._stopper = Stopper()

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the batch and return the small result."""
        from airflow_provider_cdc.batch.runner import run_batch

        try:
            pipeline, until = as_pipeline(self.pipeline), as_instant(self.until)
            result = run_batch(
                pipeline,
                until=until,
                say=self._say,
                kill=self._stopper,
                owner=_owner(context),
                new_generation=self.new_generation or "",
            )
        except CdcError as error:
            raise _airflow_error(error) from error
        if result.error is not None:
            raise _airflow_error(result.error)
        self._log_result(result)
        self._mark_assets(context, result)
        if result.status == ResultStatus.PARKED and self.fail_on_parked:
            parked = result.describe_unsettled(TableStatus.PARKED, _SHOWN)
            raise AirflowFailException(printable(f"batch {result.seq} is committed, but tables are parked: {parked}"))
        if result.status == ResultStatus.WAITING:
            waiting = result.describe_unsettled(TableStatus.WAITING, _SHOWN)
            raise AirflowException(printable(f"batch {result.seq} is committed, but tables wait: {waiting}"))
        return small(result)

    def on_kill(self) -> None:
        """Stop the engine."""
        self._stopper("the task was killed")

    def _log_result(self, result: BatchResult) -> None:
        changes = ", ".join(f"{count} {name}" for name, count in result.changes.items()) or "no row changes"
        self.log.info(
            "batch %s %s: %s records (%s), %s schema changes, %s tables, %s quarantined, %.1f s",
            result.seq, result.status, result.records, changes, result.schema_changes, len(result.tables),
            result.quarantined, result.seconds,
        )  # fmt: skip
        for statement in result.statements or ():
            self.log.info("DDL: %s", printable(" ".join(statement.split())))

    def _say(self, line: str) -> None:
        self.log.info("%s", printable(line))

    def _mark_assets(self, context: Context, result: BatchResult) -> None:
        events = context.get("outlet_events")
        for outlet in self.outlets if events is not None else ():
            if isinstance(outlet, Asset):
                events[outlet].extra = {"cdc": _event(result)}  # type: ignore[index]


def small(result: BatchResult) -> dict[str, Any]:
    """Return a result for XCom: numbers, and as many tables as people read."""
    numbers = {name: value for name, value in result.document().items() if name not in _LEFT_OUT}
    return {**numbers, "tables": numbers["tables"][:_SHOWN], "tables_total": len(result.tables)}


def _event(result: BatchResult) -> dict[str, Any]:
    versions = {table.name: table.version for table in result.tables[:_SHOWN]}
    return {
        "pipeline": result.pipeline,
        "seq": result.seq,
        "records": result.records,
        "cut": result.cut,
        "versions": versions,
    }


def _owner(context: Context) -> str | None:
    ti = context.get("ti")
    if ti is None:
        return None
    return f"task {ti.task_id} of DAG {ti.dag_id}, run {ti.run_id}, try {ti.try_number}"


def _airflow_error(error: CdcError) -> AirflowException:
    return AirflowException(str(error)) if isinstance(error, Transient) else AirflowFailException(str(error))
