# SPDX-License-Identifier: Apache-2.0
"""Read and write the ledger. Every write carries the lease's token and fails if it is not the current one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import case, delete, func, insert, select, true, update

from airflow_provider_cdc.core.errors import BusyError, ConfigurationError
from airflow_provider_cdc.core.model.offsets import Offsets
from airflow_provider_cdc.core.model.status import BatchStatus, ResultStatus
from airflow_provider_cdc.ledger import health, rows, schema
from airflow_provider_cdc.ledger.database import Database, now
from airflow_provider_cdc.ledger.health import UnsettledTable
from airflow_provider_cdc.ledger.lease import Lease
from airflow_provider_cdc.ledger.owner import Owner, TaskTry
from airflow_provider_cdc.ledger.records import (
    SYNC,
    Batch,
    LakeBatch,
    PastBatch,
    ProgressSample,
    offsets_document,
    parse_time,
    time_text,
)

Document = Mapping[str, Any]


class Ledger:
    """The planned and committed batches of pipelines, in one SQLite file or PostgreSQL database.

    The first call opens the database and creates the tables. SQLite serves several processes of one machine
    (not a network file system); several machines need PostgreSQL. Leases are timed by the database's clock.

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

    # ---- lease

    def lease(self, pipeline: str, owner: Owner, seconds: float = 60) -> Lease:
        """Take the lease of a pipeline, atomically; a task's later try takes over that of its earlier one.

        :param owner: the new holder; a text in words that an operator understands (user, host, process).
        :param seconds: time that the pipeline stays leased after the holder died.
        :raises BusyError: code ``ledger.busy``; names the holder, and since and until when.
        """
        with self._database.writing() as connection:
            rows.ensure_pipeline(connection, pipeline)
            row = rows.locked_pipeline(connection, pipeline)
            assert row is not None
            since = now(connection)
            until = since + timedelta(seconds=seconds)
            mine = (schema.pipelines.c.name == pipeline, schema.pipelines.c.lease_token == row.lease_token)
            free = row.lease_owner is None or row.lease_until <= str(time_text(since))
            if not free and isinstance(owner, TaskTry):
                free = owner.follows(TaskTry.from_columns(dict(row._mapping), "lease_"))
            if free:
                values = {
                    "lease_token": row.lease_token + 1,
                    "lease_owner": str(owner),
                    **TaskTry.columns_of(owner, "lease_"),
                    "lease_since": time_text(since),
                    "lease_until": time_text(until),
                }
                free = connection.execute(update(schema.pipelines).where(*mine).values(**values)).rowcount == 1
            elif row.lease_since > str(time_text(since)):
                # The clock was set back. A living holder renews its lease by the new time; a dead one would keep it.
                connection.execute(update(schema.pipelines).where(*mine).values(lease_until=time_text(until)))
        if not free:
            raise rows.busy(pipeline, row)
        return Lease(self, pipeline, owner, row.lease_token + 1, seconds, since, until)

    def renew_lease(self, pipeline: str, token: int, seconds: float) -> datetime | None:
        """Extend a lease; return its new end, or None when the lease is no longer the current one."""
        with self._database.writing() as connection:
            until = now(connection) + timedelta(seconds=seconds)
            changed = connection.execute(
                update(schema.pipelines)
                .where(
                    schema.pipelines.c.name == pipeline,
                    schema.pipelines.c.lease_token == token,
                    schema.pipelines.c.lease_owner.is_not(None),
                )
                .values(lease_until=time_text(until))
            )
            return until if changed.rowcount == 1 else None

    def release_lease(self, pipeline: str, token: int) -> None:
        """Free a lease, if it is still the current one."""
        with self._database.writing() as connection:
            connection.execute(
                update(schema.pipelines)
                .where(schema.pipelines.c.name == pipeline, schema.pipelines.c.lease_token == token)
                .values(lease_owner=None, lease_since=None, lease_until=None)
            )

    def holder(self, pipeline: str) -> dict[str, Any] | None:
        """Return who holds the pipeline now (``owner``, ``since``, ``until``), or None."""
        with self._database.reading() as connection:
            row = connection.execute(select(schema.pipelines).where(schema.pipelines.c.name == pipeline)).one_or_none()
            if row is None or row.lease_owner is None or row.lease_until <= str(time_text(now(connection))):
                return None
            return {"owner": row.lease_owner, "since": row.lease_since, "until": row.lease_until}

    def fingerprint(self, pipeline: str) -> str | None:
        """Return the fingerprint of the configuration that tables were last tried with, if it is known."""
        with self._database.reading() as connection:
            query = select(schema.pipelines.c.fingerprint).where(schema.pipelines.c.name == pipeline)
            return connection.execute(query).scalar()

    # ---- batches

    def planned(self, pipeline: str, until: datetime | None, kind: str = SYNC) -> Batch | None:
        """Return the batch that belongs to a request, planned or committed.

        :param until: the request's time; None asks for the batch that is planned and not committed yet, of any kind.
        """
        c = schema.batches.c
        query = select(schema.batches).where(c.pipeline == pipeline)
        if until is None:
            query = query.where(c.status == BatchStatus.PLANNED)
        else:
            query = query.where(c.kind == kind, c.until == time_text(until), c.status != BatchStatus.ABANDONED)
        return self._batch(query.order_by(c.seq).limit(1))

    def open(self, pipeline: str) -> Batch | None:
        """Return the batch that is planned and not committed, whatever request it belongs to."""
        return self.planned(pipeline, None)

    def covering(self, pipeline: str, until: datetime, kind: str = SYNC) -> Batch | None:
        """Return the first committed batch whose request reached ``until`` or beyond."""
        query = select(schema.batches).where(
            schema.batches.c.pipeline == pipeline,
            schema.batches.c.kind == kind,
            schema.batches.c.status == BatchStatus.COMMITTED,
            schema.batches.c.until >= time_text(until),
        )
        return self._batch(query.order_by(schema.batches.c.seq).limit(1))

    def last(self, pipeline: str, kind: str | None = None, *, abandoned: bool = False) -> Batch | None:
        """Return the batch with the highest number.

        :param kind: only batches of this kind; any if None.
        :param abandoned: whether it may be one that was abandoned.
        """
        query = rows.newest_first(pipeline, kind)
        return self._batch(
            (query if abandoned else query.where(schema.batches.c.status != BatchStatus.ABANDONED)).limit(1)
        )

    def last_committed(self, pipeline: str) -> Batch | None:
        """Return the committed batch with the highest number."""
        committed = schema.batches.c.status == BatchStatus.COMMITTED
        return self._batch(rows.newest_first(pipeline, None).where(committed).limit(1))

    def reached(self, pipeline: str, kind: str = SYNC) -> datetime | None:
        """Return the latest time that a committed request reached; None if no request named one."""
        c = schema.batches.c
        mine = (c.pipeline == pipeline, c.kind == kind, c.status == BatchStatus.COMMITTED)
        with self._database.reading() as connection:
            return parse_time(connection.execute(select(func.max(c.until)).where(*mine)).scalar())

    def batch(self, pipeline: str, seq: int) -> Batch | None:
        """Return one batch by its number."""
        query = select(schema.batches).where(schema.batches.c.pipeline == pipeline, schema.batches.c.seq == seq)
        return self._batch(query)

    def batches(self, pipeline: str, *, after: int = 0, limit: int | None = None) -> list[Batch]:
        """Return the pipeline's batches in order of their numbers, those above ``after``."""
        query = select(schema.batches).where(schema.batches.c.pipeline == pipeline, schema.batches.c.seq > after)
        with self._database.reading() as connection:
            return [rows.as_batch(row) for row in connection.execute(query.order_by(schema.batches.c.seq).limit(limit))]

    def applied(self, pipeline: str, *, before: int | None = None) -> list[int]:
        """Return the numbers of the committed batches that started an engine, ascending; no document is loaded.

        :param before: only lower numbers; None for all.
        """
        c = schema.batches.c
        # a batch without records started none, nor did the ledger that took one over from the lake note any
        ended = func.coalesce(c.result["status"].as_string(), "") != ResultStatus.EMPTY
        query = select(c.seq).where(c.pipeline == pipeline, c.status == BatchStatus.COMMITTED)
        query = query.where(case((c.engine.is_not(None), true()), else_=ended))
        query = query if before is None else query.where(c.seq < before)
        with self._database.reading() as connection:
            return list(connection.execute(query.order_by(c.seq)).scalars())

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

    def progressed(self, lease: Lease, seq: int, progress: Document) -> None:
        """Record how far the engine of a planned batch is.

        :raises BusyError: the lease is lost.
        """
        self._set(lease, seq, lambda at: {"progress": {**progress, "at": at, "lease": lease.token}})

    def _set(self, lease: Lease, seq: int, columns: Callable[[str | None], Document]) -> None:
        """Set columns of a planned batch.

        :param columns: takes the database's time.
        """
        lease.check()
        with self._database.writing() as connection:
            rows.change_planned(connection, lease, seq, columns(time_text(now(connection))))

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

    def lake(self, pipeline: str) -> dict[str, Any] | None:
        """Return the identity of the lake that the pipeline's newest batch was written to, None where it is unknown."""
        with self._database.reading() as connection:
            query = select(schema.pipelines.c.lake).where(schema.pipelines.c.name == pipeline)
            return connection.execute(query).scalar()

    def adopt(self, lease: Lease, lake: Document) -> None:
        """Record the lake that is the pipeline's from now on.

        :raises BusyError: the lease is lost.
        """
        lease.check()
        with self._database.writing() as connection:
            rows.fence(connection, lease)
            rows.store_lake(connection, lease.pipeline, lake)

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

    def _annotate(self, lease: Lease, seq: int, note: Document) -> Document | None:
        """Store a note with a planned batch, in the place of its result; return the note before."""
        lease.check()
        with self._database.writing() as connection:
            return rows.change_planned(connection, lease, seq, {"result": dict(note)})

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

    def take_over(self, lease: Lease, after: int, batches: Sequence[LakeBatch]) -> None:
        """Replace all batches behind one by those of the lake, in one transaction.

        A ledger that was lost, is new or was restored from a backup learns this way what was done. What it replaces was
        planned or read nothing.

        :param after: number of the newest batch that the ledger and the lake share, 0 for none. Where the first of
            ``batches`` stands for all before it, it replaces these, too.
        :param batches: ascending; one without result is to be finished next.
        :raises BusyError: the lease is lost.
        """
        lease.check()
        c = schema.batches.c
        with self._database.writing() as connection:
            rows.fence(connection, lease)
            if batches[0].past:
                after, versions = 0, schema.table_versions.c
                old = (versions.pipeline == lease.pipeline, versions.seq <= batches[0].seq)
                connection.execute(delete(schema.table_versions).where(*old))
            connection.execute(delete(schema.batches).where(c.pipeline == lease.pipeline, c.seq > after))
            time = time_text(now(connection))
            for batch in batches:
                done = batch.result is not None
                values = {
                    "pipeline": lease.pipeline,
                    "seq": batch.seq,
                    "kind": SYNC,
                    "status": BatchStatus.COMMITTED if done else BatchStatus.PLANNED,
                    "start": batch.start,
                    "end": batch.end,
                    "until": time_text(batch.until),
                    "cut_at": time_text(batch.cut_at),
                    "planned_at": time_text(batch.planned_at),
                    "committed_at": time if done else None,
                    "result": batch.result,
                    "topics": batch.topics,
                }
                connection.execute(insert(schema.batches).values(**values))
                whole = PastBatch(batch.seq, batch.tables, batch.schema_changes)
                for past in (*batch.past, whole):
                    rows.store_tables(connection, lease.pipeline, past.seq, past.tables)
                    rows.store_schema_changes(connection, lease.pipeline, past.seq, past.schema_changes)

    def fold(self, lease: Lease, batch: LakeBatch) -> int:
        """Let one batch stand for itself and all before it; return how many were removed.

        The latest time that a request of them reached stays, and so do the losses. Table states and schema changes are
        not touched.

        :param batch: its result is that of all of them; nothing happens where the ledger does not have it.
        :raises BusyError: the lease is lost.
        """
        c = schema.batches.c
        mine = (c.pipeline == lease.pipeline, c.seq == batch.seq, c.status == BatchStatus.COMMITTED)
        before = (c.pipeline == lease.pipeline, c.seq < batch.seq)
        all_of_them = (c.pipeline == lease.pipeline, c.seq <= batch.seq, c.status == BatchStatus.COMMITTED)
        with self._database.writing() as connection:
            rows.fence(connection, lease)
            reached = connection.execute(select(func.max(c.until)).where(*all_of_them)).scalar()
            lost = connection.execute(select(c.lost).where(*all_of_them, c.lost.is_not(None)).order_by(c.seq)).scalars()
            values = {
                "start": batch.start,
                "until": reached,
                "lost": [loss for losses in lost for loss in losses] or None,
                "result": batch.result,
            }
            if connection.execute(select(func.count()).where(*before)).scalar() == 0:
                return 0
            if connection.execute(update(schema.batches).where(*mine).values(**values)).rowcount != 1:
                return 0
            return connection.execute(delete(schema.batches).where(*before)).rowcount

    def forget_empty(self, lease: Lease, before: datetime) -> int:
        """Delete batches without records that were committed before a time and say nothing new; return how many.

        The last batch stays, and each whose request reached further than those of all later ones.

        :raises BusyError: the lease is lost.
        """
        c, later = schema.batches.c, schema.batches.alias().c
        committed = (later.pipeline == c.pipeline, later.seq > c.seq, later.status == BatchStatus.COMMITTED)
        reached = select(later.seq).where(*committed, c.until.is_(None) | (later.until >= c.until))
        old = (c.pipeline == lease.pipeline, c.status == BatchStatus.COMMITTED, c.committed_at < time_text(before))
        empty = (c.result["status"].as_string() == ResultStatus.EMPTY, c.lost.is_(None))
        with self._database.writing() as connection:
            rows.fence(connection, lease)
            return connection.execute(delete(schema.batches).where(*old, *empty, reached.exists())).rowcount

    def forget_states(self, lease: Lease, through: int) -> int:
        """Delete past states of tables, up to a batch; the newest of each table stays. Return how many.

        :raises BusyError: the lease is lost.
        """
        lease.check()
        c, newer = schema.table_versions.c, schema.table_versions.alias().c
        behind = select(newer.seq).where(
            newer.pipeline == c.pipeline, newer.table_id == c.table_id, newer.seq > c.seq, newer.seq <= through
        )
        old = (c.pipeline == lease.pipeline, c.seq <= through, behind.exists())
        with self._database.writing() as connection:
            rows.fence(connection, lease)
            return connection.execute(delete(schema.table_versions).where(*old)).rowcount

    # ---- tables and schema changes

    def pipelines(self) -> list[str]:
        """Return the names of all pipelines, sorted."""
        with self._database.reading() as connection:
            return sorted(connection.execute(select(schema.pipelines.c.name)).scalars())

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

    # ---- asset events

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

    # ---- health

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

    # ---- progress

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

    def _batch(self, query: Any) -> Batch | None:
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
            return None if row is None else rows.as_batch(row)
