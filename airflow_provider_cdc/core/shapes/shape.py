# SPDX-License-Identifier: Apache-2.0
"""Give a stored table the columns that the rules of a pipeline state for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_provider_cdc.core.config.column_rules import ColumnRules
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.expressions.expression import Expression, parse_condition
from airflow_provider_cdc.core.model.laid_columns import LaidColumns
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.shapes.columns import SourceColumns, TargetColumn, plain_columns
from airflow_provider_cdc.core.shapes.expressions import BoundExpression, bound
from airflow_provider_cdc.core.shapes.mode import MIRROR, ModeColumns
from airflow_provider_cdc.core.shapes.rules import RULES
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from airflow_provider_cdc.core.values.types import TypeOptions


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns that a stored table has by its rules.

    :param rules: None where its columns are those of the source.
    :param names: every name that a column has had, by its id: a rule follows its column through a RENAME.
    :param salt: of hashes.
    :param condition: of the rows that it has, None for all.
    :param mode: says which rows it has, and adds columns.
    """

    rules: ColumnRules | None = None
    table: str = ""
    names: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    salt: bytes = b""
    condition: Expression | None = None
    mode: ModeColumns = MIRROR

    @staticmethod
    def of(
        rules: ColumnRules | None,
        condition: str | None,
        timeline: TableTimeline,
        salt: bytes = b"",
        mode: ModeColumns = MIRROR,
    ) -> Shape:
        """Return the shape of a table.

        :param condition: of the rows that it has, None for all.
        """
        if rules is None and condition is None and mode.is_mirror:
            return PLAIN
        names: dict[int, dict[str, None]] = {}
        for version in timeline.versions:
            for column in version.schema.columns:
                names.setdefault(column.id, {})[column.name] = None
        known = {column_id: tuple(some) for column_id, some in names.items()}
        parsed = None if condition is None else parse_condition(condition)
        return Shape(rules, str(timeline.last_name), known, salt, parsed, mode)

    @property
    def is_plain(self) -> bool:
        """Return whether the columns are those of the source."""
        return self.rules is None and self.mode.is_mirror

    def demand_columns(self) -> None:
        """Refuse rules that name a column which the table neither has nor had: a name that is mistyped masks nothing.

        :raises DataError: ``shape.column_unknown``.
        """
        known = {name.lower() for some in self.names.values() for name in some}
        named = [*(() if self.rules is None else self.rules.exact_names), *self.mode.named]
        unknown = [name for name in named if name.lower() not in known]
        if unknown:
            raise DataError(
                "shape.column_unknown",
                f"tables.{self.table} names {', '.join(unknown)}, which the table neither has nor had",
                where={"table": self.table},
                hint="correct the name; of a column that is to come state a pattern, as `email*`",
            )

    @property
    def filters(self) -> bool:
        """Return whether the target has some of the rows alone."""
        return self.condition is not None

    @property
    def goes_in_parts(self) -> bool:
        """Return whether keys show which rows the target gets, before the rows are typed."""
        return not self.filters and self.mode.is_mirror

    @property
    def goes_together(self) -> bool:
        """Return whether another table with these rules gets the same of the same changes."""
        return self.goes_in_parts and (self.rules is None or "table" not in (self.rules.metadata or ()))

    @property
    def names_batch(self) -> bool:
        """Return whether rows say which batch brought them."""
        return self.rules is not None and "batch" in (self.rules.metadata or ())

    @property
    def computes(self) -> bool:
        """Return whether columns are computed from those of the source."""
        return self.rules is not None and bool(self.rules.add)

    def columns(self, schema: TableSchema, options: TypeOptions) -> tuple[TargetColumn, ...]:
        """Return the columns of the target where the source has a schema.

        :raises DataError: a rule does not fit the table.
        """
        return self._made(SourceColumns(self.table, schema, self.names, options, self.salt))

    def laid(self, schema: TableSchema, options: TypeOptions) -> LaidColumns:
        """Return how rows lie that are made with this shape."""
        if self.is_plain:
            return LaidColumns()
        return LaidColumns(tuple(map(TargetColumn.laid, self.columns(schema, options))))

    def made_of(self, schema: TableSchema, options: TypeOptions) -> frozenset[int]:
        """Return the ids of the source's columns that the target has not as they are, or makes others of.

        None of a table without key: all of a row's values count there when another one is to be found.
        """
        if not schema.key or (self.is_plain and not self.filters):
            return frozenset()
        columns = self.columns(schema, options)
        own = {one.id for one in columns if not one.mark}
        read = {column_id for one in columns for column_id in one.reads}
        condition = self.bound_condition(schema, options)
        return frozenset({c.id for c in schema.columns} - own | read | set(condition.ids.values() if condition else ()))

    def bound_condition(self, schema: TableSchema, options: TypeOptions) -> BoundExpression | None:
        """Return which rows the target has where the source has a schema, None for all.

        :raises DataError: ``shape.expression``.
        """
        if self.condition is None:
            return None
        return bound("filter", self.condition, SourceColumns(self.table, schema, self.names, options))

    @property
    def of_change(self) -> tuple[str, ...]:
        """Return the columns of the change log, beyond those of every table, that rows are made of."""
        metadata = () if self.rules is None else self.rules.metadata or ()
        mine = [name for name in ("source_time", "batch") if name in metadata]
        return tuple(dict.fromkeys([*mine, *self.mode.of_change]))

    def _made(self, source: SourceColumns) -> tuple[TargetColumn, ...]:
        columns = plain_columns(source)
        for key, rule in RULES.items():
            stated = None if self.rules is None else getattr(self.rules, key)
            if stated is not None:
                columns = rule(stated, columns, source)
        columns = [*columns, *self.mode.columns(source, columns)]
        if not self.is_plain:
            _demand_names(columns, source)
        return tuple(columns)


PLAIN = Shape()
"""Of a table without rules for its columns."""


def _demand_names(columns: list[TargetColumn], source: SourceColumns) -> None:
    """Refuse two columns of one name; of a name that a rule gives also where only case tells them apart.

    :raises DataError: ``shape.name_taken``.
    """
    by_rule = {column.name.lower() for column in columns if _is_given(column, source.schema)}
    seen: dict[str, str] = {}
    for column in columns:
        name = column.name.lower() if column.name.lower() in by_rule else column.name
        if name in seen:
            raise _name_taken(seen[name], column.name, source)
        seen[name] = column.name


def _is_given(column: TargetColumn, schema: TableSchema) -> bool:
    """Return whether a rule gives a column its name."""
    own = schema.column(column.id)
    return own is None or own.name != column.name


def _name_taken(one: str, other: str, source: SourceColumns) -> DataError:
    return source.rule_error(
        "shape.name_taken",
        f"two columns are to be named {' and '.join(dict.fromkeys([repr(one), repr(other)]))}",
        "give one of them another name in columns.rename, columns.add or columns.metadata",
    )
