# SPDX-License-Identifier: Apache-2.0
"""Read the schema changes of a pipeline from a ledger, without the values in their texts."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection
from sqlalchemy.sql import select

from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.ledger import schema
from airflow_provider_cdc.plugins.statement_text import statement_text

Document = dict[str, Any]


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
