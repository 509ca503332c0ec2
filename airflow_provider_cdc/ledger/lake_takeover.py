# SPDX-License-Identifier: Apache-2.0
"""Keep the ledger and the lake in step: take batches over from the lake, and forget what its maintenance folded."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import delete, func, insert, select, update

from airflow_provider_cdc.core.model.status import BatchStatus, ResultStatus
from airflow_provider_cdc.ledger import rows, schema
from airflow_provider_cdc.ledger.database import Database, now
from airflow_provider_cdc.ledger.lease import Lease
from airflow_provider_cdc.ledger.records import SYNC, LakeBatch, PastBatch, time_text
from airflow_provider_cdc.ledger.rows import Document


class LakeTakeover:
    """The part of the ledger that follows the lake."""

    _database: Database

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
