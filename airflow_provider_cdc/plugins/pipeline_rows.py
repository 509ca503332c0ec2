# SPDX-License-Identifier: Apache-2.0
"""Read the list of pipelines from a ledger: a bounded number of statements and of rows, whatever the ledger holds.

Never values or bytes of records: of results only the members that are named here leave the modules ``…_rows``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.engine import Connection
from sqlalchemy.sql import Select, case, func, select

from airflow_provider_cdc.core.model.status import BatchStatus, ResultStatus, TableStatus
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.ledger import schema
from airflow_provider_cdc.ledger.health import (
    UNSETTLED,
    last_attempts,
    records_since,
    unsettled_since,
    unsettled_tables,
)
from airflow_provider_cdc.ledger.records import time_text
from airflow_provider_cdc.observability.freshness import NEWEST
from airflow_provider_cdc.plugins.batch_rows import of_result, run_of
from airflow_provider_cdc.plugins.lag_rows import newest_figure, newest_figures, sparklines
from airflow_provider_cdc.plugins.pipeline_states import GROUPS, Runs, Standing, standing
from airflow_provider_cdc.plugins.running import running_progress

Document = dict[str, Any]

_APPLIED = (ResultStatus.DONE, ResultStatus.PARKED, ResultStatus.WAITING)
_LOOK_BACK = 20
"""So many of the newest batches are looked through for a DAG or a cut."""

_pipelines, _batches, _tables = schema.pipelines.c, schema.batches.c, schema.tables.c


def readable_pipelines(
    connection: Connection, dag_ids: Collection[str], name: str | None = None
) -> tuple[dict[str, str | None], int]:
    """Return the pipelines that a user may see, each with its DAG, and the number of the others.

    He may see those of readable DAGs, and those that no DAG has run. A pipeline is of the DAG that ran its newest
    batches, of the DAG that leased it last, and of the DAG whose attempt was the last one.

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
    readable: dict[str, str | None] = {}
    hidden = 0
    for row in connection.execute(query):
        owners = [dag_id for dag_id in (row.ran, row.lease_dag_id, row.tried) if dag_id is not None]
        allowed = [dag_id for dag_id in owners if dag_id in dag_ids]
        if allowed or not owners:
            readable[row.name] = allowed[0] if allowed else None
        else:
            hidden += 1
    return readable, hidden


def _newest_seq() -> Any:
    """Return the subquery of the number of the newest batch of the pipeline in the statement around it."""
    other = schema.batches.alias()
    newest = select(func.max(other.c.seq)).where(other.c.pipeline == _pipelines.name)
    return newest.correlate(schema.pipelines).scalar_subquery()


def pipeline_page(
    connection: Connection,
    dag_ids: Collection[str],
    *,
    search: str = "",
    group: str | None = None,
    of: DagPart | None = None,
    offset: int = 0,
    limit: int = 50,
) -> Document:
    """Return some of the readable pipelines: by group of states, of each first what is so for longest, then by name.

    :param search: part of a pipeline's or of its DAG's name.
    :param group: only those of this group of states.
    :param of: only those of this DAG, or of a task of it.
    """
    dags, hidden = readable_pipelines(connection, dag_ids)
    if of is not None:
        dags, hidden = {name: dag for name, dag in dags.items() if dag == of.dag_id}, 0
    searched = [name for name, dag in dags.items() if search.lower() in f"{name}\n{dag or ''}".lower()]
    known = read_standings(connection, searched)
    if of is not None:
        searched = of.pipelines_in(known)
        known = {name: known[name] for name in searched}
    groups = list(GROUPS)
    matching = [name for name in searched if group is None or known[name].standing.group == group]

    def urgency(name: str) -> tuple[int, str, str]:
        one = known[name].standing
        return groups.index(one.group), "" if one.group == "ok" else one.since or "", name

    shown = sorted(matching, key=urgency)[offset : offset + limit]
    return {
        "pipelines": pipelines(connection, shown, dags, dag_ids, known),
        "counts": {name: Counter(one.standing.group for one in known.values())[name] for name in groups},
        "total": len(matching),
        "hidden": hidden,
    }


@dataclass(frozen=True)
class DagPart:
    """A DAG, or a task of it.

    :param task_id: None for all tasks.
    """

    dag_id: str
    task_id: str | None = None

    def pipelines_in(self, known: Mapping[str, Known]) -> list[str]:
        """Return the pipelines whose newest batch or attempt was the task's; all where none was, as of a sensor."""

        def worked(one: Known) -> bool:
            return any(row is not None and row.task_id == self.task_id for row in (one.last, one.attempt))

        if self.task_id is None:
            return list(known)
        return [name for name, one in known.items() if worked(one)] or list(known)


def pipeline(connection: Connection, name: str, dag_ids: Collection[str]) -> Document:
    """Return the overview of one pipeline, with how many records were read since a table of it stopped."""
    dags, _ = readable_pipelines(connection, dag_ids, name)
    (line,) = pipelines(connection, [name], dags, dag_ids, read_standings(connection, [name]))
    unsettled = unsettled_tables(connection, [name])
    counts = records_since(connection, name, {table.seq for table in unsettled}) if unsettled else {}
    return {**line, "unsettled_records": max(counts.values(), default=None)}


