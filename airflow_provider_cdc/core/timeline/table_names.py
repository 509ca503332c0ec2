# SPDX-License-Identifier: Apache-2.0
"""Know which table has which name, as a server compares names, and block tables whose content is unknown."""

from __future__ import annotations

from airflow_provider_cdc.core.ddl import table_parts as parts
from airflow_provider_cdc.core.ddl.parser import is_mysql
from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.asked_changes import Answer, AskedChanges
from airflow_provider_cdc.core.timeline.table_builder import TableBuilder
from airflow_provider_cdc.core.timeline.timeline import Block, SchemaChange, Timeline


class TableNames:
    """The part of the timeline's builder that knows the tables by their names.

    :ivar _open: the id of the table that has a name now.
    :ivar _working: by id of a table its columns, key and indexes now.
    :ivar _alike: by lower-case name the names that tables have now.
    """

    def __init__(self, server: Server, copies: dict[str, list[str]], asked: AskedChanges) -> None:
        self._server, self._asked = server, asked
        self.timeline = Timeline(copies=copies)
        self._open: dict[TableName, str] = {}
        self._working: dict[str, TableBuilder] = {}
        self._alike: dict[TableName, list[TableName]] = {}

    def _full(self, name: parts.Name, change: SchemaChange) -> TableName:
        """Return the qualified name; if a tool omits the session's database, that of the only open table so named."""
        table = self._case(name.table)
        if name.database is not None:
            return TableName(self._case(name.database), table)
        if change.database:
            return TableName(change.database, table)
        matches = [full for full in self._open if full.table == table]
        for full in matches if len(matches) > 1 else ():
            self._block_columns(
                change, full, f"a statement names {name.table!r} without a database, and several have one"
            )
        return matches[0] if len(matches) == 1 else TableName("", table)

    def _case(self, name: str) -> str:
        return name.lower() if self._server.lower_case_names else name

    def _named(self, change: SchemaChange, name: TableName) -> str | None:
        """Return the id of the table with a name; if case may decide, block the tables that the name may also mean."""
        table_id = self._open.get(name)
        if table_id is None and self._server.lower_case_names is None and is_mysql(change.dialect):
            for other in list(self._alike.get(_lower(name), ())):
                reason = f"a statement names {name}, which is this table if the server has lower_case_table_names=1"
                self._block_columns(change, other, f"{reason}: state source.options.lower_case_table_names")
        return table_id

    def _own(self, change: SchemaChange, name: TableName, table_id: str | None) -> None:
        spans = self.timeline.names.setdefault(name, [])
        if spans and spans[-1][0] == change.position:
            spans.pop()
        spans.append((change.position, table_id))
        alike = self._alike.setdefault(_lower(name), [])
        if table_id is None:
            self._open.pop(name, None)
            self._alike[_lower(name)] = [other for other in alike if other != name]
        else:
            self._open[name] = table_id
            if name not in alike:
                alike.append(name)

    def _last(self, name: TableName) -> str | None:
        """Return the id of the table that has a name, or had it last."""
        return next((owner for _, owner in reversed(self.timeline.spans(name)) if owner is not None), None)

    def _drop(self, change: SchemaChange, name: TableName) -> None:
        table_id = self._named(change, name)
        if table_id is not None:
            self.timeline.tables[table_id].names.append((change.position, None))
            self._own(change, name, None)

    def _end_supposed(self, change: SchemaChange, name: TableName) -> None:
        """End a table that was only supposed, where a statement shows what has its name."""
        table_id = self._open.get(name)
        if table_id is not None and self.timeline.tables[table_id].supposed:
            self.timeline.tables[table_id].names.append((change.position, None))
            self._own(change, name, None)

    def _block(self, change: SchemaChange, name: TableName, reason: str) -> None:
        """Record that the rows stored so far are unknown from the change on."""
        table_id = self._open.get(name)
        if table_id is not None:
            self.timeline.tables[table_id].blocked.append(Block(change.position, reason))

    def _block_columns(self, change: SchemaChange, name: TableName, reason: str) -> None:
        """Record that the table's columns are unknown from the change on."""
        table_id = self._open.get(name)
        if table_id is not None:
            self.timeline.tables[table_id].blocked.append(Block(change.position, reason, columns=True))

    def _approved(self, change: SchemaChange, name: TableName, policy: str) -> bool:
        """Return whether a change of a table that exists is carried out; it may wait for a decision, or be denied."""
        return self._asked.answer(change.position, name, policy, change.statement) == Answer.APPLY

    def _ask(self, change: SchemaChange, table_id: str, name: TableName, policy: str, kind: str) -> None:
        """Let a table wait with a change that is on its timeline and that nobody has approved.

        :param kind: what to call the change where rows show it.
        """
        answer = self._asked.answer(change.position, name, policy, change.statement or kind)
        if answer == Answer.OPEN:
            self.timeline.tables[table_id].asked.append(change.position)


def _lower(name: TableName) -> TableName:
    return TableName(name.database.lower(), name.table.lower())
