# SPDX-License-Identifier: Apache-2.0
"""Apply a snapshot's description of tables: its DROP and CREATE state structures, the tables did not change."""

from __future__ import annotations

from dataclasses import replace

from airflow_provider_cdc.core.ddl import statement as ddl
from airflow_provider_cdc.core.ddl.parser import parse
from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.asked_changes import AskedChanges
from airflow_provider_cdc.core.timeline.observed_tables import ObservedTables
from airflow_provider_cdc.core.timeline.timeline import SchemaChange
from airflow_provider_cdc.core.timeline.tool_accounts import unexplained_loss


class DescribedTables(ObservedTables):
    """The part of the timeline's builder that reads what snapshots say of tables.

    :ivar _undescribed: by database the position of its newest snapshot, and the tables known before that it has not
        described so far.
    """

    def __init__(self, server: Server, copies: dict[str, list[str]], asked: AskedChanges) -> None:
        super().__init__(server, copies, asked)
        self._undescribed: dict[str, tuple[str, dict[TableName, str]]] = {}

    def describe(self, change: SchemaChange, position: str) -> None:
        """Apply a snapshot's description of tables: its DROP and CREATE state structures, the tables did not change.

        :param position: where the structure begins to hold; not below that of a statement that was sent before it.
        """
        try:
            statements = parse(change.statement, change.dialect)
        except DataError:
            return  # a row that does not fit the known structure of its table waits or parks
        for item in statements:
            match item:
                case ddl.DropTable():
                    for table_id in filter(None, (self._open.get(self._full(name, change)) for name in item.names)):
                        self.timeline.tables[table_id].snapshots.append((change.position, change.snapshot or 0))
                case ddl.DropDatabase():
                    database = self._case(item.database)
                    owners = {name: table for name, table in self._open.items() if name.database == database}
                    self._undescribed[database] = position, owners
                case ddl.CreateTable(temporary=False):
                    self._describe(change, position, item)
                case _:
                    pass

    def _describe(self, change: SchemaChange, position: str, item: ddl.CreateTable) -> None:
        name = self._full(item.name, change)
        table_id = self._open.get(name)
        if table_id is None:
            new = name not in self.timeline.names
            self._create(change if new else replace(change, position=position), item)
            return
        if name.database in self._undescribed:
            self._undescribed[name.database][1].pop(name, None)
        described, known = self._new_table(change, name), change.structure_of(name)
        described.define(item)
        if known is not None:
            described.confirm(known)
        working = self._working[table_id]
        self._refer(change, name, self._foreign_keys.unknown(working, name, item.references))
        working.take_comments(described)
        if described.schema().shape() == working.schema().shape():
            return
        lost, was = unexplained_loss(working.schema(), described.schema()), working.expressions
        working.become(described, position)
        working.take_comments(described)
        self._begin_version(replace(change, position=position, server=None), name, was)
        if lost is not None:
            self._block(change, name, f"a snapshot describes the table otherwise, and no statement says why: {lost}")

    def note_undescribed(self) -> None:
        """Add a note to tables that the newest snapshot of their database lacks: they may have been dropped."""
        for position, known in self._undescribed.values():
            for name, table_id in known.items():
                if self._open.get(name) == table_id:
                    text = f"the snapshot at {position} lacks this table: dropped or left out? its content is kept"
                    self.timeline.tables[table_id].notes.append(text)
