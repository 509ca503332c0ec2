# SPDX-License-Identifier: Apache-2.0
"""Map rows from one schema of a table to a later one: columns by id, types stepwise, added columns filled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.rewinding import rewind_needed
from airflow_provider_cdc.core.apply.shaped_rows import (
    ColumnOf,
    ColumnOfChanges,
    Inputs,
    Rows,
    StoredColumns,
    lasts,
    refused_values,
    unchanged,
)
from airflow_provider_cdc.core.apply.value_forms import ValueForms
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.formula import Computed
from airflow_provider_cdc.core.model.laid_columns import AS_SOURCE, LaidColumns
from airflow_provider_cdc.core.model.schema import Column, ColumnType, Default, TableSchema
from airflow_provider_cdc.core.shapes.columns import OtherRows, TargetColumn
from airflow_provider_cdc.core.shapes.expressions import BoundExpression, passing
from airflow_provider_cdc.core.shapes.mode import ModeColumns
from airflow_provider_cdc.core.shapes.shape import PLAIN, Shape
from airflow_provider_cdc.core.timeline.timeline import SchemaVersion
from airflow_provider_cdc.core.values.alter.convert import convert, without_nulls
from airflow_provider_cdc.core.values.alter.generated_columns import computed
from airflow_provider_cdc.core.values.images import constant
from airflow_provider_cdc.core.values.types import TypeOptions, arrow_type


class TableColumns(NamedTuple):
    """The columns of a stored table.

    :param shape: makes them.
    :param laid: how the rows lie that the table has so far.
    """

    shape: Shape = PLAIN
    laid: LaidColumns = AS_SOURCE


AS_AT_SOURCE = TableColumns()
"""The columns are those of the source."""


class Mapper:
    """Map typed columns of any schema version to the columns of the target under a later schema of the same table.

    :param versions: the table's schema versions in order.
    :param fills: column id -> value of rows older than the column.
    :param lossy: takes the counts of values that did not fit the new type of their column, by kind of loss.
    :param columns: of the target.
    """

    def __init__(
        self,
        versions: Sequence[SchemaVersion],
        fills: Mapping[int, Default],
        options: TypeOptions,
        lossy: Counter[str] | None = None,
        *,
        columns: TableColumns = AS_AT_SOURCE,
    ) -> None:
        self._versions = versions
        self._fills = fills
        self._options = options
        self._lossy = Counter[str]() if lossy is None else lossy
        self._shape, self.laid = columns
        self._conditions: dict[int, BoundExpression | None] = {}
        self._columns: dict[int, tuple[TargetColumn, ...]] = {}  # by version, as are the schemas
        self._schemas: dict[int, pa.Schema] = {}

    def columns(self, version: int) -> tuple[TargetColumn, ...]:
        """Return the columns that the target has under a schema version."""
        if version not in self._columns:
            self._columns[version] = self._shape.columns(self._versions[version].schema, self._options)
        return self._columns[version]

    def key_columns(self, version: int) -> list[TargetColumn]:
        """Return those of the key, in the order of the key."""
        by_id = {column.id: column for column in self.columns(version)}
        return [by_id[column_id] for column_id in self._versions[version].schema.key]

    def row_key(self, version: int) -> list[str]:
        """Return the names of the columns that identify a row of a target with a key."""
        further = [column.name for column in self.columns(version) if column.id in self.mode.further_key]
        return [*(column.name for column in self.key_columns(version)), *further]

    def forms(self, version: int) -> ValueForms:
        """Return the columns of the target whose values a tool writes in several forms."""
        return ValueForms.of(self._versions[version].schema, self.columns(version))

    def rows(
        self,
        typed: Mapping[int, pa.Array],
        count: int,
        version: int,
        target: int,
        key_only: bool = False,
        changes: ColumnOfChanges | None = None,
    ) -> Rows:
        """Map rows typed under ``version`` (column id -> values) to the target's columns under version ``target``.

        :param key_only: return only the columns of the key.
        :param changes: gives columns of the change log, of the changes that made the rows.
        """
        columns, schema = self.columns(target), self.arrow_schema(target)
        if key_only:
            columns = tuple(self.key_columns(target))
            schema = pa.schema([schema.field(column.name) for column in columns])
        if not count:
            return Rows(schema.empty_table(), {})
        generated = self._computed(typed, count, version, target)
        inputs = Inputs(count, partial(self._at, typed, generated, count, version, target), changes)
        arrays = [column.values(inputs) for column in columns]
        passes, condition = None, None if key_only else self.condition(target)
        if condition is not None:
            passes, failed = passing(condition, inputs)
            if failed is not None:
                inputs.refuse("filter", failed)
        return Rows(pa.Table.from_arrays(arrays, schema=schema), inputs.refused, passes)

    def condition(self, version: int) -> BoundExpression | None:
        """Return which rows the target has under a version, None for all."""
        if version not in self._conditions:
            self._conditions[version] = self._shape.bound_condition(self._versions[version].schema, self._options)
        return self._conditions[version]

    def stay(self, old: TableSchema, version: int) -> bool:
        """Return whether stored rows under an old schema are right as rules made them and chose them then."""
        if self._shape.is_plain and self.laid.columns is None and not self.filters:
            return True
        marks = {one.id: one.mark for one in self.laid.of(old)}
        if any(marks.get(column.id, column.mark) != column.mark for column in self.columns(version)):
            return False
        new = self._versions[version].schema
        return self._has_same_rows(old, version) and all(lasts(column, old, new) for column in self.columns(version))

    def _has_same_rows(self, old: TableSchema, version: int) -> bool:
        """Return whether the filter passes the rows under a version that it passed under an old schema."""
        condition = self.condition(version)
        if condition is None:
            return True
        if not unchanged(condition.ids.values(), old, self._versions[version].schema):
            return False
        was = self._shape.bound_condition(old, self._options)  # a name in it may have been another column's
        return was is not None and was.ids == condition.ids

    @property
    def mode(self) -> ModeColumns:
        """The mode of the target."""
        return self._shape.mode

    @property
    def filters(self) -> bool:
        """Return whether the target has some of the rows alone."""
        return self._shape.filters

    @property
    def reads_whole_rows(self) -> bool:
        """Return whether rows that lack columns cannot be made: others are made of those, or the filter reads them."""
        return self.filters or self._shape.computes

    def nothing(self, version: int) -> pa.Table:
        """Return no rows under the target's columns of a version."""
        return self.arrow_schema(version).empty_table()

    def arrow_schema(self, version: int) -> pa.Schema:
        """Return names and types of the target's columns under a version."""
        if version not in self._schemas:
            self._schemas[version] = pa.schema([pa.field(column.name, column.type) for column in self.columns(version)])
        return self._schemas[version]

    def content(self, stored: pa.Table, old: TableSchema, target: int, start: int | None = None) -> pa.Table:
        """Map a table's stored rows from the schema they lie under to that of version ``target``.

        :param start: version of the old schema, of rows that this mapper made; None for the rows that the table has
            so far, and for the newest version that has the schema.
        :raises RewindNeeded: the stored rows lack what columns are made of.
        """
        of_own = start is not None
        laid = self._shape.laid(old, self._options) if of_own else self.laid
        if start is None:
            versions = enumerate(self._versions[: target + 1])
            start = max((index for index, version in versions if version.schema == old), default=None)
        columns = self.columns(target)
        if start == target and laid.of(old) == tuple(map(TargetColumn.laid, columns)):
            return stored
        was, new = StoredColumns(stored, old, laid), self._versions[target].schema
        if not self._has_same_rows(old, target):
            raise self._lacking("which rows pass the filter", own=of_own)
        at, recomputed = self._of_stored(was, start, target)
        lacking = partial(self._lacking, own=of_own)
        inputs = Inputs(stored.num_rows, was.demanding(at, recomputed, lacking))
        arrays = []
        for column in columns:
            values = was.unchanged_values(column, new, recomputed)
            if values is None and column.of_other is not None:
                values = self._of_other(was, column, column.of_other, start, target)
                if values is None:
                    raise lacking(f"the values of {column.name}")
            arrays.append(column.values(inputs) if values is None else values)
        if inputs.refused:
            raise refused_values(inputs.refused)
        return pa.Table.from_arrays(arrays, schema=self.arrow_schema(target))

    def _of_other(
        self, was: StoredColumns, column: TargetColumn, other: OtherRows, start: int | None, target: int
    ) -> pa.Array | None:
        """Return the values that stored rows have of other rows, None where they do not show them."""
        old, new = was.schema.column(other.column_id), self._versions[target].schema.column(other.column_id)
        if any(one.id == other.column_id and one.mark for one in self.columns(target)) or new is None:
            return None
        values, there = was.made(column), other.there(was.rows)
        if old is not None and values is not None:
            if start is None:
                values = self._step(values, old, new, self._versions[target].server, self._lossy)
            else:
                values = self._steps(values, other.column_id, start, target, self._lossy)
        elif old is None and not any(one.column_id == new.id for each in self._versions for one in each.computed):
            values = self._filled(new.id, was.rows.num_rows, target, Counter())
        else:
            return None
        return pc.if_else(there, values, pa.scalar(None, values.type))

    def _lacking(self, what: str, *, own: bool) -> DataError:
        """Return the error of rows that lack what is to be made of them.

        :param own: whether this mapper made them: then no earlier state of the table helps.
        """
        if not own:
            return rewind_needed(self._shape.table, f"the stored rows do not show {what}", "")
        return DataError(
            "shape.converted",
            f"a change of types leaves open {what}",
            where={"table": self._shape.table},
            hint="rebuild the table from a snapshot that is newer than the change",
        )

    def _of_stored(self, was: StoredColumns, start: int | None, target: int) -> tuple[ColumnOf, set[int]]:
        """Return what gives the columns of stored rows, and those that it cannot compute.

        :param start: version that the rows lie under, None where it is no longer on the timeline: a late DDL changed
            it, and one direct step is taken.
        """
        since = range(0 if start is None else start + 1, target + 1)
        items = [item for number in since for item in self._versions[number].computed]
        recomputed = {item.column_id for item in items if not was.has(item.formula.columns)}
        if start is not None:
            generated = self._computed(was.plain, was.rows.num_rows, start, target)
            return partial(self._at, was.plain, generated, was.rows.num_rows, start, target), recomputed
        count, arrays, server = was.rows.num_rows, dict[int, pa.Array](), self._versions[target].server
        for column in self._versions[target].schema.columns:
            old = was.schema.column(column.id)
            if old is None or column.id not in was.plain:
                arrays[column.id] = self._filled(column.id, count, target, self._lossy)
            else:
                arrays[column.id] = self._step(was.plain[column.id], old, column, server, self._lossy)
        for item in items:
            if item.column_id in arrays and item.column_id not in recomputed:
                arrays[item.column_id] = self._compute(item, count, target, arrays.__getitem__)
        return arrays.__getitem__, recomputed

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
