# SPDX-License-Identifier: Apache-2.0
"""Read and write what is wrong with pipelines now: how the last attempt ended, and since when tables are unsettled."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, insert, select
from sqlalchemy.engine import Connection
from sqlalchemy.sql import Select

from airflow_provider_cdc.core.model.status import BatchStatus, TableStatus
from airflow_provider_cdc.ledger import schema
from airflow_provider_cdc.ledger.database import now
from airflow_provider_cdc.ledger.owner import Owner, TaskTry
from airflow_provider_cdc.ledger.records import time_text

UNSETTLED = (TableStatus.PARKED, TableStatus.WAITING)

_tables = schema.tables.c


@dataclass(frozen=True)
class UnsettledTable:
    """A table that is parked or waits.

    :param seq: number of the batch from which on its changes are not applied.
    :param since: ISO time at which the batch was planned from which on its changes are not applied; None if the ledger
        does not have that batch any more.
    :param at_least: whether it may have been so for longer: earlier states of it were forgotten with the log.
    :param source_time: newest source time that its rows hold, microseconds since 1970; None before the first row.
    :param code: of the error behind ``reason``, empty where none is.
    """

    pipeline: str
    table_id: str
    database: str
    table: str
    state: TableStatus
    seq: int
    since: str | None
    at_least: bool
    source_time: int | None
    code: str
    reason: str


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


def unsettled_tables(
    connection: Connection, names: Sequence[str], table_ids: Sequence[str] | None = None
) -> list[UnsettledTable]:
    """Return the parked and waiting tables of pipelines.

    :param table_ids: only these; None for all.
    """
    seq, last_settled = _stopped_at()
    columns = (
        _tables.pipeline,
        _tables.table_id,
        _tables.document,
        seq.label("seq"),
        schema.batches.c.planned_at,
        last_settled.label("ok"),
    )
    query = _unsettled(columns, names)
    if table_ids is not None:
        query = query.where(_tables.table_id.in_(table_ids))
    return [
        UnsettledTable(
            row.pipeline,
            row.table_id,
            row.document["database"],
            row.document["table"],
            TableStatus(row.document["state"]),
            row.seq,
            row.planned_at,
            row.ok is None and row.document.get("applied_seq", 0) > 0,
            row.document.get("source_time"),
            row.document.get("code", ""),
            row.document.get("reason", ""),
        )
        for row in connection.execute(query)
    ]


def unsettled_since(connection: Connection, names: Sequence[str]) -> dict[str, dict[str, str | None]]:
    """Return since when the first parked and the first waiting table of each pipeline has stopped, by state.

    Pipelines without any are left out. The ISO time is None where the ledger does not have that batch any more.
    """
    columns = _tables.pipeline, _tables.state, func.min(schema.batches.c.planned_at).label("since")
    query = _unsettled(columns, names).group_by(_tables.pipeline, _tables.state)
    times: dict[str, dict[str, str | None]] = {}
    for row in connection.execute(query):
        times.setdefault(row.pipeline, {})[row.state] = row.since
    return times


def _unsettled(columns: Sequence[Any], names: Sequence[str]) -> Select[Any]:
    """Return the query of parked and waiting tables, each with the batch from which on its changes are not applied."""
    batch = (schema.batches.c.pipeline == _tables.pipeline) & (schema.batches.c.seq == _stopped_at()[0])
    query = select(*columns).select_from(schema.tables.outerjoin(schema.batches, batch))
    return query.where(_tables.pipeline.in_(names), _tables.state.in_(UNSETTLED))


def _stopped_at() -> tuple[Any, Any]:
    """Return the number of the batch since which a table is unsettled, and that of its last settled state before."""
    v, other = schema.table_versions.alias(), schema.table_versions.alias()
    of_table = (v.c.pipeline == _tables.pipeline, v.c.table_id == _tables.table_id)
    of_other = (other.c.pipeline == _tables.pipeline, other.c.table_id == _tables.table_id)
    settled = other.c.document.is_(None) | other.c.document["state"].as_string().not_in(UNSETTLED)
    last_settled = select(func.max(other.c.seq)).where(*of_other, settled).correlate(schema.tables).scalar_subquery()
    first = select(func.min(v.c.seq)).where(*of_table, v.c.seq > func.coalesce(last_settled, -1))
    return first.correlate(schema.tables).scalar_subquery(), last_settled


def records_since(connection: Connection, pipeline: str, seqs: Collection[int]) -> dict[int, int]:
    """Return how many records of the log were read since batches began, up to the end of the last committed one.

    They are those of all tables: of one table they are the most that it lacks.

    :param seqs: numbers of the batches. One that the ledger does not have any more is left out, and so is one before
        the log began again.
    """
    c = schema.batches.c
    done = select(func.max(c.seq)).where(c.pipeline == pipeline, c.status == BatchStatus.COMMITTED).scalar_subquery()
    query = select(c.seq, c.start, c.end, (c.seq == done).label("newest"))
    rows = list(connection.execute(query.where(c.pipeline == pipeline, c.seq.in_(seqs) | (c.seq == done))))
    ends = {tp: offset for row in rows if row.newest for tp, offset in _by_partition(row.end).items()}
    counts = {}
    for row in rows:
        starts = _by_partition(row.start)
        if row.seq in seqs and all(ends.get(tp, -1) >= start for tp, start in starts.items()):
            counts[row.seq] = sum(end - starts.get(tp, 0) for tp, end in ends.items())
    return counts


def _by_partition(offsets: Mapping[str, Mapping[str, int]]) -> dict[tuple[str, str], int]:
    return {(topic, partition): at for topic, parts in offsets.items() for partition, at in parts.items()}
