# SPDX-License-Identifier: Apache-2.0
"""Create, rename and drop tables."""

from __future__ import annotations

from airflow_provider_cdc.core.ddl import statement as ddl
from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.asked_changes import ON_DROP_TABLE, ON_RENAME_TABLE, AskedChanges
from airflow_provider_cdc.core.timeline.provenance import ANOTHER_TABLE, UnknownTables
from airflow_provider_cdc.core.timeline.table_builder import TableBuilder
from airflow_provider_cdc.core.timeline.timeline import SchemaChange

# sql/table.cc of MariaDB: TABLE::delete_row, vers_insert_history_row
VERSIONED = "MariaDB logs a DELETE of a table WITH SYSTEM VERSIONING as an UPDATE, and its history as rows of the table"


class TableLives(UnknownTables):
    """The part of the timeline's builder that gives a name to a table, or takes it.

    :ivar _not_dropped: names whose DROP TABLE is left out.
    """

    def __init__(self, server: Server, copies: dict[str, list[str]], asked: AskedChanges) -> None:
        super().__init__(server, copies, asked)
        self._not_dropped: set[TableName] = set()

    def _create(self, change: SchemaChange, item: ddl.CreateTable) -> None:
        name = self._full(item.name, change)
        stays = item.if_not_exists or not item.or_replace
        if not item.if_not_exists:
            self._end_supposed(change, name)
            self._settle_rows_between(change, name)
        if name in self._open and (stays or not self._drop_if_approved(change, name)):
            return
        known = change.structure_of(name)
        working = self._new_table(change, name)
        source = None if item.like is None else self._open.get(self._full(item.like, change))
        if source is not None:
            working.copy_structure(self._working[source])
        else:
            working.define(item)
        if known is not None and (item.as_select or item.unknown is not None):
            working.adopt(known)
        elif known is not None:
            working.confirm(known)
        table_id = self._begin(change, name, working)
        if source is not None:
            self._copied[table_id] = source
        self._refer(change, name, item.references)
        if item.versioned:
            self._block_columns(change, name, VERSIONED)
        if known is None and (item.as_select or (item.like is not None and not working.columns)):
            self._block_columns(change, name, "the columns of this CREATE TABLE cannot be known from its text")
        if known is None and item.unknown is not None:
            self._block_columns(change, name, item.unknown)
        if known is None:
            self._check_identity(change, name)

    def _drop_if_approved(self, change: SchemaChange, name: TableName) -> bool:
        """Drop a table unless nobody has approved that; return whether no table has the name any more."""
        self._end_supposed(change, name)
        if name in self._open and not self._approved(change, name, ON_DROP_TABLE):
            self._not_dropped.add(name)
            return False
        self._not_dropped.discard(name)
        self._drop(change, name)
        return True

    def _rename(self, change: SchemaChange, old: TableName, new: TableName, *, if_exists: bool = False) -> None:
        table_id = self._named(change, old)
        if table_id is None:
            self._bring_in(change, old, new, if_exists=if_exists)
            return
        if new in self._open and new in self._not_dropped:
            # the rows at that name stay there, so this table's rows have nowhere to go
            self._block_columns(change, old, f"it took the name of {new}, whose DROP TABLE is not approved")
        self._end_supposed(change, new)
        self._settle_rows_between(change, new)
        if new in self._open and new != old:
            self._block_columns(change, new, ANOTHER_TABLE)
        self._note_taken(change, self.timeline.tables[table_id], old, new)
        self.timeline.tables[table_id].names.append((change.position, new))
        self._ask(change, table_id, old, ON_RENAME_TABLE, "RENAME TABLE")
        self._foreign_keys.follow(old, new)
        self._take_said(table_id, new)
        self._own(change, old, None)
        self._own(change, new, table_id)

    def _discover(self, change: SchemaChange, name: TableName) -> bool:
        """Begin a table that existed before the log, if the tool states its structure."""
        known = change.structure_of(name)
        if known is None:
            return False
        working = TableBuilder(change.position, self._server)
        working.adopt(known)
        self._older.add(self._begin(change, name, working))
        return True
