# SPDX-License-Identifier: Apache-2.0
"""Read what the page shows from a ledger: a bounded number of statements and of rows, whatever the ledger holds.

Never values or bytes of records: of results only the members that are named here leave this module.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy.engine import Connection
from sqlalchemy.sql import Select, case, func, select

from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.documents.table_locations import owners_of_locations
from airflow_provider_cdc.core.model.status import ResultStatus, TableStatus
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.ledger import Batch, schema
from airflow_provider_cdc.ledger.health import failed_attempts, unsettled_tables
from airflow_provider_cdc.ledger.owner import TASK_COLUMNS
from airflow_provider_cdc.ledger.records import time_text
from airflow_provider_cdc.observability.freshness import BATCHES, is_present
from airflow_provider_cdc.plugins.column_changes import column_changes
from airflow_provider_cdc.plugins.statement_text import statement_text
from airflow_provider_cdc.plugins.table_states import table_state

Document = dict[str, Any]

_UNSETTLED = (TableStatus.PARKED, TableStatus.WAITING)
_APPLIED = (ResultStatus.DONE, ResultStatus.PARKED, ResultStatus.WAITING)
# So many of the newest batches are looked through for a DAG, a cut, or records in quarantine.
_LOOK_BACK, _QUARANTINE_WINDOW = 20, 100
_COUNTS = ("records", "changes", "schema_changes", "quarantined", "lossy", "contradictions")
_RESULT_MEMBERS = ("status", "seconds", "phases", "warnings", *_COUNTS)
_RECORD_MEMBERS = ("topic", "partition", "offset", "database", "table", "column")
# Samples of lag come each minute or less often: the shown intervals are the longer, the longer the time.
_INTERVALS = ((timedelta(hours=12), len("2026-01-01T00:00")), (timedelta(days=7), len("2026-01-01T00:0")))

_pipelines, _batches, _tables, _progress = schema.pipelines.c, schema.batches.c, schema.tables.c, schema.progress.c


# ---- pipelines


def readable_pipelines(connection: Connection, dag_ids: Collection[str], name: str | None = None) -> list[str]:
    """Return the pipelines that a user may see: those of readable DAGs, and those that no DAG has run.

    A pipeline is of the DAG that leased it last and of the DAG that ran its newest batches.

    :param dag_ids: DAGs that the user may read.
    :param name: look only for this one.
    """
    recent = select(_batches.dag_id).where(
        _batches.pipeline == _pipelines.name, _batches.seq > _newest_seq() - _LOOK_BACK, _batches.dag_id.is_not(None)
    )
    ran = recent.order_by(_batches.seq.desc()).limit(1).correlate(schema.pipelines).scalar_subquery()
    query = select(_pipelines.name, _pipelines.lease_dag_id, ran.label("ran"))
    if name is not None:
        query = query.where(_pipelines.name == name)
    readable = []
    for row in connection.execute(query):
        owners = {dag_id for dag_id in (row.lease_dag_id, row.ran) if dag_id is not None}
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
    by_state = {name: [-unsettled.get((name, str(state)), 0) for state in _UNSETTLED] for name in matching}
    matching.sort(key=lambda name: (name not in failing, *by_state[name], name))
    shown = matching[offset : offset + limit]
    return {
        "pipelines": pipelines(connection, shown, dag_ids),
        "total": len(matching),
        "hidden": total - len(readable),
    }


def _unsettled(connection: Connection) -> dict[tuple[str, str], int]:
    """Return the number of parked and of waiting tables by pipeline and state; pipelines without any are left out."""
    query = select(_tables.pipeline, _tables.state, func.count()).where(_tables.state.in_(_UNSETTLED))
    query = query.group_by(_tables.pipeline, _tables.state)
    return {(name, state): count for name, state, count in connection.execute(query)}


def pipelines(connection: Connection, names: Sequence[str], dag_ids: Collection[str]) -> list[Document]:
    """Return the overview of each pipeline, in the order of the names."""
    tables = _table_counts(connection, names)
    last = {row.name: row for row in connection.execute(_last_batches(names))}
    cuts = _cuts(connection, list(last.values()))
    lags = {row.pipeline: row for row in connection.execute(_last_samples(names))}
    attempts = {row.pipeline: row for row in connection.execute(failed_attempts(names))}
    unsettled = unsettled_tables(connection, names)
    distances = _batch_times(connection, names)
    return [
        {
            "name": name,
            "state": _pipeline_state(
                tables.get(name, {}), last.get(name), distances.get(name, []), lags.get(name), failing=name in attempts
            ),
            "tables": {state: tables.get(name, {}).get(state, 0) for state in TableStatus},
            "batch": _batch_line(last[name], dag_ids) if name in last and last[name].seq is not None else None,
            "cut": _cut(cuts.get(name), tables.get(name, {})),
            "lag": _sample(lags.get(name), distances.get(name, [])),
            "attempt": _attempt(attempts.get(name), dag_ids),
            "unsettled_since": min((t.since for t in unsettled if t.pipeline == name and t.since), default=None),
        }
        for name in names
    ]


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
    columns = [_pipelines.name, _pipelines.lease_owner, _pipelines.lease_since, _pipelines.lease_until]
    columns += [column for column in schema.batches.columns if column.name not in ("start", "end", "topics", "lost")]
    return (
        select(
            *_without_result(columns),
            _stored(_batches, "status").as_string().label("outcome"),
            _stored(_batches, "cut").label("cut"),
        )
        .select_from(join)
        .where(_pipelines.name.in_(names))
    )


def _stored(columns: Any, member: str) -> Any:
    """Return the expression of a member of stored results.

    :param columns: those of the batches, or of an alias.
    """
    return columns["result"][member]


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
        _stored(other.c, "status").as_string().in_(_APPLIED),
    ).order_by(other.c.seq.desc()).limit(1).correlate(schema.pipelines)  # fmt: skip
    join = schema.pipelines.join(
        schema.batches, (_batches.pipeline == _pipelines.name) & (_batches.seq == applied.scalar_subquery())
    )
    columns = _batches.pipeline, _stored(_batches, "cut").label("cut")
    return select(*columns).select_from(join).where(_pipelines.name.in_(names))


def _last_samples(names: Sequence[str]) -> Select[Any]:
    other = schema.progress.alias()
    of_pipeline = select(func.max(other.c.seen_at)).where(other.c.pipeline == _pipelines.name)
    newest = of_pipeline.correlate(schema.pipelines).scalar_subquery()
    join = schema.pipelines.join(
        schema.progress, (_progress.pipeline == _pipelines.name) & (_progress.seen_at == newest)
    )
    return select(*schema.progress.columns).select_from(join).where(_pipelines.name.in_(names))


def _batch_times(connection: Connection, names: Sequence[str]) -> dict[str, list[datetime]]:
    """Return when the newest batches of pipelines were planned, oldest first."""
    other = schema.batches.alias()
    newest = select(func.max(other.c.seq)).where(other.c.pipeline == _batches.pipeline).scalar_subquery()
    query = select(_batches.pipeline, _batches.planned_at).where(
        _batches.pipeline.in_(names), _batches.seq > newest - BATCHES
    )
    times: dict[str, list[datetime]] = {}
    for row in connection.execute(query.order_by(_batches.pipeline, _batches.seq)):
        times.setdefault(row.pipeline, []).append(datetime.fromisoformat(row.planned_at))
    return times


def _attempt(row: Any, dag_ids: Collection[str]) -> Document | None:
    """Return when and why the last attempt at a batch failed, None where it did not."""
    return None if row is None else {"at": row.at, "code": printable(row.code), "run": _run(row, dag_ids)}


def _pipeline_state(
    tables: Mapping[str, int], last: Any, batch_times: Sequence[datetime], sample: Any, *, failing: bool
) -> str:
    """Return one word for a pipeline; ``stale`` where nobody has looked or worked for longer than usual."""
    if last is not None and last.status == "planned" and last.outcome in (ResultStatus.REFUSED, ResultStatus.CRASHED):
        return str(last.outcome)
    if failing:
        return "failing"
    for state in _UNSETTLED:
        if tables.get(state):
            return str(state)
    if last is None or last.status is None:
        return "new"
    if last.status == "planned":
        return "running"
    seen = max([*batch_times, *([] if sample is None else [datetime.fromisoformat(sample.seen_at)])])
    return "ok" if len(batch_times) < 2 or is_present(seen, datetime.now(UTC), batch_times) else "stale"


def _batch_line(row: Any, dag_ids: Collection[str]) -> Document:
    return {
        "seq": row.seq,
        "status": row.status,
        "outcome": row.outcome,
        "until": row.until,
        "planned_at": row.planned_at,
        "committed_at": row.committed_at,
        "run": _run(row, dag_ids),
        "holder": None
        if row.lease_owner is None
        else {"owner": printable(row.lease_owner), "since": row.lease_since, "until": row.lease_until},
    }


def _run(row: Any, dag_ids: Collection[str]) -> Document | None:
    """Return the task that worked on a batch, if the user may read its DAG."""
    if row.dag_id not in dag_ids:
        return None
    return {name: getattr(row, name) for name in TASK_COLUMNS}


def _cut(document: object, tables: Mapping[str, int]) -> Document | None:
    if not isinstance(document, dict):
        return None
    # A table that was parked then may be settled now: only what the tables say now counts.
    consistent = not any(tables.get(state) for state in _UNSETTLED)
    position = document.get("position")
    return {
        "source_time": document.get("source_time"),
        "position": None if position is None else printable(str(position)),
        "consistent": consistent,
    }


def _sample(row: Any, batch_times: Sequence[datetime]) -> Document | None:
    """Return what was seen last of a pipeline's lag.

    :param batch_times: when its newest batches were planned: an older look is not ``present``.
    """
    if row is None:
        return None
    return {
        "present": is_present(datetime.fromisoformat(row.seen_at), datetime.now(UTC), batch_times),
        "seen_at": row.seen_at,
        "received": row.received,
        "applied": row.applied,
        "seconds": _finite(row.lag_seconds),
        "records": row.lag_records,
    }


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


# ---- lag


def lag(connection: Connection, pipeline: str, since: datetime, until: datetime) -> Document:
    """Return the highest lag of each interval between two times; their length follows from the distance.

    An interval without a known lag has None: nobody knows whether it was high.
    """
    length = next((digits for longest, digits in _INTERVALS if until - since <= longest), len("2026-01-01T00"))
    interval = func.substr(_progress.seen_at, 1, length)
    query = (
        select(
            interval.label("begin"), func.max(_progress.lag_seconds).label("seconds"),
            func.max(_progress.lag_records).label("records"), func.max(_progress.applied).label("applied"),
            func.max(_progress.seen_at).label("seen_at"),
        )
        .where(_progress.pipeline == pipeline, _progress.seen_at >= time_text(since))
        .where(_progress.seen_at <= time_text(until))
        .group_by(interval)
        .order_by(interval)
    )  # fmt: skip
    points = [
        {"seen_at": r.seen_at, "seconds": _finite(r.seconds), "records": r.records, "applied": r.applied}
        for r in connection.execute(query)
    ]
    return {"since": time_text(since), "until": time_text(until), "points": points}


# ---- batches and quarantine


def batches(
    connection: Connection, pipeline: str, dag_ids: Collection[str], *, before: int | None, limit: int
) -> Document:
    """Return batches, newest first.

    :param before: only those with a lower number.
    """
    query = select(schema.batches).where(_batches.pipeline == pipeline).order_by(_batches.seq.desc()).limit(limit + 1)
    if before is not None:
        query = query.where(_batches.seq < before)
    rows = connection.execute(query).all()
    return {
        "batches": [_batch(row, dag_ids) for row in rows[:limit]],
        "before": rows[limit - 1].seq if len(rows) > limit else None,
    }


def _batch(row: Any, dag_ids: Collection[str]) -> Document:
    batch = Batch.from_document(dict(row._mapping))
    stored = batch.result or {}
    error = stored.get("error") or {}
    changed = stored.get("tables") or ()
    return {
        **{name: stored.get(name) for name in _RESULT_MEMBERS},
        "seq": batch.seq,
        "kind": batch.kind,
        "batch_status": str(batch.status),
        "offsets": batch.records,
        "until": row.until,
        "planned_at": row.planned_at,
        "started_at": row.started_at,
        "committed_at": row.committed_at,
        "engine": batch.engine,
        "application_id": None if batch.application_id is None else printable(batch.application_id),
        "run": _run(row, dag_ids),
        "tables": len(changed),
        "parked": len(stored.get("parked") or ()),
        "waiting": len(stored.get("waiting") or ()),
        "lost": len(batch.lost),
        "code": None if not error.get("code") else printable(str(error["code"])),
    }


def quarantine(connection: Connection, pipeline: str, *, before: int | None) -> Document:
    """Return where records and rows are that could not be carried, newest batches first.

    Each answer looks through some batches; ``before`` continues below them.
    """
    last = before
    if last is None:
        newest = connection.execute(select(func.max(_batches.seq)).where(_batches.pipeline == pipeline)).scalar()
        last = (newest or 0) + 1
    first = last - _QUARANTINE_WINDOW
    query = select(
        _batches.seq, _batches.committed_at,
        _stored(_batches, "quarantined").as_integer().label("quarantined"),
        _stored(_batches, "quarantine").label("quarantine"),
    ).where(
        _batches.pipeline == pipeline, _batches.seq < last, _batches.seq >= first,
        _stored(_batches, "quarantined").as_integer() > 0,
    )  # fmt: skip
    selected = connection.execute(query.order_by(_batches.seq.desc()))
    return {
        "batches": [
            {
                "seq": row.seq,
                "committed_at": row.committed_at,
                "quarantined": row.quarantined,
                "records": [_quarantined(item) for item in row.quarantine or ()],
            }
            for row in selected
        ],
        "before": first if first > 1 else None,
    }


def _quarantined(item: Mapping[str, Any]) -> Document:
    """Return place and code of a record; its error text may quote it, and stays in the ledger."""
    shown = {name: item.get(name) for name in _RECORD_MEMBERS}
    shown = {name: printable(value) if isinstance(value, str) else value for name, value in shown.items()}
    return {**shown, "code": printable(str(item.get("error_code") or item.get("reason") or ""))}


# ---- tables


def tables(
    connection: Connection, pipeline: str, *, state: str | None, search: str, offset: int, limit: int
) -> Document:
    """Return tables of a pipeline: parked ones first, then waiting, settled and dropped ones, each by name."""
    rank = case({str(name): number for number, name in enumerate(_ORDER)}, value=_tables.state, else_=len(_ORDER))
    query = select(_tables.table_id).where(_tables.pipeline == pipeline)
    if state is not None:
        query = query.where(_tables.state == state)
    if search:
        query = query.where(_name().ilike(f"%{_literally(search)}%", escape="\\"))
    ids = list(connection.execute(query.order_by(rank, _tables.table_id)).scalars())
    shown = ids[offset : offset + limit]
    query = select(_tables.table_id, _tables.seq, _tables.document)
    selected = connection.execute(query.where(_tables.pipeline == pipeline, _tables.table_id.in_(shown)))
    rows = {row.table_id: row for row in selected}
    selected_rows = [rows[table_id] for table_id in shown]
    owners = _owners(connection, pipeline, [row.document for row in selected_rows])
    return {"tables": [_table(row, owners) for row in selected_rows], "total": len(ids)}


def _owners(connection: Connection, pipeline: str, documents: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return which tables have the locations that unsettled tables name: after a rename another table may."""
    named = {document["location"] for document in documents if document["state"] in _UNSETTLED}
    if not named:
        return {}
    has_one = _tables.document["location"].as_string().in_(sorted(named))
    query = select(_tables.document).where(_tables.pipeline == pipeline, has_one)
    return owners_of_locations(TableState.from_document(document) for document in connection.execute(query).scalars())


