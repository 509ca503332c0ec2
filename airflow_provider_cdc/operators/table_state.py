# SPDX-License-Identifier: Apache-2.0
"""Fail or branch by the states of a pipeline's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException, BranchMixIn

from airflow_provider_cdc.batch.arguments import PipelineLike
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.operators.pipeline import PipelineOperator, airflow_errors

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_cdc.core.config import CdcPipeline
    from airflow_provider_cdc.core.documents import TableState

_SHOWN = 50
_WORST_FIRST = (TableStatus.PARKED, TableStatus.WAITING, TableStatus.DROPPED, TableStatus.OK)


class CdcTableStateOperator(PipelineOperator, BranchMixIn):
    """Look at the states of tables in the ledger; fail unless all are ``ok``, or follow the branch of the worst state.

    The result has ``state``, the worst one, ``counts`` by state, and of the first 50 tables that are not ``ok`` state
    and reason.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file. (templated)
    :param tables: names as ``database.table``; without names all tables that are not dropped. (templated)
    :param branches: ids of the tasks to go on with, by state: ``parked``, ``waiting``, ``dropped``, ``ok``. The worst
        state, in this order, decides; the other tasks behind this one are skipped. A state without branch fails the
        task, ``ok`` then goes on with all.
    """

    template_fields: Sequence[str] = ("pipeline", "tables")
    inherits_from_skipmixin = True
    ui_color = "#dcfce7"

    def __init__(
        self,
        *,
        pipeline: PipelineLike,
        tables: Sequence[str] | None = None,
        branches: Mapping[str, str | Sequence[str]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(pipeline=pipeline, **kwargs)
        self.tables = tables
        self.branches = branches

    def execute(self, context: Context) -> dict[str, Any]:
        """Return the states."""
        with airflow_errors():
            branches = self._checked_branches()
            states = self._states(self.configured(context))
        answer = _document(states)
        worst = TableStatus(answer["state"])
        for name, line in answer["tables"].items():
            self.log.warning("%s %s: %s", printable(name), line["state"], line["reason"])
        if "ti" in context and self.do_xcom_push:
            context["ti"].xcom_push("return_value", answer)
        if worst in branches:
            task_ids = branches[worst]
            self.do_branch(context, [task_ids] if isinstance(task_ids, str) else list(task_ids))
        elif worst != TableStatus.OK:
            lines = [f"{name} is {line['state']}: {line['reason']}" for name, line in answer["tables"].items()]
            raise AirflowFailException(printable("; ".join(lines)))
        return answer

    def _checked_branches(self) -> dict[TableStatus, str | Sequence[str]]:
        branches = dict(self.branches or {})
        unknown = [str(state) for state in branches if state not in [str(status) for status in TableStatus]]
        if unknown:
            known = ", ".join(_WORST_FIRST)
            raise ConfigurationError([f"branches: {', '.join(unknown)}: expected {known}"])
        return {TableStatus(state): tasks for state, tasks in branches.items()}

    def _states(self, pipeline: CdcPipeline) -> dict[str, TableState]:
        from airflow_provider_cdc.batch.result import newest_by_name, table_states
        from airflow_provider_cdc.connections.lookup import ledger_url
        from airflow_provider_cdc.ledger import Ledger

        states = newest_by_name(table_states(Ledger(ledger_url(pipeline.ledger)), pipeline.name).values())
        if self.tables is None:
            return {name: state for name, state in sorted(states.items()) if state.state != TableStatus.DROPPED}
        unknown = [name for name in self.tables if name not in states]
        if unknown:
            raise ConfigurationError([f"tables: the pipeline has no table {', '.join(unknown)}"])
        return {name: states[name] for name in self.tables}


def _document(states: Mapping[str, TableState]) -> dict[str, Any]:
    """Return the states as plain JSON data."""
    counts = {str(status): sum(state.state == status for state in states.values()) for status in _WORST_FIRST}
    unsettled = {
        name: {"state": str(state.state), "reason": printable(state.reason)}
        for name, state in states.items()
        if state.state != TableStatus.OK
    }
    return {
        "state": next((status for status, count in counts.items() if count), str(TableStatus.OK)),
        "counts": counts,
        "tables": dict(list(unsettled.items())[:_SHOWN]),
    }
