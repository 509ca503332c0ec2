# SPDX-License-Identifier: Apache-2.0
"""Store columns under another type that holds each of their values: a wider one, or text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pyarrow as pa

from airflow_provider_cdc.core.ddl.parser import parse
from airflow_provider_cdc.core.ddl.statement import CreateTable
from airflow_provider_cdc.core.ddl.tokens import DdlError
from airflow_provider_cdc.core.model.schema import Column, ColumnType
from airflow_provider_cdc.core.shapes.columns import RowInputs, SourceColumns, TargetColumn
from airflow_provider_cdc.core.shapes.printed_values import is_printed, printed
from airflow_provider_cdc.core.timeline.barriers import keeps_values
from airflow_provider_cdc.core.values.alter.convert import convert
from airflow_provider_cdc.core.values.types import arrow_type

_TEXT = ColumnType("longtext")
_TEXTS = ("string", "text", "longtext")
_HINT = "state a wider type of the same kind, or `string`"


def retype(stated: Mapping[str, str], columns: list[TargetColumn], source: SourceColumns) -> list[TargetColumn]:
    """Return the columns under the types that are stated for them."""
    types = {column.id: text for name, text in stated.items() if (column := source.named(name)) is not None}
    return [_retyped(column, types[column.id], source) if column.id in types else column for column in columns]


def read_type(text: str) -> ColumnType | None:
    """Return the SQL type that a text states, None where it states none."""
    if text.strip().lower() in _TEXTS:
        return _TEXT
    try:
        (statement,) = parse(f"CREATE TABLE t (c {text})", None)
    except (DdlError, ValueError):
        return None
    if not isinstance(statement, CreateTable) or statement.unknown or len(statement.columns) != 1:
        return None
    return statement.columns[0].type


def _retyped(target: TargetColumn, text: str, source: SourceColumns) -> TargetColumn:
    column, to = source.schema.column(target.id), read_type(text)
    assert column is not None  # the caller found it there
    if target.mark:
        raise source.rule_error(
            "shape.type", f"columns.type: {column.name} is masked, so its type is that of the mask", "state one of both"
        )
    if column.id in source.schema.key:
        raise source.rule_error("shape.key", f"columns.type: {column.name} is of the key", "leave its type as it is")
    if to == _TEXT and not is_printed(target.type):
        what = f"{column.name}, which is {column.type}, has no text"
        raise source.rule_error("shape.type", f"columns.type: {what}", "leave its type as it is, or exclude it")
    if to is None or not (to == _TEXT or keeps_values(column.type, to)):
        what = f"{text!r} does not hold every value of {column.name}, which is {column.type}"
        raise source.rule_error("shape.type", f"columns.type: {what}", _HINT)
    kind = arrow_type(to, source.options)
    return replace(target, type=kind, mark=f"type {to}", reads=(column.id,), make=partial(_values, column, to, kind))


def _values(column: Column, to: ColumnType, kind: pa.DataType, rows: RowInputs) -> pa.Array:
    values = rows.column(column.id)
    return printed(values, column.type) if to == _TEXT else convert(values, column.type, to, kind, Counter(), None)