_ORDER = (TableStatus.PARKED, TableStatus.WAITING, TableStatus.OK, TableStatus.DROPPED)


def _name() -> Any:
    return _tables.document["database"].as_string() + "." + _tables.document["table"].as_string()


def _literally(search: str) -> str:
    return search.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _table(row: Any, owners: Mapping[str, str]) -> Document:
    """Return the shown members of a table.

    :param owners: location -> id of the table that has it, where another than the table itself may.
    """
    shown = {"id": row.table_id, "changed_seq": row.seq, **table_state(row.document)}
    if owners.get(row.document["location"], row.table_id) != row.table_id:
        shown |= {"location": None, "version": None}
    return shown


def table_history(connection: Connection, pipeline: str, table_id: str, *, before: int | None, limit: int) -> Document:
    """Return when a table's state, reason or columns changed, newest first.

    Each answer looks through ``limit`` versions; ``before`` continues below them.
    """
    c = schema.table_versions.c
    join = schema.table_versions.outerjoin(schema.batches, (_batches.pipeline == c.pipeline) & (_batches.seq == c.seq))
    query = select(c.seq, c.document, _batches.committed_at).select_from(join)
    query = query.where(c.pipeline == pipeline, c.table_id == table_id).order_by(c.seq.desc()).limit(limit + 1)
    if before is not None:
        query = query.where(c.seq < before)
    rows = connection.execute(query).all()
    older = [*rows[1:], None] if len(rows) <= limit else rows[1:]
    lines = [_version(row, previous) for row, previous in zip(rows, older, strict=False)]
    return {
        "versions": [line for line in lines[:limit] if line is not None],
        "before": rows[limit - 1].seq if len(rows) > limit else None,
    }


