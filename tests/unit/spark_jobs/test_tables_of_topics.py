# SPDX-License-Identifier: Apache-2.0
"""The tables of a partition are noted with the offset of the first row of each."""

from __future__ import annotations

import pyarrow as pa

from spark_jobs.lake.tables_of_topics import joined_topics, tables_of


def _rows(*rows: tuple[str, int, str, int]) -> pa.RecordBatch:
    topics, partitions, tables, offsets = zip(*rows, strict=True)
    return pa.RecordBatch.from_pydict(
        {
            "topic": pa.array(topics),
            "partition": pa.array(partitions, pa.int32()),
            "offset": pa.array(offsets, pa.int64()),
            "database": pa.array(["shop"] * len(rows)).dictionary_encode(),
            "table": pa.array(tables).dictionary_encode(),
        }
    )


def test_each_table_of_each_partition_is_noted_with_its_first_row() -> None:
    rows = _rows(("a", 0, "t", 3), ("a", 0, "u", 4), ("a", 0, "t", 5), ("a", 1, "t", 0), ("b", 0, "t", 7))
    assert tables_of(rows) == {
        "a/0": [("shop", "t", 3), ("shop", "u", 4)],
        "a/1": [("shop", "t", 0)],
        "b/0": [("shop", "t", 7)],
    }
    assert tables_of(_rows(("a", 0, "t", 3))) == {"a/0": [("shop", "t", 3)]}


def test_parts_are_joined_by_table_with_the_first_row_of_both() -> None:
    first, then = {"a/0": [("shop", "t", 9)]}, {"a/0": [("shop", "u", 2), ("shop", "t", 4)], "b/0": [("shop", "t", 1)]}
    assert joined_topics(first, then) == {
        "a/0": [("shop", "u", 2), ("shop", "t", 4)],
        "b/0": [("shop", "t", 1)],
    }
    assert first == {"a/0": [("shop", "t", 9)]}
