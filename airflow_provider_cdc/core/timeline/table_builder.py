# SPDX-License-Identifier: Apache-2.0
"""Build the structure of one table (columns, keys, references) by applying clauses of CREATE and ALTER TABLE."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from airflow_provider_cdc.core.ddl import alter_actions as clause
from airflow_provider_cdc.core.ddl import statement as ddl
from airflow_provider_cdc.core.ddl import table_parts as parts
from airflow_provider_cdc.core.ddl.column_types import settle
from airflow_provider_cdc.core.ddl.columns import in_table_of_bytes
from airflow_provider_cdc.core.ddl.defaults import default_of
from airflow_provider_cdc.core.ddl.generated import Expression, read_expression
from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import Column, Default, TableName, TableSchema
from airflow_provider_cdc.core.timeline.asked_changes import ON_DROP_COLUMN, ON_RENAME_COLUMN
from airflow_provider_cdc.core.timeline.clauses import given_name, renamed, skipped
from airflow_provider_cdc.core.timeline.comments import Comments, by_name
from airflow_provider_cdc.core.timeline.timeline import Reference
from airflow_provider_cdc.core.timeline.tool_accounts import as_stated

BINARY = "binary"
_SERVERS_NAME = re.compile(r"_ibfk_(\d{1,9})\Z")


class TableBuilder:
    """Hold a table's structure while statements change it.

    The id of a column is derived from the position of the statement that added it.

    :param charset: default character set of the database.
    :param said: of ``comments``.
    """

    def __init__(self, position: str, server: Server, charset: str | None = None, said: set[str] | None = None) -> None:
        self._position = position
        self._implicit = server.explicit_timestamps is False
        self._undecided_timestamps = server.explicit_timestamps is None
        self._key_is_stated = False  # by a text as PRIMARY KEY; a tool's account may mean a unique key by it
        self._stated: dict[int, str] = {}  # generated columns' SQL that is not parsed yet
        self.expressions: dict[int, Expression] = {}  # of generated columns, by column id
        self._updated: set[int] = set()  # columns with ON UPDATE CURRENT_TIMESTAMP
        self.charset = charset  # of columns that are defined without one
        self.comments = Comments(said)
        self.columns: list[Column] = []
        self.key: list[int] = []
        self.key_name: str | None = None
        self.unique: dict[str, list[int]] = {}
        self.foreign: dict[str, Reference] = {}  # by lower-case name
        self.emptied_with: list[
            Reference
        ] = []  # references by which TRUNCATE ... CASCADE of the parent empties this table
        self._any_scale: set[int] = set()  # numbers that are stored as text
        self.without_fill: set[int] = set()  # columns whose values of older rows are in a column that stays

    def schema(self) -> TableSchema:
        """Return the present schema; without a primary key, the first unique key over NOT NULL columns is the key."""
        key = self.key or next(
            (k for k in self.unique.values() if k and all(not self._by_id(i).nullable for i in k)), []
        )
        return TableSchema(tuple(self.columns), tuple(key))

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

    def adopt(self, known: TableSchema, position: str | None = None) -> None:
        """Adopt names, order, types and key from the tool's own account; keep ids and the DDL text's defaults.

        Columns that the source dropped and the target keeps stay where they are.
        """
        position = position or self._position
        retained = [(index, column) for index, column in enumerate(self.columns) if column.dropped]
        self.columns = [column for column in self.columns if not column.dropped]
        by_name = {column.name: column for column in self.columns}
        folded = {column.name.lower(): column for column in self.columns}
        columns = []
        for column in known.columns:
            old = by_name.get(column.name) or folded.get(column.name.lower())
            if old is None:
                columns.append(replace(column, id=self._id(column.name, position)))
            else:
                # the tool's account of defaults lacks introducers, expressions and quoting: keep that of the DDL text
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
        for index, column in retained:
            if column.name.lower() not in {new.name.lower() for new in columns}:
                self.columns.insert(index, column)
        self.key, self._key_is_stated = [ids[column.name] for column in known.key_columns], False
        self.unique = {}  # the tool's key is the one that its messages use

    def with_own_key(self, account: TableSchema) -> TableSchema:
        """Return a tool's account with the key of this table instead of its own, where it has the key's columns."""
        own, ids = self.schema().key_columns, {column.name: column.id for column in account.columns}
        if not self.columns or any(column.name not in ids for column in own):
            return account
        return TableSchema(account.columns, tuple(ids[column.name] for column in own))

    def confirm(self, account: TableSchema, position: str | None = None) -> None:
        """Adopt from a tool's account what the texts of statements leave open; where they contradict it, they count."""
        if not self.columns:
            self.adopt(account, position)
            return
        primary, unique = list(self.key), dict(self.unique)
        is_stated = self._key_is_stated and bool(primary)
        self.adopt(as_stated(self.schema(), account, undecided_timestamps=self._undecided_timestamps), position)
        if is_stated:
            self.key, self.unique, self._key_is_stated = primary, unique, True

    def become(self, other: TableBuilder, position: str) -> None:
        """Adopt another description of the table; a column of the same name keeps its id."""
        self.charset = other.charset
        names = {column.id: column.name for column in other.columns}
        self.adopt(other.schema(), position)
        ids = {column.name: column.id for column in self.columns}
        self.key, self._key_is_stated = [ids[names[i]] for i in other.key], other._key_is_stated
        self.unique = {index: [ids[names[i]] for i in key] for index, key in other.unique.items()}
        expressions = {ids[names[i]]: expression.text for i, expression in other.expressions.items()}
        # the text of a known expression may be written in another way
        self._stated = {i: text for i, text in expressions.items() if text and i not in self.expressions}
        self._read_expressions()

    def comment(self, column: str | None, text: str) -> None:
        """Take a comment of the table, or of one of its columns."""
        named = None if column is None else self._find(column)
        if column is None:
            self.comments.of_table(text)
        elif named is not None:
            self.comments.of_column(named.id, named.name, text)

    def take_comments(self, other: TableBuilder) -> None:
        """Take the comments of another description of the table."""
        self.comments = other.comments.taken_by(by_name(self.columns, other.columns), self.comments.said)

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

    def _read_expressions(self) -> None:
        """Parse the expressions of a statement's generated columns, once its columns exist."""
        schema = TableSchema(tuple(self.columns))
        unchanged = {i: expression for i, expression in self.expressions.items() if i not in self._stated}
        stated = {i: read_expression(text, schema) for i, text in self._stated.items()}
        generated = {column.id for column in self.columns if column.generated}
        self.expressions = {i: item for i, item in {**unchanged, **stated}.items() if i in generated}
        self._stated = {}

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

    def undecided_timestamps(self, actions: Iterable[clause.AlterAction], before: TableSchema) -> list[str]:
        """Return the added columns whose value in stored rows depends on explicit_defaults_for_timestamp."""
        first = next((column for column in self.columns if column.type.name == "timestamp"), None)
        names = []
        for action in actions:
            if not isinstance(action, clause.AddColumn) or action.definition.type.name != "timestamp":
                continue
            definition, column = action.definition, self._find(action.definition.name)
            added = column is not None and before.column(column.id) is None
            # with NOT NULL stated, only the first TIMESTAMP of a table has another default
            decided = definition.nullable is False and (column is not first or definition.on_update)
            bare = definition.nullable is not True and definition.default is None and not definition.generated
            if added and bare and not decided:
                names.append(definition.name)
        return names

    def _promote_first_timestamp(self) -> None:
        """Default the first TIMESTAMP to the present time, as without explicit_defaults_for_timestamp."""
        first = next((column for column in self.columns if column.type.name == "timestamp"), None)
        if not self._implicit or first is None or first.nullable or first.default is not None or first.generated:
            return
        if first.id not in self._updated:
            self._replace(first.id, default=Default("now"))

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
            old, new = _column(old_schema, old_name), self._get(new_name)
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
                    self._retain(_column(old_schema, action.name))
                case clause.DropColumn():
                    self._remove(_column(old_schema, action.name), action.with_keys)
                case clause.ModifyColumn():
                    self._modify(_column(old_schema, action.name), action)
                case clause.ChangeColumn():
                    self._redefine(_column(old_schema, action.old_name), action.definition)
                case clause.RenameColumn():
                    self._replace(_column(old_schema, action.old_name).id, name=action.new_name)
                case clause.SetDefault():
                    column = _column(old_schema, action.name)
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
                raise _exists(name)

    def _add_and_move_columns(self, actions: Sequence[clause.AlterAction], position: str) -> None:
        """Add columns, and move those that are changed with FIRST or AFTER, in the statement's order."""
        for action in actions:
            if isinstance(action, clause.AddColumn):
                self._insert(self._new(action.definition, position), action.first, action.after)
            elif isinstance(action, clause.ChangeColumn) and (action.first or action.after):
                column = self._get(action.definition.name)
                self.columns.remove(column)
                self._insert(column, action.first, action.after)

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

    def _redefine(self, old: Column, definition: parts.ColumnDefinition) -> None:
        new = self._new(definition, "", old.id)
        if old.id in self.key:
            new = replace(new, nullable=False)
        self.columns = [new if column.id == old.id else column for column in self.columns]

    def _replace(self, column_id: int, **changes: Any) -> None:
        self.columns = [replace(c, **changes) if c.id == column_id else c for c in self.columns]

    def _index(self, name: str) -> str:
        """Return an index's name as it was declared; servers compare names of indexes without regard to case."""
        return next((known for known in self.unique if known.lower() == name.lower()), name)

    def _add_unique(self, index: str, columns: Iterable[str]) -> None:
        name, suffix = index, 2
        while self._index(name) in self.unique:  # the server names a second key over column a: a_2
            name, suffix = f"{index}_{suffix}", suffix + 1
        self.unique[name] = self._ids(columns)

    def _inline_keys(self, definition: parts.ColumnDefinition) -> None:
        if definition.primary_key:
            self._primary((definition.name,))
        elif definition.unique:
            self._add_unique(definition.name, (definition.name,))

    def _primary(self, names: Iterable[str], key_name: str | None = None) -> None:
        self.key, self.key_name, self._key_is_stated = self._ids(names), key_name, True
        self.columns = [replace(c, nullable=False) if c.id in self.key else c for c in self.columns]

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

    def _insert(self, column: Column, first: bool, after: str | None) -> None:
        if self._find(column.name) is not None:
            raise _exists(column.name)
        if first:
            self.columns.insert(0, column)
        elif after is not None:
            self.columns.insert(self.columns.index(self._get(after)) + 1, column)
        else:
            self.columns.append(column)

    def _new(self, definition: parts.ColumnDefinition, position: str, column_id: int | None = None) -> Column:
        if self.charset == BINARY:
            definition = in_table_of_bytes(definition)
        nullable = definition.nullable is not False and not definition.primary_key
        if self._implicit and definition.type.name == "timestamp":
            nullable = definition.nullable is True
        if column_id is None:
            column_id = self._id(definition.name, position)
        if definition.on_update:
            self._updated.add(column_id)
        if definition.any_scale:
            self._any_scale.add(column_id)
        if definition.expression is not None:
            self._stated[column_id] = definition.expression
        self.comments.of_column(column_id, definition.name, definition.comment)
        return Column(
            column_id,
            definition.name,
            definition.type,
            nullable,
            definition.default or (Default("constant", None) if nullable else None),
            definition.generated,
            definition.auto_increment,
        )

    def _id(self, name: str, position: str) -> int:
        # by the position that added it, not by counting: an earlier DDL that arrives late must not change later ids
        digest = hashlib.blake2b(f"{position}|{name}".encode(), digest_size=7).digest()
        return int.from_bytes(digest, "big")

    def _ids(self, names: Iterable[str]) -> list[int]:
        return [self._get(name).id for name in names]

    def _by_id(self, column_id: int) -> Column:
        return next(column for column in self.columns if column.id == column_id)

    def _find(self, name: str) -> Column | None:
        return TableSchema(tuple(self.columns)).named(name)

    def _get(self, name: str) -> Column:
        return _column(TableSchema(tuple(self.columns)), name)


def _converted(column: Column, charset: str) -> Column:
    """Return a column after CONVERT TO CHARACTER SET; with binary, text becomes bytes, and labels stay labels."""
    stated = column.type.charset
    if charset == BINARY and column.type.name not in ("enum", "set"):
        return replace(column, type=settle(replace(column.type, charset=None), charset))
    return replace(column, type=replace(column.type, charset=charset)) if stated else column


def _column(schema: TableSchema, name: str) -> Column:
    column = schema.named(name)
    if column is None:
        raise DataError("ddl.column_unknown", f"the statement names a column {name!r} that the table does not have")
    return column


def _exists(name: str) -> DataError:
    return DataError("ddl.column_exists", f"the statement adds a column {name!r}, and the table has one")
