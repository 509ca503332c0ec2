# SPDX-License-Identifier: Apache-2.0
"""Give the lease of a pipeline to one holder at a time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select, update

from airflow_provider_cdc.ledger import rows, schema
from airflow_provider_cdc.ledger.database import Database, now
from airflow_provider_cdc.ledger.lease import Lease
from airflow_provider_cdc.ledger.owner import Owner, TaskTry
from airflow_provider_cdc.ledger.records import time_text


class LeaseHolders:
    """The part of the ledger that knows who works on which pipeline."""

    _database: Database

    def lease(self, pipeline: str, owner: Owner, seconds: float = 60, *, handed_over: int | None = None) -> Lease:
        """Take the lease of a pipeline, atomically; a task's later try takes over that of its earlier one.

        :param owner: the new holder; a text in words that an operator understands (user, host, process).
        :param seconds: time that the pipeline stays leased after the holder died.
        :param handed_over: token of the lease that an earlier process of this holder handed over.
        :raises BusyError: code ``ledger.busy``; names the holder, and since and until when.
        """
        with self._database.writing() as connection:
            rows.ensure_pipeline(connection, pipeline)
            row = rows.locked_pipeline(connection, pipeline)
            assert row is not None
            since = now(connection)
            until = since + timedelta(seconds=seconds)
            mine = (schema.pipelines.c.name == pipeline, schema.pipelines.c.lease_token == row.lease_token)
            free = row.lease_owner is None or row.lease_until <= str(time_text(since)) or row.lease_token == handed_over
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
