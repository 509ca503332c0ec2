# SPDX-License-Identifier: Apache-2.0
"""Keep one row for each change of a row: a feed of what happened to the source's table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from airflow_provider_cdc.core.apply.later_rows import typed_later
from airflow_provider_cdc.core.apply.merge_plan import Emptied, MergeStep
from airflow_provider_cdc.core.apply.modes.mirror import Mirror
from airflow_provider_cdc.core.apply.row_copies import without_copies
from airflow_provider_cdc.core.apply.rows_without_key import KeylessRows
from airflow_provider_cdc.core.apply.typed_rows import together
from airflow_provider_cdc.core.shapes.columns import MODE_IDS, SOURCE_TIME, RowInputs, SourceColumns, TargetColumn

_COLUMNS = {
    "_cdc_op": ("op", pa.string()),
    "_cdc_position": ("position", pa.string()),
    "_cdc_time": ("source_time", SOURCE_TIME),
}
"""Name of each column -> column of the change log, and type."""
SNAPSHOT_BEGIN = "snapshot_begin"
"""What ``_cdc_op`` says of a full snapshot: rows of before that it does not have are gone."""


class Append(Mirror):
    """The stored table has a row for each row that the source changed, and for each TRUNCATE and new snapshot."""

    name: str = "append"
    is_mirror = False
    has_key = False
    needs_order = True
    keeps_rows = True
    of_change: tuple[str, ...] = ("source_time",)

    def columns(self, source: SourceColumns) -> list[TargetColumn]:
        """Return what says which change it was."""
        return [
            TargetColumn(MODE_IDS - 10 - number, name, kind, f"mode {self.name}", make=partial(_of_change, what, kind))
            for number, (name, (what, kind)) in enumerate(_COLUMNS.items())
        ]

    def without_key(self, keyless: KeylessRows) -> MergeStep:
        """Return a step that adds a row for each change: the row after it, of a delete the row before."""
        typer, last = keyless.typer, keyless.last
        row_indexes, _ = without_copies(typer.changes, keyless.row_indexes, typer.flags("applied"), typer.wire)
        removed = typer.changes.are("delete", rows=row_indexes)
        schema, none = typer.timeline.versions[last].schema, typer.mapper.nothing(last)
        if keyless.later and not removed.any():
            rows = typed_later(typer, row_indexes, last, partial=False)
            return MergeStep(last, schema, keyless.clear, none, none, later=rows)
        after = typer.typed(row_indexes[~removed], "after", last).in_target()
        before = typer.typed(row_indexes[removed], "before", last).in_target()
        return MergeStep(last, schema, keyless.clear, together([after, before]).rows, none)

    def of_truncates(self, truncates: Sequence[Emptied], nothing: pa.Table) -> pa.Table:
        """Return a row for each TRUNCATE, and each snapshot that states the table again."""
        ops = [SNAPSHOT_BEGIN if one.restated else "truncate" for one in truncates]
        values = {
            "_cdc_op": pa.array(ops, pa.string()),
            "_cdc_position": pa.array([one.position for one in truncates], pa.string()),
            "_cdc_time": pa.array([one.time for one in truncates], pa.int64()).cast(SOURCE_TIME),
        }
        columns = [
            values[field.name] if field.name in values else pa.nulls(len(truncates), field.type)
            for field in nothing.schema
        ]
        return pa.Table.from_arrays(columns, schema=nothing.schema)


def _of_change(what: str, kind: pa.DataType, rows: RowInputs) -> pa.Array:
    return rows.of_change(what).cast(kind)
