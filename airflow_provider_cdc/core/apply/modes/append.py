# SPDX-License-Identifier: Apache-2.0
"""Keep one row for each change of a row: a feed of what happened to the source's table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.later_rows import typed_later
from airflow_provider_cdc.core.apply.merge_plan import Emptied, MergeStep
from airflow_provider_cdc.core.apply.modes.contract import with_values
from airflow_provider_cdc.core.apply.modes.mirror import Mirror
from airflow_provider_cdc.core.apply.row_copies import without_copies
from airflow_provider_cdc.core.apply.rows_without_key import KeylessRows
from airflow_provider_cdc.core.apply.typed_rows import TypedRows, together
from airflow_provider_cdc.core.config.tables import TableRule
from airflow_provider_cdc.core.shapes.columns import (
    MODE_IDS,
    SOURCE_TIME,
    OtherRows,
    RowInputs,
    SourceColumns,
    TargetColumn,
)
from airflow_provider_cdc.core.timeline.timeline import SchemaVersion

_COLUMNS = {
    "_cdc_op": ("op", pa.string()),
    "_cdc_position": ("position", pa.string()),
    "_cdc_time": ("source_time", SOURCE_TIME),
}
"""Name of each column -> column of the change log, and type."""
_BEFORE_IDS = -(1 << 50)  # below those of computed columns
SNAPSHOT_BEGIN = "snapshot_begin"
"""What ``_cdc_op`` says of a full snapshot: rows of before that it does not have are gone."""


class Append(Mirror):
    """The stored table has a row for each row that the source changed, and for each TRUNCATE and new snapshot.

    :param before: whether it has the row before the change, too.
    """

    name: str = "append"
    is_mirror = False
    has_key = False
    needs_order = True
    keeps_rows = True
    of_change: tuple[str, ...] = ("source_time",)

    def __init__(self, *, before: bool = False) -> None:
        self._before, self.types_later = before, not before

    def of(self, rule: TableRule) -> Append:
        """Return the mode with the options of a table's rule."""
        return Append(before=True) if rule.before else self

    def columns(self, source: SourceColumns, others: Sequence[TargetColumn]) -> list[TargetColumn]:
        """Return what says which change it was, and the columns of the row before it."""
        columns = [
            TargetColumn(MODE_IDS - 10 - number, name, kind, f"mode {self.name}", make=partial(_of_change, what, kind))
            for number, (name, (what, kind)) in enumerate(_COLUMNS.items())
        ]
        return [*columns, *(_before(one) for one in others if self._before and one.id >= 0)]

    def barriers(self, versions: Sequence[SchemaVersion], of_mirror: Sequence[int]) -> Sequence[int]:
        """Return none: no row depends on another one."""
        return ()

    def without_key(self, keyless: KeylessRows) -> MergeStep:
        """Return a step that adds a row for each change: the row after it, of a delete the row before."""
        typer, last = keyless.typer, keyless.last
        row_indexes, _ = without_copies(typer.changes, keyless.row_indexes, typer.flags("applied"), typer.wire)
        removed = typer.changes.are("delete", rows=row_indexes)
        schema, none = typer.timeline.versions[last].schema, typer.mapper.nothing(last)
        if keyless.later and not removed.any():
            rows = typed_later(typer, row_indexes, last, partial=False)
            return MergeStep(last, schema, keyless.clear, none, none, later=rows)
        after = typer.typed(row_indexes[~removed], "after", last)
        before = typer.typed(row_indexes[removed], "before", last)
        if self._before:
            updated = typer.changes.are("update", rows=after.row_indexes)
            was = typer.typed(after.row_indexes[updated], "before", last)
            after = after.only(~updated | np.isin(after.row_indexes, was.row_indexes))  # else the update is left out
            names = [one.name for one in typer.mapper.columns(last) if one.id >= 0]
            after, before = _with_before(after, was, names), _with_before(before, before, names)
        rows = together([after.in_target(), before.in_target()]).rows
        return MergeStep(last, schema, keyless.clear, rows, none)

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


def _before(column: TargetColumn) -> TargetColumn:
    """Return the column that has the values of a column before the change."""
    make, other, mark = partial(_none, column.type), OtherRows(column.id, _changed), f"mode append before {column.mark}"
    return TargetColumn(
        _BEFORE_IDS - column.id, f"before_{column.name}", column.type, mark, (column.id,), make, other, column.lasts
    )


def _changed(rows: pa.Table) -> pa.Array:
    """Return which rows had one before them."""
    return pc.is_in(rows.column("_cdc_op"), pa.array(["update", "delete"]))


def _none(kind: pa.DataType, rows: RowInputs) -> pa.Array:
    return pa.nulls(rows.count, kind)


def _with_before(rows: TypedRows, was: TypedRows, names: Sequence[str]) -> TypedRows:
    """Return rows with the values that they had before the changes that made them.

    :param was: the rows before some of the changes.
    """
    before = np.searchsorted(was.row_indexes, rows.row_indexes)
    mine = pa.array(before, mask=~np.isin(rows.row_indexes, was.row_indexes))
    table = rows.rows
    for name in names:
        table = with_values(table, f"before_{name}", was.rows.column(name).take(mine))
    return replace(rows, rows=table)


def _of_change(what: str, kind: pa.DataType, rows: RowInputs) -> pa.Array:
    return rows.of_change(what).cast(kind)
