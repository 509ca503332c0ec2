# SPDX-License-Identifier: Apache-2.0
"""Map rows from one schema of a table to a later one: columns by id, types stepwise, added columns filled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pyarrow as pa

from airflow_provider_cdc.core.apply.target_schema import target_schema
from airflow_provider_cdc.core.model.formula import Computed
from airflow_provider_cdc.core.model.schema import Column, ColumnType, Default, TableSchema
from airflow_provider_cdc.core.timeline.timeline import SchemaVersion
from airflow_provider_cdc.core.values.alter.convert import convert, without_nulls
from airflow_provider_cdc.core.values.alter.generated_columns import computed
from airflow_provider_cdc.core.values.images import constant
from airflow_provider_cdc.core.values.types import TypeOptions, arrow_type


class Mapper:
    """Map typed columns of any schema version to a later schema of the same table.

    :param versions: the table's schema versions in order.
    :param fills: column id -> value of rows older than the column.
    :param lossy: takes the counts of values that did not fit the new type of their column, by kind of loss.
    """

    def __init__(
        self,
        versions: Sequence[SchemaVersion],
        fills: Mapping[int, Default],
        options: TypeOptions,
        lossy: Counter[str] | None = None,
    ) -> None:
        self._versions = versions
        self._fills = fills
        self._options = options
        self._lossy = Counter[str]() if lossy is None else lossy
        self._schemas: dict[int, pa.Schema] = {}  # by version

    def rows(
        self, typed: Mapping[int, pa.Array], count: int, version: int, target: int, *, key_only: bool = False
    ) -> pa.Table:
        """Map rows typed under ``version`` (column id -> values) to the schema of version ``target``.

        :param key_only: return only the columns of the key.
        """
        target_schema, schema = self._versions[target].schema, self._arrow_schema(target)
        columns = target_schema.columns
        if key_only:
            columns = target_schema.key_columns
            schema = pa.schema([schema.field(column.name) for column in columns])
        if not count:
            return schema.empty_table()
        generated = self._computed(typed, count, version, target)
        arrays = [self._at(typed, generated, count, version, target, column.id) for column in columns]
        return pa.Table.from_arrays(arrays, schema=schema)

    def _arrow_schema(self, version: int) -> pa.Schema:
        if version not in self._schemas:
            self._schemas[version] = target_schema(self._versions[version].schema, self._options).columns
        return self._schemas[version]

    def content(self, stored: pa.Table, old: TableSchema, target: int, start: int | None = None) -> pa.Table:
        """Map a table's stored rows from the schema they lie under to that of version ``target``.

        :param start: version of the old schema; None for the newest that has it.
        """
        target_schema = self._versions[target].schema
        if start is None:
            versions = enumerate(self._versions[: target + 1])
            start = max((index for index, version in versions if version.schema == old), default=None)
        if start == target:
            return stored
        typed = {column.id: stored.column(column.name) for column in old.columns if column.name in stored.column_names}
        if start is not None:
            return self.rows(typed, stored.num_rows, start, target)
        # the schema version is no longer on the timeline (a late DDL changed it): one direct step
        arrays = {}
        for column in target_schema.columns:
            was = old.column(column.id)
            if was is None or column.id not in typed:
                arrays[column.id] = self._filled(column.id, stored.num_rows, target, self._lossy)
            else:
                server = self._versions[target].server
                arrays[column.id] = self._step(typed[column.id], was, column, server, self._lossy)
        for item in [item for version in self._versions[: target + 1] for item in version.computed]:
            if item.column_id in arrays:
                arrays[item.column_id] = self._compute(item, stored.num_rows, target, arrays.__getitem__)
        return pa.Table.from_arrays([*arrays.values()], schema=self._arrow_schema(target))

    def _computed(
        self, typed: Mapping[int, pa.Array], count: int, version: int, target: int
    ) -> dict[int, tuple[int, pa.Array]]:
        """Return the generated columns that the server computed between two versions: the last one, and its values.

        Where rows are typed for some of their columns only, others are not computed.
        """
        lacking = {column.id for column in self._versions[version].schema.columns} - typed.keys()
        generated: dict[int, tuple[int, pa.Array]] = {}
        for number in range(version + 1, target + 1):
            for item in self._versions[number].computed:
                if lacking.isdisjoint(item.formula.columns):
                    operand = partial(self._at, typed, generated, count, version, number)
                    generated[item.column_id] = number, self._compute(item, count, number, operand)
        return generated

    def _compute(self, item: Computed, count: int, number: int, operand: Callable[[int], pa.Array]) -> pa.Array:
        schema = self._versions[number].schema
        column = schema.column(item.column_id)
        assert column is not None  # the version computes it

        def typed(column_id: int) -> tuple[pa.Array, ColumnType]:
            source = schema.column(column_id)
            assert source is not None  # the server knows the columns of its formula
            return operand(column_id), source.type

        return computed(item.formula, typed, count, column, arrow_type(column.type, self._options), self._lossy)

    def _at(
        self,
        typed: Mapping[int, pa.Array],
        computed: Mapping[int, tuple[int, pa.Array]],
        count: int,
        version: int,
        number: int,
        column_id: int,
    ) -> pa.Array:
        """Return a column as schema version ``number`` has it, of rows typed under ``version``."""
        begin, values = computed.get(column_id) or (version, typed.get(column_id))
        if values is not None:
            return self._steps(values, column_id, begin, number, self._lossy)
        # rows typed for their key alone are typed in full elsewhere: what their columns lose is counted there
        whole = all(column.id in typed for column in self._versions[version].schema.columns)
        return self._filled(column_id, count, number, self._lossy if whole else Counter())

    def _filled(self, column_id: int, count: int, number: int, lossy: Counter[str]) -> pa.Array:
        """Return what rows got in a column that was added later, through every type that it had up to ``number``."""
        schemas = enumerate(version.schema for version in self._versions[: number + 1])
        added, column = next(
            (at, first_column) for at, schema in schemas if (first_column := schema.column(column_id)) is not None
        )
        kind, fill = arrow_type(column.type, self._options), self._fills.get(column_id)
        if count == 0 or fill is None or fill.kind != "constant" or fill.text is None:
            values = pa.nulls(count, kind)
        else:
            values = pa.repeat(constant(fill.text, column.type, kind), count)
        return self._steps(values, column_id, added, number, lossy)

    def _steps(self, values: pa.Array, column_id: int, version: int, target: int, lossy: Counter[str]) -> pa.Array:
        now = self._versions[version].schema.column(column_id)
        assert now is not None  # the caller typed the values under this schema version
        for number in range(version + 1, target + 1):
            column = self._versions[number].schema.column(column_id)
            if column is not None:
                values, now = self._step(values, now, column, self._versions[number].server, lossy), column
        return values

    def _step(self, values: pa.Array, old: Column, new: Column, server: str | None, lossy: Counter[str]) -> pa.Array:
        if new.type != old.type:
            values = convert(values, old.type, new.type, arrow_type(new.type, self._options), lossy, server)
        return without_nulls(values, new.type, lossy, server) if old.nullable and not new.nullable else values
