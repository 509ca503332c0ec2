# SPDX-License-Identifier: Apache-2.0
"""Show what the next batch of a pipeline would do, for people who have to approve it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException, DownstreamTasksSkipped

from airflow_provider_cdc.batch.arguments import PipelineLike
from airflow_provider_cdc.core.errors import CdcError, ConfigurationError
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.engine.stopper import Stopper
from airflow_provider_cdc.operators.pipeline import PipelineOperator, airflow_errors, task_try

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_cdc.batch.window import Until
    from airflow_provider_cdc.core.config import CdcPipeline

_SHOWN = 50
_KINDS = ("destructive", "unknown", "barrier", "mapping")


class CdcPlanOperator(PipelineOperator):
    """Return what the next batch would read, and which schema changes it would apply; write nothing but a job.

    The result has ``status`` (``new``, ``planned``, ``done`` or ``nothing_to_do``), ``records``, ``start``, ``end``,
    ``holds``, the first 50 of ``ddl`` with ``table``, ``kind`` and ``text``, and ``ddl_kinds``. ``ddl`` is null where
    the tool writes DDL among the rows: only a batch reads those.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file. (templated)
    :param until: as for ``CdcSyncOperator``. (templated)
    :param fail_on: kinds of schema changes that fail the task: ``destructive`` (rows, columns or a table go),
        ``unknown`` (parks its table), ``barrier`` (stored values or the key change), ``mapping``.
    :param explain: also land and resolve the batch, in a process of the worker and without a commit; ``explain`` of the
        result is what it would do: changes and files by table, schema changes, values that do not fit, tables that
        would park.
    :param stage: plan the batch in earnest and write its job to the lake, for the operator of any platform that
        follows; ``fail_on`` and ``explain`` look at it then, and a batch that is refused stays planned. Each member of
        the result is an output: ``output["arguments"]``. ``status`` is ``staged``, or ``done`` where nothing has to be
        run; tasks that follow are skipped then, but ``CdcPublishOperator``. The same request again returns the same,
        until its job failed.
    :param accept_loss: with ``stage``, as for ``CdcSyncOperator``.
    :param new_generation: the same. (templated)
    """

    template_fields: Sequence[str] = ("pipeline", "until", "new_generation")
    ui_color = "#ede9fe"

    def __init__(
        self,
        *,
        pipeline: PipelineLike,
        until: str | datetime | None = None,
        fail_on: Sequence[str] = (),
        explain: bool = False,
        stage: bool = False,
        accept_loss: bool = False,
        new_generation: str | None = None,
        **kwargs: Any,
    ) -> None:
        # an output of its own for each member: other operators take them one by one, as they are
        super().__init__(pipeline=pipeline, **{"multiple_outputs": stage, **kwargs})
        self.until = until
        self.fail_on = fail_on
        self.explain = explain
        self.stage = stage
        self.accept_loss = accept_loss
        self.new_generation = new_generation
        self._stopper = Stopper()

    def execute(self, context: Context) -> dict[str, Any]:
        """Return the plan."""
        from airflow_provider_cdc.batch.window import choose_until

        with airflow_errors():
            unknown = [kind for kind in self.fail_on if kind not in _KINDS]
            if unknown:
                raise ConfigurationError([f"fail_on: {', '.join(unknown)}: expected {', '.join(_KINDS)}"])
            pipeline = self.configured(context)
            until = choose_until(self.until, context)
            if not self.stage:
                return self._preview(context, pipeline, until)
            staged = self._staged(context, pipeline, until)
            # of the batch that was staged: another one may have had fewer changes
            shown = staged["status"] == "staged" and (self.fail_on or self.explain)
            plan = self._preview(context, pipeline, until) if shown else {}
        return self._skipping(context, {**plan, **staged})

    def on_kill(self) -> None:
        """Stop planning."""
        self._stopper("the task was killed")

    def _preview(self, context: Context, pipeline: CdcPipeline, until: Until) -> dict[str, Any]:
        from airflow_provider_cdc.batch.preview import preview

        plan = preview(pipeline, until.at, explained=self.explain, say=self._say)
        ddl = plan.get("ddl") or []
        self.log.info("%s, %s: %s, up to %s records", pipeline.name, until, plan["status"], plan["records"])
        for change in ddl:
            self.log.info("DDL, %s: %s", change["kind"], printable(change["text"]))
        plan |= {"ddl_kinds": sorted({str(change["kind"]) for change in ddl}), "ddl_total": len(ddl)}
        if plan.get("ddl") is not None:
            plan["ddl"] = [{**change, "kind": str(change["kind"])} for change in ddl[:_SHOWN]]
        refused = [change for change in ddl if change["kind"] in self.fail_on]
        if refused:
            if "ti" in context and self.do_xcom_push:
                context["ti"].xcom_push("return_value", plan)
            texts = "; ".join(f"{change['kind']}: {change['text']}" for change in refused[:_SHOWN])
            raise AirflowFailException(printable(f"the next batch has schema changes that fail_on names: {texts}"))
        return plan

    def _staged(self, context: Context, pipeline: CdcPipeline, until: Until) -> dict[str, Any]:
        from airflow_provider_cdc.batch.attempts import failure_noted
        from airflow_provider_cdc.batch.staging import stage

        with failure_noted(pipeline, task_try(context), CdcError):
            return stage(
                pipeline,
                until=until.at,
                say=self._say,
                kill=self._stopper,
                owner=task_try(context),
                accept_loss=self.accept_loss,
                new_generation=self.new_generation or "",
            )

    def _skipping(self, context: Context, plan: dict[str, Any]) -> dict[str, Any]:
        """Return the plan; skip what would run it where nothing has to be run."""
        from airflow_provider_cdc.operators.publish import CdcPublishOperator

        if plan["status"] == "staged" or "ti" not in context:
            return plan
        kinds = {task: getattr(task, "operator_class", type(task)) for task in self.downstream_list}  # of mapped ones
        between = [task.task_id for task, kind in kinds.items() if not issubclass(kind, CdcPublishOperator)]
        if not between:
            return plan
        self.log.info("nothing has to be run: skipping %s", ", ".join(between))
        context["ti"].xcom_push("return_value", plan)
        raise DownstreamTasksSkipped(tasks=between)

    def _say(self, line: str) -> None:
        self.log.info("%s", printable(line))
