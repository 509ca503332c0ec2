# SPDX-License-Identifier: Apache-2.0
"""Find batches of a pipeline, planned and committed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import case, func, select, true

from airflow_provider_cdc.core.model.status import BatchStatus, ResultStatus
from airflow_provider_cdc.ledger import rows, schema
from airflow_provider_cdc.ledger.database import Database
from airflow_provider_cdc.ledger.records import SYNC, Batch, parse_time, time_text


class BatchQueries:
    """The part of the ledger that reads batches."""

    _database: Database

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

    def _batch(self, query: Any) -> Batch | None:
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
            return None if row is None else rows.as_batch(row)
