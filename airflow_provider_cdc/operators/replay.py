# SPDX-License-Identifier: Apache-2.0
"""Apply rows of the change log again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.batch.arguments import PipelineLike, as_instant, as_micros
from airflow_provider_cdc.operators.repair import RepairOperator

if TYPE_CHECKING:
    from airflow_provider_cdc.batch.result import BatchResult
    from airflow_provider_cdc.core.config import CdcPipeline


class CdcReplayOperator(RepairOperator):
    """Apply rows of the change log again, in a batch that reads nothing new; no table moves backwards.

    It fails with retry while another run works on the pipeline, and without retry where a table is parked.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file. (templated)
    :param tables: ``database.table`` of each; all tables if empty. (templated)
    :param since: source time of the first rows, a time or ISO text; None from the first on. (templated)
    :param until: source time behind the last rows; None up to the last. (templated)
    """

    template_fields: Sequence[str] = ("pipeline", "tables", "since", "until")

    def __init__(
        self,
        *,
        pipeline: PipelineLike,
        tables: Sequence[str] = (),
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(pipeline=pipeline, **kwargs)
        self.tables = tables
        self.since = since
        self.until = until

    def _run(self, pipeline: CdcPipeline, **course: Any) -> BatchResult:
        from airflow_provider_cdc.batch.orders import run_replay
        from airflow_provider_cdc.core.documents import Replay

        since, until = (as_micros(as_instant(time, name)) for time, name in self._times())
        return run_replay(pipeline, Replay(list(self.tables), since, until), **course)

    def _times(self) -> list[tuple[object, str]]:
        return [(self.since, "since"), (self.until, "until")]
