# SPDX-License-Identifier: Apache-2.0
"""Read CREATE TABLE."""

from __future__ import annotations

from dataclasses import dataclass, field

from airflow_provider_cdc.core.ddl.alter_actions import AddForeignKey, AddPrimaryKey, AddUnique
from airflow_provider_cdc.core.ddl.columns import read_raw_column, settled
from airflow_provider_cdc.core.ddl.keys import at_constraint, read_constraint
from airflow_provider_cdc.core.ddl.options import (
    accept_column_groups,
    accept_distribution,
    accept_partitioning,
    accept_table_options,
)
from airflow_provider_cdc.core.ddl.reader import TokenReader
from airflow_provider_cdc.core.ddl.statement import CreateTable
from airflow_provider_cdc.core.ddl.table_parts import ColumnDefinition, ForeignKey, Name

_QUERY = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "("})


@dataclass(slots=True)
class _Body:
    """Hold the definitions between the parentheses."""

    columns: list[ColumnDefinition] = field(default_factory=list)
    key: tuple[str, ...] = ()
    unique: list[AddUnique] = field(default_factory=list)
    references: list[ForeignKey] = field(default_factory=list)


def read_create_table(reader: TokenReader, *, or_replace: bool) -> CreateTable:
    """Read what follows CREATE [OR REPLACE] TABLE."""
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.table_name()
    like = _like(reader)
    if like is not None:
        reader.expect_end()
        return CreateTable(name, like=like, if_not_exists=if_not_exists, or_replace=or_replace)
    body = _Body()
    if reader.at("(") and reader.peek(1).word not in _QUERY:
        body = _read_body(reader)
    _, charset, comment = accept_table_options(reader, commas=True)
    versioned = reader.accept("WITH", "SYSTEM", "VERSIONING")
    while accept_partitioning(reader) or accept_distribution(reader) or accept_column_groups(reader):
        further = accept_table_options(reader)
        charset, comment = charset or further.charset, comment or further.comment
    as_select = _query(reader)
    reader.expect_end()
    if not body.columns and not as_select:
        raise reader.error("columns")
    return CreateTable(
        name,
        columns=tuple(settled(column, charset) for column in body.columns),
        key=body.key,
        unique=tuple(body.unique),
        as_select=as_select,
        if_not_exists=if_not_exists,
        or_replace=or_replace,
        charset=charset,
        references=tuple(body.references),
        versioned=versioned or any(column.versioned for column in body.columns),
        comment=comment or "",
    )


def _like(reader: TokenReader) -> Name | None:
    if reader.accept("LIKE"):
        return reader.table_name()
    if not reader.accept("(", "LIKE"):
        return None
    name = reader.table_name()
    reader.expect(")")
    return name


def _read_body(reader: TokenReader) -> _Body:
    body = _Body()
    taken: dict[str, int] = {}
    reader.expect("(")
    while True:
        if at_constraint(reader):
            _add_constraint(reader, body, taken)
        else:
            _add_column(reader, body, taken)
        if not reader.accept(","):
            reader.expect(")")
            return body


def _add_column(reader: TokenReader, body: _Body, taken: dict[str, int]) -> None:
    column = read_raw_column(reader)
    body.columns.append(column)
    if column.primary_key:
        _set_key(reader, body, (column.name,))
    if column.references is not None:
        body.references.append(column.references)
    if column.unique:
        body.unique.append(AddUnique(_free_name(column.name, taken), (column.name,)))


def _add_constraint(reader: TokenReader, body: _Body, taken: dict[str, int]) -> None:
    constraint = read_constraint(reader)
    if isinstance(constraint, AddPrimaryKey):
        _set_key(reader, body, constraint.columns)
    elif isinstance(constraint, AddUnique):
        body.unique.append(AddUnique(_free_name(constraint.index, taken), constraint.columns))
    elif isinstance(constraint, AddForeignKey):
        body.references.append(constraint.key)
    elif constraint.index:
        _free_name(constraint.index, taken)


def _set_key(reader: TokenReader, body: _Body, columns: tuple[str, ...]) -> None:
    if body.key:
        raise reader.error("one primary key")
    body.key = columns


def _free_name(name: str, taken: dict[str, int]) -> str:
    """Return an index name as the server gives it: ``a``, ``a_2``, ``a_3`` for indexes that begin with column ``a``."""
    free, number = name, taken.get(name.lower(), 1)
    while free.lower() in taken:
        number += 1
        free = f"{name}_{number}"
    taken[name.lower()] = number
    taken.setdefault(free.lower(), 1)
    return free


def _query(reader: TokenReader) -> bool:
    """Skip [IGNORE | REPLACE] [AS] query."""
    marked = bool(reader.accept_any(("IGNORE", "REPLACE")))
    marked = reader.accept("AS") or marked
    ahead = 0
    while reader.peek(ahead).word == "(":
        ahead += 1
    if reader.peek(ahead).word in _QUERY and not reader.at("WITH", "SYSTEM"):
        reader.rest()
        return True
    if marked:
        raise reader.error("SELECT")
    return False
