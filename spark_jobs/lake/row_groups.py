# SPDX-License-Identifier: Apache-2.0
"""Read row groups of the change log: of one table, of several small tables at once, or without their images."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_provider_cdc.core.apply.ordered_changes import STORED_ROW, has
from airflow_provider_cdc.core.apply.source_order import BATCH
from airflow_provider_cdc.core.arrays import IntArray
from airflow_provider_cdc.core.errors import SinkError
from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA
from spark_jobs.lake.coded_rows import with_own_words
from spark_jobs.lake.layout import batch_of
from spark_jobs.lake.manifest import Manifest, RowGroup, Settled
from spark_jobs.lake.storage import Storage

_CACHED_BYTES = 64 << 20  # of shared row groups that a process read last
_COPIED_GROUPS = 64  # of a table: slices of more shared row groups than that would hold too many rows of other tables
_WORDS = 8  # of a dictionary: fewer are left as they are
_COMBINED_ROWS = 500_000  # rows without images that lie in one piece
_KEPT_PIECES = 4  # row groups whose images a task keeps while it reads them in portions


def read_groups(
    storage: Storage, groups: Sequence[RowGroup], columns: Sequence[str], *, before_of: Sequence[str] | None = None
) -> pa.Table:
    """Read row groups, files and the row groups of each by their first position: one partition needs no sorting then.

    :param before_of: operations whose image ``before`` is read, None means all; it is half of what updates carry.
    """
    tables = [rows for _, rows in _each_group(storage, groups, columns, before_of)]
    whole = tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
    return whole.select(list(columns))


def read_together(
    storage: Storage, groups: Sequence[RowGroup], columns: Sequence[str], *, before_of: Sequence[str] | None = None
) -> tuple[pa.Table, IntArray]:
    """Read what several small tables have, each row group that they share once.

    :param before_of: as of :func:`read_groups`.
    :return: the rows in any order, and of each the number of the group that it is of.
    """
    order = sorted(range(len(groups)), key=lambda number: groups[number].origin)
    tables, numbers = [], []
    for file, of_file in itertools.groupby(order, key=lambda number: groups[number].file):
        with _RowGroupReader(storage, file) as reader:
            for _, shared in itertools.groupby(of_file, key=lambda number: groups[number].row_group):
                mine = list(shared)
                spans = [np.arange(groups[n].start, groups[n].start + groups[n].rows) for n in mine]
                rows = reader.whole(groups[mine[0]], columns, before_of).take(pa.array(np.concatenate(spans)))
                tables.append(_with_own_words(rows))
                numbers.append(np.repeat(mine, list(map(len, spans))))
    return pa.concat_tables(tables, promote_options="permissive").select(list(columns)), np.concatenate(numbers)


def _each_group(
    storage: Storage,
    groups: Sequence[RowGroup],
    columns: Sequence[str],
    before_of: Sequence[str] | None = None,
    unread: Sequence[str] = (),
) -> Iterator[tuple[RowGroup, pa.Table]]:
    """Read row groups: files, and row groups of a file, by their first position.

    :param before_of: as of :func:`read_groups`.
    :param unread: images that are not read of row groups that state which rows have them.
    """
    by_file: dict[str, list[RowGroup]] = {}
    for group in sorted(groups, key=lambda group: (group.min_position, group.row_group)):
        by_file.setdefault(group.file, []).append(group)
    copied = len(groups) > _COPIED_GROUPS
    for name, of_file in by_file.items():
        with _RowGroupReader(storage, name) as reader:
            for group in of_file:
                names = columns if group.images_of is None else [name for name in columns if name not in unread]
                yield group, reader.read(group, names, before_of, copied=copied)


class _RowGroupReader:
    """Read row groups of one file, which is opened only for those that are not in memory."""

    def __init__(self, storage: Storage, name: str) -> None:
        self._storage, self._name = storage, name
        self._closing = ExitStack()
        self._file: pq.ParquetFile | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._closing.__exit__(*error)

    def read(
        self, group: RowGroup, columns: Sequence[str], before_of: Sequence[str] | None = None, *, copied: bool = False
    ) -> pa.Table:
        """Return the rows of a row group, or of the part of it that a table has.

        :param before_of: as of :func:`read_groups`.
        :param copied: whether they may not hold the rows of other tables in memory.
        """
        rows = self.whole(group, columns, before_of)
        if rows.num_rows == group.rows:
            return rows
        rows = _with_own_words(rows.slice(group.start, group.rows))
        return rows.take(pa.array(np.arange(len(rows)))) if copied else rows

    def whole(self, group: RowGroup, columns: Sequence[str], before_of: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of a row group, those of other tables included."""
        key = (self._storage.root, self._name, group.row_group, *columns, before_of and tuple(before_of))
        rows = _SHARED.rows(key)
        if rows is None:
            if self._file is None:
                self._file = self._closing.enter_context(_opened(self._storage, self._name))
            rows = self._file.read_row_group(group.row_group, columns=list(columns), use_threads=False)
            if BATCH in columns:  # no file has it: all of a file's changes are of one
                rows = rows.append_column(BATCH, pa.repeat(pa.scalar(batch_of(self._name)), rows.num_rows))
            rows = with_columns(rows, columns)
            if before_of is not None:
                rows = _only_before(rows, before_of)
            if rows.num_rows > group.rows:
                _SHARED.add(key, rows)
        return rows


