# SPDX-License-Identifier: Apache-2.0
"""Note whose rows each partition has: a record that cannot be decoded may be of the same table."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.arrays import IntArray

Topics = dict[str, list[tuple[str, str, int]]]
"""By ``topic/partition`` database and table of its first tables, with the offset of the first row of each."""

_COMPACT = 1 << 20  # up to so many marks an array by mark is cheaper than sorting them
_NOTED = 9  # tables of a partition: whether it has one table or several shows without all of them


def tables_of(rows: pa.RecordBatch) -> Topics:
    """Return the tables of the partitions of some rows, those of one partition in offset order."""
    firsts = pa.array(np.sort(_firsts(rows)))
    columns = ("topic", "partition", "database", "table", "offset")
    tables_by_partition: dict[tuple[str, int], dict[tuple[str, str], int]] = {}
    for topic, partition, database, table, offset in zip(
        *(rows.column(name).take(firsts).to_pylist() for name in columns), strict=True
    ):
        tables_by_partition.setdefault((topic, partition), {}).setdefault((database or "", table or ""), offset)
    return {
        f"{topic}/{partition}": [(*name, offset) for name, offset in islice(tables.items(), _NOTED)]
        for (topic, partition), tables in tables_by_partition.items()
    }


def _firsts(rows: pa.RecordBatch) -> IntArray:
    """Return the number of the first row of each table in each stretch of one partition."""
    topics, partitions = rows.column("topic"), rows.column("partition").to_numpy()
    begins = pc.not_equal(topics[1:], topics[:-1]).to_numpy(zero_copy_only=False) | (partitions[1:] != partitions[:-1])
    marks: IntArray = np.concatenate([[0], np.cumsum(begins, dtype=np.int64)])
    for column in (rows.column("database"), rows.column("table")):
        marks = marks * (len(column.dictionary) + 1) + column.indices.fill_null(len(column.dictionary)).to_numpy()
    if not (marks != marks[0]).any():
        return marks[:1] * 0
    if marks.max() > _COMPACT:
        return np.unique(marks, return_index=True)[1]
    first: IntArray = np.full(int(marks.max()) + 1, -1, dtype=np.int64)
    first[marks[::-1]] = np.arange(len(marks))[::-1]  # of several the last assignment counts
    return first[first >= 0]


def joined_topics(first: Topics, then: Topics) -> Topics:
    """Return the tables of partitions of two parts of a batch, each with its first row."""
    result = dict(first)
    for partition, tables in then.items():
        begins = {(database, table): offset for database, table, offset in (*result.get(partition, ()), *tables)}
        for database, table, offset in result.get(partition, ()):
            begins[database, table] = min(offset, begins[database, table])
        ordered = sorted(begins.items(), key=lambda item: item[1])
        result[partition] = [(*name, offset) for name, offset in ordered][:_NOTED]
    return result
