# SPDX-License-Identifier: Apache-2.0
"""Say how pipelines are: states of tables, schema changes, progress, and what was announced."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select, update

from airflow_provider_cdc.ledger import health, rows, schema
from airflow_provider_cdc.ledger.database import Database
from airflow_provider_cdc.ledger.health import UnsettledTable
from airflow_provider_cdc.ledger.owner import Owner
from airflow_provider_cdc.ledger.records import ProgressSample, time_text


class PipelineReports:
    """The part of the ledger that holds what is known of pipelines, but for their batches."""

    _database: Database

    def pipelines(self) -> list[str]:
        """Return the names of all pipelines, sorted."""
        with self._database.reading() as connection:
            return sorted(connection.execute(select(schema.pipelines.c.name)).scalars())

    def fingerprint(self, pipeline: str) -> str | None:
        """Return the fingerprint of the configuration that tables were last tried with, if it is known."""
        with self._database.reading() as connection:
            query = select(schema.pipelines.c.fingerprint).where(schema.pipelines.c.name == pipeline)
            return connection.execute(query).scalar()

    def tables(self, pipeline: str) -> dict[str, dict[str, Any]]:
        """Return the current state document of each table, by table id."""
        c = schema.tables.c
        with self._database.reading() as connection:
            query = select(c.table_id, c.document).where(c.pipeline == pipeline).order_by(c.table_id)
            return {row.table_id: row.document for row in connection.execute(query)}

    def table_versions(self, pipeline: str, table_id: str) -> list[tuple[int, dict[str, Any] | None]]:
        """Return the state documents of one table with the batch that made each, oldest first; None where it ended."""
        c = schema.table_versions.c
        query = select(c.seq, c.document).where(c.pipeline == pipeline, c.table_id == table_id).order_by(c.seq)
        with self._database.reading() as connection:
            return [(row.seq, row.document) for row in connection.execute(query)]

    def schema_changes(self, pipeline: str) -> list[dict[str, Any]]:
        """Return the schema changes in the order they were first recorded."""
        c = schema.schema_changes.c
        with self._database.reading() as connection:
            query = select(c.document).where(c.pipeline == pipeline).order_by(c.number)
            return list(connection.execute(query).scalars())

    def announced(self, pipeline: str) -> int:
        """Return the number of the newest batch for which asset events were sent, 0 for none."""
        query = select(schema.pipelines.c.announced_seq).where(schema.pipelines.c.name == pipeline)
        with self._database.reading() as connection:
            return connection.execute(query).scalar() or 0

    def mark_announced(self, pipeline: str, seq: int) -> None:
        """Record that asset events were sent for all batches up to one; needs no lease, and the number only grows."""
        c = schema.pipelines.c
        behind = (c.announced_seq.is_(None)) | (c.announced_seq < seq)
        with self._database.writing() as connection:
            connection.execute(update(schema.pipelines).where(c.name == pipeline, behind).values(announced_seq=seq))

    def record_attempt(self, pipeline: str, code: str, owner: Owner | None) -> None:
        """Record how the last attempt at a batch ended; needs no lease.

        :param code: of its error, empty where it ended well.
        """
        with self._database.writing() as connection:
            rows.ensure_pipeline(connection, pipeline)
            health.store_attempt(connection, pipeline, code, owner)

    def unsettled_tables(self, pipeline: str) -> list[UnsettledTable]:
        """Return the parked and waiting tables, with the time since which their changes are not applied."""
        with self._database.reading() as connection:
            return health.unsettled_tables(connection, [pipeline])

    def record_progress(self, pipeline: str, sample: ProgressSample, *, keep: timedelta = timedelta(days=30)) -> None:
        """Record what was seen of a pipeline's progress; needs no lease.

        :param keep: samples that are older than this are deleted.
        """
        values = {"pipeline": pipeline, **sample.document()}
        with self._database.writing() as connection:
            rows.store_progress(connection, values, time_text(sample.seen_at - keep))

    def progress(
        self, pipeline: str, *, since: datetime | None = None, limit: int | None = None
    ) -> list[ProgressSample]:
        """Return what was seen of a pipeline's progress, oldest first.

        :param since: only samples from then on.
        :param limit: only that many, the newest.
        """
        c = schema.progress.c
        query = select(schema.progress).where(c.pipeline == pipeline).order_by(c.seen_at.desc()).limit(limit)
        if since is not None:
            query = query.where(c.seen_at >= time_text(since))
        with self._database.reading() as connection:
            newest_first = [ProgressSample.from_document(dict(row._mapping)) for row in connection.execute(query)]
        return newest_first[::-1]
