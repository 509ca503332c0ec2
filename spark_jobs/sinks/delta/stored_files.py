# SPDX-License-Identifier: Apache-2.0
"""Read the data files of a Delta table one by one: those that may hold some keys, and of them what is asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import AddAction, RemoveAction

from airflow_provider_cdc.core.apply.row_sets import having_keys
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.delta.sink_errors import DamagedFileError
from spark_jobs.sinks.key_bounds import KeyBounds
from spark_jobs.sinks.row_group_files import PIECE_BYTES

Guard = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A data file that may hold rows of some keys.

    :param path: as the table's log states it.
    :param size: bytes.
    :param keys: indices of the keys that it may hold.
    :param deleted: positions of its rows that are deleted, None for none.
    """

    path: str
    size: int
    keys: IntArray
    deleted: IntArray | None = None

    def removal(self, *, changes_rows: bool = True) -> RemoveAction:
        """Return what a commit states of the file where others take its place.

        :param changes_rows: whether the others have other rows.
        """
        return RemoveAction(self.path, changes_rows, int(time.time() * 1000), self.size, {})


@dataclass(frozen=True, slots=True)
class LiveFiles:
    """The files of one version of a table.

    :param actions: ``get_add_actions`` of delta-rs.
    :param deleted: positions of deleted rows, by the file's name.
    """

    actions: pa.Table
    deleted: Mapping[str, IntArray]


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A data file that is open.

    :param live: of each of its rows whether it is not deleted.
    """

    parquet: pq.ParquetFile
    live: BoolArray


def added_file(action: AddAction) -> StoredFile:
    """Return a file that a commit is to add."""
    return StoredFile(action.path, action.size, np.empty(0, dtype=np.int64))


def files_with(files: LiveFiles, keys: pa.Table) -> list[StoredFile]:
    """Return the files that may hold rows of these keys, in the order of the key's first bounded column."""
    if not keys.num_rows:
        return []
    key_bounds = KeyBounds(keys)
    first = key_bounds.names[0] if key_bounds.names else None
    both = zip(_stored(files), bounds_of(files.actions, key_bounds.names), strict=True)
    within = [(file, stated, key_bounds.within(stated)) for file, stated in both]
    return _in_order([(replace(file, keys=mine), stated) for file, stated, mine in within if len(mine)], first)


def all_files(files: LiveFiles, first: str | None) -> list[StoredFile]:
    """Return all files.

    :param first: column in whose order, where its bounds are stated.
    """
    names = [] if first is None else [first]
    return _in_order(list(zip(_stored(files), bounds_of(files.actions, names), strict=True)), first)


def _stored(files: LiveFiles) -> list[StoredFile]:
    none: IntArray = np.empty(0, dtype=np.int64)
    columns = files.actions.select(["path", "size_bytes"]).to_pylist()
    names = [unquote(file["path"]).rsplit("/", 1)[-1] for file in columns]
    return [
        StoredFile(file["path"], file["size_bytes"], none, files.deleted.get(name))
        for file, name in zip(columns, names, strict=True)
    ]


def _in_order(files: list[tuple[StoredFile, dict[str, tuple[Any, Any]]]], first: str | None) -> list[StoredFile]:
    """Return files in the order of a column's least value, those behind for which it is not known."""
    unknown = [file for file, stated in files if stated.get(first or "", (None, None))[0] is None]
    known = [(stated[first][0], file) for file, stated in files if first in stated and stated[first][0] is not None]
    return [*(file for _, file in sorted(known, key=lambda pair: pair[0])), *unknown]


@contextmanager
def opened(storage: Storage, file: StoredFile) -> Iterator[OpenedFile]:
    """Open a data file.

    :raises DamagedFileError: what lies there is not what was written.
    """
    name = unquote(file.path)
    try:
        with storage.opened(name) as stream:
            if stream.size() < file.size:
                raise OSError("it is shorter than it was written")
            # Spark writes times as INT96, which would be nanoseconds: too few years
            parquet = pq.ParquetFile(
                stream, buffer_size=1 << 20, coerce_int96_timestamp_unit="us", page_checksum_verification=True
            )
            live = np.ones(parquet.metadata.num_rows, dtype=bool)
            if file.deleted is not None:
                live[file.deleted] = False
            yield OpenedFile(parquet, live)
    except FileNotFoundError:
        raise
    except OSError as error:  # pyarrow's for a store that fails, and for bytes that it cannot read
        problem = _damage(storage, name, file.size)
        if problem is None:
            raise
        raise DamagedFileError(f"{file.path} {problem}") from error


