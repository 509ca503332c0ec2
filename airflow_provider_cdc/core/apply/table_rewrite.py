# SPDX-License-Identifier: Apache-2.0
"""A table's whole content carried through the parts of a delta: the way of changes that a merge cannot express."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from airflow_provider_cdc.core.apply.merge_plan import Part
from airflow_provider_cdc.core.apply.row_sets import multiset_sum, without_keys
from airflow_provider_cdc.core.apply.schema_mapping import Mapper
from airflow_provider_cdc.core.model.schema import TableSchema


def after_parts(
    content: pa.Table | None, owed: pa.Table, base: TableSchema | None, parts: Sequence[Part], mapper: Mapper
) -> tuple[pa.Table, pa.Table]:
    """Return the content after all parts and the removals that found no row.

    :param content: stored rows under ``base``, None when nothing is stored or a clear takes it away.
    :param owed: removals that found no row before, under ``base``; without columns when none.
    """
    schema: TableSchema | None = base
    version: int | None = None
    for part in parts:
        empty = mapper.rows({}, 0, part.version, part.version)
        if content is None or schema is None or part.clear:
            content, owed = empty, empty
        else:
            content = mapper.content(content, schema, part.version, version)
            owed = mapper.content(owed, schema, part.version, version) if owed.num_columns else empty
        if part.keyed:
            names = [column.name for column in part.schema.key_columns]
            content = without_keys(content, pa.concat_tables([part.deletes, part.upserts.select(names)]), names)
            content, owed = pa.concat_tables([content, part.upserts]), empty
        else:
            content, owed = multiset_sum(content, part.upserts, pa.concat_tables([owed, part.deletes]))
        schema, version = part.schema, part.version
    assert content is not None  # a delta has at least one part
    return content, owed
