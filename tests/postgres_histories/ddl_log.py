# SPDX-License-Identifier: Apache-2.0
"""Rows that the event triggers of ``airflow-cdc postgres ddl-triggers`` write, as a table of the model."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from tests.postgres_histories.kinds import KINDS, Kind
from tests.postgres_histories.server import Change, Column, Row, Server, Structure, Transaction

LOG = ("ctl", "ddl_log")
BY_INDEX = "REPLICA IDENTITY USING INDEX"
"""Reason of a table whose key may move, or whose rows may go, without the old key in the log."""
_TEXT, _NUMBER, _BIG, _FLAG = KINDS["text"], KINDS["integer"], KINDS["bigint"], KINDS["boolean"]
_JSON = Kind("jsonb", _TEXT.make, KINDS["jsonb"].schema, _TEXT.wire, pa.string(), _TEXT.stored, "JSON", "{}")
_COLUMNS = {
    "id": _BIG,
    "event": _TEXT,
    "tag": _TEXT,
    "kind": _TEXT,
    "object": _TEXT,
    "relid": _BIG,
    "columns": _JSON,
    "key": _JSON,
    "rewrite": _NUMBER,
    "query": _TEXT,
    "schema_name": _TEXT,
    "table_name": _TEXT,
    "relkind": _TEXT,
    "partition": _FLAG,
    "children": _JSON,
    "via_root": _FLAG,
    "persistence": _TEXT,
    "replica_identity": _TEXT,
    "system_identifier": _TEXT,
    "error": _TEXT,
}
STRUCTURE = Structure(
    16_390,
    LOG,
    tuple(Column(n, name, kind, notnull=name in ("id", "event")) for n, (name, kind) in enumerate(_COLUMNS.items(), 1)),
    (1,),
)


def note(
    server: Server,
    transaction: Transaction,
    structure: Structure,
    query: str | None,
    *,
    event: str = "ddl_command_end",
    tag: str = "ALTER TABLE",
    kind: str = "table",
    rewrite: int | None = None,
    volatile: int | None = None,
) -> None:
    """Write one row into the log, where the server has triggers.

    :param volatile: a column whose default is another value for each row.
    """
    if event != "sql_drop":
        transaction.described.add(structure.oid)
    if not server.logs_ddl:
        return
    server.ddl_id += 1
    schema, table = structure.name
    described = event in ("ddl_command_end", "install")
    gone = event == "sql_drop"
    if described and structure.identity == "i" and structure.key:
        server.endanger(structure.name, BY_INDEX)
    values: dict[str, Any] = {
        "id": server.ddl_id,
        "event": event,
        "tag": tag,
        "kind": kind,
        "object": f"{_part(schema)}.{_part(table)}",
        "relid": structure.oid,
        "columns": json.dumps([_described(column, volatile) for column in structure.columns]) if described else None,
        "key": json.dumps(list(structure.key)) if described and structure.key else None,
        "rewrite": rewrite,
        "query": query,
        "schema_name": schema,
        "table_name": table,
        "relkind": None if gone else "r",
        "partition": None if gone else False,
        "via_root": False,
        "persistence": None if gone else "p",
        "replica_identity": None if gone else structure.identity,
        "system_identifier": server.system,
    }
    row: Row = {column.attnum: values.get(column.name) for column in STRUCTURE.columns}
    server.ddl_rows.append(row)
    transaction.changes.append(Change("c", STRUCTURE, server.step(), None, row))


def forget(server: Server, transaction: Transaction) -> None:
    """Delete all rows of the log, as operators may at any time."""
    for row in server.ddl_rows:
        transaction.changes.append(Change("d", STRUCTURE, server.step(), row, None))
    server.ddl_rows = []


def install(server: Server) -> None:
    """Describe each table that there is, in a transaction each."""
    for table in sorted(server.tables.values(), key=lambda table: table.structure.oid):
        transaction = Transaction(0)
        note(server, transaction, table.structure, None, event="install", tag="INSTALL")


def _part(name: str) -> str:
    return name if name.isidentifier() and name == name.lower() else f'"{name}"'


def _described(column: Column, volatile: int | None) -> dict[str, Any]:
    default = f"'{column.kind.text(column.default[0])}'" if column.default and column.default[0] is not None else None
    return {
        "attnum": column.attnum,
        "name": column.name,
        "type": column.kind.name,
        "notnull": column.notnull,
        "default": "random()" if column.attnum == volatile else default,
        "missing": _missing(column),
        "generated": "",
        "identity": "",
        "kind": column.kind.typtype,
        "base": None,
    }


def _missing(column: Column) -> str | None:
    """Return what stored rows have as an array of one."""
    if not column.missing or column.missing[0] is None:
        return None
    value = column.missing[0]
    if isinstance(value, list | bytes):
        text = json.dumps(value) if isinstance(value, list) else f"\\x{value.hex()}"
        text = f"{{{text[1:-1]}}}" if isinstance(value, list) else text
    else:
        text = column.kind.text(value)
    plain = text and text.upper() != "NULL" and not set(text) & set('{}",\\ \t\n')
    return f"{{{text}}}" if plain else '{"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"}'
