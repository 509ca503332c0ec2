# SPDX-License-Identifier: Apache-2.0
"""Begin tables and schema versions: record what a change of columns does to stored rows, and foreign keys."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from airflow_provider_cdc.core.ddl import table_parts as parts
from airflow_provider_cdc.core.ddl.generated import Expression, recomputed
from airflow_provider_cdc.core.ddl.parser import is_mysql
from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.model.schema import Default, TableName, TableSchema
from airflow_provider_cdc.core.timeline.added_columns import Fill, fill_of
from airflow_provider_cdc.core.timeline.asked_changes import DENIABLE, ON_CREATE_TABLE, ON_MISSING_CREATE, AskedChanges
from airflow_provider_cdc.core.timeline.change_kinds import ROWS_WITHOUT_CREATE, kinds_between
from airflow_provider_cdc.core.timeline.commented_tables import CommentedTables
from airflow_provider_cdc.core.timeline.foreign_keys import ForeignKeys
from airflow_provider_cdc.core.timeline.table_builder import TableBuilder
from airflow_provider_cdc.core.timeline.timeline import SchemaChange, SchemaVersion, TableTimeline


class VersionedTables(CommentedTables):
    """The part of the timeline's builder that begins tables, and schema versions of tables.

    :ivar _charsets: of databases: default of the tables that are created in them.
    """

    def __init__(self, server: Server, copies: dict[str, list[str]], asked: AskedChanges) -> None:
        super().__init__(server, copies, asked)
        self._charsets: dict[str, str | None] = {}
        self._foreign_keys = ForeignKeys(self._case)

    def _begin(self, change: SchemaChange, name: TableName, working: TableBuilder, *, supposed: bool = False) -> str:
        self._end_supposed(change, name)
        text = f"{change.position}|{change.order}|{name.database}|{name.table}"
        table_id = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        self.timeline.tables[table_id] = TableTimeline(
            table_id,
            [SchemaVersion(change.position, working.schema())],
            names=[(change.position, name)],
            from_rows=not change.statement,
            supposed=supposed,
            described_at=change.snapshot,
        )
        self._working[table_id] = working
        self._own(change, name, table_id)
        if change.position and not supposed:  # else the pipeline's own rules state it
            self._ask(change, table_id, name, ON_CREATE_TABLE, "CREATE TABLE")
        if not change.statement:
            self._ask(change, table_id, name, ON_MISSING_CREATE, ROWS_WITHOUT_CREATE)
        return table_id

    def _new_table(self, change: SchemaChange, name: TableName) -> TableBuilder:
        return TableBuilder(change.position, self._server, self._charsets.get(name.database), self._said(name))

    def _begin_version(self, change: SchemaChange, name: TableName, was: Mapping[int, Expression]) -> None:
        table, working = self.timeline.tables[self._open[name]], self._working[self._open[name]]
        before, schema = table.schema, working.schema()
        computed, unknown = recomputed(before, schema, was, working.expressions)
        if not is_mysql(change.dialect):
            named = [schema.column(item.column_id) for item in computed]
            unknown += [(column, "arithmetic of Oracle is not computed") for column in named if column is not None]
            computed = []
        for column, why in unknown:
            self._block(change, name, f"the generated column {column.name!r} cannot be computed for stored rows: {why}")
        if not schema.key and len(schema.columns_in_rows) < len(schema.columns):
            self._block_columns(change, name, "columns that the source dropped cannot stay in a table without a key")
        if schema != before or computed:
            streamed = bool(change.statement) and not change.describes
            server = self._kind_of(change)
            table.versions.append(SchemaVersion(change.position, schema, server, tuple(computed), streamed))
        for kind, policy in kinds_between(before, schema):
            if policy not in DENIABLE:
                self._ask(change, table.table_id, name, policy, kind)
        self._fill(change, table, name, before, schema)

    def _fill(
        self, change: SchemaChange, table: TableTimeline, name: TableName, before: TableSchema, after: TableSchema
    ) -> None:
        """Record the value that stored rows get in each added column."""
        for column in after.columns:
            if before.column(column.id) is not None:
                continue
            fill = fill_of(column, change.time, self._server, self._kind_of(change))
            if column.id in self._working[table.table_id].without_fill:
                fill = Fill(Default("constant", None))
            if fill.unknown is not None:
                self._block(change, name, fill.unknown)
            if fill.note is not None:
                table.notes.append(fill.note)
            table.fills[column.id] = fill.default

    def _refer(self, change: SchemaChange, name: TableName, keys: Iterable[parts.ForeignKey]) -> None:
        """Record foreign keys."""
        table_id = self._open[name]
        table, working = self.timeline.tables[table_id], self._working[table_id]
        for reason in self._foreign_keys.refer(table, working, name, keys, change.position):
            self._block_columns(change, name, reason)

    def _check_identity(self, change: SchemaChange, name: TableName) -> None:
        """Block a table whose rows cannot be distinguished."""
        unfit = self._working[self._open[name]].unfit_identity()
        if unfit is not None:
            reason = f"the NUMBER {unfit!r} without a scale cannot tell rows apart"
            self._block_columns(change, name, f"{reason}: state its columns under tables.<name>.create")

    def _kind_of(self, change: SchemaChange) -> str | None:
        """Return ``mysql`` or ``mariadb``: what the record shows, else what the pipeline states."""
        return change.server or self._server.kind

    def _is_known(self, database: str) -> bool:
        return database in self._charsets or any(name.database == database for name in self._open)
