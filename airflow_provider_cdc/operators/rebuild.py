# SPDX-License-Identifier: Apache-2.0
"""Make tables again from the change log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.batch.arguments import PipelineLike
from airflow_provider_cdc.core.documents import Rebuild
from airflow_provider_cdc.operators.repair import RepairOperator

if TYPE_CHECKING:
    from airflow_provider_cdc.batch.result import BatchResult
    from airflow_provider_cdc.core.config import CdcPipeline


class CdcRebuildOperator(RepairOperator):
    """Make tables again from all that the change log has of them, each in one commit, whatever lies at their locations.

    It fails with retry while another run works on the pipeline, and without retry where a table could not be rebuilt,
    which stays as it was then, or where another table is parked.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file. (templated)
    :param tables: ``database.table`` of each. (templated)
    """

    template_fields: Sequence[str] = ("pipeline", "tables")

    def __init__(self, *, pipeline: PipelineLike, tables: Sequence[str], **kwargs: Any) -> None:
        super().__init__(pipeline=pipeline, **kwargs)
        self.tables = tables

    def _run(self, pipeline: CdcPipeline, **course: Any) -> BatchResult:
        from airflow_provider_cdc.batch.runner import run_rebuild

        return run_rebuild(pipeline, Rebuild(list(self.tables)), **course)
