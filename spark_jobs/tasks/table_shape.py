# SPDX-License-Identifier: Apache-2.0
"""Say which columns a table gets by the rules of its pipeline, and how the rows lie that it has so far."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

from airflow_provider_cdc.core.apply.modes import mode_of
from airflow_provider_cdc.core.apply.schema_mapping import Mapper, TableColumns
from airflow_provider_cdc.core.apply.table_rewrite import keeps_values
from airflow_provider_cdc.core.apply.target_schema import TargetSchema, stored_schema, target_schema
from airflow_provider_cdc.core.documents import JobDocument, TableState
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.laid_columns import LaidColumns
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.model.table_comments import TableComments
from airflow_provider_cdc.core.shapes.shape import Shape
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from airflow_provider_cdc.core.values.types import TypeOptions
from spark_jobs.tasks.table_task import ApplyTask


def shape_of(job: JobDocument, timeline: TableTimeline, secrets: dict[str, dict[str, str]]) -> Shape:
    """Return the columns that a table gets."""
    rule = job.tables.rule(timeline.last_name)
    return Shape.of(rule.columns, rule.filter, timeline, salt_of(secrets), mode_of(job.tables, timeline.last_name))


def salt_of(secrets: dict[str, dict[str, str]]) -> bytes:
    """Return the salt of hashes, empty where none is stated."""
    return secrets.get("mask", {}).get("salt", "").encode()


def demand_fit(job: JobDocument, timeline: TableTimeline) -> None:
    """Look whether the rules of a table fit its columns.

    :raises DataError: they do not.
    """
    policy = job.tables.policy(timeline.last_name, job.policy)
    shape, types = shape_of(job, timeline, {}), TypeOptions.of(policy)
    if shape.is_plain and shape.condition is None:
        return
    by_clock = open_format(job.format, job.format_options).order == "clock"
    if shape.mode.needs_order and by_clock:
        raise DataError(
            "mode.needs_order",
            f"mode {shape.mode.name} needs changes whose order and repeats are exact, {job.format} has a clock alone",
            where={"table": str(timeline.last_name)},
            hint="take another mode for this table, or a format that carries positions",
        )
    if shape.names_batch and (by_clock or not shape.mode.has_key):
        raise DataError(
            "shape.batch",
            f"columns.metadata.batch: of a change that came again nothing shows which copy is in the table, since "
            f"{f'{job.format} has a clock alone' if by_clock else f'a table of mode {shape.mode.name} has the first'}",
            where={"table": str(timeline.last_name)},
            hint="leave `batch` out for this table",
        )
    if job.tables.names(timeline.last_name):
        shape.demand_columns()
    shape.columns(timeline.schema, types)
    shape.bound_condition(timeline.schema, types)


def laid_of(state: TableState | None) -> LaidColumns:
    """Return how the rows lie that a table has so far."""
    return LaidColumns.from_document(None if state is None else state.laid)


class TableShape:
    """The columns of one task's table.

    :ivar rules: make them.
    :ivar laid: how the rows lie that it has so far.
    """

    def __init__(
        self, job: JobDocument, task: ApplyTask, timeline: TableTimeline, secrets: dict[str, dict[str, str]]
    ) -> None:
        name = f"{task.database}.{task.table}"
        self._types = TypeOptions.of(job.tables.policy(name, job.policy))
        self._layout, self._timeline = job.tables.layout(name), timeline
        self.rules, self.laid = shape_of(job, timeline, secrets), laid_of(task.base)

    @cached_property
    def columns(self) -> TargetSchema:
        """The columns that the table has after the batch."""
        schema = self._timeline.versions[-1].schema
        return target_schema(schema, self._types, self._layout, self.rules).commented(self.comments)

    @property
    def comments(self) -> TableComments:
        """The comments of the table and its columns; none of columns that no table can have."""
        names = self.names
        said = {names[one]: text for one, text in self._timeline.comments.items() if one in names}
        return TableComments(self._timeline.comment, said)

    @property
    def names(self) -> dict[int, str]:
        """The names that its columns have then, by id; the source may have types that no table can have."""
        schema = self._timeline.versions[-1].schema
        if self.rules.is_plain:
            return {column.id: column.name for column in schema.columns}
        return {column.id: column.name for column in self.rules.columns(schema, self._types)}

    @property
    def key_names(self) -> list[str]:
        """The names of the columns that identify a row."""
        key = (*self._timeline.versions[-1].schema.key, *self.rules.mode.further_key)
        return [self.names[column_id] for column_id in key]

    def so_far(self, schema: TableSchema) -> TargetSchema:
        """Return the columns that the table has before it.

        :param schema: of the source, that the rows lie under.
        """
        return stored_schema(schema, self._types, self._layout, self.rules, self.laid)

    def first_key(self, schema: TableSchema) -> str | None:
        """Return the name of the key's first column in the rows that lie under a schema, None without a key."""
        return next(iter(self.so_far(schema).key_names), None)

    def stay(self, schema: TableSchema, version: int) -> bool:
        """Return whether rows that lie under a schema of the source are right as rules made and chose them then.

        :param version: that the source's table has after the batch.
        """
        return self.mapper().stay(schema, version)

    def laid_then(self) -> LaidColumns:
        """Return how the rows lie after the batch."""
        return self.rules.laid(self._timeline.versions[-1].schema, self._types)

    def mapper(self, lossy: Counter[str] | None = None) -> Mapper:
        """Return what maps the rows that the table has so far to the columns of a version."""
        timeline = self._timeline
        return Mapper(timeline.versions, timeline.fills, self._types, lossy, columns=self.rules_and_laid)

    @property
    def rules_and_laid(self) -> TableColumns:
        """The rules that make the columns, and how the rows lie so far."""
        return TableColumns(self.rules, self.laid)

    def keeps_values(self, old: TableSchema, new: TableSchema) -> bool:
        """Return whether no value of a stored row changes with the columns of the table."""
        return keeps_values(old, new, self._timeline, self.rules.columns(new, self._types), self.laid)
