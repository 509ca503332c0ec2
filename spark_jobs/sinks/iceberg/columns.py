# SPDX-License-Identifier: Apache-2.0
"""Map the columns of a table to Iceberg's fields: by ids that both keep, in types that hold every value."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)

from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from airflow_provider_cdc.core.errors import SinkError

COLUMNS = "cdc.columns"
"""Property of a table with the column id and, where Iceberg's type leaves it open, the type of each field."""

_NARROW = {"int8": pa.int8(), "int16": pa.int16()}


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a table.

    :param ids: of the columns, as :class:`TargetSchema` has them; negative for columns that others added.
    :param fields: Iceberg's id of each.
    :param columns: names and types, as rows are handed over.
    :param elements: Iceberg's id of the elements, of each field that is a list.
    :param comments: by the names of columns.
    """

    ids: tuple[int, ...]
    fields: tuple[int, ...]
    columns: pa.Schema
    elements: Mapping[int, int]
    comments: Mapping[str, str]

    def schema(self, schema_id: int = 0) -> Schema:
        """Return Iceberg's schema."""
        columns = zip(self.fields, self.columns, strict=True)
        return Schema(*(self._field(number, column) for number, column in columns), schema_id=schema_id)

    def _field(self, number: int, column: pa.Field) -> NestedField:
        kind = iceberg_type(column.type, self.elements.get(number, 0))
        return NestedField(number, column.name, kind, required=False, doc=self.comments.get(column.name))

    def property(self, before: str = "[]") -> str:
        """Return what the table's property :data:`COLUMNS` says of them.

        :param before: what it said; older versions of the table have fields that are gone.
        """
        columns = zip(self.ids, self.fields, self.columns, strict=True)
        gone = [entry for entry in json.loads(before) if entry[1] not in self.fields]
        return json.dumps([*([own, field, _narrow_name(column.type)] for own, field, column in columns), *gone])

    def select(self, names: Sequence[str]) -> Fields:
        """Return some columns."""
        ordinals = [self.columns.get_field_index(name) for name in names]
        columns = pa.schema([self.columns.field(ordinal) for ordinal in ordinals])
        ids, fields = (tuple(every[ordinal] for ordinal in ordinals) for every in (self.ids, self.fields))
        return Fields(ids, fields, columns, self.elements, self.comments)

    def name_of(self, field: int) -> str | None:
        """Return the name of a field, None where the table does not have it."""
        return self.columns.names[self.fields.index(field)] if field in self.fields else None


def _narrow_name(kind: pa.DataType) -> str:
    return str(kind) if str(kind) in _NARROW else ""


def iceberg_type(kind: pa.DataType, element: int = 0) -> IcebergType:
    """Return the Iceberg type that holds every value of a column.

    :param element: id of the elements of a list.
    :raises SinkError: ``sink.type``, there is none.
    """
    types = pa.types
    if types.is_integer(kind) and types.is_signed_integer(kind):
        return LongType() if kind.bit_width == 64 else IntegerType()
    if types.is_decimal128(kind):
        return DecimalType(kind.precision, kind.scale)
    if types.is_timestamp(kind) and kind.unit == "us":
        return TimestampType() if kind.tz is None else TimestamptzType()
    if types.is_list(kind):
        return ListType(element, iceberg_type(kind.value_type), element_required=False)
    plain: tuple[tuple[Any, IcebergType], ...] = (
        (types.is_boolean, BooleanType()),
        (types.is_float32, FloatType()),
        (types.is_float64, DoubleType()),
        (types.is_string, StringType()),
        (types.is_binary, BinaryType()),
        (types.is_date32, DateType()),
    )
    for is_kind, iceberg in plain:
        if is_kind(kind):
            return iceberg
    raise SinkError("sink.type", f"Iceberg has no type that holds every {kind}", hint="leave the column out")


def widens(old: pa.DataType, new: pa.DataType) -> bool:
    """Return whether Iceberg reads stored values of one type as the same values of another."""
    if old == new:
        return True
    types = pa.types
    if types.is_integer(old) and types.is_integer(new):
        return bool(old.bit_width <= new.bit_width)
    if types.is_decimal128(old) and types.is_decimal128(new):
        return bool(old.scale == new.scale and old.precision <= new.precision)
    return False


def first_fields(columns: TargetSchema) -> Fields:
    """Return the fields of a new table: numbered from 1 in their order, then the elements of lists."""
    count = len(columns.ids)
    lists = [number for number, column in enumerate(columns.columns, 1) if pa.types.is_list(column.type)]
    elements = {number: count + ordinal for ordinal, number in enumerate(lists, 1)}
    comments = columns.comments.of_columns(columns.columns.names, {})
    return Fields(columns.ids, tuple(range(1, count + 1)), columns.columns, elements, comments)


def next_fields(columns: TargetSchema, stored: Fields, metadata: TableMetadata) -> Fields:
    """Return the fields that a table has after a commit: columns keep theirs while stored values can be read."""
    known = dict(zip(stored.ids, zip(stored.fields, stored.columns.types, strict=True), strict=True))
    last, fields, elements = metadata.last_column_id, [], {}
    for own, column in zip(columns.ids, columns.columns, strict=True):
        field, kind = known.get(own, (0, None))
        if kind is None or not widens(kind, column.type):
            last += 1
            field = last
            if pa.types.is_list(column.type):
                last += 1
                elements[field] = last
        elif field in stored.elements:
            elements[field] = stored.elements[field]
        fields.append(field)
    names = dict(zip(stored.ids, stored.columns.names, strict=True))
    said = {
        name: stored.comments[names[own]]
        for own, name in zip(columns.ids, columns.columns.names, strict=True)
        if names.get(own) in stored.comments
    }
    comments = columns.comments.of_columns(columns.columns.names, said)
    return Fields(columns.ids, tuple(fields), columns.columns, elements, comments)


def stored_fields(schema: Schema, properties: Mapping[str, str]) -> Fields:
    """Return the fields of a stored table.

    :param properties: the table's.
    """
    known = {field: (own, name) for own, field, name in json.loads(properties.get(COLUMNS, "[]"))}
    ids, columns, elements = [], [], {}
    for field in schema.fields:
        own, narrow = known.get(field.field_id, (-field.field_id, ""))
        ids.append(own)
        columns.append(pa.field(field.name, _NARROW.get(narrow) or arrow_type(field.field_type)))
        if isinstance(field.field_type, ListType):
            elements[field.field_id] = field.field_type.element_id
    numbers = tuple(field.field_id for field in schema.fields)
    comments = {field.name: field.doc for field in schema.fields if field.doc}
    return Fields(tuple(ids), numbers, pa.schema(columns), elements, comments)


def arrow_type(kind: IcebergType) -> pa.DataType:
    """Return the type in which rows of an Iceberg column are handed over.

    :raises SinkError: ``sink.unreadable``, a type of others that no column of ours has.
    """
    if isinstance(kind, DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, ListType):
        return pa.list_(arrow_type(kind.element_type))
    plain = {
        BooleanType: pa.bool_(),
        IntegerType: pa.int32(),
        LongType: pa.int64(),
        FloatType: pa.float32(),
        DoubleType: pa.float64(),
        StringType: pa.string(),
        BinaryType: pa.binary(),
        DateType: pa.date32(),
        TimestampType: pa.timestamp("us"),
        TimestamptzType: pa.timestamp("us", "UTC"),
    }
    if type(kind) not in plain:
        raise SinkError("sink.unreadable", f"the table has a column of type {kind}, which no column of ours has")
    return plain[type(kind)]
