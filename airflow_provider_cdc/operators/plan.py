# SPDX-License-Identifier: Apache-2.0
"""Show what the next batch of a pipeline would do, for people who have to approve it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_cdc.batch.arguments import PipelineLike
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.operators.pipeline import PipelineOperator, airflow_errors

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

_SHOWN = 50
_KINDS = ("destructive", "unknown", "barrier", "mapping")


class CdcPlanOperator(PipelineOperator):
    """Return what the next batch would read, and which schema changes it would apply; write nothing.

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
    """

    template_fields: Sequence[str] = ("pipeline", "until")
    ui_color = "#ede9fe"

    def __init__(
        self,
        *,
        pipeline: PipelineLike,
        until: str | datetime | None = None,
        fail_on: Sequence[str] = (),
        explain: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(pipeline=pipeline, **kwargs)
        self.until = until
        self.fail_on = fail_on
        self.explain = explain

    def execute(self, context: Context) -> dict[str, Any]:
        """Return the plan."""
        from airflow_provider_cdc.batch.preview import preview
        from airflow_provider_cdc.batch.window import choose_until

        with airflow_errors():
            unknown = [kind for kind in self.fail_on if kind not in _KINDS]
            if unknown:
                raise ConfigurationError([f"fail_on: {', '.join(unknown)}: expected {', '.join(_KINDS)}"])
            pipeline = self.configured(context)
            until = choose_until(self.until, context)
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

    def _say(self, line: str) -> None:
        self.log.info("%s", printable(line))
