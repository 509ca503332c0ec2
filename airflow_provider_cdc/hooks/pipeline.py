# SPDX-License-Identifier: Apache-2.0
"""Offer everything of one pipeline to the code of a task."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseHook

from airflow_provider_cdc.batch.arguments import PipelineLike, as_instant, as_pipeline
from airflow_provider_cdc.core.errors import DataError, KnownValuesError, SinkError
from airflow_provider_cdc.core.model.status import TableStatus

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_provider_cdc.core.documents import TableState
    from airflow_provider_cdc.core.plan.lag import Lag
    from airflow_provider_cdc.ledger import Ledger


class CdcHook(BaseHook):
    """Plan, sync and observe one pipeline, and read its tables, in the code of a task.

    :param pipeline: a ``CdcPipeline``, the same as plain data, or the path of a YAML file.
    """

    def __init__(self, pipeline: PipelineLike) -> None:
        super().__init__()
        self.pipeline = as_pipeline(pipeline)

    def get_conn(self) -> Ledger:
        """Return the pipeline's ledger."""
        from airflow_provider_cdc.connections.lookup import ledger_url
        from airflow_provider_cdc.ledger import Ledger

        return Ledger(ledger_url(self.pipeline.ledger))

    def plan(self, until: str | datetime | None = None) -> dict[str, Any]:
        """Return what the next batch would read; records nothing.

        :param until: everything that the source committed before it; None means what is in Kafka now.
        """
        from airflow_provider_cdc.batch.preview import preview

        return preview(self.pipeline, as_instant(until))

    def sync(self, until: str | datetime | None = None) -> dict[str, Any]:
        """Run one batch and return its result; the same request again returns the stored one.

        :param until: as for :meth:`plan`.
        :raises CdcError: nothing was committed.
        """
        from airflow_provider_cdc.batch.runner import run_batch

        result = run_batch(self.pipeline, until=as_instant(until), say=self.log.info)
        if result.error is not None:
            raise result.error
        return result.document()

    def adopt(self) -> dict[str, Any]:
        """Go on with a lake that was copied or moved; return its identity (``id``, ``pipeline``, ``root``).

        :raises CdcError: nothing was changed.
        """
        from airflow_provider_cdc.batch.adoption import adopt

        return adopt(self.pipeline, say=self.log.info).document()

    def lag(self) -> Lag:
        """Return how far the tables are behind the source now."""
        from airflow_provider_cdc.batch.source_log import open_log
        from airflow_provider_cdc.watch.lag import applied_offsets, observe_lag

        log = open_log(self.pipeline)
        return observe_lag(self.pipeline, log, applied_offsets(self.get_conn(), self.pipeline.name))

    def tables(self) -> dict[str, TableState]:
        """Return the state of each table by ``database.table``."""
        from airflow_provider_cdc.batch.result import newest_by_name, table_states

        return newest_by_name(table_states(self.get_conn(), self.pipeline.name).values())

    def read(self, table: str, columns: list[str] | None = None) -> pa.Table:
        """Return the rows of a table as the last committed batch left it, whatever is written meanwhile.

        :param table: ``database.table``.
        :param columns: names of columns; all if None.
        :raises CdcError: the pipeline has no such table, or it is parked or waits: then it has no state of the cut.
        """
        tables = self.tables()
        if table not in tables:
            raise KnownValuesError("table", table, list(tables))
        state = tables[table]
        where = {"pipeline": self.pipeline.name, "table": table}
        if state.state not in (TableStatus.OK, TableStatus.DROPPED):
            text = f"the table is {state.state} and behind the others: {state.reason}"
            raise DataError(
                "table.unsettled", text, where=where, hint="settle the table, or read its location yourself"
            )
        return self._read(state, columns, where)

    def _read(self, state: TableState, columns: list[str] | None, where: dict[str, Any]) -> pa.Table:
        from airflow_provider_cdc.connections.lookup import sink_options
        from airflow_provider_cdc.sinks.contract import UnreadableTableError
        from airflow_provider_cdc.sinks.pipeline_tables import PipelineTables

        try:
            with PipelineTables(self.pipeline, sink_options).as_committed(state) as table:
                return table.rows(columns)
        except UnreadableTableError as error:
            text = f"version {state.version} of the table cannot be read ({error})"
            hint = "check the storage connection; a VACUUM may have removed files of the version"
            raise SinkError("sink.unreadable", text, where=where, hint=hint) from None
