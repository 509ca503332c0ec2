# SPDX-License-Identifier: Apache-2.0
"""Give what the columns of a target are made of: rows of changes, or the rows that a table has so far."""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.arrays import BoolArray
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.laid_columns import LaidColumns
from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema
from airflow_provider_cdc.core.shapes.columns import TargetColumn
from airflow_provider_cdc.core.timeline.timeline import TableTimeline

ColumnOf = Callable[[int], pa.Array]
"""Returns the values of a column of the source by its id."""

ColumnOfChanges = Callable[[str], pa.Array]
"""Returns a column of the change log, of some changes."""


class Rows(NamedTuple):
    """Hold rows under the columns of a target.

    :param refused: by column, which of them are to be left out: the value of the column cannot be made.
    :param passes: which of them the target has by its filter, None for all.
    """

    rows: pa.Table
    refused: dict[str, BoolArray]
    passes: BoolArray | None = None


def columns_of_changes(rows: pa.Table, timeline: TableTimeline, row_indexes: np.ndarray) -> ColumnOfChanges:
    """Return what gives columns of the change log, of some of the rows; ``table`` is the name that the table had then.

    :param rows: of the change log.
    """

    def column(name: str) -> pa.Array:
        mine = rows.column("position" if name == "table" else name).take(pa.array(row_indexes)).combine_chunks()
        if name != "table":
            return mine
        begins = [position for position, _ in timeline.names]
        names = [None if name is None else str(name) for _, name in timeline.names]
        return pa.array([names[max(0, bisect_right(begins, one) - 1)] for one in mine.to_pylist()], pa.string())

    return column


def lasts(column: TargetColumn, old: TableSchema, new: TableSchema) -> bool:
    """Return whether the values of a column that were made under a schema of the source are right under another."""
    if column.reads_under is not None and column.reads_under(old) != column.reads:
        return False
    own = [column_id for column_id in column.reads if column_id >= 0]
    return unchanged(own, old, new, column.lasts)


def unchanged(
    column_ids: Iterable[int],
    old: TableSchema,
    new: TableSchema,
    same: Callable[[ColumnType, ColumnType], bool] = operator.eq,
) -> bool:
    """Return whether columns of the source have the same values under two schemas.

    :param same: of their types.
    """
    for column_id in column_ids:
        was, now = old.column(column_id), new.column(column_id)
        if was is None or now is None or (was.nullable and not now.nullable) or not same(was.type, now.type):
            return False
    return True


def refused_values(refused: Collection[str]) -> DataError:
    """Return why a table cannot go on: a column cannot be made of the rows that it has."""
    return DataError(
        "shape.value",
        f"of a stored row the value of {', '.join(refused)} cannot be made",
        hint="correct the expression in columns.add; then `airflow-cdc rebuild` makes the table again",
    )


@dataclass(slots=True)
class Inputs:
    """Give what the columns of some rows are made of (``core.shapes.columns.RowInputs``)."""

    count: int
    at: ColumnOf
    changes: ColumnOfChanges | None = None
    refused: dict[str, BoolArray] = field(default_factory=dict)
    _columns: dict[int, pa.Array] = field(default_factory=dict)

    def column(self, column_id: int) -> pa.Array:
        """Return the values of a column of the source."""
        if column_id not in self._columns:
            self._columns[column_id] = self.at(column_id)
        return self._columns[column_id]

    def of_change(self, name: str) -> pa.Array:
        """Return a column of the change log; rows that no change is known of have NULL."""
        return pa.nulls(self.count) if self.changes is None else self.changes(name)

    def refuse(self, column: str, rows: np.ndarray) -> None:
        """Leave rows out."""
        self.refused[column] = self.refused[column] | rows if column in self.refused else rows


class StoredColumns:
    """The columns of rows that a table has so far.

    :param schema: of the source, that they lie under.
    :param laid: how they lie.
    :ivar plain: by id those that are the source's own.
    """

    def __init__(self, rows: pa.Table, schema: TableSchema, laid: LaidColumns) -> None:
        self.rows, self.schema = rows, schema
        self._laid = {column.id: column for column in laid.of(schema)}
        there = {one.id: one for one in self._laid.values() if one.name in rows.column_names}
        self.plain = {one.id: rows.column(one.name) for one in there.values() if not one.mark}
        self._made = {one.id: one for one in there.values() if one.mark}

    def has(self, column_ids: Iterable[int]) -> bool:
        """Return whether the rows have the values of the source's columns, as far as they were there."""
        return all(column_id in self.plain or self.schema.column(column_id) is None for column_id in column_ids)

    def unchanged_values(self, column: TargetColumn, new: TableSchema, recomputed: Collection[int]) -> pa.Array | None:
        """Return the values of a column that a rule made, where they would be made again as they are.

        :param new: schema of the source, for which they are wanted.
        :param recomputed: ids of columns that the server computed since.
        """
        one = self._made.get(column.id)
        if one is None or one.mark != column.mark or not set(column.reads).isdisjoint(recomputed):
            return None
        if not lasts(column, self.schema, new):
            return None
        return self.rows.column(one.name).cast(column.type)

    def made(self, column: TargetColumn) -> pa.Array | None:
        """Return the values of a column that is made in the same way now, None where there are none."""
        one = self._made.get(column.id)
        return None if one is None or one.mark != column.mark else self.rows.column(one.name)

    def demanding(self, at: ColumnOf, recomputed: Collection[int], lacking: Callable[[str], Exception]) -> ColumnOf:
        """Return what gives the source's columns, and reports where the rows do not have them.

        :param recomputed: ids of columns that the server computed since, from columns that the rows do not have.
        :param lacking: makes the error, of the words for what is not known.
        """

        def column(column_id: int) -> pa.Array:
            was = self.schema.column(column_id)
            one = self._laid.get(column_id)
            if was is not None and (one is None or one.mark or column_id in recomputed):
                raise lacking(f"the values of {was.name}, which a rule leaves out or masks")
            return at(column_id)

        return column
