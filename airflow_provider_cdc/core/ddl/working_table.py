"""The columns, key and unique keys of one table while ALTER clauses are carried out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from airflow_provider_cdc.core.ddl import statement as ddl
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import Column, Default, TableSchema


class WorkingTable:
    """A table's structure as a mutable list; ids of columns come from the place that added them."""

    def __init__(self, position: str) -> None:
        self._position = position
        self.columns: list[Column] = []
        self.key: list[int] = []
        self.unique: dict[str, list[int]] = {}

    def schema(self) -> TableSchema:
        """Return the present structure; without a primary key the first unique key over NOT NULL columns serves."""
        key = self.key or next(
            (k for k in self.unique.values() if k and all(not self._by_id(i).nullable for i in k)), []
        )
        return TableSchema(tuple(self.columns), tuple(key))

    def define(self, item: ddl.CreateTable) -> None:
        """Take the columns and keys of a CREATE TABLE."""
        for definition in item.columns:
            self.columns.append(self._new(definition, self._position))
            self._inline_keys(definition)
        if item.key:
            self._primary(item.key)
        for unique in item.unique:
            self.unique[unique.index] = self._ids(unique.columns)

    def copy_structure(self, other: WorkingTable) -> None:
        """Take the structure of another table (CREATE TABLE ... LIKE) under new ids."""
        ids = {column.id: self._id(column.name, self._position) for column in other.columns}
        self.columns = [replace(column, id=ids[column.id]) for column in other.columns]
        self.key = [ids[i] for i in other.key]
        self.unique = {name: [ids[i] for i in key] for name, key in other.unique.items()}

    def adopt(self, known: TableSchema, position: str | None = None) -> None:
        """Take names, order, types and key from the tool's own account; identity and defaults stay with the text's."""
        position = position or self._position
        mine = {column.name: column for column in self.columns}
        folded = {column.name.lower(): column for column in self.columns}
        columns = []
        for column in known.columns:
            old = mine.get(column.name) or folded.get(column.name.lower())
            if old is None:
                columns.append(replace(column, id=self._id(column.name, position)))
            else:
                # the tool's account of defaults lacks introducers, expressions and quoting: the text's is kept
                columns.append(
                    replace(
                        column,
                        id=old.id,
                        default=old.default,
                        generated=old.generated or column.generated,
                        auto_increment=old.auto_increment or column.auto_increment,
                    )
                )
        ids = {column.name: new.id for column, new in zip(known.columns, columns, strict=True)}
        self.columns = columns
        self.key = [ids[column.name] for column in known.key_columns]
        self.unique = {}  # the tool's key already is the one its messages use

    def alter(self, actions: Iterable[ddl.AlterAction], position: str) -> None:
        """Carry out the clauses in order.

        :raises DataError: a clause names a column that is not there.
        """
        for action in actions:
            self._action(action, position)

    def _action(self, action: ddl.AlterAction, position: str) -> None:
        match action:
            case ddl.AddColumn(definition=definition):
                if action.if_not_exists and self._find(definition.name) is not None:
                    return
                self._place(self._new(definition, position), action.first, action.after)
                self._inline_keys(definition)
            case ddl.DropColumn():
                if action.if_exists and self._find(action.name) is None:
                    return
                self._remove(self._get(action.name))
            case ddl.ChangeColumn():
                if action.if_exists and self._find(action.old_name) is None:
                    return
                self._change(action)
            case ddl.RenameColumn():
                old = self._get(action.old_name)
                self.columns[self.columns.index(old)] = replace(old, name=action.new_name)
            case ddl.SetDefault():
                old = self._get(action.name)
                self.columns[self.columns.index(old)] = replace(old, default=action.default)
            case ddl.AddPrimaryKey():
                self._primary(action.columns)
            case ddl.DropPrimaryKey():
                self.key = []
            case ddl.AddUnique():
                self.unique[action.index] = self._ids(action.columns)
            case ddl.DropIndex():
                self.unique.pop(action.index, None)
            case ddl.ConvertCharset():
                self.columns = [
                    replace(c, type=replace(c.type, charset=action.charset)) if c.type.charset else c
                    for c in self.columns
                ]
            case _:
                pass

    def _change(self, action: ddl.ChangeColumn) -> None:
        old = self._get(action.old_name)
        definition = action.definition
        new = replace(self._new(definition, ""), id=old.id)
        if old.id in self.key:
            new = replace(new, nullable=False)
        place = self.columns.index(old)
        self.columns.remove(old)
        if action.first or action.after:
            self._place(new, action.first, action.after)
        else:
            self.columns.insert(place, new)
        self._inline_keys(definition)

    def _inline_keys(self, definition: ddl.ColumnDefinition) -> None:
        if definition.primary_key:
            self._primary((definition.name,))
        elif definition.unique:
            self.unique[definition.name] = self._ids((definition.name,))

    def _primary(self, names: Iterable[str]) -> None:
        self.key = self._ids(names)
        self.columns = [replace(c, nullable=False) if c.id in self.key else c for c in self.columns]

    def _remove(self, column: Column) -> None:
        self.columns.remove(column)
        # dropping a column shrinks the keys it was part of
        self.key = [i for i in self.key if i != column.id]
        self.unique = {n: [i for i in k if i != column.id] for n, k in self.unique.items()}
        self.unique = {n: k for n, k in self.unique.items() if k}

    def _place(self, column: Column, first: bool, after: str | None) -> None:
        if self._find(column.name) is not None:
            raise DataError("ddl.column_exists", f"a column {column.name!r} exists already")
        if first:
            self.columns.insert(0, column)
        elif after is not None:
            self.columns.insert(self.columns.index(self._get(after)) + 1, column)
        else:
            self.columns.append(column)

    def _new(self, definition: ddl.ColumnDefinition, position: str) -> Column:
        nullable = definition.nullable is not False and not definition.primary_key
        return Column(
            self._id(definition.name, position),
            definition.name,
            definition.type,
            nullable,
            definition.default or (Default("constant", None) if nullable else None),
            definition.generated,
            definition.auto_increment,
        )

    def _id(self, name: str, position: str) -> int:
        # by the place that added it, not by counting: a DDL that turns up late in front must not change later ids
        digest = hashlib.blake2b(f"{position}|{name}".encode(), digest_size=7).digest()
        return int.from_bytes(digest, "big")

    def _ids(self, names: Iterable[str]) -> list[int]:
        return [self._get(name).id for name in names]

    def _by_id(self, column_id: int) -> Column:
        return next(column for column in self.columns if column.id == column_id)

    def _find(self, name: str) -> Column | None:
        return TableSchema(tuple(self.columns)).named(name)

    def _get(self, name: str) -> Column:
        column = self._find(name)
        if column is None:
            raise DataError("ddl.column_unknown", f"the statement names a column {name!r} that the table does not have")
        return column
