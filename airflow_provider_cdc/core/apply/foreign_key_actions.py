# SPDX-License-Identifier: Apache-2.0
"""Find rows that foreign keys changed without row events: those that still refer to values that their parent lost.

MySQL and MariaDB log no event for the rows that ON DELETE and ON UPDATE actions change. While a foreign key holds, no
row refers to a value that its parent table lost. A row that does so here was deleted or changed by such an action.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.ordered_changes import Changes
from airflow_provider_cdc.core.apply.resolve import versions_of
from airflow_provider_cdc.core.apply.row_sets import group_numbers
from airflow_provider_cdc.core.apply.row_typing import RowTyper
from airflow_provider_cdc.core.apply.schema_mapping import Mapper
from airflow_provider_cdc.core.apply.typed_rows import TypedRows
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.formats.contract import Format
from airflow_provider_cdc.core.timeline.timeline import Reference, TableTimeline
from airflow_provider_cdc.core.values.types import TypeOptions


class RowsUnknown(DataError):
    """Rows of the table changed at the source without row events."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Hold values of referenced columns that no row of the parent has any more, and the positions of their loss.

    :param values: one column for each column of the reference, in its order.
    :param positions: of the DELETE or UPDATE.
    """

    values: pa.Table
    positions: pa.Array


def lost_values(
    changes: pa.Table, parent: TableTimeline, reference: Reference, wire: Format, options: TypeOptions
) -> Lost:
    """Return what deletes and updates took from the columns of a parent table that a foreign key refers to.

    :param changes: the parent's row changes (``RESOLVE_COLUMNS``), in any order and with repeats.
    :raises SchemaMissing: a row shows that a schema change of the parent is not on its timeline yet.
    :raises RowsUnknown: an image does not say which values went.
    """
    ops = changes.column("op").cast(pa.string())
    ordered = Changes(changes.filter(pc.is_in(ops, pa.array(["delete", "update"]))))
    versions = versions_of(ordered.rows, parent)
    typer = RowTyper(ordered, versions, parent, wire, options, Mapper(parent.versions, parent.fills, options))
    typer.check()
    last = len(parent.versions) - 1
    names = _referenced(parent, reference)
    key_only = set(names) <= {column.name for column in parent.schema.key_columns}
    deleting = pc.equal(ordered.rows.column("op").cast(pa.string()), "delete").to_numpy(zero_copy_only=False)
    has_before = ordered.images["before"].there
    deleted = typer.typed(np.flatnonzero(deleting), "before", last, key_only=key_only)
    # an update that says nothing of the row before has not changed what others refer to
    before = typer.typed(np.flatnonzero(~deleting & has_before), "before", last, key_only=key_only, partial=True)
    after = typer.typed(before.row_indexes, "after", last, key_only=key_only, partial=True)
    if typer.failures:
        raise RowsUnknown(
            "apply.cascade_unknown",
            f"rows went from {parent.last_name}, which this table refers to, and their images do not say which",
            hint="see that table's own failures",
        )
    moved = _moved(before, after, names)
    row_indexes = np.concatenate([deleted.row_indexes, before.row_indexes[moved]])
    values = pa.concat_tables([deleted.rows.select(names), before.rows.select(names).filter(pa.array(moved))])
    positions = ordered.rows.column("position").take(pa.array(row_indexes))
    return Lost(values, pa.array(positions.to_pylist(), pa.string()))


def referring(rows: pa.Table, names: list[str], lost: Lost, positions: pa.ChunkedArray | None = None) -> pa.Array:
    """Return for each row whether it refers to a value that its parent lost later.

    :param names: the columns of the foreign key.
    :param positions: the position of each row's newest change; None where all of them are older than the loss.
    """
    count = rows.num_rows
    if not count or not lost.values.num_rows:
        return pa.array(np.zeros(count, bool))
    columns = zip((rows.column(name) for name in names), lost.values.columns, strict=True)
    groups = group_numbers([_together(mine, theirs) for mine, theirs in columns])
    refers = np.isin(groups[:count], groups[count:])
    for name in names:  # a foreign key with a NULL refers to nothing
        refers &= rows.column(name).is_valid().to_numpy()
    if positions is not None:
        order = pc.sort_indices(lost.positions)
        newest: np.ndarray = np.full(int(groups.max()) + 1, "", object)
        # of several values assigned to one index numpy keeps the last
        newest[groups[count:][order.to_numpy()]] = lost.positions.take(order).to_numpy(zero_copy_only=False)
        referring_rows = np.flatnonzero(refers)
        mine = positions.take(pa.array(referring_rows)).to_numpy(zero_copy_only=False)
        refers[referring_rows] = mine < newest[groups[referring_rows]]
    return pa.array(refers)


def _referenced(parent: TableTimeline, reference: Reference) -> list[str]:
    """Return the present names of the parent's columns that a foreign key refers to."""
    then = parent.versions[parent.version_at(reference.position)].schema
    referenced = [then.named(name) for name in reference.parent_columns] or list(then.key_columns)
    now = [None if column is None else parent.schema.column(column.id) for column in referenced]
    names = [column.name for column in now if column is not None]
    if len(names) != len(reference.columns):
        raise RowsUnknown(
            "apply.cascade_unknown",
            f"the foreign key to {parent.last_name} names columns that this table is not known to have",
        )
    return names


def _moved(before: TypedRows, after: TypedRows, names: list[str]) -> np.ndarray:
    """Return which updates changed one of these columns; a column that an image lacks is unchanged."""
    moved: np.ndarray = np.zeros(len(before.row_indexes), bool)
    same_rows = np.isin(before.row_indexes, after.row_indexes)
    for name in names:
        old, new = before.rows.column(name).filter(pa.array(same_rows)), after.rows.column(name)
        groups = group_numbers([pa.chunked_array([*old.chunks, *new.chunks], old.type)])
        differs = groups[: len(old)] != groups[len(old) :]
        for absent in (before.absent.get(name, np.zeros(len(moved), bool))[same_rows], after.absent.get(name)):
            differs &= True if absent is None else ~absent
        moved[same_rows] |= differs
    return moved


def _together(mine: pa.ChunkedArray, theirs: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return two columns as one, in texts that are equal where the server may compare the values equal."""
    if pa.types.is_binary(mine.type) or pa.types.is_binary(theirs.type):
        return pa.chunked_array([*mine.cast(pa.binary()).chunks, *theirs.cast(pa.binary()).chunks], pa.binary())
    texts = [column.cast(pa.string()) for column in (mine, theirs)]
    if pa.types.is_string(mine.type) or pa.types.is_string(theirs.type):
        # most collations ignore case, accents and blanks at the end
        texts = [pc.utf8_lower(pc.replace_substring_regex(pc.utf8_normalize(t, "NFKD"), r"\pM", "")) for t in texts]
        texts = [pc.utf8_rtrim(t, " ") for t in texts]
    return pa.chunked_array([*texts[0].chunks, *texts[1].chunks], pa.string())
