# SPDX-License-Identifier: Apache-2.0
"""Make tables again from the change log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.batch.arguments import PipelineLike, as_instant, as_micros
from airflow_provider_cdc.operators.repair import RepairOperator

if TYPE_CHECKING:
    from airflow_provider_cdc.batch.result import BatchResult
    from airflow_provider_cdc.core.config import CdcPipeline


class CdcRebuildOperator(RepairOperator):
    """Make tables again from the change log or from files, each in one commit, whatever lies at their locations.

    It fails with retry while another run works on the pipeline, and without retry where a table could not be rebuilt,
    which stays as it was then, or where another table is parked.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file. (templated)
    :param tables: ``database.table`` of each. (templated)
    :param source: ``change_log``, all rows since a table was created or its last full snapshot; or ``snapshot``, those
        since an ad hoc snapshot of the whole table; or the path of a Delta table, parquet file or folder of them with
        all rows of the one table. (templated)
    :param since: of a snapshot a time shortly before it was asked for, a time or ISO text; None for the one that came
        after the rows became unknown. Of files a time up to which they hold every change. (templated)
    """

    template_fields: Sequence[str] = ("pipeline", "tables", "source", "since")

    def __init__(
        self,
        *,
        pipeline: PipelineLike,
        tables: Sequence[str],
        source: str = "change_log",
        since: str | datetime | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(pipeline=pipeline, **kwargs)
        self.tables = tables
        self.source = source
        self.since = since

    def _run(self, pipeline: CdcPipeline, **course: Any) -> BatchResult:
        from airflow_provider_cdc.batch.orders import run_rebuild
        from airflow_provider_cdc.core.documents import Rebuild

        since = as_micros(as_instant(self.since, "since"))
        return run_rebuild(pipeline, Rebuild.of(self.tables, self.source, since), **course)
