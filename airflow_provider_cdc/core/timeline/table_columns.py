# SPDX-License-Identifier: Apache-2.0
"""Hold the columns of one table while statements change them, with what their texts say of values and comments."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from airflow_provider_cdc.core.ddl import alter_actions as clause
from airflow_provider_cdc.core.ddl import table_parts as parts
from airflow_provider_cdc.core.ddl.columns import in_table_of_bytes
from airflow_provider_cdc.core.ddl.generated import Expression, read_expression
from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import Column, Default, TableSchema
from airflow_provider_cdc.core.timeline.comments import Comments, by_name

BINARY = "binary"


class TableColumns:
    """Hold the columns of a table.

    The id of a column is derived from the position of the statement that added it.

    :param charset: default character set of the database.
    :param said: of ``comments``.
    """

    def __init__(self, position: str, server: Server, charset: str | None = None, said: set[str] | None = None) -> None:
        self._position = position
        self._implicit = server.explicit_timestamps is False
        self._undecided_timestamps = server.explicit_timestamps is None
        self._stated: dict[int, str] = {}  # generated columns' SQL that is not parsed yet
        self.expressions: dict[int, Expression] = {}  # of generated columns, by column id
        self._updated: set[int] = set()  # columns with ON UPDATE CURRENT_TIMESTAMP
        self.charset = charset  # of columns that are defined without one
        self.comments = Comments(said)
        self.columns: list[Column] = []
        self._any_scale: set[int] = set()  # numbers that are stored as text
        self.without_fill: set[int] = set()  # columns whose values of older rows are in a column that stays

    def _promote_first_timestamp(self) -> None:
        """Default the first TIMESTAMP to the present time, as without explicit_defaults_for_timestamp."""
        first = next((column for column in self.columns if column.type.name == "timestamp"), None)
        if not self._implicit or first is None or first.nullable or first.default is not None or first.generated:
            return
        if first.id not in self._updated:
            self._replace(first.id, default=Default("now"))

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

    def _read_expressions(self) -> None:
        """Parse the expressions of a statement's generated columns, once its columns exist."""
        schema = TableSchema(tuple(self.columns))
        unchanged = {i: expression for i, expression in self.expressions.items() if i not in self._stated}
        stated = {i: read_expression(text, schema) for i, text in self._stated.items()}
        generated = {column.id for column in self.columns if column.generated}
        self.expressions = {i: item for i, item in {**unchanged, **stated}.items() if i in generated}
        self._stated = {}

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

    def _insert(self, column: Column, first: bool, after: str | None) -> None:
        if self._find(column.name) is not None:
            raise column_exists(column.name)
        if first:
            self.columns.insert(0, column)
        elif after is not None:
            self.columns.insert(self.columns.index(self._get(after)) + 1, column)
        else:
            self.columns.append(column)

    def _replace(self, column_id: int, **changes: Any) -> None:
        self.columns = [replace(c, **changes) if c.id == column_id else c for c in self.columns]

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
        return column_named(TableSchema(tuple(self.columns)), name)

    def comment(self, column: str | None, text: str) -> None:
        """Take a comment of the table, or of one of its columns."""
        named = None if column is None else self._find(column)
        if column is None:
            self.comments.of_table(text)
        elif named is not None:
            self.comments.of_column(named.id, named.name, text)

    def take_comments(self, other: TableColumns) -> None:
        """Take the comments of another description of the table."""
        self.comments = other.comments.taken_by(by_name(self.columns, other.columns), self.comments.said)


def column_named(schema: TableSchema, name: str) -> Column:
    """Return the column with a name.

    :raises DataError: ``ddl.column_unknown``.
    """
    column = schema.named(name)
    if column is None:
        raise DataError("ddl.column_unknown", f"the statement names a column {name!r} that the table does not have")
    return column


def column_exists(name: str) -> DataError:
    """Return why a column cannot have a name: the table has one that is called so."""
    return DataError("ddl.column_exists", f"the statement adds a column {name!r}, and the table has one")
