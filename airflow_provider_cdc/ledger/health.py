# SPDX-License-Identifier: Apache-2.0
"""Read and write what is wrong with pipelines now: how the last attempt ended, and since when tables are unsettled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, insert, select
from sqlalchemy.engine import Connection
from sqlalchemy.sql import Select

from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.ledger import schema
from airflow_provider_cdc.ledger.database import now
from airflow_provider_cdc.ledger.owner import Owner, TaskTry
from airflow_provider_cdc.ledger.records import time_text

UNSETTLED = (TableStatus.PARKED, TableStatus.WAITING)


@dataclass(frozen=True)
class UnsettledTable:
    """A table that is parked or waits.

    :param since: ISO time at which the batch was planned from which on its changes are not applied; None if the ledger
        does not have that batch any more.
    :param source_time: newest source time that its rows hold, microseconds since 1970; None before the first row.
    """

    pipeline: str
    database: str
    table: str
    state: TableStatus
    since: str | None
    source_time: int | None


def store_attempt(connection: Connection, pipeline: str, code: str, owner: Owner | None) -> None:
    """Record how the last attempt at a batch ended, in place of the one before.

    :param code: of its error, empty where it ended well.
    """
    c = schema.attempts.c
    connection.execute(delete(schema.attempts).where(c.pipeline == pipeline))
    values = {"pipeline": pipeline, "at": time_text(now(connection)), "code": code, **TaskTry.columns_of(owner)}
    connection.execute(insert(schema.attempts).values(**values))


def last_attempts(names: Sequence[str]) -> Select[Any]:
    """Return the query of each pipeline's last attempt: when it ended, with which code, and in which task."""
    return select(schema.attempts).where(schema.attempts.c.pipeline.in_(names))


def failed_attempts(names: Sequence[str]) -> Select[Any]:
    """Return the query of the pipelines whose last attempt failed: when, why, and in which task."""
    return last_attempts(names).where(schema.attempts.c.code != "")


def unsettled_tables(connection: Connection, names: Sequence[str]) -> list[UnsettledTable]:
    """Return the parked and waiting tables of pipelines."""
    t, v, other = schema.tables.c, schema.table_versions.alias(), schema.table_versions.alias()
    of_table = (v.c.pipeline == t.pipeline, v.c.table_id == t.table_id)
    of_other = (other.c.pipeline == t.pipeline, other.c.table_id == t.table_id)
    settled = other.c.document.is_(None) | other.c.document["state"].as_string().not_in(UNSETTLED)
    last_settled = select(func.max(other.c.seq)).where(*of_other, settled).correlate(schema.tables).scalar_subquery()
    first = select(func.min(v.c.seq)).where(*of_table, v.c.seq > func.coalesce(last_settled, -1))
    seq = first.correlate(schema.tables).scalar_subquery()
    join = schema.tables.outerjoin(
        schema.batches, (schema.batches.c.pipeline == t.pipeline) & (schema.batches.c.seq == seq)
    )
    query = select(t.pipeline, t.document, schema.batches.c.planned_at).select_from(join)
    rows = connection.execute(query.where(t.pipeline.in_(names), t.state.in_(UNSETTLED)))
    return [
        UnsettledTable(
            row.pipeline,
            row.document["database"],
            row.document["table"],
            TableStatus(row.document["state"]),
            row.planned_at,
            row.document.get("source_time"),
        )
        for row in rows
    ]
