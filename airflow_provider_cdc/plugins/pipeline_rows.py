# SPDX-License-Identifier: Apache-2.0
"""Read the list of pipelines from a ledger: a bounded number of statements and of rows, whatever the ledger holds.

Never values or bytes of records: of results only the members that are named here leave the modules ``…_rows``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.engine import Connection
from sqlalchemy.sql import Select, func, select

from airflow_provider_cdc.core.model.status import ResultStatus, TableStatus
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.ledger import schema
from airflow_provider_cdc.ledger.health import (
    UNSETTLED,
    failed_attempts,
    last_attempts,
    records_since,
    unsettled_tables,
)
from airflow_provider_cdc.ledger.records import time_text
from airflow_provider_cdc.observability.freshness import NEWEST
from airflow_provider_cdc.plugins.batch_rows import of_result, run_of
from airflow_provider_cdc.plugins.lag_rows import newest_figure, newest_figures
from airflow_provider_cdc.plugins.pipeline_states import Runs, pipeline_state
from airflow_provider_cdc.plugins.running import running_progress

Document = dict[str, Any]

_APPLIED = (ResultStatus.DONE, ResultStatus.PARKED, ResultStatus.WAITING)
_LOOK_BACK = 20
"""So many of the newest batches are looked through for a DAG or a cut."""

_pipelines, _batches, _tables = schema.pipelines.c, schema.batches.c, schema.tables.c


def readable_pipelines(connection: Connection, dag_ids: Collection[str], name: str | None = None) -> list[str]:
    """Return the pipelines that a user may see: those of readable DAGs, and those that no DAG has run.

    A pipeline is of the DAG that leased it last, of the DAG that ran its newest batches, and of the DAG whose attempt
    was the last one.

    :param dag_ids: DAGs that the user may read.
    :param name: look only for this one.
    """
    recent = select(_batches.dag_id).where(
        _batches.pipeline == _pipelines.name, _batches.seq > _newest_seq() - _LOOK_BACK, _batches.dag_id.is_not(None)
    )
    ran = recent.order_by(_batches.seq.desc()).limit(1).correlate(schema.pipelines).scalar_subquery()
    join = schema.pipelines.outerjoin(schema.attempts, schema.attempts.c.pipeline == _pipelines.name)
    columns = _pipelines.name, _pipelines.lease_dag_id, ran.label("ran"), schema.attempts.c.dag_id.label("tried")
    query = select(*columns).select_from(join)
    if name is not None:
        query = query.where(_pipelines.name == name)
    readable = []
    for row in connection.execute(query):
        owners = {dag_id for dag_id in (row.lease_dag_id, row.ran, row.tried) if dag_id is not None}
        if not owners or owners & set(dag_ids):
            readable.append(row.name)
    return readable


def _newest_seq() -> Any:
    """Return the subquery of the number of the newest batch of the pipeline in the statement around it."""
    other = schema.batches.alias()
    newest = select(func.max(other.c.seq)).where(other.c.pipeline == _pipelines.name)
    return newest.correlate(schema.pipelines).scalar_subquery()


def pipeline_page(
    connection: Connection, dag_ids: Collection[str], *, search: str, offset: int, limit: int
) -> Document:
    """Return some of the readable pipelines: failing ones first, then by parked and by waiting tables, then by name."""
    total = connection.execute(select(func.count()).select_from(schema.pipelines)).scalar_one()
    readable = readable_pipelines(connection, dag_ids)
    matching = [name for name in readable if search.lower() in name.lower()]
    unsettled = _unsettled(connection)
    failing = {row.pipeline for row in connection.execute(failed_attempts(matching))}
    by_state = {name: [-unsettled.get((name, str(state)), 0) for state in UNSETTLED] for name in matching}
    matching.sort(key=lambda name: (name not in failing, *by_state[name], name))
    shown = matching[offset : offset + limit]
    return {
        "pipelines": pipelines(connection, shown, dag_ids),
        "total": len(matching),
        "hidden": total - len(readable),
    }


def _unsettled(connection: Connection) -> dict[tuple[str, str], int]:
    """Return the number of parked and of waiting tables by pipeline and state; pipelines without any are left out."""
    query = select(_tables.pipeline, _tables.state, func.count()).where(_tables.state.in_(UNSETTLED))
    query = query.group_by(_tables.pipeline, _tables.state)
    return {(name, state): count for name, state, count in connection.execute(query)}


def pipeline(connection: Connection, name: str, dag_ids: Collection[str]) -> Document:
    """Return the overview of one pipeline, with how many records were read since a table of it stopped."""
    (line,) = pipelines(connection, [name], dag_ids)
    unsettled = unsettled_tables(connection, [name])
    counts = records_since(connection, name, {table.seq for table in unsettled}) if unsettled else {}
    return {**line, "unsettled_records": max(counts.values(), default=None)}


def pipelines(connection: Connection, names: Sequence[str], dag_ids: Collection[str]) -> list[Document]:
    """Return the overview of each pipeline, in the order of the names."""
    now = datetime.now(UTC)
    tables = _table_counts(connection, names)
    last = {row.name: row for row in connection.execute(_last_batches(names))}
    cuts = _cuts(connection, list(last.values()))
    figures = newest_figures(connection, names)
    attempts = {row.pipeline: row for row in connection.execute(last_attempts(names))}
    unsettled = unsettled_tables(connection, names)
    batch_times = _batch_times(connection, names)
    lines = []
    for name in names:
        counts, batch, attempt = tables.get(name, {}), last.get(name), attempts.get(name)
        lag, runs = newest_figure(figures.get(name, []), now), Runs.seen(batch_times.get(name, []), batch, attempt)
        rests = runs.rest(lag, now)
        line = {
            "name": name,
            "state": pipeline_state(counts, batch, attempt, now, rests=rests),
            "rests": rests,
            "ran_at": time_text(runs.ran_at),
            "usual_seconds": runs.usual_seconds(),
            "tables": {state: counts.get(state, 0) for state in TableStatus},
            "batch": _batch_line(batch, dag_ids, now) if batch is not None and batch.seq is not None else None,
            "cut": _cut(cuts.get(name), counts),
            "lag": lag,
            "attempt": _failed_attempt(attempt, dag_ids),
            "unsettled_since": min((t.since for t in unsettled if t.pipeline == name and t.since), default=None),
        }
        lines.append(line)
    return lines


def _table_counts(connection: Connection, names: Sequence[str]) -> dict[str, dict[str, int]]:
    query = select(_tables.pipeline, _tables.state, func.count().label("number"))
    query = query.where(_tables.state.in_(list(TableStatus)), _tables.pipeline.in_(names))
    counts: dict[str, dict[str, int]] = {}
    for row in connection.execute(query.group_by(_tables.pipeline, _tables.state)):
        counts.setdefault(row.pipeline, {})[row.state] = row.number
    return counts


def _last_batches(names: Sequence[str]) -> Select[Any]:
    """Return the query of each pipeline's newest batch, with outcome and cut, and of who works on it."""
    newest = _newest_seq()
    join = schema.pipelines.outerjoin(schema.batches, (_batches.pipeline == _pipelines.name) & (_batches.seq == newest))
    columns = [_pipelines.name, _pipelines.lease_owner, _pipelines.lease_since]
    columns += [_pipelines.lease_until, _pipelines.lease_token]
    columns += [column for column in schema.batches.columns if column.name not in ("start", "end", "topics", "lost")]
    return (
        select(
            *_without_result(columns),
            of_result(_batches, "status").as_string().label("outcome"),
            of_result(_batches, "cut").label("cut"),
        )
        .select_from(join)
        .where(_pipelines.name.in_(names))
    )


