# SPDX-License-Identifier: Apache-2.0
"""Read the data files of a Delta table one by one: those that may hold some keys, and of them what is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_provider_cdc.core.apply.row_sets import having_keys
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.delta.data_files import PIECE_BYTES
from spark_jobs.sinks.delta.key_bounds import KeyBounds, bounds_of


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A data file that may hold rows of some keys.

    :param path: as the table's log states it.
    :param size: bytes.
    :param keys: indices of the keys that it may hold.
    """

    path: str
    size: int
    keys: IntArray


def files_with(actions: pa.Table, keys: pa.Table) -> list[StoredFile]:
    """Return the files that may hold rows of these keys, in the order of the key's first bounded column.

    :param actions: ``get_add_actions`` of delta-rs.
    """
    if not keys.num_rows:
        return []
    key_bounds = KeyBounds(keys)
    files, bounds = actions.select(["path", "size_bytes"]).to_pylist(), bounds_of(actions, key_bounds.names)
    stored = [
        StoredFile(file["path"], file["size_bytes"], selected)
        for file, stated in zip(files, bounds, strict=True)
        if len(selected := key_bounds.within(stated))
    ]
    first = key_bounds.names[0] if key_bounds.names else None
    lows = {file["path"]: stated[first][0] for file, stated in zip(files, bounds, strict=True) if first in stated}
    unknown = [file for file in stored if lows.get(file.path) is None]
    known = [file for file in stored if lows.get(file.path) is not None]
    return [*sorted(known, key=lambda file: lows[file.path]), *unknown]


@contextmanager
def opened(storage: Storage, file: StoredFile) -> Iterator[pq.ParquetFile]:
    """Open a data file."""
    with storage.filesystem.open_input_file(storage.path(unquote(file.path))) as stream:
        if not stream.size():  # no data file is empty: pyarrow takes a cut answer of S3 for one
            raise OSError("an answer was cut off")
        # Spark writes times as INT96, which would be nanoseconds: too few years
        yield pq.ParquetFile(stream, buffer_size=1 << 20, coerce_int96_timestamp_unit="us")


def holding(file: pq.ParquetFile, keys: pa.Table) -> BoolArray:
    """Return of each row of a file whether it has one of the keys."""
    stored = read_columns(file, keys.schema)
    return having_keys(stored, keys, keys.column_names)


def chosen_rows(file: pq.ParquetFile, selected: BoolArray, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield selected rows of a file, a few at a time if they are large."""
    metadata, mask = file.metadata, pa.array(selected)
    size = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    count = max(1, PIECE_BYTES * metadata.num_rows // max(1, size))
    start = 0
    for batch in file.iter_batches(count, columns=schema.names, use_threads=False):
        # cast first: files of delta-rs' merge are read as views, which Arrow cannot filter
        rows = completed(pa.Table.from_batches([batch]), schema).filter(mask.slice(start, batch.num_rows))
        start += batch.num_rows
        if rows.num_rows:
            yield rows


def read_columns(file: pq.ParquetFile, schema: pa.Schema) -> pa.Table:
    """Return some columns of all rows of a file."""
    return completed(file.read(columns=schema.names, use_threads=False), schema)


def completed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows of a file under the table's schema: columns that were added after the file was written are NULL."""
    for name in set(schema.names).difference(rows.column_names):
        rows = rows.append_column(name, pa.nulls(rows.num_rows, schema.field(name).type))
    return normal(rows.select(schema.names), schema)


def each_known(rows: pa.Table, keys: pa.Table) -> BoolArray:
    """Return of each row whether its key columns each have a value that some key has there."""
    known: pa.ChunkedArray | None = None
    for name in keys.column_names:
        same = pc.is_in(rows.column(name), keys.column(name).combine_chunks())
        known = same if known is None else pc.and_(known, same)
    assert known is not None  # keys have columns
    mask: BoolArray = known.to_numpy()
    return mask


def normal(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Cast away the reader's own flavours (views, large types, dictionaries)."""
    return rows.cast(schema) if rows.schema != schema else rows
