# SPDX-License-Identifier: Apache-2.0
"""Read from a ledger what happened to a pipeline between two times: lag, batches, schema changes, decisions, parks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy.engine import Connection
from sqlalchemy.sql import select

from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.core.timeline.asked_changes import Answer
from airflow_provider_cdc.ledger import schema
from airflow_provider_cdc.ledger.health import unsettled_tables
from airflow_provider_cdc.ledger.records import time_text
from airflow_provider_cdc.plugins.batch_rows import of_result, run_of
from airflow_provider_cdc.plugins.lag_rows import lag
from airflow_provider_cdc.plugins.pipeline_rows import read_standings
from airflow_provider_cdc.plugins.schema_change_rows import changes_of_batches

Document = dict[str, Any]

_MOST_BATCHES = 300
_MOST_CHANGES = 100
_MOST_TABLES = 20

_batches = schema.batches.c


def timeline(
    connection: Connection, pipeline: str, dag_ids: Collection[str], since: datetime, until: datetime
) -> Document:
    """Return what happened between two times: of each kind the newest, and as much as one can look at.

    ``more_batches`` says whether older batches are left out.
    """
    rows = connection.execute(
        select(
            _batches.seq, _batches.kind, _batches.status, _batches.planned_at, _batches.committed_at,
            *(_batches[name] for name in ("dag_id", "run_id", "task_id", "map_index", "try_number")),
            of_result(_batches, "status").as_string().label("outcome"),
            of_result(_batches, "seconds").as_float().label("seconds"),
            of_result(_batches, "records").as_integer().label("records"),
            of_result(_batches, "asked_changes").label("asked"),
        )
        .where(_batches.pipeline == pipeline, _batches.planned_at >= time_text(since))
        .order_by(_batches.seq.desc())
        .limit(_MOST_BATCHES + 1)
    ).all()  # fmt: skip
    shown = rows[:_MOST_BATCHES]
    begin, end = since.timestamp() * 1e6, until.timestamp() * 1e6
    changes = changes_of_batches(connection, pipeline, shown[-1].seq, _MOST_CHANGES) if shown else []
    known = read_standings(connection, [pipeline])[pipeline]
    return {
        **lag(connection, pipeline, since, until),
        "bound_seconds": known.runs.bound().total_seconds(),
        "batches": [_batch(row, dag_ids) for row in shown],
        "more_batches": len(rows) > _MOST_BATCHES,
        "schema_changes": [change for change in changes if begin <= (change["source_time"] or 0) <= end],
        "decisions": [_decision(row.seq, one) for row in shown for one in row.asked or () if _is_decided(one)],
        "stopped": _stopped(connection, pipeline),
    }


def _batch(row: Any, dag_ids: Collection[str]) -> Document:
    members = ("seq", "kind", "status", "planned_at", "committed_at", "outcome", "seconds", "records")
    return {**{name: getattr(row, name) for name in members}, "run": run_of(row, dag_ids)}


def _is_decided(change: Mapping[str, Any]) -> bool:
    """Return whether a person decided about a change; it may also wait, or a policy decides."""
    return change["answer"] in (Answer.APPLY, Answer.DENY) and bool(change.get("by"))


def _decision(seq: int, change: Mapping[str, Any]) -> Document:
    shown = {name: printable(str(change[name])) for name in ("policy", "answer", "by", "at")}
    return {"seq": seq, "table": printable(f"{change['database']}.{change['table']}"), **shown}


def _stopped(connection: Connection, pipeline: str) -> list[Document]:
    """Return the tables that have stopped, the first one first."""
    tables = sorted(unsettled_tables(connection, [pipeline]), key=lambda table: (table.since or "", table.table_id))
    return [
        {"table": printable(f"{one.database}.{one.table}"), "state": str(one.state), "since": one.since}
        for one in tables[:_MOST_TABLES]
    ]
