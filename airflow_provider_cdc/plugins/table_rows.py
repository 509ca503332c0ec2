# SPDX-License-Identifier: Apache-2.0
"""Read the tables of a pipeline from a ledger, and how each changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.engine import Connection
from sqlalchemy.sql import case, select

from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.documents.table_locations import owners_of_locations
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.ledger import schema
from airflow_provider_cdc.ledger.health import UNSETTLED, records_since, unsettled_tables
from airflow_provider_cdc.plugins.column_changes import column_changes
from airflow_provider_cdc.plugins.table_states import table_state

Document = dict[str, Any]

_batches, _tables = schema.batches.c, schema.tables.c


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
    held = _held(connection, pipeline, [row.table_id for row in selected_rows if row.document["state"] in UNSETTLED])
    lines = [{**_table(row, owners), "held": held.get(row.table_id)} for row in selected_rows]
    return {"tables": lines, "total": len(ids)}


def _held(connection: Connection, pipeline: str, table_ids: Sequence[str]) -> dict[str, Document]:
    """Return since when changes of parked and waiting tables are not applied, and how many records were read since.

    The records are those of all tables, None where it is not known how many they are.
    """
    if not table_ids:
        return {}
    unsettled = unsettled_tables(connection, [pipeline], table_ids)
    records = records_since(connection, pipeline, {table.seq for table in unsettled})
    return {
        table.table_id: {
            "seq": table.seq,
            "since": table.since,
            "at_least": table.at_least,
            "records": records.get(table.seq),
        }
        for table in unsettled
    }


def _owners(connection: Connection, pipeline: str, documents: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return which tables have the locations that unsettled tables name: after a rename another table may."""
    named = {document["location"] for document in documents if document["state"] in UNSETTLED}
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
