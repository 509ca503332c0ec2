# SPDX-License-Identifier: Apache-2.0
"""Read and write the ledger. Every write carries the lease's token and fails if it is not the current one."""

from __future__ import annotations

from sqlalchemy import select

from airflow_provider_cdc.ledger import schema
from airflow_provider_cdc.ledger.batch_queries import BatchQueries
from airflow_provider_cdc.ledger.database import Database
from airflow_provider_cdc.ledger.lake_takeover import LakeTakeover
from airflow_provider_cdc.ledger.lease_holders import LeaseHolders
from airflow_provider_cdc.ledger.pipeline_reports import PipelineReports
from airflow_provider_cdc.ledger.planned_batches import PlannedBatches


class Ledger(LeaseHolders, BatchQueries, PlannedBatches, LakeTakeover, PipelineReports):
    """The planned and committed batches of pipelines, in one SQLite file or PostgreSQL database.

    The first call opens the database and creates the tables. SQLite serves several processes of one machine
    (not a network file system); several machines need PostgreSQL. LeaseHolders are timed by the database's clock.

    :param url: ``sqlite:////data/cdc.db`` or ``postgresql://user@host/database``.
    """

    def __init__(self, url: str) -> None:
        self._database = Database(url)

    def __repr__(self) -> str:
        return f"Ledger({self._database.shown!r})"

    @property
    def id(self) -> str:
        """Return the ledger's id: created once with its tables, unchanged after a restore."""
        with self._database.reading() as connection:
            return str(connection.execute(select(schema.versions.c.ledger_id)).scalar_one())
