# SPDX-License-Identifier: Apache-2.0
"""Apply structures that no statement states: those that rows show, or a tool's account."""

from __future__ import annotations

from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import TableName, TableSchema
from airflow_provider_cdc.core.timeline.asked_changes import ON_DROP_COLUMN, ON_UNSEEN_DDL, Answer
from airflow_provider_cdc.core.timeline.change_kinds import unseen_change
from airflow_provider_cdc.core.timeline.relations import Relations
from airflow_provider_cdc.core.timeline.timeline import SchemaChange


class ObservedTables(Relations):
    """The part of the timeline's builder that compares structures with those before."""

    def _apply_observed(self, change: SchemaChange) -> None:
        """Apply the structure that rows themselves show: if a tool carries no DDL, a new name is a new column."""
        for database, table, known in change.structure:
            name = TableName(database, table)
            if name in self.timeline.doubtful or self.timeline.sent_again(name, change.position, change.time):
                continue
            if name not in self.timeline.names:
                if self._discover(change, name) and change.rows == "streamed":
                    self._ask_unseen(change, name, "a table that no snapshot had: made, renamed, moved or empty before")
                continue
            if known is not None and name not in self._open:
                self._go_on_without_create(change, name, known)
                continue
            table_id = self._open.get(name)
            if known is None or table_id is None:
                continue
            if table_id in self._columnless:
                self._describe_unknown(table_id, known)
                continue
            if change.rows == "read":
                self._settle_unseen(table_id)
            if change.keyless or (change.chosen_key and not self.timeline.tables[table_id].from_rows):
                known = self._working[table_id].with_own_key(known)  # a statement knows it
            if not change.fallback and self._may_lose_columns(change, name, known):
                self._apply_structure(change, name, known)

    def _apply_structure(self, change: SchemaChange, name: TableName, known: TableSchema) -> None:
        """Begin a schema version as a tool's account, or rows, have it, where no text says what changed."""
        working = self._working[self._open[name]]
        before = working.schema()
        working.adopt(known, change.position)
        self._begin_version(change, name, working.expressions)
        if change.rows == "streamed" and (what := unseen_change(before, working.schema())):
            self._ask_unseen(change, name, what)

    def _ask_unseen(self, change: SchemaChange, name: TableName, what: str) -> None:
        """Let a table wait with a change of which no record says what it did to the rows of before."""
        table_id = self._open[name]
        self.timeline.tables[table_id].unseen.append(change.position)
        self._ask(change, table_id, name, ON_UNSEEN_DDL, what)

    def _settle_unseen(self, table_id: str) -> None:
        """Let a table wait no longer with changes from before a snapshot of it: its content begins again there."""
        table = self.timeline.tables[table_id]
        table.asked = [position for position in table.asked if position not in table.unseen]

    def _may_lose_columns(self, change: SchemaChange, name: TableName, known: TableSchema) -> bool:
        """Return whether nobody has to decide about columns that rows lack; where that is denied, let them stay."""
        working = self._working[self._open[name]]
        gone = working.missing_in(known)
        if not gone:
            return True
        answer = self._asked.answer(change.position, name, ON_DROP_COLUMN, "DROP COLUMN")
        if answer == Answer.DENY:
            try:
                working.retain(gone)
            except DataError as error:
                self._block_columns(change, name, str(error))
        return answer != Answer.OPEN
