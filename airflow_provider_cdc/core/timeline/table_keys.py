# SPDX-License-Identifier: Apache-2.0
"""Hold the keys of one table, and its foreign keys, while statements change them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from airflow_provider_cdc.core.ddl import alter_actions as clause
from airflow_provider_cdc.core.ddl import table_parts as parts
from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import TableName, TableSchema
from airflow_provider_cdc.core.timeline.table_columns import TableColumns
from airflow_provider_cdc.core.timeline.timeline import Reference

_SERVERS_NAME = re.compile(r"_ibfk_(\d{1,9})\Z")


class TableKeys(TableColumns):
    """Hold the columns and keys of a table."""

    def __init__(self, position: str, server: Server, charset: str | None = None, said: set[str] | None = None) -> None:
        super().__init__(position, server, charset, said)
        self._key_is_stated = False  # by a text as PRIMARY KEY; a tool's account may mean a unique key by it
        self.key: list[int] = []
        self.key_name: str | None = None
        self.unique: dict[str, list[int]] = {}
        self.foreign: dict[str, Reference] = {}  # by lower-case name
        # references by which TRUNCATE ... CASCADE of the parent empties this table
        self.emptied_with: list[Reference] = []

    def schema(self) -> TableSchema:
        """Return the present schema; without a primary key, the first unique key over NOT NULL columns is the key."""
        key = self.key or next(
            (k for k in self.unique.values() if k and all(not self._by_id(i).nullable for i in k)), []
        )
        return TableSchema(tuple(self.columns), tuple(key))

    def refer(self, key: parts.ForeignKey, parent: TableName, position: str) -> Reference:
        """Add a foreign key; return its reference on the timeline."""
        reference = Reference(position, tuple(self._ids(key.columns)), [parent], key.parent_columns)
        if key.empties:
            self.emptied_with.append(reference)
        server_numbers = [int(name[1:]) for name in self.foreign if name.startswith("#")]
        made = f"#{max(server_numbers, default=0) + 1}"  # by the server: table_ibfk_1, table_ibfk_2
        self.foreign |= {name.lower(): reference for name in key.names or (made,)}
        return reference

    def stop_referring(self, name: str, position: str) -> None:
        """End the foreign key with this name, if there is one."""
        numbered = _SERVERS_NAME.search(name)
        reference = self.foreign.get(name.lower()) or self.foreign.get(f"#{numbered.group(1)}" if numbered else "")
        if reference is not None:
            reference.until = position
            self.emptied_with = [other for other in self.emptied_with if other is not reference]
            self.foreign = {name: other for name, other in self.foreign.items() if other is not reference}

    def refers_as(self, key: parts.ForeignKey, parent: TableName) -> bool:
        """Return whether a foreign key over the same columns to the same parent is known."""
        columns = tuple(self._ids(key.columns))
        return any(known.columns == columns and parent in known.parents for known in self.foreign.values())

    def unfit_identity(self) -> str | None:
        """Return a column that cannot tell rows apart: a number that is stored as text may be spelled in two ways."""
        schema = self.schema()
        columns = schema.key_columns or schema.columns
        return next((c.name for c in columns if c.id in self._any_scale and c.type.name == "longtext"), None)

    def may_merge_rows(self, actions: Iterable[clause.AlterAction]) -> bool:
        """Return whether these clauses under ALTER IGNORE may remove rows: they add a key, or change a key's column."""
        keyed = {i for key in (self.key, *self.unique.values()) for i in key}
        for action in actions:
            match action:
                case clause.AddPrimaryKey() | clause.AddUnique():
                    return True
                case clause.AddColumn() if action.definition.primary_key or action.definition.unique:
                    return True
                case clause.ChangeColumn():
                    old = self._find(action.old_name)
                    new = action.definition
                    if new.primary_key or new.unique or (old is not None and old.id in keyed and old.type != new.type):
                        return True
                case clause.ConvertCharset():
                    if any(column.id in keyed and column.type.charset for column in self.columns):
                        return True
                case _:
                    pass
        return False

    def _alter_keys(self, actions: Sequence[clause.AlterAction]) -> None:
        """Drop and rename keys, then add keys."""
        for action in actions:
            match action:
                case clause.DropPrimaryKey():
                    self.key = []
                case clause.DropIndex():
                    self.unique.pop(self._index(action.index), None)
                case clause.DropConstraint():
                    self._drop_constraint(action.name)
                case clause.RenameIndex():
                    old = self._index(action.old_name)
                    self.unique = {action.new_name if n == old else n: k for n, k in self.unique.items()}
                case _:
                    pass
        for action in actions:
            match action:
                case clause.AddColumn() | clause.ChangeColumn():
                    self._inline_keys(action.definition)
                case clause.AddPrimaryKey():
                    self._primary(action.columns, action.name)
                case clause.AddUnique():
                    self._add_unique(action.index, action.columns)
                case _:
                    pass

    def _inline_keys(self, definition: parts.ColumnDefinition) -> None:
        if definition.primary_key:
            self._primary((definition.name,))
        elif definition.unique:
            self._add_unique(definition.name, (definition.name,))

    def _primary(self, names: Iterable[str], key_name: str | None = None) -> None:
        self.key, self.key_name, self._key_is_stated = self._ids(names), key_name, True
        self.columns = [replace(c, nullable=False) if c.id in self.key else c for c in self.columns]

    def _add_unique(self, index: str, columns: Iterable[str]) -> None:
        name, suffix = index, 2
        while self._index(name) in self.unique:  # the server names a second key over column a: a_2
            name, suffix = f"{index}_{suffix}", suffix + 1
        self.unique[name] = self._ids(columns)

    def _index(self, name: str) -> str:
        """Return an index's name as it was declared; servers compare names of indexes without regard to case."""
        return next((known for known in self.unique if known.lower() == name.lower()), name)

    def _drop_constraint(self, name: str) -> None:
        """Drop the key with a name; if all keys have known names, a constraint with another name is not a key."""
        if name in self.unique:
            del self.unique[name]
        elif name.lower() in self.foreign:
            pass  # ends with stop_referring
        elif self.key and self.key_name == name:
            self.key = []
        elif (self.key and self.key_name is None) or any(index.startswith("(") for index in self.unique):
            raise DataError("ddl.constraint_unknown", f"the statement drops {name!r}, which may be a key of the table")
