# SPDX-License-Identifier: Apache-2.0
"""Make values from the columns of the source by an expression of the pipeline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.arrays import BoolArray
from airflow_provider_cdc.core.expressions.errors import ExpressionError
from airflow_provider_cdc.core.expressions.expression import Expression
from airflow_provider_cdc.core.shapes.columns import RowInputs, SourceColumns


@dataclass(frozen=True, slots=True)
class BoundExpression:
    """An expression over the columns that a table has.

    :param ids: of the columns that it reads, by the names that it has for them.
    :param type: of its values.
    """

    expression: Expression
    ids: dict[str, int]
    type: pa.DataType

    def values(self, rows: RowInputs) -> tuple[pa.ChunkedArray, BoolArray | None]:
        """Return the values of some rows, and the rows on which it fails; None if it fails on none."""
        columns = {name: rows.column(column_id) for name, column_id in self.ids.items()}
        return self.expression.evaluate(columns, rows.count)


def bound(key: str, expression: Expression, source: SourceColumns) -> BoundExpression:
    """Return an expression over the columns that a table has, or had under the names that it states.

    :param key: of the expression below ``tables.<name>``.
    :raises DataError: ``shape.expression``: a column is missing, or types do not fit.
    """
    ids, types = {}, {column.name: source.type_of(column) for column in source.schema.columns}
    for name in expression.columns:
        column = source.named(name)
        if column is not None:
            ids[name] = column.id
            types[name] = source.type_of(column)
    try:
        kind = expression.type(types)
    except ExpressionError as error:
        raise source.rule_error(
            "shape.expression", f"{key}: {error}", "correct the expression, or state another rule for the table"
        ) from None
    return BoundExpression(expression, ids, kind)


def ids_of(expression: Expression, source: SourceColumns) -> tuple[int, ...]:
    """Return the ids of the columns that an expression reads, of those that are there."""
    columns = [source.named(name) for name in expression.columns]
    return tuple(column.id for column in columns if column is not None)


def passing(condition: BoundExpression, rows: RowInputs) -> tuple[BoolArray, BoolArray | None]:
    """Return which rows a condition is TRUE of, and on which it fails."""
    values, failed = condition.values(rows)
    passes: BoolArray = values.fill_null(False).to_numpy().astype(bool)
    return (passes, None) if failed is None else (passes & ~failed, np.asarray(failed))
