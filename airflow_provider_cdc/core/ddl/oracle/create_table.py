# SPDX-License-Identifier: Apache-2.0
"""Read Oracle's CREATE TABLE."""

from __future__ import annotations

from dataclasses import dataclass, field

from airflow_provider_cdc.core.ddl.alter_actions import AddForeignKey, AddPrimaryKey, AddUnique
from airflow_provider_cdc.core.ddl.options import skip_item
from airflow_provider_cdc.core.ddl.oracle.columns import OracleColumn, at_constraint, read_column, read_constraint
from airflow_provider_cdc.core.ddl.reader import TokenReader
from airflow_provider_cdc.core.ddl.statement import CreateTable
from airflow_provider_cdc.core.ddl.table_parts import ForeignKey, Name
from airflow_provider_cdc.core.ddl.tokens import DdlError

_QUERY = frozenset({"SELECT", "WITH", "("})
_HINT = "state its columns under tables.<name>.create"


@dataclass(slots=True)
class _Body:
    """Hold the definitions between the parentheses."""

    columns: list[OracleColumn] = field(default_factory=list)
    keys: list[AddPrimaryKey] = field(default_factory=list)
    unique: list[AddUnique] = field(default_factory=list)
    references: list[ForeignKey] = field(default_factory=list)


def read_create_table(reader: TokenReader) -> CreateTable:
    """Read what follows CREATE TABLE; of a body that is not understood the table is known by name only."""
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.table_name()
    try:
        return _create_table(reader, name, if_not_exists)
    except DdlError as error:
        reader.rest()
        return CreateTable(name, if_not_exists=if_not_exists, unknown=f"{error}: {_HINT}")


def _create_table(reader: TokenReader, name: Name, if_not_exists: bool) -> CreateTable:
    body = _Body()
    if reader.at("("):
        _read_body(reader, body)
    as_select = _skip_properties(reader)
    if not body.columns and not as_select:
        raise reader.error("columns")
    if len(body.keys) > 1:
        raise reader.error("one primary key")
    key = body.keys[0] if body.keys else AddPrimaryKey(())
    return CreateTable(
        name,
        columns=tuple(column.definition for column in body.columns),
        key=key.columns,
        key_name=key.name,
        unique=tuple(body.unique),
        as_select=as_select,
        if_not_exists=if_not_exists,
        references=tuple(body.references),
    )


def _read_body(reader: TokenReader, body: _Body) -> None:
    reader.expect("(")
    while True:
        if at_constraint(reader):
            keys = [read_constraint(reader)]
        else:
            column = read_column(reader)
            body.columns.append(column)
            keys = [*column.keys]
        body.keys += [key for key in keys if isinstance(key, AddPrimaryKey)]
        body.unique += [key for key in keys if isinstance(key, AddUnique)]
        body.references += [key.key for key in keys if isinstance(key, AddForeignKey)]
        if not reader.accept(","):
            reader.expect(")")
            return


def _skip_properties(reader: TokenReader) -> bool:
    """Skip storage, partitions and the like; return whether a query follows."""
    while not reader.at_end:
        if reader.accept("STORE", "AS"):  # LOB (x) STORE AS (...)
            continue
        if reader.at("AS") and reader.peek(1).word in _QUERY:
            reader.rest()
            return True
        skip_item(reader)
    return False
