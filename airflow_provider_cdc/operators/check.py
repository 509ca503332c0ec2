# SPDX-License-Identifier: Apache-2.0
"""Check a pipeline's tables as an Airflow task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from airflow.providers.common.compat.sdk import AirflowFailException, BaseHook

from airflow_provider_cdc.batch.arguments import PipelineLike
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.operators.pipeline import PipelineOperator, airflow_errors

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from airflow.providers.openlineage.extractors import OperatorLineage

    from airflow_provider_cdc.core.config import CdcPipeline
    from airflow_provider_cdc.core.documents import TableState
    from airflow_provider_cdc.core.model.check_result import CheckResult
    from airflow_provider_cdc.surface.checks import Check, CheckedTables


class CdcCheckOperator(PipelineOperator):
    """Run checks on a pipeline's tables, and fail with all that do not pass.

    It reads the ledger, the tables and, for ``RowCount`` and ``SourceEquals``, the source. Each result is in XCom,
    without values of rows.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file. (templated)
    :param checks: ``NoParked()``, ``NoContradictions()``, ``Freshness(max_age)``, ``RowCount(tolerance)``,
        ``SourceEquals(sample)``, ``QuarantineBelow(number)``, or a class of your own.
    :param tables: names as ``database.table``; all tables of the pipeline without them. (templated)
    :param source_conn_id: connection of the source database, of any type with a SQL hook. (templated)
    :param on_failure: ``fail`` the task without retry, or ``warn`` in the log.
    """

    template_fields: Sequence[str] = ("pipeline", "tables", "source_conn_id")
    ui_color = "#dcfce7"

    def __init__(
        self,
        *,
        pipeline: PipelineLike,
        checks: Sequence[Check],
        tables: Sequence[str] | None = None,
        source_conn_id: str | None = None,
        on_failure: Literal["fail", "warn"] = "fail",
        **kwargs: Any,
    ) -> None:
        super().__init__(pipeline=pipeline, **kwargs)
        self.checks = checks
        self.tables = tables
        self.source_conn_id = source_conn_id
        self.on_failure = on_failure
        self._done: tuple[Sequence[TableState], Sequence[CheckResult], str] = ((), (), "")

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Run the checks and return their results."""
        with airflow_errors():
            if self.on_failure not in ("fail", "warn"):
                raise ConfigurationError([f"on_failure: {self.on_failure!r} is neither fail nor warn"])
            checked = self._checked(self.configured(context))
            results = [check.run(checked) for check in self.checks]
        self._done = checked.states, results, checked.pipeline.sink.root
        failed = [result for result in results if not result.passed]
        for result in results:
            write = self.log.info if result.passed else self.log.warning
            write("%s: %s", "passed" if result.passed else "FAILED", printable(str(result)))
        documents = [result.document() for result in results]
        if failed and self.on_failure == "fail":
            if "ti" in context and self.do_xcom_push:
                context["ti"].xcom_push("return_value", documents)
            raise AirflowFailException(printable("; ".join(map(str, failed))))
        return documents

    def get_openlineage_facets_on_complete(self, task_instance: object) -> OperatorLineage[Any, Any]:
        """Return the tables with their checks; Airflow's OpenLineage provider asks for it."""
        from airflow_provider_cdc.observability.lineage import checks_lineage

        return checks_lineage(*self._done)

    def get_openlineage_facets_on_failure(self, task_instance: object) -> OperatorLineage[Any, Any]:
        """Return the same: a check that does not pass fails the task."""
        return self.get_openlineage_facets_on_complete(task_instance)

    def _checked(self, pipeline: CdcPipeline) -> CheckedTables:
        from airflow_provider_cdc.batch.result import table_states
        from airflow_provider_cdc.connections.lookup import ledger_url
        from airflow_provider_cdc.ledger import Ledger
        from airflow_provider_cdc.surface.checks import CheckedTables

        states = {
            f"{state.database}.{state.table}": state
            for state in table_states(Ledger(ledger_url(pipeline.ledger)), pipeline.name).values()
            if state.state != TableStatus.DROPPED
        }
        unknown = [name for name in self.tables or () if name not in states]
        if unknown:
            raise ConfigurationError([f"tables: the pipeline has no table {', '.join(unknown)}"])
        source = None if self.source_conn_id is None else BaseHook.get_hook(self.source_conn_id)
        return CheckedTables(pipeline, [states[name] for name in self.tables or sorted(states)], source)
