# SPDX-License-Identifier: Apache-2.0
"""Read what a real server's triggers wrote as schema changes and as a timeline."""

from __future__ import annotations

from airflow_provider_cdc.core.formats.connect.connectors.postgresql import PostgreSqlConnector
from airflow_provider_cdc.core.formats.connect.connectors.postgresql_ddl import DdlLog
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import SchemaChange, TableTimeline, Timeline
from tests.locations import binlog_position
from tests.postgres.database import Connection
from tests.services.postgres import sql

# the columns of JSON come as texts, as the connector writes them
_ROWS = """
SELECT (to_jsonb(l) || jsonb_build_object('columns', l.columns::text, 'key', l.key::text,
  'children', l.children::text))::text FROM ctl.ddl_log l ORDER BY id
"""


def changes(database: Connection, *, op: str = "insert", again: int = 0) -> list[SchemaChange]:
    """Return the schema changes of all rows of the log, one at each position.

    :param again: rows that a snapshot at the end reads again, from the first on.
    """
    log, result = DdlLog(), []
    rows = [text.encode() for (text,) in database.execute(sql(_ROWS))]
    end = len(rows) + 1
    entries = [(op, (number, number, 1), row) for number, row in enumerate(rows, 1)]
    entries += [("incremental", (end, 0, 0), row) for row in rows[:again]]
    for number, (kind, at, row) in enumerate(entries):
        change = log.change(kind, at, row)
        if change is not None:
            position = binlog_position(*change.position)
            relation = log.relation(change.text)
            document = SchemaChange(
                position,
                number,
                change.database,
                change.statement,
                dialect=PostgreSqlConnector.dialect,
                relation=relation,
            ).document()
            result.append(SchemaChange.from_document(document))
    return result


def run(database: Connection, *statements: str) -> Timeline:
    """Return the timeline after statements, on a database with triggers."""
    for statement in statements:
        database.execute(sql(statement))
    return build_timeline(changes(database))


def table(timeline: Timeline, name: str) -> TableTimeline:
    (owner,) = [table for table in timeline.tables.values() if str(table.name) == name]
    return owner


def columns(known: TableTimeline) -> list[str]:
    return [column.name for column in known.schema.columns]


def reason(known: TableTimeline) -> str:
    block = known.unknown_since()
    return "" if block is None else block.reason


def fills(known: TableTimeline) -> dict[str, str | None]:
    names = {column.id: column.name for version in known.versions for column in version.schema.columns}
    return {names[column]: fill.text for column, fill in known.fills.items()}
