# SPDX-License-Identifier: Apache-2.0
"""Read a pipeline's batches from a ledger."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.engine import Connection
from sqlalchemy.sql import select

from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.ledger import Batch, schema
from airflow_provider_cdc.ledger.owner import TASK_COLUMNS
from airflow_provider_cdc.plugins.running import running_progress

Document = dict[str, Any]

_COUNTS = ("records", "changes", "schema_changes", "quarantined", "lossy", "contradictions")
_RESULT_MEMBERS = ("status", "seconds", "cpu_seconds", "added_bytes", "phases", "warnings", *_COUNTS)

_batches, _pipelines = schema.batches.c, schema.pipelines.c


def batches(
    connection: Connection, pipeline: str, dag_ids: Collection[str], *, before: int | None, limit: int
) -> Document:
    """Return batches, newest first.

    :param before: only those with a lower number.
    """
    now, lease = datetime.now(UTC), (_pipelines.lease_token, _pipelines.lease_until)
    query = select(schema.batches, *lease).join_from(schema.batches, schema.pipelines)
    query = query.where(_batches.pipeline == pipeline).order_by(_batches.seq.desc()).limit(limit + 1)
    if before is not None:
        query = query.where(_batches.seq < before)
    rows = connection.execute(query).all()
    return {
        "batches": [_batch(row, dag_ids, now) for row in rows[:limit]],
        "before": rows[limit - 1].seq if len(rows) > limit else None,
    }


def _batch(row: Any, dag_ids: Collection[str], now: datetime) -> Document:
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
        "run": run_of(row, dag_ids),
        "progress": running_progress(row, now),
        "tables": len(changed),
        "parked": len(stored.get("parked") or ()),
        "waiting": len(stored.get("waiting") or ()),
        "lost": len(batch.lost),
        "code": None if not error.get("code") else printable(str(error["code"])),
    }


def of_result(columns: Any, member: str) -> Any:
    """Return the expression of a member of stored results.

    :param columns: those of the batches, or of an alias.
    """
    return columns["result"][member]


def run_of(row: Any, dag_ids: Collection[str] | None) -> Document | None:
    """Return the task that worked on a batch, if the user may read its DAG.

    :param dag_ids: those that the user may read; None for all.
    """
    if row.dag_id is None or (dag_ids is not None and row.dag_id not in dag_ids):
        return None
    return {name: getattr(row, name) for name in TASK_COLUMNS}