def _without_result(columns: Sequence[Any]) -> list[Any]:
    return [column for column in columns if column.name != "result"]


def _cuts(connection: Connection, last: Sequence[Any]) -> dict[str, Document]:
    """Return the cut of each pipeline's newest batch that applied something.

    :param last: rows of :func:`_last_batches`; mostly the batch is among them.
    """
    cuts = {row.name: row.cut for row in last if row.outcome in _APPLIED}
    others = [row.name for row in last if row.seq is not None and row.name not in cuts]
    if others:
        cuts |= {row.pipeline: row.cut for row in connection.execute(_earlier_cuts(others))}
    return cuts


def _earlier_cuts(names: Sequence[str]) -> Select[Any]:
    other = schema.batches.alias()
    # Ordered, not max(): results are large, and the database reads them from the newest one on until one fits.
    applied = select(other.c.seq).where(
        other.c.pipeline == _pipelines.name, other.c.seq > _newest_seq() - _LOOK_BACK,
        of_result(other.c, "status").as_string().in_(_APPLIED),
    ).order_by(other.c.seq.desc()).limit(1).correlate(schema.pipelines)  # fmt: skip
    join = schema.pipelines.join(
        schema.batches, (_batches.pipeline == _pipelines.name) & (_batches.seq == applied.scalar_subquery())
    )
    columns = _batches.pipeline, of_result(_batches, "cut").label("cut")
    return select(*columns).select_from(join).where(_pipelines.name.in_(names))


def _batch_times(connection: Connection, names: Sequence[str]) -> dict[str, list[datetime]]:
    """Return when the newest batches of pipelines were planned, oldest first."""
    other = schema.batches.alias()
    newest = select(func.max(other.c.seq)).where(other.c.pipeline == _batches.pipeline).scalar_subquery()
    query = select(_batches.pipeline, _batches.planned_at).where(
        _batches.pipeline.in_(names), _batches.seq > newest - NEWEST
    )
    times: dict[str, list[datetime]] = {}
    for row in connection.execute(query.order_by(_batches.pipeline, _batches.seq)):
        times.setdefault(row.pipeline, []).append(datetime.fromisoformat(row.planned_at))
    return times


def _failed_attempt(row: Any, dag_ids: Collection[str]) -> Document | None:
    """Return when and why the last attempt at a batch failed, None where it did not."""
    if row is None or not row.code:
        return None
    return {"at": row.at, "code": printable(row.code), "run": run_of(row, dag_ids)}


def _batch_line(row: Any, dag_ids: Collection[str], now: datetime) -> Document:
    return {
        "seq": row.seq,
        "status": row.status,
        "outcome": row.outcome,
        "until": row.until,
        "planned_at": row.planned_at,
        "committed_at": row.committed_at,
        "run": run_of(row, dag_ids),
        "progress": running_progress(row, now),
        "holder": None
        if row.lease_owner is None
        else {"owner": printable(row.lease_owner), "since": row.lease_since, "until": row.lease_until},
    }


def _cut(document: object, tables: Mapping[str, int]) -> Document | None:
    if not isinstance(document, dict):
        return None
    # A table that was parked then may be settled now: only what the tables say now counts.
    consistent = not any(tables.get(state) for state in UNSETTLED)
    position = document.get("position")
    return {
        "source_time": document.get("source_time"),
        "position": None if position is None else printable(str(position)),
        "consistent": consistent,
    }
