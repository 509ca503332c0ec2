# SPDX-License-Identifier: Apache-2.0
"""Offer the ledger as an Airflow connection with a form and a test button."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseHook

if TYPE_CHECKING:
    from airflow_provider_cdc.core.documents import TableState
    from airflow_provider_cdc.ledger import Ledger, ProgressSample


class CdcLedgerHook(BaseHook):
    """Open the ledger of a connection.

    :param ledger_conn_id: connection of type ``cdc_ledger``, ``postgres`` or ``sqlite``.
    """

    conn_name_attr = "ledger_conn_id"
    default_conn_name = "cdc_ledger_default"
    conn_type = "cdc_ledger"
    hook_name = "CDC ledger"

    def __init__(self, ledger_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.ledger_conn_id = ledger_conn_id

    def get_conn(self) -> Ledger:
        """Return the ledger."""
        from airflow_provider_cdc.connections.lookup import ledger_url
        from airflow_provider_cdc.ledger import Ledger

        return Ledger(ledger_url(self.ledger_conn_id))

    def tables(self, pipeline: str) -> dict[str, TableState]:
        """Return the state of each table of a pipeline by ``database.table``."""
        from airflow_provider_cdc.batch.result import newest_by_name, table_states

        return newest_by_name(table_states(self.get_conn(), pipeline).values())

    def lag(self, pipeline: str, since: datetime | None = None, limit: int | None = None) -> list[ProgressSample]:
        """Return how far a pipeline was behind over time, oldest first.

        :param since: only samples from then on.
        :param limit: only that many, the newest.
        """
        return self.get_conn().progress(pipeline, since=since, limit=limit)

    def schema_history(self, pipeline: str, table: str) -> list[tuple[int, dict[str, Any]]]:
        """Return the schemas of a table with the number of the batch that made each, oldest first.

        :param table: ``database.table``.
        :raises KnownValuesError: the pipeline has no such table.
        """
        from airflow_provider_cdc.core.errors import KnownValuesError

        tables = self.tables(pipeline)
        if table not in tables:
            raise KnownValuesError("table", table, list(tables))
        history: list[tuple[int, dict[str, Any]]] = []
        for seq, document in self.get_conn().table_versions(pipeline, tables[table].table_id):
            schema = (document or {}).get("schema")
            if schema is not None and (not history or history[-1][1] != schema):
                history.append((seq, schema))
        return history

    def quarantine(self, pipeline: str, after: int = 0) -> list[dict[str, Any]]:
        """Return where records are that batches could not carry: ``seq``, topic, partition, offset, code; no values.

        :param after: only batches with a higher number.
        """
        return [
            {"seq": batch.seq, **entry}
            for batch in self.get_conn().batches(pipeline, after=after)
            for entry in (batch.result or {}).get("quarantine") or ()
        ]

    def test_connection(self) -> tuple[bool, str]:
        """Return for the connection form what ``doctor`` finds of the database."""
        from airflow_provider_cdc.batch.findings import checked, verdict

        def opened() -> str:
            ledger = self.get_conn()
            return f"{ledger!r}, {len(ledger.pipelines())} pipelines"

        return verdict([checked("ledger", opened)])
