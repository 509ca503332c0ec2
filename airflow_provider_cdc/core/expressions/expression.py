# SPDX-License-Identifier: Apache-2.0
"""Parse an expression, check it against the columns of a table, and evaluate it on rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.arrays import BoolArray
from airflow_provider_cdc.core.expressions.binding import bind, column_named
from airflow_provider_cdc.core.expressions.errors import ExpressionError
from airflow_provider_cdc.core.expressions.nodes import Call, ColumnName, Node, walk
from airflow_provider_cdc.core.expressions.rows import Batch, Rows, array_of
from airflow_provider_cdc.core.expressions.typed import Typed

_PARSED = 256  # expressions: one rule may be that of thousands of tables
_BLOCK = 1 << 17  # rows that are evaluated at once: their values stay near the processor

Column: TypeAlias = pa.Array | pa.ChunkedArray


@dataclass(frozen=True, slots=True)
class Expression:
    """Compute one value for each row from its columns.

    :param text: as it was written.
    """

    text: str
    node: Node

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, as they are spelt, in the order of the text."""
        return tuple(dict.fromkeys(node.name for node in walk(self.node) if isinstance(node, ColumnName)))

    def type(self, columns: Mapping[str, pa.DataType]) -> pa.DataType:
        """Return the type of its values.

        :param columns: types of the table's columns by name.
        :raises ExpressionError: a column is unknown, or types do not fit.
        """
        return self._bound(columns).type

    def evaluate(self, columns: Mapping[str, Column], count: int) -> tuple[pa.ChunkedArray, BoolArray | None]:
        """Return its values, and the rows on which it fails; there the value is NULL.

        :param columns: values of the table's columns by name, at least of those that it reads.
        :param count: rows.
        :return: values of exactly :meth:`type`; None if it fails on no row.
        :raises ExpressionError: a column is unknown, or types do not fit.
        """
        part = self._bound({name: values.type for name, values in columns.items()})
        read = {column_named(name, columns) for name in self.columns}
        parts = [*_evaluated(part, {name: columns[name] for name in columns if name in read}, 0, count)]
        values = pa.chunked_array([rows.values for rows in parts], part.type)
        if all(rows.failed is None for rows in parts):
            return values, None
        masks = [np.zeros(len(rows.values), bool) if rows.failed is None else rows.failed for rows in parts]
        return values, np.concatenate(masks)

    def _bound(self, columns: Mapping[str, pa.DataType]) -> Typed:
        part = bind(self.node, self.text, columns)
        if part.type == pa.null():
            raise ExpressionError("NULL has no type here; write CAST(NULL AS type)", self.text, part.position)
        return part


@lru_cache(maxsize=_PARSED)
def parse(text: str) -> Expression:
    """Return the expression that a text states.

    :raises ExpressionError: it is not one, or has parts that are not supported.
    """
    return Expression(text, _read(text))


@lru_cache(maxsize=_PARSED)
def parse_condition(text: str) -> Expression:
    """Return an expression whose values are TRUE, FALSE and NULL; a whole number is TRUE if it is not zero.

    :raises ExpressionError: it is not one, or has parts that are not supported.
    """
    node = _read(text)
    return Expression(text, Call(node.position, "AND", (node,)))


def _read(text: str) -> Node:
    # the parser takes 0.1 s to import, and most pipelines have no expression
    from airflow_provider_cdc.core.expressions.syntax import read

    return read(text)


def _evaluated(part: Typed, columns: Mapping[str, Column], begin: int, count: int) -> Iterator[Rows]:
    """Evaluate rows in blocks; a block with more text than an Arrow array holds in halves."""
    for at in range(begin, begin + count, _BLOCK):
        size = min(_BLOCK, begin + count - at)
        try:
            rows = part.run(Batch({name: _cut(values, at, size) for name, values in columns.items()}, size))
            yield Rows(array_of(rows.values, size), rows.failed)
        except pa.ArrowCapacityError:
            if size == 1:
                raise
            yield from _evaluated(part, columns, at, size // 2)
            yield from _evaluated(part, columns, at + size // 2, size - size // 2)


def _cut(values: Column, begin: int, size: int) -> pa.Array:
    part = values.slice(begin, size)
    if isinstance(part, pa.Array):
        return part
    if part.num_chunks == 1:
        return part.chunk(0)
    try:
        return pa.concat_arrays(part.chunks)
    except pa.ArrowInvalid as error:  # of which offsets that overflow are one
        raise pa.ArrowCapacityError(str(error)) from error