@dataclass(frozen=True)
class Known:
    """Hold what is with a pipeline, and what that was read from.

    :param last: row of the newest batch and of the lease.
    :param attempt: row of the last attempt, None without one.
    :param lag: newest figure of its lag.
    :param unsettled: since when tables have stopped, by state.
    """

    standing: Standing
    runs: Runs
    last: Any
    attempt: Any
    lag: Document | None
    unsettled: Mapping[str, str | None]
    rests: bool


def read_standings(connection: Connection, names: Sequence[str]) -> dict[str, Known]:
    """Return what is with each pipeline."""
    now = datetime.now(UTC)
    last = {row.name: row for row in connection.execute(_last_batches(names))}
    figures = newest_figures(connection, names)
    attempts = {row.pipeline: row for row in connection.execute(last_attempts(names))}
    unsettled = unsettled_since(connection, names)
    batch_times = _batch_times(connection, names)
    known = {}
    for name in names:
        batch, attempt, stopped = last.get(name), attempts.get(name), unsettled.get(name, {})
        lag, runs = newest_figure(figures.get(name, []), now), Runs.seen(batch_times.get(name, []), batch, attempt)
        is_so = standing(stopped, batch, attempt, runs, lag, now)
        known[name] = Known(is_so, runs, batch, attempt, lag, stopped, runs.rest(lag, now))
    return known


def pipelines(
    connection: Connection,
    names: Sequence[str],
    dags: Mapping[str, str | None],
    dag_ids: Collection[str],
    known: Mapping[str, Known],
) -> list[Document]:
    """Return the overview of each pipeline, in the order of the names."""
    now = datetime.now(UTC)
    tables = _table_counts(connection, names)
    results = {row.pipeline: row for row in connection.execute(_last_results(names))}
    cuts = _cuts(connection, names, results)
    lags = sparklines(connection, names, now)
    lines = []
    for name in names:
        one, counts = known[name], tables.get(name, {})
        has_batch = one.last is not None and one.last.seq is not None
        outcome = results[name].outcome if name in results else None
        line = {
            "name": name,
            "dag": dags.get(name),
            "state": one.standing.state,
            "group": one.standing.group,
            "since": one.standing.since,
            "rests": one.rests,
            "ran_at": time_text(one.runs.ran_at),
            "usual_seconds": one.runs.usual_seconds(),
            "bound_seconds": one.runs.bound().total_seconds(),
            "tables": {state: counts.get(state, 0) for state in TableStatus},
            "batch": _batch_line(one.last, outcome, dag_ids, now) if has_batch else None,
            "cut": _cut(cuts.get(name), counts),
            "lag": one.lag,
            "lags": lags.get(name),
            "attempt": _failed_attempt(one.attempt, dag_ids),
            "unsettled_since": min(filter(None, one.unsettled.values()), default=None),
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
    """Return the query of each pipeline's newest batch, and of who works on it; without what it brought.

    Results are large: only of a batch that is not done the outcome is read, since the state depends on it.
    """
    join = schema.pipelines.outerjoin(
        schema.batches, (_batches.pipeline == _pipelines.name) & (_batches.seq == _newest_seq())
    )
    columns = [_pipelines.name, _pipelines.lease_owner, _pipelines.lease_since]
    columns += [_pipelines.lease_until, _pipelines.lease_token]
    large = ("start", "end", "topics", "lost", "result")
    columns += [column for column in schema.batches.columns if column.name not in large]
    outcome = case((_batches.status == BatchStatus.PLANNED, of_result(_batches, "status").as_string()))
    return select(*columns, outcome.label("outcome")).select_from(join).where(_pipelines.name.in_(names))


def _last_results(names: Sequence[str]) -> Select[Any]:
    """Return the query of outcome and cut of each pipeline's newest batch."""
    join = schema.pipelines.join(
        schema.batches, (_batches.pipeline == _pipelines.name) & (_batches.seq == _newest_seq())
    )
    outcome, cut = of_result(_batches, "status").as_string(), of_result(_batches, "cut")
    columns = _batches.pipeline, outcome.label("outcome"), cut.label("cut")
    return select(*columns).select_from(join).where(_pipelines.name.in_(names))


def _cuts(connection: Connection, names: Sequence[str], last: Mapping[str, Any]) -> dict[str, Document]:
    """Return the cut of each pipeline's newest batch that applied something.

    :param last: rows of :func:`_last_results`; mostly the batch is among them.
    """
    cuts = {name: row.cut for name, row in last.items() if row.outcome in _APPLIED}
    others = [name for name in names if name in last and name not in cuts]
    if others:
        cuts |= {row.pipeline: row.cut for row in connection.execute(_earlier_cuts(others))}
    return cuts


def cut_of(connection: Connection, pipeline: str) -> Document | None:
    """Return the cut of a pipeline's newest batch that applied something, as the ledger has it; None without one."""
    results = {row.pipeline: row for row in connection.execute(_last_results([pipeline]))}
    return _cuts(connection, [pipeline], results).get(pipeline)


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


def _batch_line(row: Any, outcome: str | None, dag_ids: Collection[str], now: datetime) -> Document:
    return {
        "seq": row.seq,
        "status": row.status,
        "outcome": outcome,
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