def with_columns(rows: pa.Table, names: Iterable[str]) -> pa.Table:
    """Return rows with all of some columns: an older version of this program wrote files without the newer ones."""
    for name in names:
        if name not in rows.column_names:
            rows = rows.append_column(name, pa.nulls(rows.num_rows, CHANGE_SCHEMA.field(name).type))
    return rows


def _with_own_words(rows: pa.Table) -> pa.Table:
    """Return one table's rows of a shared row group without the words of the others' rows."""
    for number, column in enumerate(rows.schema):
        if pa.types.is_dictionary(column.type):
            chunks = rows.column(number).chunks
            if any(len(chunk.dictionary) > _WORDS for chunk in chunks):
                rows = rows.set_column(number, column.name, pa.chunked_array(list(map(with_own_words, chunks))))
    return rows


class SharedRowGroups:
    """Row groups of several small tables that a process read last: tasks of neighbouring tables read the same ones.

    :param limit: bytes in memory.
    """

    def __init__(self, limit: int = _CACHED_BYTES) -> None:
        self._limit, self._size = limit, 0
        self._rows = OrderedDict[tuple[Any, ...], pa.Table]()

    def rows(self, key: tuple[Any, ...]) -> pa.Table | None:
        """Return the columns of a row group, None where they are not in memory.

        :param key: root, file, number and columns; no file is written twice.
        """
        if key in self._rows:
            self._rows.move_to_end(key)
        return self._rows.get(key)

    def add(self, key: tuple[Any, ...], rows: pa.Table) -> None:
        """Take a row group that was read; forget those that were not used for longest."""
        self._rows[key] = rows
        self._size += rows.nbytes
        while len(self._rows) > 1 and self._size > self._limit:
            self._size -= self._rows.popitem(last=False)[1].nbytes

    def clear(self) -> None:
        """Forget all of them."""
        self._rows.clear()
        self._size = 0


_SHARED = SharedRowGroups()


def forget_row_groups() -> None:
    """Give back the memory of row groups that a task read for several tables."""
    _SHARED.clear()


@contextmanager
def _opened(storage: Storage, name: str) -> Iterator[pq.ParquetFile]:
    with _not_expired(storage, name), storage.open_file(name) as opened, readable(storage, name):
        footer = _FOOTERS.footer((storage.root, name, opened.size()), opened)
        yield pq.ParquetFile(opened, metadata=footer, read_dictionary=["op", "columns", "topic"], pre_buffer=True)


@contextmanager
def _not_expired(storage: Storage, name: str) -> Iterator[None]:
    """Say why a file is gone.

    :raises SinkError: ``retention.log_expired``, maintenance removed it; ``log.missing``, something else did.
    """
    try:
        yield
    except SinkError as error:
        if error.code != "log.missing" or storage.read_unfinished(f"{name.rsplit('/', 1)[0]}/expired.json") is None:
            raise
        raise SinkError(
            "retention.log_expired",
            "the table needs changes that are older than policy.log_retention, for a row or a schema change that came "
            "late",
            where={"batch": batch_of(name)},
            hint="take a new snapshot of the table, or restore the lake's _cdc folder from a backup; a longer "
            "policy.log_retention keeps such changes",
        ) from None


class Footers:
    """The footers of the files that a process read last: of many tables each is read from the same few files.

    A footer has all row groups: parsed for each table, ten thousand tables cost a hundred million row groups.

    :param limit: bytes of footers, as they are in the files.
    """

    def __init__(self, limit: int = 128 << 20) -> None:
        self._limit, self._footers = limit, OrderedDict[tuple[str, str, int], pq.FileMetaData]()
        self._bytes = 0

    def footer(self, file: tuple[str, str, int], opened: pa.NativeFile) -> pq.FileMetaData:
        """Return a file's footer.

        :param file: root, name and size: no file is written twice, but one may be damaged and restored.
        """
        if file not in self._footers:
            self._footers[file] = footer = pq.read_metadata(opened)
            self._bytes += footer.serialized_size
            while len(self._footers) > 1 and self._bytes > self._limit:
                self._bytes -= self._footers.popitem(last=False)[1].serialized_size
        self._footers.move_to_end(file)
        return self._footers[file]


_FOOTERS = Footers()


