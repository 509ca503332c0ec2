# SPDX-License-Identifier: Apache-2.0
"""Find the schema version of rows that the tool's clock cannot order with a schema change, by the rows' own columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.apply.clock_order import order_unknown, unordered_with
from airflow_provider_cdc.core.arrays import IntArray
from airflow_provider_cdc.core.model.clock_position import earliest_unordered, latest_unordered
from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema
from airflow_provider_cdc.core.timeline.barriers import keeps_values
from airflow_provider_cdc.core.timeline.timeline import TableTimeline


def versions_in_doubt(
    positions: pa.ChunkedArray, timeline: TableTimeline, versions: IntArray
) -> tuple[IntArray, IntArray]:
    """Return for each row the first and the last schema version that it may belong to.

    :param positions: of the rows, ascending.
    :param versions: the schema version of each row by its position.
    """
    first, last = versions.copy(), versions.copy()
    if not len(positions):
        return first, last
    lowest, highest = positions[0].as_py(), positions[len(positions) - 1].as_py()
    for number, version in enumerate(timeline.versions[1:], 1):
        if latest_unordered(version.position) < lowest or earliest_unordered(version.position) > highest:
            continue
        doubtful = unordered_with(version.position, positions)
        first[doubtful] = np.minimum(first[doubtful], number - 1)
        last[doubtful] = np.maximum(last[doubtful], number)
    return first, last


def version_of_row(
    timeline: TableTimeline, candidates: Sequence[int], stated_structure: Callable[[], TableSchema | None]
) -> int:
    """Return the schema version that rows belong to, of those whose columns they have.

    :param candidates: not empty, ascending.
    :param stated_structure: return the structure that the rows state, or None where they state none.
    :raises DataError: several fit, and it matters which.
    """
    if _alike(timeline, candidates):
        return candidates[-1]
    same = _stating(timeline, candidates, stated_structure())
    if not same or not _alike(timeline, same):
        raise order_unknown(timeline, "a change of columns and rows of other partitions")
    return same[-1]


def version_of_repeat(
    timeline: TableTimeline, candidates: Sequence[int], stated: TableSchema | None, key: Collection[str] | None
) -> int:
    """Return the schema version of rows that may have been sent again from before a change of columns.

    :param candidates: versions whose columns they have; not empty, ascending up to that of their position.
    :param stated: the structure that they state, None where they state none.
    :param key: the key that they state, None where they state none.
    """
    same = _stating(timeline, candidates, stated)
    if not same and key is not None:
        keys = {one: {column.name for column in timeline.versions[one].schema.key_columns} for one in candidates}
        same = [one for one in candidates if keys[one] == {*key}]
    return (same or candidates)[-1]


def _stating(timeline: TableTimeline, candidates: Sequence[int], stated: TableSchema | None) -> list[int]:
    return [] if stated is None else [one for one in candidates if _states(timeline, one, stated, candidates)]


def _alike(timeline: TableTimeline, candidates: Sequence[int]) -> bool:
    """Return whether a row means the same under all of these schema versions."""
    schemas = [timeline.versions[candidate].schema for candidate in candidates]
    for old, new in pairwise(schemas):
        types = {column.name: (column.id, column.type) for column in old.columns}
        for column in new.columns:
            if column.name in types:
                known, kind = types[column.name]
                if known != column.id or not keeps_values(kind, column.type):
                    return False
        if old.key != new.key:
            return False
    return True


def _states(timeline: TableTimeline, candidate: int, stated: TableSchema, candidates: Sequence[int]) -> bool:
    """Return whether a version has the key that rows state, and their types where the candidates differ in them."""
    schema = timeline.versions[candidate].schema
    # in which order the key has its columns does not matter, and tools name them in the table's
    if {column.name for column in schema.key_columns} != {column.name for column in stated.key_columns}:
        return False
    for column in stated.columns:
        types = [timeline.versions[other].schema.named(column.name) for other in candidates]
        differ = len({_bare(known.type) for known in types if known is not None}) > 1
        mine = schema.named(column.name)
        if differ and (mine is None or _bare(mine.type) != _bare(column.type)):
            return False
    return True


def _bare(kind: ColumnType) -> tuple[object, ...]:
    return kind.name, kind.length, kind.scale, kind.unsigned, kind.labels
