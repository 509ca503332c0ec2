# SPDX-License-Identifier: Apache-2.0
"""Compare the structure that a statement's text gives with a tool's own account of it, such as ``tableChanges``.

A tool parses the same text, and may lose columns and lengths over it: recorded with Debezium 3.5, where one ALTER swaps
the names of two columns. So the text decides, and the account adds what the text leaves to the server's settings.
"""

from __future__ import annotations

from dataclasses import replace

from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema

_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_TEXTS = ("tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob", "mediumblob", "longblob")
# types that a table's character set makes of one another; of texts it decides the size, too
_FAMILIES = {"binary": "char", "varbinary": "varchar", **dict.fromkeys(_TEXTS, "text")}


def as_stated(stated: TableSchema, account: TableSchema, *, undecided_timestamps: bool) -> TableSchema:
    """Return a tool's account as the statement's text allows it; its columns have the ids that the text gives them.

    :param stated: the structure after the statement, by its text.
    :param account: the structure after the statement, by the tool.
    :param undecided_timestamps: whether the server's settings decide if a TIMESTAMP may be NULL.
    """
    exact, accounts = ({case(c.name): c for c in account.columns} for case in (str, str.lower))
    columns = []
    for column in stated.columns_in_rows:
        known = exact.get(column.name) or accounts.get(column.name.lower())
        undecided = undecided_timestamps and column.type.name == "timestamp"
        columns.append(column if known is None else _settled(column, known, nullable_undecided=undecided))
    ids = {column.name.lower(): column.id for column in columns}
    if ids.keys() != accounts.keys():
        return TableSchema(tuple(columns), stated.key)
    return TableSchema(tuple(columns), tuple(ids[column.name.lower()] for column in account.key_columns))


def _settled(stated: Column, account: Column, *, nullable_undecided: bool) -> Column:
    return replace(
        account,
        id=stated.id,
        type=account.type if is_alike(stated.type, account.type) else stated.type,
        nullable=account.nullable if nullable_undecided else stated.nullable,
    )


def is_alike(one: ColumnType, other: ColumnType) -> bool:
    """Return whether two types are one but for their character set, and for how wide integers are shown."""
    return _form(one) == _form(other)


def _form(kind: ColumnType) -> ColumnType:
    family = _FAMILIES.get(kind.name, kind.name)
    length = None if kind.name in _INTEGERS else kind.length
    return replace(kind, name=family, length=length, charset=None)


def unexplained_loss(known: TableSchema, described: TableSchema) -> str | None:
    """Return what a description without a statement would take from the stored values of a table, None for nothing."""
    for column in known.columns_in_rows:
        now = described.named(column.name)
        if now is None:
            return f"the column {column.name!r} is gone"
        if _is_narrower(now.type, column.type):
            return f"the column {column.name!r} has become {now.type} from {column.type}"
    return None


def _is_narrower(now: ColumnType, before: ColumnType) -> bool:
    """Return whether values of one type are cut, where both are of one kind and of different sizes."""
    now, before = _form(now), _form(before)
    if now.name in _INTEGERS and before.name in _INTEGERS:
        return _RANKS[now.name] < _RANKS[before.name]
    if now.name != before.name:
        return now.name not in ("text", "varchar")
    if before.length is None or now.length is None:
        return before.length is not None and now.length is None and now.name not in ("float", "double", "year")
    digits = now.length - (now.scale or 0) < before.length - (before.scale or 0)
    lost_labels = bool(set(before.labels) - set(now.labels))
    return digits or (now.scale or 0) < (before.scale or 0) or lost_labels


_RANKS = {name: rank for rank, name in enumerate(("tinyint", "smallint", "mediumint", "int", "bigint"))}
