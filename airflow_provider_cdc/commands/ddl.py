# SPDX-License-Identifier: Apache-2.0
"""Run ``ddl``: print what statements change, one JSON line for each line of a file."""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.commands.output import CONFIGURATION, DONE, complain, json_line
from airflow_provider_cdc.core.file_log.record_lines import lines, object_of, opened

if TYPE_CHECKING:
    from airflow_provider_cdc.core.timeline.timeline import SchemaChange, TableTimeline

_DIALECTS = {"mysql": "mysql", "mariadb": None, "oracle": "oracle"}  # as the parser names them


def ddl(args: Namespace) -> int:
    """Print the changes of each statement, with ``--replay`` the tables after all of them."""
    session = Session(args.dialect, args.database or "")
    try:
        with opened(args.file) as stream:
            for line in lines(stream):
                print(json_line(session.read(line)))
    except BrokenPipeError:
        raise
    except OSError as error:
        complain(f"cannot read {args.file}: {error.strerror or error}")
        return CONFIGURATION
    if args.replay:
        print(json_line({"tables": session.tables()}))
    sys.stdout.flush()
    return DONE


@dataclass
class Session:
    """Hold the statements of one session, one line after the other.

    :param dialect: ``mysql``, ``mariadb`` or ``oracle``.
    :param database: database of names that are not qualified, where a line states none.
    """

    dialect: str
    database: str
    _changes: list[SchemaChange] = field(default_factory=list)

    def read(self, line: bytes | None) -> dict[str, Any]:
        """Return the changes of a line's statement, or at which place it is not understood.

        :param line: a JSON object with ``sql``, ``default_db`` and ``preceding`` (statements before it in the same
            session), the last two optional.
        """
        from airflow_provider_cdc.core.ddl.tokens import DdlError

        entry = _entry(line)
        if isinstance(entry, str):
            return {"unparsed": entry}
        database = entry.get("default_db") or self.database
        for text in entry.get("preceding") or ():
            try:
                database = self._run(text, database)[1]
            except DdlError:
                continue  # what cannot be read is reported for a line's own statement
        try:
            return {"changes": self._run(entry["sql"], database)[0]}
        except DdlError as error:
            where = ", ".join(f"{name} {value}" for name, value in error.where.items())
            return {"unparsed": f"{where}: {error.message}"}

    def _run(self, text: str, database: str) -> tuple[list[dict[str, Any]], str]:
        """Carry out a text; return its changes, and the database that later names are in."""
        from airflow_provider_cdc.core.ddl.description import describe
        from airflow_provider_cdc.core.ddl.parser import parse
        from airflow_provider_cdc.core.ddl.statement import UseDatabase

        self._note(text, database)
        changes = []
        for statement in parse(text, _DIALECTS[self.dialect]):
            if isinstance(statement, UseDatabase):
                database = statement.database
            changes += describe(statement, database)
        return changes, database

    def _note(self, text: str, database: str) -> None:
        from airflow_provider_cdc.core.timeline.timeline import SchemaChange

        number = len(self._changes) + 1
        server = None if self.dialect == "oracle" else self.dialect
        self._changes.append(
            SchemaChange(f"{number:020d}", number, database, text, server=server, dialect=_DIALECTS[self.dialect])
        )

    def tables(self) -> list[dict[str, Any]]:
        """Return the tables that exist after all statements, by name."""
        from airflow_provider_cdc.core.timeline.builder import build_timeline

        timeline = build_timeline(self._changes)
        shown = [table for table in timeline.tables.values() if table.name is not None and not table.supposed]
        tables = [_described(table) for table in shown]
        return sorted(tables, key=lambda table: (table["database"], table["table"]))


def _entry(line: bytes | None) -> dict[str, Any] | str:
    """Return a line's object, or what is wrong with it."""
    entry = object_of(line)
    if isinstance(entry, str):
        return entry
    if not isinstance(entry.get("sql"), str):
        return "the line is not a JSON object with a text in sql"
    preceding = entry.get("preceding") or []
    if not isinstance(entry.get("default_db") or "", str) or not isinstance(preceding, list):
        return "default_db is not a text, or preceding is not a list"
    return entry if all(isinstance(text, str) for text in preceding) else "preceding holds something that is not a text"


def _described(table: TableTimeline) -> dict[str, Any]:
    from airflow_provider_cdc.core.ddl.description import describe_column

    name, schema = table.last_name, table.schema
    described = {
        "database": name.database,
        "table": name.table,
        "columns": [
            describe_column(column.name, column.type, column.nullable, column.default, None)
            for column in schema.columns
        ],
        "key": [column.name for column in schema.key_columns],
    }
    block = table.unknown_since()
    return described if block is None else {**described, "unknown": block.reason}
