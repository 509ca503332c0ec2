# SPDX-License-Identifier: Apache-2.0
"""Carry a table's whole content through the steps of a merge plan, for changes that a merge cannot express."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from airflow_provider_cdc.core.apply.merge_plan import MergeStep, OpenRemovals
from airflow_provider_cdc.core.apply.modes import rows_of
from airflow_provider_cdc.core.apply.row_sets import multiset_difference, without_keys
from airflow_provider_cdc.core.apply.schema_mapping import Mapper
from airflow_provider_cdc.core.apply.shaped_rows import lasts
from airflow_provider_cdc.core.model.laid_columns import LaidColumns
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.shapes.columns import TargetColumn
from airflow_provider_cdc.core.timeline.barriers import keeps_values as holds
from airflow_provider_cdc.core.timeline.timeline import TableTimeline


def after_steps(
    content: pa.Table | None,
    base: TableSchema | None,
    steps: Sequence[MergeStep],
    mapper: Mapper,
    *,
    compared: bool = False,
) -> tuple[pa.Table, OpenRemovals | None]:
    """Return the content after all steps, and the removals that found no row.

    :param content: stored rows under ``base``, None when nothing is stored or a clear takes it away.
    :param compared: whether the witness of each step meets the content before it.
    """
    schema: TableSchema | None = base
    version: int | None = None
    left: OpenRemovals | None = None
    for step in steps:
        if content is None or schema is None or step.clear:
            content, left = step.upserts.schema.empty_table(), None
        else:
            content = mapper.content(content, schema, step.version, version)
            if left is not None:
                left = replace(left, rows=mapper.content(left.rows, schema, step.version, version))
            content = _rows_before(content, schema, step, mapper)
        if compared and step.witness is not None:
            step.witness.meet(content)
        if step.keyed:
            if content.num_rows:
                keys = _keys(step)
                content = pa.concat_tables([without_keys(content, keys, keys.column_names), step.upserts])
            else:
                content = step.upserts
            left = None
        else:
            content, unmatched = multiset_difference(content, step.deletes, mapper.forms(step.version))
            content = pa.concat_tables([content, step.upserts])
            left = OpenRemovals.joined(left, step.still_open(unmatched))
        schema, version = step.schema, step.version
    assert content is not None  # a plan has at least one step
    return content, left


def keeps_values(
    old: TableSchema, new: TableSchema, timeline: TableTimeline, columns: Iterable[TargetColumn], laid: LaidColumns
) -> bool:
    """Return whether no value of a stored row changes with the columns of a table.

    :param old: schema that the rows lie under.
    :param new: the one of the timeline's end.
    :param columns: that the table has then.
    :param laid: how the rows lie.
    """
    columns, was_laid = list(columns), {one.id: one.mark for one in laid.of(old)}
    read = {column_id for one in columns for column_id in (one.id, *one.reads)}
    ids = {one.id for one in columns}
    if any(one_id not in ids and (one_id < 0 or new.column(one_id) is not None) for one_id in was_laid):
        return False  # a rule leaves it out: its values leave the files, too
    if any(was_laid.get(one.id, "" if old.column(one.id) is None else None) != one.mark for one in columns):
        return False
    if any(one.mark and not lasts(one, old, new) for one in columns):
        return False
    if old.key != new.key or any(version.computed for version in timeline.versions):
        return False
    for column in [column for column in new.columns if column.id in read]:
        was, fill = old.column(column.id), timeline.fills.get(column.id)
        if was is None and fill is not None and fill.kind == "constant" and fill.text is not None:
            return False
        if not column.nullable and (was is None or was.nullable):
            return False
    return True


def _rows_before(content: pa.Table, schema: TableSchema, step: MergeStep, mapper: Mapper) -> pa.Table:
    """Return what a table's mode leaves of stored rows before a step's own rows come in.

    :param schema: that the rows lay under before.
    """
    mode = rows_of(mapper.mode)
    if _keys_may_meet(schema, step.schema):
        content = mode.rekeyed(content, step.key)
    return content if step.emptied is None else mode.emptied(content, step.emptied)


def _keys_may_meet(old: TableSchema, new: TableSchema) -> bool:
    """Return whether rows of two keys may have the same one under another schema, which the source's own rows have not.

    Of those that went, and that only the table keeps, an ALTER asks nothing.
    """
    if old.key != new.key:
        return True
    pairs = ((old.column(column_id), new.column(column_id)) for column_id in new.key)
    return any(was is None or now is None or not holds(was.type, now.type) for was, now in pairs)


def goes_in_pieces(base: TableSchema, steps: Sequence[MergeStep], mapper: Mapper) -> bool:
    """Return whether what stays of a stored row depends on no other stored row: rows without key go for each other.

    :param base: schema that the stored rows lie under.
    """
    if not mapper.mode.is_mirror and any(_keys_may_meet(base, step.schema) for step in steps):
        return False
    return all(step.keyed or not (step.deletes.num_rows or step.open) for step in steps)


def remaining_pieces(
    pieces: Iterable[pa.Table], base: TableSchema, steps: Sequence[MergeStep], mapper: Mapper
) -> Iterator[pa.Table]:
    """Yield what stays of stored rows after all steps, a piece at a time; with the steps' own rows it is the content.

    The witness of each step meets the rows before it.

    :param pieces: stored rows under ``base``.
    :param steps: for which :func:`goes_in_pieces` holds.
    """
    if any(step.clear for step in steps):
        return
    gone = [_keys(step) if step.keyed else None for step in steps]
    for piece in pieces:
        content, schema, version = piece, base, None
        for step, keys in zip(steps, gone, strict=True):
            content = mapper.content(content, schema, step.version, version)
            content = _rows_before(content, schema, step, mapper)
            if step.witness is not None:
                step.witness.meet(content)
            if keys is not None:
                content = without_keys(content, keys, keys.column_names)
            schema, version = step.schema, step.version
        yield content


def _keys(step: MergeStep) -> pa.Table:
    """Return the keys whose stored row a step removes or replaces."""
    return pa.concat_tables([step.deletes, step.upserts.select(step.key)])
