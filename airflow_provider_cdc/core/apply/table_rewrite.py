# SPDX-License-Identifier: Apache-2.0
"""Carry a table's whole content through the steps of a merge plan, for changes that a merge cannot express."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.merge_plan import MergeStep
from airflow_provider_cdc.core.apply.row_sets import multiset_difference, without_keys
from airflow_provider_cdc.core.apply.schema_mapping import Mapper
from airflow_provider_cdc.core.apply.value_forms import ValueForms
from airflow_provider_cdc.core.arrays import BoolArray
from airflow_provider_cdc.core.model.schema import TableSchema


def after_steps(
    content: pa.Table | None,
    pending: pa.Table,
    base: TableSchema | None,
    steps: Sequence[MergeStep],
    mapper: Mapper,
    bound: str = "",
) -> tuple[pa.Table, pa.Table]:
    """Return the content after all steps and the removals that found no row.

    :param content: stored rows under ``base``, None when nothing is stored or a clear takes it away.
    :param pending: removals that found no row before, under ``base``; without columns when none.
    :param bound: as of :func:`settled`.
    """
    schema: TableSchema | None = base
    version: int | None = None
    for step in steps:
        empty = step.upserts.schema.empty_table()
        if content is None or schema is None or step.clear:
            content, pending = empty, empty
        else:
            content = mapper.content(content, schema, step.version, version)
            pending = mapper.content(pending, schema, step.version, version) if pending.num_columns else empty
        if step.keyed:
            if content.num_rows:
                keys = _keys(step)
                content = pa.concat_tables([without_keys(content, keys, keys.column_names), step.upserts])
            else:
                content = step.upserts
            pending = empty
        else:
            adds, pending = settled(step, pending, bound)
            content, unmatched = multiset_difference(content, step.deletes, ValueForms.of(step.schema))
            content, pending = pa.concat_tables([content, adds]), pa.concat_tables([pending, unmatched])
        schema, version = step.schema, step.version
    assert content is not None  # a plan has at least one step
    return content, pending


def settled(step: MergeStep, pending: pa.Table, bound: str) -> tuple[pa.Table, pa.Table]:
    """Return the rows that a step adds, and the earlier removals that wait for a row, without those that are settled.

    :param bound: position of the newest of these removals: rows from behind it are others than those they wait for;
        empty where that is not known, or where no position orders rows.
    """
    adds = step.upserts
    if not pending.num_rows or not adds.num_rows:
        return adds, pending
    older: BoolArray = np.ones(adds.num_rows, dtype=bool)
    positions = step.positions() if bound and step.positions is not None else []
    if len(positions) == adds.num_rows:  # rows that did not fit are not among those added
        older = pc.less(positions, bound).to_numpy()
    late, unsettled = multiset_difference(adds.filter(pa.array(older)), pending, ValueForms.of(step.schema))
    return pa.concat_tables([adds.filter(pa.array(~older)), late]), unsettled


def goes_in_pieces(pending: pa.Table, steps: Sequence[MergeStep]) -> bool:
    """Return whether what stays of a stored row depends on no other stored row: rows without key go for each other."""
    return not pending.num_rows and all(step.keyed or not step.deletes.num_rows for step in steps)


def remaining_pieces(
    pieces: Iterable[pa.Table], base: TableSchema, steps: Sequence[MergeStep], mapper: Mapper
) -> Iterator[pa.Table]:
    """Yield what stays of stored rows after all steps, a piece at a time; with the steps' own rows it is the content.

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
            if keys is not None:
                content = without_keys(content, keys, keys.column_names)
            schema, version = step.schema, step.version
        yield content


def _keys(step: MergeStep) -> pa.Table:
    """Return the keys whose stored row a step removes or replaces."""
    return pa.concat_tables([step.deletes, step.upserts.select([column.name for column in step.schema.key_columns])])
