# SPDX-License-Identifier: Apache-2.0
"""Begin tables whose rows the log does not have, and note tables without rows that take the name of another one.

A table is known only if all of its rows came from records, or from files of an operator. So one that a statement brings
in from outside the log, brings back, or only names without being understood begins with a block: its rows, and where no
tool states them its columns, are unknown until a TRUNCATE, a new table, or a snapshot or files with all rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from airflow_provider_cdc.core.ddl import alter_actions as clause
from airflow_provider_cdc.core.ddl import statement as ddl
from airflow_provider_cdc.core.ddl import table_parts as parts
from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.model.schema import TableName, TableSchema
from airflow_provider_cdc.core.timeline.asked_changes import AskedChanges
from airflow_provider_cdc.core.timeline.helper_tables import not_captured
from airflow_provider_cdc.core.timeline.table_builder import TableBuilder
from airflow_provider_cdc.core.timeline.taken_name import TakenName
from airflow_provider_cdc.core.timeline.timeline import Block, SchemaChange, SchemaVersion, TableTimeline
from airflow_provider_cdc.core.timeline.versioned_tables import VersionedTables

ANOTHER_TABLE = "apply.schema_missing: another table took its name, and no statement says why"
_NO_CREATE = "its CREATE TABLE is not in the log"


class UnknownTables(VersionedTables):
    """The part of the timeline's builder that knows where a table's rows come from.

    :ivar _columnless: tables whose columns no statement and no row has shown so far, each with the block it began with.
    :ivar _older: tables that existed before the log, which may lack rows.
    :ivar _copied: table made by CREATE TABLE ... LIKE, and not altered since -> the table whose structure it copied.
    """

    def __init__(self, server: Server, copies: dict[str, list[str]], asked: AskedChanges) -> None:
        super().__init__(server, copies, asked)
        self._columnless: dict[str, Block] = {}
        self._older: set[str] = set()
        self._copied: dict[str, str] = {}

    def _begin_unknown(
        self,
        change: SchemaChange,
        name: TableName,
        reason: str,
        *,
        like: str | None = None,
        supposed: bool = False,
    ) -> None:
        """Begin a table whose rows are unknown; its columns are those that the tool states, or those of another one.

        :param like: id of a table with its columns.
        """
        known = change.structure_of(name)
        working = TableBuilder(change.position, self._server)
        if known is not None:
            working.adopt(known)
        elif like is not None:
            working.copy_structure(self._working[like])
        table_id = self._begin(change, name, working, supposed=supposed)
        block = Block(change.position, reason, columns=not working.columns)
        self.timeline.tables[table_id].blocked.append(block)
        if block.columns:
            self._columnless[table_id] = block

    def _bring_in(self, change: SchemaChange, old: TableName, new: TableName, *, if_exists: bool) -> None:
        """Carry out a RENAME of a table that the log never showed, or that lost its name before."""
        freed = old in self.timeline.names
        if if_exists and (freed or new in self._open):
            return  # there was no such table
        if new in self._open:
            self._block_columns(change, new, ANOTHER_TABLE)
        why = f"the log does not show where the rows of {old} came from, which took this name"
        reason = not_captured(old, change.statement) or f"{why}: capture `{old.table}`, then rebuild"
        # a view can be renamed too: without columns, or a table that had the name, only rows show a table
        certain = change.structure_of(new) is not None or new in self.timeline.names
        if old.database:
            self._own(change, old, None)
        self._begin_unknown(change, new, reason, supposed=not certain)

    def _note_taken(self, change: SchemaChange, table: TableTimeline, old: TableName, new: TableName) -> None:
        """Note that a table takes the name of another one, unless its rows are known all the same.

        A table made by CREATE TABLE ... LIKE the other one, and not changed since, is empty: so logs are rotated.
        """
        spans = self.timeline.spans(new)
        owners = [owner for _, owner in spans if owner is not None]
        if not spans or owners[-1:] == [table.table_id]:
            return
        displaced = next((owner for owner in owners[-1:] if owner not in self._older), None)
        helper = not_captured(old, change.statement)
        if helper is None and displaced is not None and self._copied.get(table.table_id) == displaced:
            return
        text = f"{old} took this name, and the log has no row of it: capture `{old.table}`, then rebuild"
        if self._is_older(table.table_id) and displaced is not None and not self._is_older(displaced):
            text = f"{old} took this name, and existed before the log, which may lack rows of it: rebuild"
            table.blocked.append(Block(change.position, helper or text))
            return
        former = tuple(dict.fromkeys(name for _, name in table.names if name is not None))
        table.taken.append(TakenName(change.position, former, displaced, helper or text))

    def _is_older(self, table_id: str) -> bool:
        return table_id in self._older or self.timeline.tables[table_id].from_rows

    def _note_altered(self, table_id: str, actions: Iterable[clause.AlterAction]) -> None:
        """Note that a table was changed: more than its name, and where its numbers begin."""
        if any(not isinstance(action, clause.RenameTo) and not _sets_next_number(action) for action in actions):
            self._copied.pop(table_id, None)

    def _alter_unknown(self, change: SchemaChange, name: TableName) -> None:
        """Begin a table that an ALTER TABLE names after it was dropped or renamed: it is there again."""
        self._begin_unknown(change, name, f"a statement changes this table, and {_NO_CREATE}")

    def _describe_unknown(self, table_id: str, known: TableSchema) -> None:
        """Give a table without columns those that its rows, or the tool, show."""
        table, working = self.timeline.tables[table_id], self._working[table_id]
        working.adopt(known)
        table.versions = [SchemaVersion(table.versions[0].position, working.schema())]
        begun = self._columnless.pop(table_id)
        table.blocked = [block._replace(columns=False) if block is begun else block for block in table.blocked]

    def _go_on_without_create(self, change: SchemaChange, name: TableName, known: TableSchema) -> None:
        """Begin the table that rows show of a name that a statement freed: from there on, whichever row came."""
        freed_at = self.timeline.spans(name)[-1][0]
        begun = replace(change, position=freed_at, order=0, structure=((*name, known),))
        self._begin_unknown(begun, name, f"rows came after the table was dropped or renamed: {_NO_CREATE}")

    def _suppose(self, change: SchemaChange, name: TableName, reason: str, like: str | None = None) -> None:
        """Begin a table that a statement may have brought into being; it counts only once it has rows."""
        if name not in self._open and name not in self.timeline.doubtful:
            self._begin_unknown(change, name, reason, like=like, supposed=True)

    def _settle_rows_between(self, change: SchemaChange, name: TableName) -> None:
        """Note that rows since a name was freed count no more, where a statement shows that no table had it by then."""
        spans = self.timeline.spans(name)
        if spans and spans[-1][1] is None:
            self.timeline.doubts.setdefault(name, []).append((spans[-1][0], change.position))

    def _restore(self, change: SchemaChange, item: ddl.RestoreTable) -> None:
        """Bring back a table with rows that the log does not have."""
        verb = change.statement.split(maxsplit=1)[0].upper()
        reason = f"{verb} TABLE brings rows back without row events"
        if item.name is None and item.new_name is None:
            for name, spans in list(self.timeline.names.items()):
                if spans[-1][1] is None:
                    self._suppose(change, name, reason, self._last(name))
            return
        origin = None if item.name is None else self._full(item.name, change)
        new = origin if item.new_name is None else self._full(item.new_name, change)
        assert new is not None, "one of them is stated"
        if new in self._open and not self.timeline.tables[self._open[new]].supposed:
            self._block(change, new, reason)
        else:
            self._begin_unknown(change, new, reason, like=None if origin is None else self._last(origin))

    def _restore_database(self, change: SchemaChange, item: ddl.RestoreDatabase) -> None:
        """Bring back the tables that were dropped with a database."""
        database = self._case(item.database)
        freed = {n: s[-1][0] for n, s in self.timeline.names.items() if n.database == database and s[-1][1] is None}
        dropped_at = max(freed.values(), default="")
        for name in [name for name, position in freed.items() if position == dropped_at]:
            new = parts.Name(self._case(item.new_name or database), name.table)
            self._restore(change, ddl.RestoreTable(parts.Name(database, name.table), new))

    def _revert(self, change: SchemaChange, item: ddl.RevertRows) -> None:
        """Block the tables whose rows became those of another time."""
        names = [self._full(name, change) for name in item.names]
        if not names:
            database = None if item.database is None else self._case(item.database)
            names = [name for name in self._open if database is None or name.database == database]
        for name in names:
            self._block_columns(change, name, "FLASHBACK changes rows without row events")


def _sets_next_number(action: clause.AlterAction) -> bool:
    return isinstance(action, clause.NoEffect) and action.clause.upper().startswith("AUTO_INCREMENT")
