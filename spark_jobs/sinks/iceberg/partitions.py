# SPDX-License-Identifier: Apache-2.0
"""Partition a table by transforms of its columns: the spec that a rule asks for, and the values of rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import TimeTransform, Transform, TruncateTransform, parse_transform
from pyiceberg.typedef import Record
from pyiceberg.types import DecimalType, DoubleType, FloatType, IcebergType, IntegerType, LongType

from airflow_provider_cdc.core.apply.row_sets import group_numbers
from airflow_provider_cdc.core.arrays import IntArray
from airflow_provider_cdc.core.config.partition_rules import PartitionRule
from airflow_provider_cdc.core.config.table_layout import TableLayout
from airflow_provider_cdc.core.errors import SinkError
from spark_jobs.sinks.iceberg.columns import Fields

SPEC = "cdc.spec"
"""Property of a table with the number of the partition spec that was set by us, and the rule that asked for it."""

_UNITS = {"year": "Y", "month": "M", "day": "D", "hour": "h"}  # numpy's names
_LEAST: dict[type[IcebergType], int] = {IntegerType: -(1 << 31), LongType: -(1 << 63)}


def spec_after(
    fields: Fields, layout: TableLayout, metadata: TableMetadata | None, where: Mapping[str, Any]
) -> PartitionSpec:
    """Return the partition spec that a table has after a commit: one that it had before, where that is the same.

    :param fields: of the table then.
    :param metadata: of the table, None for a new one.
    :raises SinkError: ``sink.partition``, the table's columns cannot be partitioned so.
    """
    earlier = [] if metadata is None else [*metadata.partition_specs]
    last = PARTITION_FIELD_ID_START - 1
    if metadata is not None:
        earlier.sort(key=lambda spec: spec.spec_id == metadata.default_spec_id)
        last = max(last, metadata.last_partition_id or last)
    known = {(field.source_id, str(field.transform)): field for spec in earlier for field in spec.fields}
    before = _sources_before(metadata)
    stated: list[PartitionField] = []
    for rule in layout.partition_by:
        source = _source(rule, fields, before, where)
        transform = parse_transform(rule.transform)
        field = known.get((source, str(transform)))
        if field is None:
            last += 1
            # catalogs refuse a column of this name, so not the usual one: a column that comes may have that
            field = PartitionField(source, last, transform, f"{rule.name}_p{last}")
        if field in stated:
            raise _refused(f"{rule.transform} of column {fields.name_of(source)} is there twice", where)
        stated.append(field)
    schema = fields.schema()
    decimals = [one for one in PartitionSpec(*stated).partition_type(schema).fields if _is_decimal(one.field_type)]
    if len(decimals) > 1:  # two of one type make DuckDB 1.5 end, by their name in Avro
        raise _refused("of the columns of type decimal only one may be there as it is; take bucket for others", where)
    same = next((spec for spec in earlier if list(spec.fields) == stated), None)
    number = max((spec.spec_id for spec in earlier), default=-1) + 1
    return PartitionSpec(*stated, spec_id=number) if same is None else same


def spec_by_id(metadata: TableMetadata) -> dict[int, PartitionSpec]:
    """Return each partition spec of a table by its number."""
    return {spec.spec_id: spec for spec in metadata.partition_specs}


def spec_property(spec: PartitionSpec, layout: TableLayout) -> str:
    """Return what the table's property :data:`SPEC` says."""
    return json.dumps({"id": spec.spec_id, "by": [[rule.transform, rule.column] for rule in layout.partition_by]})


def own_spec(properties: Mapping[str, str]) -> int | None:
    """Return the number of the spec that was set by us, None where none was."""
    number: int | None = json.loads(properties.get(SPEC, "{}")).get("id")
    return number


def _sources_before(metadata: TableMetadata | None) -> dict[tuple[str, str], int]:
    """Return the field that each part of the rule of the newest commit was for: its column may have a new name."""
    if metadata is None or own_spec(metadata.properties) != metadata.default_spec_id:
        return {}
    by = json.loads(metadata.properties[SPEC])["by"]
    fields = metadata.spec().fields
    return {(transform, column): field.source_id for (transform, column), field in zip(by, fields, strict=True)}


def _source(
    rule: PartitionRule, fields: Fields, before: Mapping[tuple[str, str], int], where: Mapping[str, Any]
) -> int:
    """Return the field of a rule's column.

    :param before: the fields of parts that are as they were.
    :raises SinkError: there is none, or values of its type cannot be transformed so.
    """
    numbers = dict(zip(fields.columns.names, fields.fields, strict=True))
    number: int | None = numbers.get(rule.column, before.get((rule.transform, rule.column)))
    if number not in fields.fields or number is None:
        raise _refused(f"the table has no column {rule.column}", where)
    kind = fields.schema().find_type(number)
    if not kind.is_primitive or not parse_transform(rule.transform).can_transform(kind):
        raise _refused(f"{rule.transform} does not take column {rule.column}, whose type is {kind}", where)
    if isinstance(kind, (FloatType, DoubleType)):  # NaN, and two zeros
        raise _refused(f"column {rule.column} has type {kind}, which no partition has", where)
    if _is_decimal(kind) and rule.transform.startswith("truncate"):  # DuckDB 1.5 misses rows of such files
        raise _refused(f"readers do not agree on {rule.transform} of column {rule.column}, whose type is {kind}", where)
    return number


def _refused(problem: str, where: Mapping[str, Any]) -> SinkError:
    hint = "correct tables.<name>.partition_by, and run again"
    return SinkError("sink.partition", f"partition_by: {problem}", where=dict(where), hint=hint)