def _version(row: Any, previous: Any) -> Document | None:
    """Return one version of a table with what changed in it; None if nothing that is shown did."""
    document = row.document
    before = {} if previous is None or previous.document is None else previous.document
    if document is None:
        return {"seq": row.seq, "committed_at": row.committed_at, "state": "forgotten", "reason": "", "columns": []}
    first = not before.get("schema")
    columns = [] if first else column_changes(before.get("schema"), document.get("schema"))
    names = ("state", "reason", "database", "table")
    if previous is not None and not columns and all(document.get(name) == before.get(name) for name in names):
        return None
    shown = table_state(document)
    line = {name: shown[name] for name in ("database", "table", "state", "reason", "code", "version", "source_time")}
    return {
        **line,
        "seq": row.seq,
        "committed_at": row.committed_at,
        "columns": columns,
        "column_count": shown["columns"],
    }


def schema_changes(connection: Connection, pipeline: str, *, before: int | None, limit: int) -> Document:
    """Return a pipeline's schema changes, last recorded first, without the values in their texts."""
    c = schema.schema_changes.c
    query = select(c.number, c.seq, c.document).where(c.pipeline == pipeline).order_by(c.number.desc())
    if before is not None:
        query = query.where(c.number < before)
    rows = connection.execute(query.limit(limit + 1)).all()
    return {
        "schema_changes": [_schema_change(row) for row in rows[:limit]],
        "before": rows[limit - 1].number if len(rows) > limit else None,
    }


def _schema_change(row: Any) -> Document:
    document = row.document
    statement = document.get("statement") or ""
    described = [printable(f"{database}.{table}") for database, table, _ in document.get("structure") or ()]
    return {
        "number": row.number,
        "seq": row.seq,
        "database": printable(str(document.get("database") or "")),
        "position": printable(str(document.get("position") or "")),
        "source_time": document.get("time"),
        "statement": statement_text(statement, document.get("dialect")),
        "describes": [] if statement else described,
        "snapshot": document.get("snapshot") is not None,
    }
