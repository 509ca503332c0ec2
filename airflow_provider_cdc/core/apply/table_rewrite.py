# SPDX-License-Identifier: Apache-2.0
"""Carry a table's whole content through the steps of a merge plan, for changes that a merge cannot express."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from airflow_provider_cdc.core.apply.merge_plan import MergeStep
from airflow_provider_cdc.core.apply.row_sets import multiset_sum, without_keys
from airflow_provider_cdc.core.apply.schema_mapping import Mapper
from airflow_provider_cdc.core.model.schema import TableSchema


def after_steps(
    content: pa.Table | None, pending: pa.Table, base: TableSchema | None, steps: Sequence[MergeStep], mapper: Mapper
) -> tuple[pa.Table, pa.Table]:
    """Return the content after all steps and the removals that found no row.

    :param content: stored rows under ``base``, None when nothing is stored or a clear takes it away.
    :param pending: removals that found no row before, under ``base``; without columns when none.
    """
    schema: TableSchema | None = base
    version: int | None = None
    for step in steps:
        empty = mapper.rows({}, 0, step.version, step.version)
        if content is None or schema is None or step.clear:
            content, pending = empty, empty
        else:
            content = mapper.content(content, schema, step.version, version)
            pending = mapper.content(pending, schema, step.version, version) if pending.num_columns else empty
        if step.keyed:
            names = [column.name for column in step.schema.key_columns]
            content = without_keys(content, pa.concat_tables([step.deletes, step.upserts.select(names)]), names)
            content, pending = pa.concat_tables([content, step.upserts]), empty
        else:
            content, pending = multiset_sum(content, step.upserts, pa.concat_tables([pending, step.deletes]))
        schema, version = step.schema, step.version
    assert content is not None  # a plan has at least one step
    return content, pending
