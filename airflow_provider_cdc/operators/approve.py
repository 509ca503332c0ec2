# SPDX-License-Identifier: Apache-2.0
"""Decide about a change that a table waits for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.batch.arguments import PipelineLike
from airflow_provider_cdc.operators.repair import RepairOperator

if TYPE_CHECKING:
    from airflow_provider_cdc.batch.result import BatchResult
    from airflow_provider_cdc.core.config import CdcPipeline


class CdcApproveOperator(RepairOperator):
    """Approve or deny a change that a table waits for (``on_…: ask``), and let the table catch up.

    Of changed rules of the pipeline the log of the task says what carrying them out costs.

    A later try of the task, or a cleared one, decides nothing else. It fails with retry while another run works on
    the pipeline, and without retry where nothing is to be decided, or where a table is still parked after the batch.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file. (templated)
    :param table: ``database.table``, the name that the table had at the change. (templated)
    :param change: id of the change, as ``airflow-cdc approve`` shows it; None for the oldest that waits. A change that
        was denied is carried out only by its id. (templated)
    :param deny: leave the change out; refused for kinds that the table could not do without.
    :param by: who decides, recorded with the time; None for the user and the host of the task. (templated)
    """

    template_fields: Sequence[str] = ("pipeline", "table", "change", "by")

    def __init__(
        self,
        *,
        pipeline: PipelineLike,
        table: str,
        change: str | None = None,
        deny: bool = False,
        by: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(pipeline=pipeline, **kwargs)
        self.table = table
        self.change = change
        self.deny = deny
        self.by = by

    def _run(self, pipeline: CdcPipeline, **course: Any) -> BatchResult:
        from airflow_provider_cdc.batch.approvals import decide

        named = {"change": self.change or "", "by": self.by or ""}
        return decide(pipeline, self.table, deny=self.deny, **named, **course)
