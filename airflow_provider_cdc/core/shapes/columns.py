# SPDX-License-Identifier: Apache-2.0
"""Describe a column of a stored table, and what the rules for columns work on."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.laid_columns import LaidColumn
from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema
from airflow_provider_cdc.core.values.types import TypeOptions, arrow_type

OWN_IDS = -1
"""Ids of columns that the source does not have are this and below."""

MODE_IDS = -10
"""Ids of columns that a mode adds are this and below."""


SOURCE_TIME = pa.timestamp("us", "UTC")
"""Type of columns that hold a time of the source."""


class RowInputs(Protocol):
    """Give what the columns of some rows are made of.

    :ivar count: of the rows.
    """

    count: int

    def column(self, column_id: int) -> pa.Array:
        """Return the values of a column of the source, as the schema has it that the rows are made for."""
        ...

    def of_change(self, name: str) -> pa.Array:
        """Return a column of the change log, of the changes that made the rows."""
        ...

    def refuse(self, column: str, rows: np.ndarray) -> None:
        """Leave rows out: the value of a column cannot be made of them."""
        ...


@dataclass(frozen=True, slots=True)
class OtherRows:
    """Say whose values a column has that cannot be made of its own row.

    :param column_id: of the source's column whose values it has, of another row.
    :param there: returns which stored rows have such a row.
    """

    column_id: int
    there: Callable[[pa.Table], pa.Array]


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """A column of a stored table.

    :param id: that of the source's column that it stands for; negative where it stands for none.
    :param mark: says how its values are made; empty where they are the source's own.
    :param reads: ids of the source's columns that its values are made of.
    :param make: makes its values; None where they are the source's own.
    :param of_other: the rows whose values it has instead, None where it has those of its own row.
    :param lasts: says whether values that were made stay right where the type of what they are made of changes.
    :param reads_under: returns ``reads`` under another schema of the source, where a name may be another column's; None
        where they are the same.
    """

    id: int
    name: str
    type: pa.DataType
    mark: str = ""
    reads: tuple[int, ...] = ()
    make: Callable[[RowInputs], pa.Array] | None = None
    of_other: OtherRows | None = None
    lasts: Callable[[ColumnType, ColumnType], bool] = operator.eq
    reads_under: Callable[[TableSchema], tuple[int, ...]] | None = None

    def laid(self) -> LaidColumn:
        """Return how it lies in the table."""
        return LaidColumn(self.id, self.name, self.mark)

    def values(self, rows: RowInputs) -> pa.Array:
        """Return the values of some rows."""
        return rows.column(self.id) if self.make is None else self.make(rows)


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """The columns of a table of the source in one schema version.

    :param schema: of that version.
    :param names: every name that a column has had up to the newest version, by its id.
    :param salt: of hashes.
    """

    table: str
    schema: TableSchema
    names: Mapping[int, tuple[str, ...]]
    options: TypeOptions
    salt: bytes = b""

    def type_of(self, column: Column) -> pa.DataType:
        """Return the type that holds a column's values as they are."""
        return arrow_type(column.type, self.options)

    def matching(self, pattern: str) -> list[Column]:
        """Return the columns that have, or had, a name that a shell pattern matches in any case."""
        folded = pattern.lower()
        return self._where(lambda name: fnmatchcase(name, folded))

    def named(self, name: str) -> Column | None:
        """Return the column that has a name, else the one that had it, None without one."""
        column = self.schema.named(name)
        if column is not None and not column.dropped:
            return column
        had = [column for column in self._where(name.lower().__eq__) if not column.dropped]
        return had[-1] if had else column

    def _where(self, holds: Callable[[str], bool]) -> list[Column]:
        """Return the columns of which something holds for a name that they have, or had, in lower case."""
        every = [(column, (column.name, *self.names.get(column.id, ()))) for column in self.schema.columns]
        return [column for column, names in every if any(holds(name.lower()) for name in names)]

    def rule_error(self, code: str, text: str, hint: str) -> DataError:
        """Return why the rules do not fit the table."""
        return DataError(code, text, where={"table": self.table}, hint=hint)


class ColumnRule(Protocol):
    """Changes the columns of a target: one kind of rule."""

    def __call__(self, stated: Any, columns: list[TargetColumn], source: SourceColumns) -> list[TargetColumn]:
        """Return the columns as they are with a rule.

        :param stated: what the pipeline states.
        :param columns: as the rules before leave them.
        :raises DataError: the rule does not fit the table.
        """
        ...


def plain_columns(source: SourceColumns) -> list[TargetColumn]:
    """Return the columns of a target without rules: those of the source."""
    return [TargetColumn(column.id, column.name, source.type_of(column)) for column in source.schema.columns]
