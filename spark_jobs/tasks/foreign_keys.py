# SPDX-License-Identifier: Apache-2.0
"""Refuse a table whose rows a foreign key changed: such changes have no row events."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.foreign_key_actions import Lost, RowsUnknown, lost_values, referring
from airflow_provider_cdc.core.apply.merge_plan import MergePlan
from airflow_provider_cdc.core.apply.row_sets import without_keys
from airflow_provider_cdc.core.apply.schema_mapping import Mapper
from airflow_provider_cdc.core.apply.table_rewrite import after_steps
from airflow_provider_cdc.core.errors import CASCADED
from airflow_provider_cdc.core.formats.contract import Format
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.shapes.mode import source_rows
from airflow_provider_cdc.core.timeline.timeline import Reference, TableTimeline
from airflow_provider_cdc.core.values.types import TypeOptions, arrow_type
from spark_jobs.tasks.table_changes import TableChanges
from spark_jobs.tasks.table_task import ApplyTask


class ForeignKeys:
    """The foreign keys of one task's table.

    :param changes: reads what the parents lost, too.
    :param stored: gives the rows that the result starts from, by keys or all.
    :param mapper: maps them to the table's columns after the batch.
    """

    def __init__(
        self,
        task: ApplyTask,
        timeline: TableTimeline,
        wire: Format,
        types: TypeOptions,
        changes: TableChanges,
        stored: Callable[[pa.Table | None], pa.Table],
        mapper: Mapper,
    ) -> None:
        self._task, self._timeline, self._wire, self._types = task, timeline, wire, types
        self._changes, self._stored, self._mapper = changes, stored, mapper

    def check(self, base_schema: TableSchema | None, plan: MergePlan) -> None:
        """Compare the table as it will be with what its parents lost.

        :raises RowsUnknown: a row refers to a value that its parent lost: a foreign key removed or changed it.
        """
        if not self._task.parents:
            return
        cleared = max([*self._timeline.clears, *self._clears()], default="")
        for parent in self._task.parents:
            reference = Reference.from_document(parent.reference)
            since = max(reference.position, cleared)
            timeline = TableTimeline.from_document(parent.timeline)
            lost = [
                lost_values(
                    _inside(self._changes.of(spans), since, reference.until),
                    timeline,
                    reference,
                    self._wire,
                    self._types,
                )
                for spans in (parent.spans, [*parent.spans, *parent.earlier])
            ]
            if self._refers(base_schema, plan, reference, *lost):
                raise RowsUnknown(
                    CASCADED,
                    f"a foreign key to {timeline.last_name} removed or changed rows without row events",
                    where={"table": f"{self._task.database}.{self._task.table}"},
                    hint="TRUNCATE TABLE, or DROP TABLE and CREATE TABLE, at the source makes the table known again; "
                    "policy.on_cascade: ignore keeps such rows",
                )

    def _refers(
        self, base_schema: TableSchema | None, plan: MergePlan, reference: Reference, lost: Lost, ever: Lost
    ) -> bool:
        """Return whether a row of the table as it will be refers to what its parent lost.

        :param lost: what the stored rows were not compared with yet.
        :param ever: that, and what rows arriving late have to be compared with.
        """
        step = plan.steps[-1]
        columns = [step.schema.column(i) for i in reference.columns]
        if None in columns:
            return False
        own = {one.id: one.name for one in self._mapper.columns(step.version) if not one.mark}
        if not own.keys() >= set(reference.columns):  # a rule leaves them out or masks them: what refers is unknown
            return bool(ever.values.num_rows)
        names = [own[column_id] for column_id in reference.columns]
        stored = None
        if base_schema is not None and not plan.steps[0].clear and lost.values.num_rows:
            stored = self._stored(self._as_keys(lost.values, base_schema, reference))
        mapper = self._mapper
        if len(plan.steps) > 1 or not step.keyed or step.positions is None:
            rows, _ = after_steps(stored, base_schema, plan.steps, mapper)
            return bool(pc.sum(referring(source_rows(rows, mapper.mode), names, ever)).as_py())
        if pc.sum(referring(step.upserts, names, ever, step.positions())).as_py():
            return True
        if stored is None or base_schema is None:
            return False
        remaining = mapper.content(stored, base_schema, step.version)
        remaining = remaining.filter(referring(remaining, names, lost))
        gone = pa.concat_tables([step.deletes, step.upserts.select(step.key)])
        return bool(without_keys(remaining, gone, step.key).num_rows)

    def _as_keys(self, values: pa.Table, base: TableSchema, reference: Reference) -> pa.Table | None:
        """Return values as stored rows have them, None where they are not compared by their equality alone."""
        own = {one.id: one.name for one in self._mapper.laid.of(base) if not one.mark}
        columns = [base.column(i) for i in reference.columns]
        types = [arrow_type(column.type, self._types) for column in columns if column is not None]
        same = own.keys() >= set(reference.columns) and types == values.schema.types
        if not same or any(pa.types.is_string(kind) for kind in types):
            return None
        return values.rename_columns([own[column_id] for column_id in reference.columns])

    def _clears(self) -> list[str]:
        """Return where rows say TRUNCATE."""
        return [
            position
            for span in self._task.spans
            for group in span.groups
            for position in group.clears
            if position >= span.start and (span.end is None or position < span.end)
            if position not in self._timeline.denied
        ]


def _inside(rows: pa.Table, start: str, end: str | None) -> pa.Table:
    """Return the changes between two positions."""
    rows = rows.filter(pc.greater_equal(rows.column("position"), start))
    return rows if end is None else rows.filter(pc.less(rows.column("position"), end))
