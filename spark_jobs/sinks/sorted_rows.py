# SPDX-License-Identifier: Apache-2.0
"""Put rows in the order of some columns, however many they are: they wait on the local disk, not in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.arrays import IntArray
from spark_jobs.sinks.row_group_files import PIECE_BYTES


def in_order(pieces: Iterable[pa.Table], schema: pa.Schema, order: Sequence[str]) -> Iterator[pa.Table]:
    """Yield rows in the order of some columns, some at a time; NULL is last.

    :param schema: of the rows.
    :param order: names of the columns, none to leave the rows as they come.
    """
    if not order:
        yield from pieces
        return
    keys, size = [schema.empty_table().select(order)], 0
    with tempfile.TemporaryDirectory(prefix="cdc-order-") as folder:
        path = str(Path(folder) / "rows.arrow")
        with pa.ipc.new_file(path, schema) as file:
            for rows in pieces:
                file.write_table(rows)
                keys.append(rows.select(order))
                size += rows.nbytes
        indices = pc.sort_indices(pa.concat_tables(keys), [(name, "ascending") for name in order])
        numbers: IntArray = indices.to_numpy().astype(np.int64)
        keys.clear()
        with pa.memory_map(path) as mapped:
            stored = pa.ipc.open_file(mapped)
            batches = [stored.get_batch(number) for number in range(stored.num_record_batches)]
            count = max(1, PIECE_BYTES * len(numbers) // max(1, size))
            for start in range(0, len(numbers), count):
                yield _taken(batches, numbers[start : start + count])
            batches.clear()


def _taken(batches: Sequence[pa.RecordBatch], numbers: IntArray) -> pa.Table:
    """Return the rows of some numbers in all batches, in the order of the numbers."""
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
    ascending = np.sort(numbers)
    ends = np.searchsorted(ascending, starts)
    pieces = [
        batch.take(pa.array(ascending[ends[index] : ends[index + 1]] - starts[index]))
        for index, batch in enumerate(batches)
        if ends[index] < ends[index + 1]
    ]
    rows = pa.Table.from_batches(pieces)
    return rows.take(pa.array(np.searchsorted(ascending, numbers)))
