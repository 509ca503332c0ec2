# SPDX-License-Identifier: Apache-2.0
"""Add columns that are computed from those of the source."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pyarrow as pa

from airflow_provider_cdc.core.expressions.expression import Expression, parse
from airflow_provider_cdc.core.model.laid_columns import ADD
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.shapes.columns import RowInputs, SourceColumns, TargetColumn
from airflow_provider_cdc.core.shapes.expressions import BoundExpression, bound, ids_of

_FIRST_ID = -1_000  # those of the change have higher ones


def add(stated: Mapping[str, str], columns: list[TargetColumn], source: SourceColumns) -> list[TargetColumn]:
    """Return the columns with the computed ones behind them."""
    return [*columns, *(_computed(name, text, source) for name, text in stated.items())]


def _computed(name: str, text: str, source: SourceColumns) -> TargetColumn:
    expression = bound(f"columns.add.{name}", parse(text), source)
    # the id is that of the name, in any order of the rules
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=6).digest()
    column_id = _FIRST_ID - int.from_bytes(digest)
    return TargetColumn(
        column_id,
        name,
        expression.type,
        f"{ADD}{text}",
        _reads(column_id, expression.expression, source, source.schema),
        partial(_values, name, expression),
        reads_under=partial(_reads, column_id, expression.expression, source),
    )


def _reads(column_id: int, expression: Expression, source: SourceColumns, schema: TableSchema) -> tuple[int, ...]:
    """Return the ids of the columns that are read under a schema; its own of an expression that reads none."""
    return ids_of(expression, replace(source, schema=schema)) or (column_id,)


def _values(name: str, expression: BoundExpression, rows: RowInputs) -> pa.ChunkedArray:
    values, failed = expression.values(rows)
    if failed is not None:
        rows.refuse(name, failed)
    return values