def _damage(storage: Storage, name: str, size: int) -> str | None:
    """Return what is wrong with a file, None where the store holds it as it was written, or does not say.

    :param size: bytes, as the table's log states it.
    """
    try:
        with storage.opened(name) as stream:
            if stream.size() != size:
                return f"has {stream.size()} bytes, and was written with {size}"
            content = stream.read_buffer()
    except IsADirectoryError:
        return "is a folder"
    except OSError:
        return None
    try:
        whole = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
        for number in range(whole.metadata.num_row_groups):
            whole.read_row_group(number, use_threads=False)
    except (OSError, pa.ArrowException) as error:
        return f"holds other bytes than were written: {(str(error).splitlines() or [''])[0][:200]}"
    return None


def holding(file: OpenedFile, keys: pa.Table) -> BoolArray:
    """Return of each row of a file whether it is there and has one of the keys."""
    stored = read_columns(file, keys.schema)
    mask: BoolArray = having_keys(stored, keys, keys.column_names) & file.live
    return mask


def chosen_rows(file: OpenedFile, selected: BoolArray | None, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield selected rows of a file, all for None, a few at a time if they are large; never deleted ones."""
    if not file.live.all():
        selected = file.live if selected is None else selected & file.live
    mask, start = None if selected is None else pa.array(selected), 0
    for rows in whole_rows(file, schema):
        live = rows if mask is None else rows.filter(mask.slice(start, rows.num_rows))
        start += rows.num_rows
        if live.num_rows:
            yield live


def rows_apart(file: OpenedFile, gone: BoolArray, schema: pa.Schema) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield the rows of a file that stay and those that go, a few at a time if they are large; never deleted ones."""
    start = 0
    for rows in whole_rows(file, schema):
        of_rows = slice(start, start + rows.num_rows)
        start += rows.num_rows
        yield (
            rows.filter(pa.array(file.live[of_rows] & ~gone[of_rows])),
            rows.filter(pa.array(file.live[of_rows] & gone[of_rows])),
        )


def whole_rows(file: OpenedFile, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield all rows of a file, deleted ones included, a few at a time if they are large."""
    metadata = file.parquet.metadata
    size = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    count = max(1, PIECE_BYTES * metadata.num_rows // max(1, size))
    for batch in file.parquet.iter_batches(count, columns=schema.names, use_threads=False):
        # cast first: files of delta-rs' merge are read as views, which Arrow cannot filter
        yield completed(pa.Table.from_batches([batch]), schema)


def read_columns(file: OpenedFile, schema: pa.Schema) -> pa.Table:
    """Return some columns of all rows of a file, deleted ones included."""
    return completed(file.parquet.read(columns=schema.names, use_threads=False), schema)


def completed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows of a file under the table's schema: columns that were added after the file was written are NULL."""
    for name in set(schema.names).difference(rows.column_names):
        rows = rows.append_column(name, pa.nulls(rows.num_rows, schema.field(name).type))
    return normal(rows.select(schema.names), schema)


def normal(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Cast away the reader's own flavours (views, large types, dictionaries)."""
    return rows.cast(schema) if rows.schema != schema else rows


def bounds_of(files: pa.Table, names: list[str]) -> list[dict[str, tuple[Any, Any]]]:
    """Return the bounds of columns in each file, as a table's log states them; columns without are left out.

    :param files: ``get_add_actions`` of delta-rs.
    """
    stated: dict[str, tuple[list[Any], list[Any]]] = {}
    for name in names:
        low, high = (_child(files, side, name) for side in ("min", "max"))
        if low is not None and high is not None:
            stated[name] = (low, high)
    return [{name: (low[row], high[row]) for name, (low, high) in stated.items()} for row in range(files.num_rows)]


def _child(files: pa.Table, side: str, name: str) -> list[Any] | None:
    if side not in files.column_names:
        return None
    column = files.column(side)
    index = column.type.get_field_index(name)
    if index < 0:
        return None
    values: list[Any] = pc.struct_field(column, [index]).to_pylist()
    return values
