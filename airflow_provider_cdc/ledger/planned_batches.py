# SPDX-License-Identifier: Apache-2.0
"""Plan a batch, note how far it is, and commit it or give it up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select, update

from airflow_provider_cdc.core.errors import BusyError, ConfigurationError
from airflow_provider_cdc.core.model.offsets import Offsets
from airflow_provider_cdc.core.model.status import BatchStatus, ResultStatus
from airflow_provider_cdc.ledger import rows, schema
from airflow_provider_cdc.ledger.database import Database, now
from airflow_provider_cdc.ledger.lease import Lease
from airflow_provider_cdc.ledger.owner import TaskTry
from airflow_provider_cdc.ledger.records import SYNC, Batch, offsets_document, time_text
from airflow_provider_cdc.ledger.rows import Document


class PlannedBatches:
    """The part of the ledger that writes about the batch that is worked on."""

    _database: Database

    def plan(
        self,
        lease: Lease,
        start: Offsets,
        end: Offsets,
        until: datetime | None,
        kind: str = SYNC,
        *,
        topics: Mapping[str, str] | None = None,
        lost: Sequence[Mapping[str, Any]] = (),
        cut_at: datetime | None = None,
    ) -> Batch:
        """Record the next batch; its range never changes afterwards.

        :param start: first offsets.
        :param end: offsets after the last, exclusive.
        :param topics: Kafka's id of each topic in the range.
        :param lost: records before the range that Kafka deleted unread, as in :class:`Batch`.
        :param cut_at: as of :class:`Batch`.
        :raises BusyError: another batch is planned and must be finished first (an equal one is returned as it is),
            or the lease is lost.
        """
        lease.check()
        with self._database.writing() as connection:
            rows.fence(connection, lease)
            previous = rows.last_batch(connection, lease.pipeline)
            if previous is not None and previous.status == BatchStatus.PLANNED:
                if (previous.start, previous.end, previous.until, previous.kind) == (start, end, until, kind):
                    return previous
                raise BusyError(
                    "ledger.batch_open", "a planned batch is not finished yet",
                    where={"pipeline": lease.pipeline, "seq": previous.seq}, hint="finish it, then plan the next",
                )  # fmt: skip
            values = {
                "pipeline": lease.pipeline,
                "seq": 1 if previous is None else previous.seq + 1,
                "kind": kind,
                "status": BatchStatus.PLANNED,
                "start": offsets_document(start),
                "end": offsets_document(end),
                "until": time_text(until),
                "cut_at": time_text(cut_at),
                "planned_at": time_text(now(connection)),
                "topics": None if topics is None else dict(topics),
                **TaskTry.columns_of(lease.owner),
                "lost": [dict(loss) for loss in lost] or None,
            }
            connection.execute(insert(schema.batches).values(**values))
        return Batch.from_document({**values, "committed_at": None, "result": None})

    def started(self, lease: Lease, seq: int, engine: str) -> None:
        """Record who works on a planned batch now, and with which engine.

        :raises BusyError: the lease is lost.
        """
        columns = {**TaskTry.columns_of(lease.owner), "engine": engine, "application_id": None}
        self._set(lease, seq, lambda at: {**columns, "started_at": at})

    def started_application(self, lease: Lease, seq: int, application_id: str) -> None:
        """Record the Spark application that a planned batch runs as.

        :raises BusyError: the lease is lost.
        """
        self._set(lease, seq, lambda at: {"application_id": application_id})

    def progressed(self, pipeline: str, token: int, seq: int, progress: Document) -> None:
        """Record how far the engine of a planned batch is; nothing where the lease is lost.

        :param token: of the lease, which another process may have handed over.
        """
        batches, pipelines = schema.batches.c, schema.pipelines.c
        mine = select(pipelines.name).where(pipelines.name == pipeline, pipelines.lease_token == token)
        with self._database.writing() as connection:
            seen = {**progress, "at": time_text(now(connection)), "lease": token}
            planned = (batches.seq == seq, batches.status == BatchStatus.PLANNED, batches.pipeline.in_(mine))
            connection.execute(update(schema.batches).where(*planned).values(progress=seen))

    def commit(
        self,
        lease: Lease,
        seq: int,
        result: Document,
        tables: Mapping[str, Document | None] | None = None,
        schema_changes: Sequence[Document] = (),
        *,
        fingerprint: str = "",
        lake: Document | None = None,
    ) -> Batch:
        """Record what came of a batch, in one transaction; repeating it changes nothing.

        :param tables: new state document by table id; None forgets the table.
        :param schema_changes: documents with a text member ``id``; a known id keeps its place, its document is new.
        :param fingerprint: of the configuration that an engine carried the batch out with; empty without an engine.
        :param lake: identity of the lake that an engine wrote to.
        :raises BusyError: the lease is lost.
        """
        lease.check()
        for change in schema_changes:
            if not isinstance(change.get("id"), str):
                raise ValueError("a schema change needs a text member 'id'")
        with self._database.writing() as connection:
            rows.fence(connection, lease)
            mine = (schema.batches.c.pipeline == lease.pipeline, schema.batches.c.seq == seq)
            row = connection.execute(select(schema.batches).where(*mine)).one_or_none()
            if row is None or row.status == BatchStatus.ABANDONED:
                raise ConfigurationError([f"batch {seq} of pipeline {lease.pipeline!r} is not planned"])
            if row.status != BatchStatus.COMMITTED:
                rows.store_tables(connection, lease.pipeline, seq, tables or {})
                rows.store_schema_changes(connection, lease.pipeline, seq, schema_changes)
                rows.store_lake(connection, lease.pipeline, lake)
                done = {
                    "status": BatchStatus.COMMITTED,
                    "committed_at": time_text(now(connection)),
                    "result": dict(result),
                    "progress": None,
                }
                connection.execute(update(schema.batches).where(*mine).values(**done))
                if fingerprint:
                    named = schema.pipelines.c.name == lease.pipeline
                    connection.execute(update(schema.pipelines).where(named).values(fingerprint=fingerprint))
                row = connection.execute(select(schema.batches).where(*mine)).one()
            return rows.as_batch(row)

    def crashed(self, lease: Lease, seq: int, site: str) -> bool:
        """Note where the engine of a planned batch crashed; return whether the last crash was there too.

        :param site: location in the code, the same for the same fault.
        :raises BusyError: the lease is lost.
        """
        crash = {"status": ResultStatus.CRASHED, "place": site}
        return self._annotate(lease, seq, crash) == crash

    def refused(self, lease: Lease, seq: int, error: Document) -> None:
        """Note why a planned batch was refused, for whoever has to decide about it.

        :param error: document of the error.
        :raises BusyError: the lease is lost.
        """
        self._annotate(lease, seq, {"status": ResultStatus.REFUSED, "error": dict(error)})

    def abandon(self, lease: Lease, seq: int) -> Batch:
        """Give up a planned batch of which nothing was read; its number stays taken, the next range does not follow it.

        :raises BusyError: the lease is lost.
        :raises ConfigurationError: the batch is not there, or is committed.
        """
        lease.check()
        with self._database.writing() as connection:
            rows.fence(connection, lease)
            mine = (schema.batches.c.pipeline == lease.pipeline, schema.batches.c.seq == seq)
            given_up = update(schema.batches).where(*mine, schema.batches.c.status != BatchStatus.COMMITTED)
            if connection.execute(given_up.values(status=BatchStatus.ABANDONED)).rowcount != 1:
                raise ConfigurationError([f"batch {seq} of pipeline {lease.pipeline!r} is not planned"])
            return rows.as_batch(connection.execute(select(schema.batches).where(*mine)).one())

    def _set(self, lease: Lease, seq: int, columns: Callable[[str | None], Document]) -> None:
        """Set columns of a planned batch.

        :param columns: takes the database's time.
        """
        lease.check()
        with self._database.writing() as connection:
            rows.change_planned(connection, lease, seq, columns(time_text(now(connection))))

    def _annotate(self, lease: Lease, seq: int, note: Document) -> Document | None:
        """Store a note with a planned batch, in the place of its result; return the note before."""
        lease.check()
        with self._database.writing() as connection:
            return rows.change_planned(connection, lease, seq, {"result": dict(note)})