class StoredImages:
    """One image of all rows of some row groups (``StoredPieces``): it is read again when it is used.

    :param name: ``before`` or ``after``.
    """

    def __init__(self, storage: Storage, name: str) -> None:
        self._storage, self._name = storage, name
        self._groups: list[RowGroup] = []
        self._read: dict[int, pa.Array] = {}  # the last pieces
        self.nbytes = 0

    def add(self, group: RowGroup, size: int) -> None:
        """Note a row group.

        :param size: bytes of its images in memory.
        """
        self._groups.append(group)
        self.nbytes += size

    @property
    def lengths(self) -> IntArray:
        """Rows of each row group."""
        lengths: IntArray = np.array([group.rows for group in self._groups], dtype=np.int64)
        return lengths

    def __getitem__(self, piece: int) -> pa.Array:
        """Read a row group's images."""
        if piece not in self._read:
            while len(self._read) >= _KEPT_PIECES:
                del self._read[next(iter(self._read))]
            group = self._groups[piece]
            with _RowGroupReader(self._storage, group.file) as reader:
                images = reader.read(group, [self._name]).column(0)
            self._read[piece] = images.chunk(0) if images.num_chunks == 1 else images.combine_chunks()
        return self._read[piece]


def read_without_images(
    storage: Storage,
    groups: Sequence[RowGroup],
    columns: Sequence[str],
    images: Mapping[str, StoredImages],
    *,
    before_of: Sequence[str] | None = None,
) -> pa.Table:
    """Read row groups; of the images only whether they are there and where they are stored.

    :param columns: as of :func:`read_groups`, images included; so is ``before_of``.
    :param images: takes where they are stored.
    """
    tables, small = [], list[pa.Table]()
    for group, rows in _each_group(storage, groups, columns, unread=list(images)):
        start, known = int(next(iter(images.values())).lengths.sum()), group.images_of is not None
        table = rows if known else rows.drop_columns(list(images))
        table = table.append_column(STORED_ROW, pa.array(np.arange(start, start + rows.num_rows)))
        sizes = {"before": group.before_bytes, "after": group.image_bytes - group.before_bytes}
        for name, stored in images.items():
            stored.add(group, sizes[name] if known else rows.column(name).nbytes)
            table = table.append_column(has(name), _there(group, rows, name, before_of))
        small.append(table)
        if sum(part.num_rows for part in small) >= _COMBINED_ROWS:
            tables.append(_combined(small))
            small = []
    if small:
        tables.append(_combined(small))
    return pa.concat_tables(tables, promote_options="permissive")


def _there(group: RowGroup, rows: pa.Table, name: str, before_of: Sequence[str] | None) -> pa.ChunkedArray:
    """Return which rows of a row group have an image that counts."""
    counts = before_of if name == "before" else None
    ops = rows.column("op").cast(pa.string())
    if name not in rows.column_names:
        having = [op for op, images in (group.images_of or {}).items() if name in images]
        there = pa.array([op for op in having if counts is None or op in counts], pa.string())
        return pc.is_in(ops, there)
    valid = pc.is_valid(rows.column(name))
    return valid if counts is None else pc.and_(valid, pc.is_in(ops, pa.array(counts, pa.string())))


def _combined(tables: list[pa.Table]) -> pa.Table:
    """Copy tables into one piece: many small buffers among those of images would leave holes in the memory."""
    return pa.concat_tables(tables, promote_options="permissive").combine_chunks()


@contextmanager
def readable(storage: Storage, name: str) -> Iterator[None]:
    """Raise what Arrow finds wrong with a file as an error that names the file.

    :raises SinkError: ``log.damaged``.
    """
    try:
        yield
    except pa.ArrowInvalid as error:
        reason = str(error).splitlines()[0][:200]
        raise storage.damaged(name, f"a file of the change log cannot be read: {reason}") from None


def _only_before(rows: pa.Table, ops: Sequence[str]) -> pa.Table:
    column = rows.schema.get_field_index("before")
    mask = pc.is_in(rows.column("op").cast(pa.string()), pa.array(ops, pa.string()))
    return rows.set_column(column, "before", pc.if_else(mask, rows.column("before"), None))


def without_settled(rows: pa.Table, file: str, settled: Iterable[Settled]) -> pa.Table:
    """Return the rows of one file without those of records that count no more."""
    for one in settled:
        if one.counts_no_more(file):
            here = pc.and_(
                pc.equal(rows.column("partition"), one.partition), pc.equal(rows.column("offset"), one.offset)
            )
            here = pc.and_(here, pc.equal(rows.column("topic").cast(pa.string()), one.topic))
            rows = rows.filter(pc.invert(here))
    return rows


def changes_by_table(storage: Storage, landed: Manifest) -> dict[str, dict[str, int]]:
    """Return the row changes of a batch by ``database.table`` and operation."""
    by_name: dict[str, list[RowGroup]] = {}
    for group in landed.groups:
        if group.database:
            by_name.setdefault(f"{group.database}.{group.table}", []).append(group)
    changes = {}
    for name, groups in sorted(by_name.items()):
        ops = read_groups(storage, groups, ["op"]).column("op").cast(pa.string())
        changes[name] = {item["values"]: item["counts"] for item in ops.value_counts().to_pylist()}
    return changes
