# SPDX-License-Identifier: Apache-2.0
"""Describe parsed statements as plain data, one entry for each change of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from airflow_provider_cdc.core.ddl import alter_actions, table_parts
from airflow_provider_cdc.core.ddl import statement as ddl
from airflow_provider_cdc.core.model.schema import ColumnType, Default

_WORD_BEGIN = re.compile(r"(?<!^)(?=[A-Z])")


def describe(statement: ddl.Statement, database: str) -> list[dict[str, Any]]:
    """Return the changes that a statement makes, in order; empty for a statement that concerns no table.

    Every entry has a ``type``: the statement or the clause in snake case. An ALTER has one entry for each clause.

    :param database: of names that are not qualified.
    """
    match statement:
        case ddl.CreateTable():
            return [_create(statement, database)]
        case ddl.AlterTable():
            return [_clause(action, statement.name, database) for action in statement.actions]
        case ddl.DropTable():
            return [{"type": "drop_table", **_table(name, database)} for name in statement.names]
        case ddl.TruncateTable():
            return [{"type": "truncate_table", **_table(statement.name, database)}]
        case ddl.RenameTable():
            return [_rename(old, new, database) for old, new in statement.pairs]
        case ddl.RestoreTable():
            stated = (("old_table", statement.name), ("new_table", statement.new_name or statement.name))
            tables = {key: _full_name(name, database) for key, name in stated if name is not None}
            return [{"type": "restore_table", **tables}]
        case ddl.RevertRows():
            return [{"type": "revert_rows", **_table(name, database)} for name in statement.names]
        case ddl.CommentOn():
            column = {} if statement.column is None else {"column": statement.column}
            return [{"type": "comment_on", **_table(statement.name, database), **column}]
        case ddl.CreateDatabase() | ddl.DropDatabase() | ddl.RestoreDatabase() | ddl.UseDatabase():
            return [{"type": _words(statement), "database": statement.database}]
        case ddl.AlterDatabase():
            return [
                {"type": "alter_database", "database": statement.database or database, "charset": statement.charset}
            ]
        case ddl.RenameDatabase():
            names = {"old_name": statement.database, "new_name": statement.new_name}
            return [{"type": "rename_database", "database": statement.database, **names}]
        case ddl.Other():
            return []


def describe_column(
    name: str, column_type: ColumnType | None, nullable: bool | None, default: Default | None, position: str | None
) -> dict[str, Any]:
    """Return a column as plain data.

    :param nullable: None if the statement does not state it.
    :param position: ``FIRST`` or ``AFTER <column>``, None if it is not stated.
    """
    return {
        "name": name,
        "type": None if column_type is None else str(column_type),
        "nullable": nullable,
        "default": _default(default),
        "position": position,
    }


def _default(default: Default | None) -> str | None:
    if default is None:
        return None
    return "CURRENT_TIMESTAMP" if default.kind == "now" else default.text


def _create(statement: ddl.CreateTable, database: str) -> dict[str, Any]:
    change: dict[str, Any] = {
        "type": "create_table",
        **_table(statement.name, database),
        "columns": [_column(definition) for definition in statement.columns],
        "key": list(statement.key) or [column.name for column in statement.columns if column.primary_key],
    }
    for attribute in ("if_not_exists", "or_replace", "temporary", "as_select"):
        if getattr(statement, attribute):
            change[attribute] = True
    if statement.like is not None:
        change["like"] = _full_name(statement.like, database)
    if statement.unknown is not None:
        change["unknown"] = statement.unknown
    return change


def _clause(action: alter_actions.AlterAction, name: table_parts.Name, database: str) -> dict[str, Any]:
    if isinstance(action, alter_actions.RenameTo):
        return _rename(name, action.name, database)
    return {"type": _words(action), **_table(name, database), **dict(_details(action, database))}


def _details(action: alter_actions.AlterAction, database: str) -> Iterator[tuple[str, Any]]:
    """Yield what a clause states in addition to its table."""
    match action:
        case alter_actions.AddColumn(definition=definition):
            yield "columns", [_column(definition, action.first, action.after)]
        case alter_actions.ChangeColumn(definition=definition):
            if action.old_name == definition.name:
                yield "type", "modify_column"
            yield "columns", [_column(definition, action.first, action.after)]
            yield from _names(action.old_name, definition.name)
        case alter_actions.ModifyColumn():
            yield "columns", [describe_column(action.name, action.type, action.nullable, action.default, None)]
            yield from _names(action.name, action.name)
        case alter_actions.DropColumn():
            yield "old_name", action.name
        case alter_actions.RenameColumn() | alter_actions.RenameIndex():
            yield from _names(action.old_name, action.new_name)
        case alter_actions.SetDefault():
            yield "columns", [{**describe_column(action.name, None, None, None, None), "default": action.default}]
        case alter_actions.AddPrimaryKey() | alter_actions.AddUnique():
            yield "key", list(action.columns)
        case (
            alter_actions.DropIndex(index=old_name)
            | alter_actions.DropConstraint(name=old_name)
            | alter_actions.DropForeignKey(name=old_name)
        ):
            yield "old_name", old_name
        case alter_actions.AddForeignKey(key=key):
            yield "key", list(key.columns)
            yield "references", _full_name(key.parent, database)
        case alter_actions.ConvertCharset() | alter_actions.SetCharset():
            yield "charset", action.charset
        case alter_actions.PartitionRows():
            yield "type", f"{action.kind}_partition"
            if action.other is not None:
                yield "other_table", _full_name(action.other, database)
        case alter_actions.Versioning():
            yield "type", "add_system_versioning" if action.added else "drop_system_versioning"
        case alter_actions.NoEffect():
            yield "clause", action.clause


def _column(definition: table_parts.ColumnDefinition, first: bool = False, after: str | None = None) -> dict[str, Any]:
    position = "FIRST" if first else None if after is None else f"AFTER {after}"
    column = describe_column(definition.name, definition.type, definition.nullable, definition.default, position)
    return {**column, "generated": True} if definition.generated else column


def _names(old_name: str, new_name: str) -> Iterator[tuple[str, str]]:
    yield "old_name", old_name
    yield "new_name", new_name


def _rename(old: table_parts.Name, new: table_parts.Name, database: str) -> dict[str, Any]:
    tables = {"old_table": _full_name(old, database), "new_table": _full_name(new, database)}
    return {"type": "rename_table", **_table(old, database), **tables}


def _table(name: table_parts.Name, database: str) -> dict[str, str]:
    return {"database": name.database or database, "table": name.table}


def _full_name(name: table_parts.Name, database: str) -> str:
    return f"{name.database or database}.{name.table}"


def _words(item: object) -> str:
    return _WORD_BEGIN.sub("_", type(item).__name__).lower()
