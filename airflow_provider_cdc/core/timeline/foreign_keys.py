# SPDX-License-Identifier: Apache-2.0
"""Know the foreign keys of tables: rows of a child follow those of its parent without events of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from airflow_provider_cdc.core.ddl import alter_actions as clause
from airflow_provider_cdc.core.ddl.table_parts import ForeignKey
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.table_builder import TableBuilder
from airflow_provider_cdc.core.timeline.timeline import Reference, TableTimeline


class ForeignKeys:
    """The references between tables, by the statements so far.

    :param case: returns a name as the server has it.
    """

    def __init__(self, case: Callable[[str], str]) -> None:
        self._case = case
        self._references: dict[TableName, list[Reference]] = {}  # by the parent's name

    def refer(
        self, table: TableTimeline, working: TableBuilder, name: TableName, keys: Iterable[ForeignKey], position: str
    ) -> list[str]:
        """Record foreign keys of a table; return why its columns are unknown, for each key that names such a column."""
        reasons = []
        for key in keys:
            parent = self._parent(name, key)
            try:
                reference = working.refer(key, parent, position)
            except DataError as error:
                reasons.append(str(error))
                continue
            if key.cascades:
                table.references.append(reference)
            if key.cascades or key.empties:
                self._references.setdefault(parent, []).append(reference)
        return reasons

    def unknown(self, working: TableBuilder, name: TableName, keys: Iterable[ForeignKey]) -> Iterator[ForeignKey]:
        """Yield the foreign keys of a snapshot's CREATE TABLE that no statement before had."""
        for key in keys:
            try:
                known = working.refers_as(key, self._parent(name, key))
            except DataError:
                continue  # unknown columns: rows wait for the statement that adds them
            if not known:
                yield key

    def follow(self, old: TableName, new: TableName) -> None:
        """Let references follow a parent: so with foreign_key_checks; without them they stay with the name."""
        for reference in list(self._references.get(old, ())):
            if new not in reference.parents:
                reference.parents.append(new)
                self._references.setdefault(new, []).append(reference)

    def _parent(self, name: TableName, key: ForeignKey) -> TableName:
        database = name.database if key.parent.database is None else key.parent.database
        return TableName(self._case(database), self._case(key.parent.table))


def altered_keys(working: TableBuilder, actions: Iterable[clause.AlterAction], position: str) -> list[ForeignKey]:
    """End the foreign keys that clauses of ALTER TABLE drop; return those that they add."""
    added = []
    for action in actions:
        match action:
            case clause.DropForeignKey() | clause.DropConstraint():
                working.stop_referring(action.name, position)
            case clause.DropIndex():  # DROP CONSTRAINT may mean a foreign key too
                working.stop_referring(action.index, position)
            case clause.AddForeignKey():
                added.append(action.key)
            case clause.AddColumn() | clause.ChangeColumn() if action.definition.references is not None:
                added.append(action.definition.references)
    return added
