# SPDX-License-Identifier: Apache-2.0
"""Follow what a source says of its tables and columns through the changes of their names."""

from __future__ import annotations

from airflow_provider_cdc.core.ddl import statement as ddl
from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.asked_changes import AskedChanges
from airflow_provider_cdc.core.timeline.table_names import TableNames
from airflow_provider_cdc.core.timeline.timeline import SchemaChange


class CommentedTables(TableNames):
    """The part of the timeline's builder that takes comments."""

    def __init__(self, server: Server, copies: dict[str, list[str]], asked: AskedChanges) -> None:
        super().__init__(server, copies, asked)
        self._said_at: dict[TableName, set[str]] = {}

    def _said(self, name: TableName) -> set[str]:
        """Return of which columns the tables with a name had comments (``Comments.said``)."""
        return self._said_at.setdefault(name, set())

    def _take_said(self, table_id: str, name: TableName) -> None:
        """Note that a table has a name now."""
        self._said_at[name] = self._working[table_id].comments.take_name(self._said(name))

    def _comment(self, change: SchemaChange, item: ddl.CommentOn) -> None:
        """Take a comment; what it names may be a view, or a table that nothing else shows."""
        database = change.database if item.name.database is None else item.name.database
        table_id = self._open.get(TableName(self._case(database), self._case(item.name.table)))
        if table_id is not None:
            self._working[table_id].comment(item.column, item.comment)

    def note_comments(self) -> None:
        """Record for each table what the source says of it, and of its columns."""
        for table_id, table in self.timeline.tables.items():
            working = self._working[table_id]
            table.comment, table.comments = working.comments.note(working.columns)
