# SPDX-License-Identifier: Apache-2.0
"""Read the schema changes of a pipeline from a ledger, without the values in their texts."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection
from sqlalchemy.sql import Select, func, select

from airflow_provider_cdc.batch.coming_ddl import kind_of_change
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.core.timeline.timeline import SchemaChange
from airflow_provider_cdc.ledger import schema
from airflow_provider_cdc.plugins.statement_text import statement_text

Document = dict[str, Any]

_changed = schema.schema_changes.c
_OF_SNAPSHOT = func.coalesce(_changed.document["snapshot"].as_string(), "") != ""


def schema_changes(
    connection: Connection, pipeline: str, *, before: int | None, limit: int, snapshot: bool = False
) -> Document:
    """Return a pipeline's schema changes, last recorded first, without the values in their texts.

    :param snapshot: also the statements with which snapshots describe their tables; they are counted otherwise.
    """
    query = _changes(pipeline).order_by(_changed.number.desc())
    if before is not None:
        query = query.where(_changed.number < before)
    if not snapshot:
        query = query.where(~_OF_SNAPSHOT)
    rows = connection.execute(query.limit(limit + 1)).all()
    counted = select(func.count()).select_from(schema.schema_changes).where(_changed.pipeline == pipeline, _OF_SNAPSHOT)
    return {
        "schema_changes": [_schema_change(row) for row in rows[:limit]],
        "before": rows[limit - 1].number if len(rows) > limit else None,
        "of_snapshots": connection.execute(counted).scalar_one(),
    }


def changes_of_batches(connection: Connection, pipeline: str, first: int, limit: int) -> list[Document]:
    """Return the newest schema changes that a batch or a later one read, without those of snapshots.

    :param first: number of the batch.
    """
    query = _changes(pipeline).where(_changed.seq >= first, ~_OF_SNAPSHOT).order_by(_changed.number.desc())
    return [_schema_change(row) for row in connection.execute(query.limit(limit))]


def _changes(pipeline: str) -> Select[Any]:
    return select(_changed.number, _changed.seq, _changed.document).where(_changed.pipeline == pipeline)


def _schema_change(row: Any) -> Document:
    document = row.document
    statement = document.get("statement") or ""
    change = SchemaChange.from_document({name: value for name, value in document.items() if name != "id"})
    described = [printable(f"{database}.{table}") for database, table, _ in document.get("structure") or ()]
    return {
        "number": row.number,
        "seq": row.seq,
        "database": printable(str(document.get("database") or "")),
        "position": printable(str(document.get("position") or "")),
        "source_time": document.get("time"),
        "kind": str(kind_of_change(change)) if statement else None,
        "statement": statement_text(statement, document.get("dialect")),
        "describes": [] if statement else described,
        "snapshot": document.get("snapshot") is not None,
    }
