# SPDX-License-Identifier: Apache-2.0
"""Define the columns of a stored table: each has an id that it keeps when its name, type or place changes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from airflow_provider_cdc.core.config.table_layout import TableLayout
from airflow_provider_cdc.core.model.laid_columns import LaidColumns
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.model.table_comments import NO_COMMENTS, TableComments
from airflow_provider_cdc.core.shapes.shape import PLAIN, Shape
from airflow_provider_cdc.core.values.types import TypeOptions, arrow_type


@dataclass(frozen=True, slots=True)
class TargetSchema:
    """The columns of a stored table.

    :param ids: of the columns, in their order.
    :param columns: their names and types.
    :param key: ids of the key's columns; empty for a table without key.
    :param layout: how its files lie.
    :param comments: what the source says of table and columns.
    """

    ids: tuple[int, ...]
    columns: pa.Schema
    key: tuple[int, ...] = ()
    layout: TableLayout = field(default_factory=TableLayout)
    comments: TableComments = NO_COMMENTS

    def has_same_columns(self, other: TargetSchema) -> bool:
        """Return whether two have the same columns, under the same names and types."""
        return self.ids == other.ids and bool(self.columns == other.columns)

    def extends(self, other: TargetSchema) -> bool:
        """Return whether this one has at most further columns, behind or between those of another one."""
        mine = iter(zip(self.ids, self.columns, strict=True))
        return all(column in mine for column in zip(other.ids, other.columns, strict=True))

    @property
    def key_names(self) -> list[str]:
        """Return the names of the key's columns."""
        names = dict(zip(self.ids, self.columns.names, strict=True))
        return [names[column_id] for column_id in self.key]

    @property
    def order(self) -> list[str]:
        """Return the columns in whose order rows are to be written, none for that of the key."""
        return row_order(self.columns, self.layout)

    def commented(self, comments: TableComments) -> TargetSchema:
        """Return the columns with other comments."""
        return replace(self, comments=comments)

    def types(self) -> dict[int, pa.DataType]:
        """Return the type of each column by its id."""
        return dict(zip(self.ids, self.columns.types, strict=True))


def target_schema(
    schema: TableSchema, options: TypeOptions, layout: TableLayout | None = None, shape: Shape = PLAIN
) -> TargetSchema:
    """Return the columns of the stored table of a table of the source.

    Every column but the key's may be NULL, as a source may relax NOT NULL any time.

    :param shape: the columns that it has by its rules.
    """
    columns = shape.columns(schema, options)
    names = pa.schema([pa.field(column.name, column.type) for column in columns])
    key = (*schema.key, *shape.mode.further_key)
    return TargetSchema(tuple(column.id for column in columns), names, key, layout or TableLayout())


def stored_schema(
    schema: TableSchema, options: TypeOptions, layout: TableLayout, shape: Shape, laid: LaidColumns
) -> TargetSchema:
    """Return the columns that rows of a stored table have.

    :param schema: of the source, that they lie under.
    :param shape: the columns that the table is to have; where the rows have them made in another way, their type is
        that of no value.
    :param laid: how the rows lie.
    """
    if laid.columns is None:
        return target_schema(schema, options, layout)
    made = {(one.id, one.mark): one.type for one in shape.columns(schema, options)}
    own = {column.id: arrow_type(column.type, options) for column in schema.columns}
    fields = []
    for one in laid.columns:
        kind = made.get((one.id, one.mark)) or (None if one.mark else own.get(one.id))
        fields.append(pa.field(one.name, kind or pa.null()))
    key = (*schema.key, *(one for one in shape.mode.further_key if one in {each.id for each in laid.columns}))
    return TargetSchema(tuple(one.id for one in laid.columns), pa.schema(fields), key, layout)


def row_order(columns: pa.Schema, layout: TableLayout) -> list[str]:
    """Return the columns in whose order rows are to be written, none for that of the key.

    :param columns: of the table, which may lack what the rule names.
    """
    kinds = dict(zip(columns.names, columns.types, strict=True))
    has_order = [name in kinds and not pa.types.is_nested(kinds[name]) for name in layout.cluster_by]
    return list(layout.cluster_by) if all(has_order) else []
