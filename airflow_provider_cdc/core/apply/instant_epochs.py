"""The epochs of rows that the tool's clock cannot order with a schema change: what the rows say of themselves tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.apply.clocks import order_unknown, unordered_with
from airflow_provider_cdc.core.apply.mapping import keeps_values
from airflow_provider_cdc.core.apply.rows import Places
from airflow_provider_cdc.core.ddl.timeline import TableTimeline
from airflow_provider_cdc.core.model.clock_position import earliest_unordered, latest_unordered
from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema


def epochs_in_doubt(positions: pa.ChunkedArray, timeline: TableTimeline, epochs: Places) -> tuple[Places, Places]:
    """Return for each row the first and the last epoch that it may belong to.

    :param positions: of the rows, ascending.
    :param epochs: the epoch of each row by its position.
    """
    first, last = epochs.copy(), epochs.copy()
    if not len(positions):
        return first, last
    lowest, highest = positions[0].as_py(), positions[len(positions) - 1].as_py()
    for number, epoch in enumerate(timeline.epochs[1:], 1):
        if latest_unordered(epoch.position) < lowest or earliest_unordered(epoch.position) > highest:
            continue
        doubtful = unordered_with(epoch.position, positions)
        first[doubtful] = np.minimum(first[doubtful], number - 1)
        last[doubtful] = np.maximum(last[doubtful], number)
    return first, last


def epoch_of_row(timeline: TableTimeline, candidates: Sequence[int], told: Callable[[], TableSchema | None]) -> int:
    """Return the epoch that rows belong to, of those whose columns they have.

    :param candidates: not empty, ascending.
    :param told: the structure that the rows state, None where they do not.
    :raises DataError: several fit, and it matters which.
    """
    if _alike(timeline, candidates):
        return candidates[-1]
    stated = told()
    same = [] if stated is None else [e for e in candidates if _states(timeline, e, stated, candidates)]
    if not same or not _alike(timeline, same):
        raise order_unknown(timeline, "a change of columns and rows of other partitions")
    return same[-1]


def _alike(timeline: TableTimeline, candidates: Sequence[int]) -> bool:
    """Return whether a row means the same under all of these epochs."""
    schemas = [timeline.epochs[candidate].schema for candidate in candidates]
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
    """Return whether an epoch has the key that rows state, and their types where the candidates differ in them."""
    schema = timeline.epochs[candidate].schema
    # in which order the key has its columns does not matter, and tools name them in the table's
    if {column.name for column in schema.key_columns} != {column.name for column in stated.key_columns}:
        return False
    for column in stated.columns:
        types = [timeline.epochs[other].schema.named(column.name) for other in candidates]
        differ = len({_bare(known.type) for known in types if known is not None}) > 1
        mine = schema.named(column.name)
        if differ and (mine is None or _bare(mine.type) != _bare(column.type)):
            return False
    return True


def _bare(kind: ColumnType) -> tuple[object, ...]:
    return kind.name, kind.length, kind.scale, kind.unsigned, kind.labels