def _is_decimal(kind: IcebergType) -> bool:
    return isinstance(kind, DecimalType)


def lost_sources(spec: PartitionSpec, schema: Schema) -> bool:
    """Return whether a column that a spec partitions by is gone."""
    return any(schema.find_column_name(field.source_id) is None for field in spec.fields)


@dataclass(frozen=True, slots=True)
class _Values:
    """The values of one field of a partition, of some rows.

    :param numbers: of each row the number of its value.
    """

    numbers: IntArray
    distinct: list[Any]


def _transformed(column: pa.ChunkedArray, transform: Transform[Any, Any], kind: IcebergType) -> _Values:
    """Return the values of a column's rows; each different value is transformed once."""
    value_of: Callable[[Any], Any] = transform.transform(kind)
    if isinstance(transform, TimeTransform):
        column, value_of = _in_units(column, _UNITS[str(transform)]), lambda value: value
    elif pa.types.is_temporal(column.type):
        column = _plain(column)
    codes = group_numbers([column])
    used, first = np.unique(codes, return_index=True)
    values = [None if one is None else value_of(one) for one in column.take(pa.array(first)).to_pylist()]
    number_of = {value: number for number, value in enumerate(dict.fromkeys(values))}
    numbers: IntArray = np.array([number_of[value] for value in values], dtype=np.int64)
    return _Values(numbers[np.searchsorted(used, codes)], list(number_of))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return dates and times as Iceberg counts them."""
    return column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())


def _in_units(column: pa.ChunkedArray, unit: str) -> pa.ChunkedArray:
    """Return the years, months, days or hours since 1970 of dates and times, also of those that Python has not."""
    counts = _plain(column).cast(pa.int64()).fill_null(0).to_numpy()
    times = counts.astype("datetime64[D]" if pa.types.is_date32(column.type) else "datetime64[us]")
    whole = times.astype(f"datetime64[{unit}]").astype(np.int64)
    return pa.chunked_array([pa.array(whole, mask=column.is_null().to_numpy())])


class RowPartitions:
    """Puts rows into the partitions of a spec.

    :param fields: of the rows.
    :param where: which table it is, for errors.
    """

    def __init__(self, spec: PartitionSpec, fields: Fields, where: Mapping[str, Any]) -> None:
        schema, self._where = fields.schema(), where
        kinds = [schema.find_type(field.source_id) for field in spec.fields]
        names = [fields.name_of(field.source_id) for field in spec.fields]
        transforms = [field.transform for field in spec.fields]
        self._columns = list(zip(names, transforms, kinds, strict=True))

    def split(self, rows: pa.Table) -> Iterator[tuple[Record, pa.Table]]:
        """Yield the partitions of rows, each with its rows in their order.

        :raises SinkError: ``sink.partition``, a value is less than any of its type when it is truncated.
        """
        if not rows.num_rows:
            return
        every = [_transformed(rows.column(name), transform, kind) for name, transform, kind in self._columns]
        for (name, transform, kind), values in zip(self._columns, every, strict=True):
            if isinstance(transform, TruncateTransform) and not all(_fits(one, kind) for one in values.distinct):
                raise _refused(f"{transform} makes a value of column {name} too small for {kind}", self._where)
        numbers = group_numbers([pa.array(values.numbers) for values in every])
        order: IntArray = np.argsort(numbers, kind="stable").astype(np.int64)
        ends = np.flatnonzero(np.diff(numbers[order], append=-1)) + 1
        for some in np.split(order, ends[:-1]):
            partition = Record(*(values.distinct[values.numbers[some[0]]] for values in every))
            yield partition, rows.take(pa.array(some))


def _fits(value: Any, kind: IcebergType) -> bool:
    """Return whether a type has a truncated value, which may be below its least."""
    return value is None or type(kind) not in _LEAST or bool(value >= _LEAST[type(kind)])


class KeyPartitions:
    """The keys of a batch, as far as they say in which partitions their rows are.

    :param keys: columns of the key.
    :param fields: of the table.
    :param spec_of: the table's, by their numbers.
    """

    def __init__(self, keys: pa.Table, fields: Fields, spec_of: Mapping[int, PartitionSpec]) -> None:
        self._keys, self._spec_of = keys, spec_of
        of_key = fields.select(keys.column_names)
        self._names = dict(zip(of_key.fields, keys.column_names, strict=True))
        self._schema = of_key.schema()
        self._known: dict[int, list[tuple[int, IntArray, dict[Any, int]]]] = {}

    def within(self, file: DataFile, indices: IntArray) -> IntArray:
        """Return those of some keys that may be in a file, by their indices."""
        if file.spec_id not in self._known:
            self._known[file.spec_id] = list(self._of_spec(self._spec_of[file.spec_id]))
        for ordinal, numbers, number_of in self._known[file.spec_id]:
            indices = indices[numbers[indices] == number_of.get(file.partition[ordinal], -1)]
        return indices

    def _of_spec(self, spec: PartitionSpec) -> Iterator[tuple[int, IntArray, dict[Any, int]]]:
        """Yield what each field of a spec that a key decides has of the keys."""
        for ordinal, field in enumerate(spec.fields):
            if field.source_id in self._names:
                column = self._keys.column(self._names[field.source_id])
                values = _transformed(column, field.transform, self._schema.find_type(field.source_id))
                yield ordinal, values.numbers, {value: number for number, value in enumerate(values.distinct)}
