"""The operator that carries out one batch of a pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from airflow_provider_cdc.core.errors import CdcError, Transient
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.engine.task import Stopper
from airflow_provider_cdc.pipelines import PipelineLike, as_instant, as_pipeline

if TYPE_CHECKING:
    from airflow.sdk import Context

_SHOWN = 50


class CdcSyncOperator(BaseOperator):
    """Brings a pipeline's tables up to a time: plan, land, apply, publish.

    The same request again (retry, clear, backfill) finds its batch done and returns the stored result. Every asset
    among the task's ``outlets`` gets the cut in its event's extra.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file.
    :param until: the tables then hold everything the source committed before it; empty means what is there
        now. (templated)
    :param fail_on_parked: whether parked tables fail the task, without retry, after the others are committed. Tables
        that wait for a schema change always fail it, with retry: the change may arrive meanwhile.
    :param new_generation: the record with which a new log of the source may begin, as the error
        ``source.new_generation`` names it. It approves this one begin: once done it does nothing. (templated)
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
        """Carry the batch out and return the small result."""
        from airflow_provider_cdc.batch import run_batch

        try:
            pipeline, until = as_pipeline(self.pipeline), as_instant(self.until)
            told = run_batch(
                pipeline,
                until=until,
                say=self._say,
                kill=self._stopper,
                owner=_owner(context),
                new_generation=self.new_generation or "",
            )
        except CdcError as error:
            raise _airflow_error(str(error), isinstance(error, Transient)) from error
        if told["status"] == "failed":
            raise _airflow_error(CdcError.text(told["error"]), told["transient"])
        self._tell(told)
        self._mark_assets(context, told)
        if told["status"] == "parked" and self.fail_on_parked:
            parked = "; ".join(f"{t['database']}.{t['table']}: {t['reason']}" for t in told["parked"][:_SHOWN])
            raise AirflowFailException(printable(f"batch {told['seq']} is committed, but tables are parked: {parked}"))
        if told["status"] == "waiting":
            waiting = "; ".join(f"{t['database']}.{t['table']}: {t['reason']}" for t in told["waiting"][:_SHOWN])
            raise AirflowException(printable(f"batch {told['seq']} is committed, but tables wait: {waiting}"))
        return small(told)

    def on_kill(self) -> None:
        """Stop the engine."""
        self._stopper("the task was killed")

    def _tell(self, told: Mapping[str, Any]) -> None:
        changes = ", ".join(f"{count} {name}" for name, count in told["changes"].items()) or "no row changes"
        self.log.info(
            "batch %s %s: %s records (%s), %s schema changes, %s tables, %s quarantined, %.1f s",
            told["seq"], told["status"], told["records"], changes, told["schema_changes"], len(told["tables"]),
            told["quarantined"], told["seconds"],
        )  # fmt: skip
        for statement in told.get("statements", ()):
            self.log.info("DDL: %s", printable(" ".join(statement.split())))

    def _say(self, line: str) -> None:
        self.log.info("%s", printable(line))

    def _mark_assets(self, context: Context, told: Mapping[str, Any]) -> None:
        events = context.get("outlet_events")
        for outlet in self.outlets if events is not None else ():
            if isinstance(outlet, Asset):
                events[outlet].extra = {"cdc": _event(told)}  # type: ignore[index]


def small(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result as XCom should carry it: numbers, and no more tables than people read."""
    kept = {name: value for name, value in told.items() if name not in ("statements", "quarantine", "phases")}
    return {**kept, "tables": list(told["tables"][:_SHOWN]), "tables_total": len(told["tables"])}


def _event(told: Mapping[str, Any]) -> dict[str, Any]:
    versions = {f"{t['database']}.{t['table']}": t.get("version") for t in told["tables"][:_SHOWN]}
    return {
        "pipeline": told["pipeline"],
        "seq": told["seq"],
        "records": told["records"],
        "cut": told.get("cut"),
        "versions": versions,
    }


def _owner(context: Context) -> str | None:
    ti = context.get("ti")
    if ti is None:
        return None
    return f"task {ti.task_id} of DAG {ti.dag_id}, run {ti.run_id}, try {ti.try_number}"


def _airflow_error(text: str, transient: bool) -> AirflowException:
    return AirflowException(text) if transient else AirflowFailException(text)
