# SPDX-License-Identifier: Apache-2.0
"""Build the structure of one table (columns, keys, references) by applying clauses of CREATE and ALTER TABLE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from airflow_provider_cdc.core.ddl import alter_actions as clause
from airflow_provider_cdc.core.ddl import statement as ddl
from airflow_provider_cdc.core.ddl import table_parts as parts
from airflow_provider_cdc.core.ddl.column_types import settle
from airflow_provider_cdc.core.ddl.defaults import default_of
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import Column, TableSchema
from airflow_provider_cdc.core.timeline.asked_changes import ON_DROP_COLUMN, ON_RENAME_COLUMN
from airflow_provider_cdc.core.timeline.clauses import given_name, renamed, skipped
from airflow_provider_cdc.core.timeline.table_accounts import TableAccounts
from airflow_provider_cdc.core.timeline.table_columns import BINARY, column_exists, column_named


class TableBuilder(TableAccounts):
    """Hold a table's structure while statements change it.

    The id of a column is derived from the position of the statement that added it.

    :param charset: default character set of the database.
    :param said: of ``comments``.
    """

    def define(self, item: ddl.CreateTable) -> None:
        """Apply the columns and keys of a CREATE TABLE."""
        self.charset = item.charset or self.charset
        self.comments.of_table(item.comment)
        for definition in item.columns:
            self.columns.append(self._new(definition, self._position))
        if item.key:
            self._primary(item.key, item.key_name)
        for unique in item.unique:
            self.unique[unique.index] = self._ids(unique.columns)
        self._promote_first_timestamp()
        self._read_expressions()

    def copy_structure(self, other: TableBuilder) -> None:
        """Copy the structure of another table (CREATE TABLE ... LIKE) under new ids."""
        ids = {column.id: self._id(column.name, self._position) for column in other.columns if not column.dropped}
        self.columns = [replace(column, id=ids[column.id]) for column in other.columns if column.id in ids]
        self.charset, self.comments = other.charset, other.comments.taken_by(ids, self.comments.said)
        self.key = [ids[i] for i in other.key]
        self._key_is_stated = other._key_is_stated
        self.unique = {name: [ids[i] for i in key] for name, key in other.unique.items()}
        self._any_scale = {ids[i] for i in other._any_scale if i in ids}
        self._stated = {ids[i]: expression.text for i, expression in other.expressions.items() if expression.text}
        self._read_expressions()

    def alter(self, actions: Sequence[clause.AlterAction], position: str, *, denied: Collection[str] = ()) -> None:
        """Apply the clauses of one statement, or none of them if one fails.

        Clauses name columns and keys as the server reads them: as they were before the statement. AFTER and the parts
        of added keys name the resulting columns.

        :param denied: policies of clauses that are denied: columns that these drop or rename stay in the target.
        :raises DataError: a clause names a column that does not exist, or a key cannot do without a column.
        """
        before = list(self.columns), list(self.key), dict(self.unique), self.expressions, self.charset
        comments = self.comments.copy()
        old_schema = TableSchema(TableSchema(tuple(self.columns)).columns_in_rows)
        actions = [action for action in actions if not skipped(action, old_schema)]
        try:
            self._make_room(actions)
            self._set_charset(actions)
            self._alter_columns(old_schema, actions, denied)
            if ON_RENAME_COLUMN in denied:
                self._separate_renamed(old_schema, actions, position)
            self._add_and_move_columns(actions, position)
            self._alter_keys(actions)
            self._promote_first_timestamp()
            self._read_expressions()
        except DataError:
            self.columns, self.key, self.unique, self.expressions, self.charset = before
            self._stated, self.comments = {}, comments
            raise

    def _make_room(self, actions: Sequence[clause.AlterAction]) -> None:
        """Give up the columns that only the target has where a statement gives their names to other columns."""
        taken = {given_name(action).lower() for action in actions}
        self.columns = [c for c in self.columns if not c.dropped or c.name.lower() not in taken]

    def missing_in(self, known: TableSchema) -> list[Column]:
        """Return the columns that the source had, and that the tool's own account lacks."""
        names = {column.name.lower() for column in known.columns}
        return [column for column in self.columns if not column.dropped and column.name.lower() not in names]

    def retain(self, columns: Iterable[Column]) -> None:
        """Let columns that the source does not have any more stay in the target.

        :raises DataError: one is part of the key; then none of them stays.
        """
        columns = list(columns)
        for column in columns:
            self._demand_no_key(column)
        for column in columns:
            self._retain(column)

    def _retain(self, column: Column) -> None:
        """Let a column that the source drops stay in the target.

        :raises DataError: it is part of the key.
        """
        self._demand_no_key(column)
        index = next(index for index, other in enumerate(self.columns) if other.id == column.id)
        self._remove(column, with_keys=False)
        self.columns.insert(index, column.only_in_target())

    def _demand_no_key(self, column: Column) -> None:
        if column.id in self.schema().key:
            raise DataError("ddl.key_dropped", f"the column {column.name!r} is part of the key, so it cannot stay")

    def _separate_renamed(self, old_schema: TableSchema, actions: Sequence[clause.AlterAction], position: str) -> None:
        """Make each renamed column a column of its own, and let the old one stay in the target.

        :raises DataError: a column is part of a key, or its old name belongs to another column now.
        """
        for old_name, new_name in filter(None, map(renamed, actions)):
            old, new = column_named(old_schema, old_name), self._get(new_name)
            self._demand_no_key(old)
            if self._find(old_name) is not None or any(old.id in known.columns for known in self.foreign.values()):
                reason = (
                    f"the column {old.name!r} cannot stay: a foreign key has it, or another column has its name now"
                )
                raise DataError("ddl.name_taken", reason)
            own = self._id(new_name, position)
            index = self.columns.index(new)
            self.columns[index : index + 1] = [old.only_in_target(), replace(new, id=own)]
            self.comments.share(old.id, own)
            self.unique = {name: [own if i == old.id else i for i in key] for name, key in self.unique.items()}
            self.without_fill.add(own)
            for ids in (self._any_scale, self._updated):
                ids.update([own] if old.id in ids else [])
            self._stated = {own if i == old.id else i: text for i, text in self._stated.items()}
            self.expressions = {own if i == old.id else i: item for i, item in self.expressions.items()}

    def _set_charset(self, actions: Sequence[clause.AlterAction]) -> None:
        """Set the default character set; it is also that of the columns that the same statement defines."""
        for action in actions:
            if isinstance(action, clause.SetCharset | clause.ConvertCharset):
                self.charset = action.charset

    def _alter_columns(
        self, old_schema: TableSchema, actions: Sequence[clause.AlterAction], denied: Collection[str]
    ) -> None:
        """Drop, change and rename columns of the schema before the statement."""
        for action in actions:
            match action:
                case clause.DropColumn() if ON_DROP_COLUMN in denied:
                    self._retain(column_named(old_schema, action.name))
                case clause.DropColumn():
                    self._remove(column_named(old_schema, action.name), action.with_keys)
                case clause.ModifyColumn():
                    self._modify(column_named(old_schema, action.name), action)
                case clause.ChangeColumn():
                    self._redefine(column_named(old_schema, action.old_name), action.definition)
                case clause.RenameColumn():
                    self._replace(column_named(old_schema, action.old_name).id, name=action.new_name)
                case clause.SetDefault():
                    column = column_named(old_schema, action.name)
                    default = None if action.default is None else default_of(action.default, column.type)
                    self._replace(column.id, default=default)
                case clause.SetComment():
                    self.comments.of_table(action.comment)
                case clause.ConvertCharset():
                    self.columns = [c if c.dropped else _converted(c, action.charset) for c in self.columns]
                case _:
                    pass
        names = Counter(column.name.lower() for column in self.columns)
        for name, count in names.items():
            if count > 1:
                raise column_exists(name)

    def _add_and_move_columns(self, actions: Sequence[clause.AlterAction], position: str) -> None:
        """Add columns, and move those that are changed with FIRST or AFTER, in the statement's order."""
        for action in actions:
            if isinstance(action, clause.AddColumn):
                self._insert(self._new(action.definition, position), action.first, action.after)
            elif isinstance(action, clause.ChangeColumn) and (action.first or action.after):
                column = self._get(action.definition.name)
                self.columns.remove(column)
                self._insert(column, action.first, action.after)

    def _redefine(self, old: Column, definition: parts.ColumnDefinition) -> None:
        new = self._new(definition, "", old.id)
        if old.id in self.key:
            new = replace(new, nullable=False)
        self.columns = [new if column.id == old.id else column for column in self.columns]

    def _modify(self, column: Column, action: clause.ModifyColumn) -> None:
        if action.type is not None:
            self._any_scale = self._any_scale - {column.id} | ({column.id} if action.any_scale else set())
        stated = {"type": action.type, "nullable": action.nullable, "default": action.default}
        self._replace(column.id, **{name: value for name, value in stated.items() if value is not None})

    def _remove(self, column: Column, with_keys: bool) -> None:
        self.columns = [other for other in self.columns if other.id != column.id]
        if with_keys:
            self.key = [] if column.id in self.key else self.key
            self.unique = {name: key for name, key in self.unique.items() if column.id not in key}
        # dropping a column shrinks the keys it was part of
        self.key = [i for i in self.key if i != column.id]
        self.unique = {n: [i for i in k if i != column.id] for n, k in self.unique.items()}
        self.unique = {n: k for n, k in self.unique.items() if k}


def _converted(column: Column, charset: str) -> Column:
    """Return a column after CONVERT TO CHARACTER SET; with binary, text becomes bytes, and labels stay labels."""
    stated = column.type.charset
    if charset == BINARY and column.type.name not in ("enum", "set"):
        return replace(column, type=settle(replace(column.type, charset=None), charset))
    return replace(column, type=replace(column.type, charset=charset)) if stated else column
