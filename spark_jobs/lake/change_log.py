# SPDX-License-Identifier: Apache-2.0
"""The change log: decoded changes of every batch, parquet files of land tasks; a row group is of one or few tables."""

from __future__ import annotations

import itertools
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_provider_cdc.core.apply.ordered_changes import STORED_ROW, has
from airflow_provider_cdc.core.arrays import IntArray
from airflow_provider_cdc.core.documents import known_members, shallow_document
from airflow_provider_cdc.core.errors import SinkError
from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA
from spark_jobs.lake.coded_rows import CodedRows, CodedSlice, with_own_words
from spark_jobs.lake.layout import batch_of
from spark_jobs.lake.storage import Storage

# rows of several tables sorted at a time: more would leave the processor's cache, fewer leave each table crumbs
_SORTED_TOGETHER = 20_000
_ROWS_EACH = 50  # of each table sorted at a time, on average: of thousands of tables more rows are sorted together
_ROW_GROUP_BYTES = 16 << 20  # in memory, of one table: held longer, rows only grow cold before they are written
_SHARED_BYTES = 1 << 20  # in memory: tables with fewer rows than that share row groups, each of which costs as much
_CACHED_BYTES = 64 << 20  # of shared row groups that a process read last
_COPIED_GROUPS = 64  # of a table: slices of more shared row groups than that would hold too many rows of other tables
_WORDS = 8  # of a dictionary: fewer are left as they are
_COMBINED_ROWS = 500_000  # rows without images that lie in one piece
_IMAGES = ("before", "after")
_KEPT_PIECES = 4  # row groups whose images a task keeps while it reads them in portions


@dataclass(slots=True)
class RowGroup:
    """One table's rows in one file: a row group, or a part of one, and the span of positions in it.

    :param start: first of its rows in the row group, which small tables share.
    """

    file: str
    row_group: int
    database: str
    table: str
    rows: int
    min_position: str
    max_position: str
    max_source_time: int | None
    clears: list[str] = field(default_factory=list)  # positions of truncates
    removals: int = 0  # deletes and updates: what may take a value away that other tables refer to
    # where rows of a snapshot share a position: that, and Kafka's time of the newest of them, in milliseconds
    snapshots: list[tuple[str, int]] = field(default_factory=list)
    changes_from: str | None = ""  # there: position of the first row that is of no snapshot, None without any
    image_bytes: int = 0  # of the rows' images in memory
    before_bytes: int = 0  # of those before the changes
    # by operation which images its rows have, None where that is not known: then the images have to be read
    images_of: dict[str, list[str]] | None = None
    min_source_time: int | None = None
    start: int = 0

    @property
    def origin(self) -> tuple[str, int, int]:
        """Identify the rows: file, row group, and the first row in it."""
        return self.file, self.row_group, self.start


@dataclass(slots=True)
class Unreadable:
    """Records of one table that could not be decoded; without names those whose table is unknown.

    :param count: how many there are; the other members are those of the first.
    """

    database: str
    table: str
    topic: str
    partition: int
    offset: int
    error_code: str
    error: str
    count: int = 1


@dataclass(slots=True)
class Settled:
    """A quarantined record that an operator replayed or discarded: what was landed of it counts no more.

    :param kind: ``record`` or ``row``, as of ``QuarantineEntry``.
    :param of: batch that has it.
    :param seq: batch that carried the decision out.
    :param files: files with what was decoded of it again.
    :param rows_stay: whether what was landed of it still counts: only lost records before it were discarded.
    """

    kind: str
    of: int
    seq: int
    topic: str
    partition: int
    offset: int
    database: str
    table: str
    action: str
    by: str
    why: str
    at: str
    files: list[str] = field(default_factory=list)
    rows_stay: bool = False

    @property
    def record(self) -> tuple[str, int, int]:
        """Topic, partition and offset."""
        return self.topic, self.partition, self.offset

    def counts_no_more(self, file: str) -> bool:
        """Return whether what a file of the change log has of the record is replaced; a later batch may have another.

        A topic that is made again has other records at the same offsets.
        """
        return not self.rows_stay and batch_of(file) <= self.seq and file not in self.files


def merged(first: Iterable[Unreadable], second: Iterable[Unreadable]) -> list[Unreadable]:
    """Return unreadable records by table; of each table the first one stays the first."""
    by_table: dict[tuple[str, str], Unreadable] = {}
    for item in (*first, *second):
        known = by_table.get((item.database, item.table))
        if known is None:
            by_table[item.database, item.table] = replace(item)
        else:
            known.count += item.count
    return list(by_table.values())


@dataclass(slots=True)
class LandReport:
    """Rows, schema changes and other facts that landing read: of one task, or of a whole batch.

    :param groups: row groups of the change log.
    :param unreadable: undecodable records by table.
    :param changes: number of changes by kind, rows by ``row.<op>``.
    :param schema_changes: documents of the DDL records.
    :param progress: newest progress mark, microseconds since the epoch.
    :param errors: code, table and offset of the first undecodable records.
    :param descriptions: column descriptions that rows carry, with the first position of each, if nothing else gives the
        tables' structure.
    :param clocks: clocks of partitions at their ends, in formats without positions (topic, partition, tool time, source
        time).
    :param stretches: facts about the source's log (documents of ``Stretch``); ``statements`` its DDL records.
    """

    groups: list[RowGroup] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    records: int = 0
    changes: dict[str, int] = field(default_factory=dict)
    schema_changes: list[dict[str, Any]] = field(default_factory=list)
    progress: int | None = None
    errors: list[dict[str, Any]] = field(default_factory=list)
    descriptions: list[dict[str, Any]] = field(default_factory=list)
    clocks: list[list[Any]] = field(default_factory=list)
    stretches: list[dict[str, Any]] = field(default_factory=list)
    statements: list[dict[str, Any]] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        parts = {name: [shallow_document(one) for one in getattr(self, name)] for name in ("groups", "unreadable")}
        return {**shallow_document(self), **parts}

    @classmethod
    def from_document(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from :meth:`document`, also of earlier versions, which lack members."""
        groups = [RowGroup(**group) for group in data["groups"]]
        unreadable = [Unreadable(**item) for item in data.get("unreadable", ())]
        return cls(**{**known_members(cls, data), "groups": groups, "unreadable": unreadable})


@dataclass(slots=True)
class Manifest(LandReport):
    """Make a batch of the change log visible: all that the batch landed.

    :param begins: generations of the source's log that begin in the batch (``generations.Begin``).
    :param restated: schema changes of earlier batches that belong to a generation which begins in this one.
    :param new_generations: ``topic/partition:offset`` of the first record of each generation that was approved.
    :param settled: quarantined records that the batch replays or discards.
    :param approvals: what operators decided with the batch about schema changes (documents of ``AskedChange``).
    """

    seq: int = 0
    begins: list[list[Any]] = field(default_factory=list)
    restated: list[dict[str, Any]] = field(default_factory=list)
    new_generations: list[str] = field(default_factory=list)
    settled: list[Settled] = field(default_factory=list)
    approvals: list[dict[str, Any]] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {**LandReport.document(self), "settled": [shallow_document(one) for one in self.settled]}

    @classmethod
    def from_document(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from :meth:`document`, also of earlier versions, which lack members."""
        manifest = super(Manifest, cls).from_document(data)
        manifest.settled = [Settled(**one) for one in data.get("settled", ())]
        return manifest


class LogWriter:
    """Write one land task's rows; ``close`` returns the row groups for the manifest.

    :param describe: note what rows say of their columns, where nothing else states the tables' structure.
    :param snapshots: note the positions of snapshot rows, which they share.
    :ivar rows: changes taken so far; ``size`` their bytes in memory.
    """

    def __init__(
        self,
        storage: Storage,
        folder: str,
        describe: bool = False,
        snapshots: bool = False,
    ) -> None:
        self._storage, self._described, self._with_snapshots = storage, describe, snapshots
        storage.make_folder(folder)
        # a name of its own per attempt: a task that runs twice leaves a file that no manifest names
        self._name = f"{folder}/{uuid.uuid4().hex}.parquet"
        self._file: pq.ParquetWriter | None = None
        self._stream: pa.NativeFile | None = None
        self._mixed: list[pa.RecordBatch] = []  # the last batches, from one on that has several tables
        self._pieces: dict[tuple[str, str], list[CodedSlice]] = {}  # by database and table
        self._held: dict[tuple[str, str], int] = {}  # bytes of a table's pieces
        self._groups: list[RowGroup] = []
        self._row_groups = 0  # written so far
        self._tables = 0  # that the last rows of several tables were of
        self.rows = self.size = 0
        self.descriptions: list[dict[str, Any]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Take row changes of one decoded batch."""
        self.rows += batch.num_rows
        size = batch.nbytes
        self.size += size
        name = _only_table(batch)
        if name is not None and not self._mixed:
            self._hold(name, CodedRows(pa.Table.from_batches([batch])).slice(0, len(batch)), size)
            return
        self._mixed.append(batch)
        if sum(map(len, self._mixed)) >= max(_SORTED_TOGETHER, _ROWS_EACH * self._tables):
            self._sort()

    def add_errors(self, batch: pa.RecordBatch) -> None:
        """Take errors of one decoded batch: they stand under no table, so that none takes them for rows."""
        self.rows += batch.num_rows
        size = batch.nbytes
        self.size += size
        self._hold(("", ""), CodedRows(pa.Table.from_batches([batch])).slice(0, len(batch)), size)

    def _sort(self, *, last: bool = False) -> None:
        """Give each table its own of the batches that have several, unless more of them are to come first."""
        if not self._mixed:
            return
        rows = pa.Table.from_batches(self._mixed).unify_dictionaries()
        self._tables = len(rows.column("table").chunk(0).dictionary)
        if len(rows) < _ROWS_EACH * self._tables and not last:
            return
        each = max(1, sum(batch.nbytes for batch in self._mixed) // max(1, len(rows)))
        self._mixed = []
        most = max(1, _ROW_GROUP_BYTES // each)
        rows, tables = _by_table(rows)
        coded = CodedRows(rows)
        for name, start, end in tables:
            for first in range(start, end, most):
                part = coded.slice(first, min(most, end - first))
                self._hold(name, part, each * len(part))

    def _hold(self, name: tuple[str, str], rows: CodedSlice, size: int) -> None:
        self._pieces.setdefault(name, []).append(rows)
        self._held[name] = self._held.get(name, 0) + size
        if self._held[name] >= _ROW_GROUP_BYTES:
            self._write(name)

    def close(self) -> list[RowGroup]:
        """Write what is left and end the file; return its row groups."""
        self._sort(last=True)
        together, size = list[tuple[str, str]](), 0
        for name in sorted(
            self._pieces
        ):  # in each file in the same order: tasks of neighbours read the same row groups
            if together and size + self._held[name] > _SHARED_BYTES:
                self._write(*together)
                together, size = [], 0
            together.append(name)
            size += self._held[name]
        if together:
            self._write(*together)
        if self._file is not None and self._stream is not None:
            with self._storage.access(self._name):
                self._file.close()
                self._stream.close()
        return self._groups

    def _write(self, *names: tuple[str, str]) -> None:
        """Write the pieces of some tables as one row group."""
        pieces = [self._pieces.pop(name) for name in names]
        for name in names:
            del self._held[name]
        rows = CodedRows.joined([piece for of_table in pieces for piece in of_table])
        with self._storage.access(self._name):
            if self._file is None:
                self._file = self._open()
            self._file.write_table(rows, row_group_size=max(1, rows.num_rows))
        self._note(names, rows, [sum(map(len, of_table)) for of_table in pieces])
        self._row_groups += 1

    def _note(self, names: Sequence[tuple[str, str]], rows: pa.Table, lengths: Sequence[int]) -> None:
        """Note what the row group that was just written has of each table.

        :param lengths: rows of each table, which lie one behind the other.
        """
        groups = _groups(self._name, self._row_groups, names, rows, lengths)
        self._groups += groups
        if self._with_snapshots and pc.index(rows.column("op").cast(pa.string()), "snapshot").as_py() >= 0:
            for group in groups:
                of_table = rows.slice(group.start, group.rows)
                group.snapshots, group.changes_from = _snapshots(of_table), _changes_from(of_table)
        if len(groups) == 1 and groups[0].image_bytes >= _SHARED_BYTES:
            groups[0].images_of = _images_of(rows)
        if self._described:
            self._describe(names, rows, lengths)

    def _open(self) -> pq.ParquetWriter:
        self._stream = self._storage.open_new(self._name)
        return pq.ParquetWriter(
            self._stream,
            CHANGE_SCHEMA,
            compression="lz4",
            use_dictionary=["topic", "kind", "op", "database", "schema", "table", "columns"],
            write_statistics=False,
        )

    def _describe(self, names: Sequence[tuple[str, str]], rows: pa.Table, lengths: Sequence[int]) -> None:
        """Note each distinct description of a table's columns with the first position that has it."""
        times = rows.select(["columns", "position"]).append_column("time", rows.column("source_time").cast(pa.int64()))
        times = times.append_column("number", _numbers(lengths))
        described = times.group_by(["number", "columns"], use_threads=False)
        for row in described.aggregate([("position", "min"), ("time", "max")]).to_pylist():
            database, table = names[row["number"]]
            if row["columns"] is not None and database:
                description = {
                    "columns": row["columns"],
                    "position": row["position_min"] or "",
                    "time": row["time_max"],
                }
                self.descriptions.append({"database": database, "table": table, **description})


def _only_table(batch: pa.RecordBatch) -> tuple[str, str] | None:
    """Return database and table of all rows, None where they may be of several."""
    columns = batch.column("database"), batch.column("table")
    if any(len(column.dictionary) != 1 or column.null_count for column in columns):
        return None
    return columns[0].dictionary[0].as_py(), columns[1].dictionary[0].as_py()


def _by_table(changes: pa.Table) -> tuple[pa.Table, list[tuple[tuple[str, str], int, int]]]:
    """Return changes table by table; of each table its names, its first row and the one behind its last."""
    databases, tables = (_codes(changes.column(name)) for name in ("database", "table"))
    marks = databases[0] * (len(tables[1]) + 1) + tables[0]
    if (marks[1:] < marks[:-1]).any():
        order = np.argsort(marks, kind="stable")
        changes, marks = changes.take(pa.array(order)), marks[order]
    starts = np.flatnonzero(np.r_[True, marks[1:] != marks[:-1]]).tolist() if len(marks) else []
    spans = []
    for start, end in zip(starts, [*starts[1:], len(marks)], strict=True):
        database, table = divmod(int(marks[start]), len(tables[1]) + 1)
        spans.append(((databases[1][database] or "", tables[1][table] or ""), start, end))
    return changes, spans


def _codes(column: pa.ChunkedArray) -> tuple[np.ndarray, list[str | None]]:
    # dictionaries are unified, so all chunks have the same
    words = [*column.chunk(0).dictionary.to_pylist(), None]
    codes = [pc.fill_null(c.indices, len(words) - 1).to_numpy(zero_copy_only=False) for c in column.chunks]
    return np.concatenate(codes).astype(np.int64), words


def _numbers(lengths: Sequence[int]) -> pa.ChunkedArray:
    """Return for each row the number of its table, where tables lie one behind the other."""
    return pa.chunked_array([np.repeat(np.arange(len(lengths)), lengths)])


def _groups(
    file: str, row_group: int, names: Sequence[tuple[str, str]], rows: pa.Table, lengths: Sequence[int]
) -> list[RowGroup]:
    """Return what a row group has of each table.

    :param names: database and table of each.
    :param lengths: rows of each table, which lie one behind the other.
    """
    numbers, ops = _numbers(lengths), rows.column("op").cast(pa.string())
    removals = pc.fill_null(pc.is_in(ops, pa.array(["delete", "update"])), False).cast(pa.int64())
    columns = {"number": numbers, "position": rows.column("position"), "removals": removals}
    facts = pa.table({**columns, "time": rows.column("source_time").cast(pa.int64())})
    bounds = [("position", "min"), ("position", "max"), ("time", "min"), ("time", "max"), ("removals", "sum")]
    by_number = facts.group_by("number", use_threads=False).aggregate(bounds)
    truncates = facts.filter(pc.equal(ops, "truncate"))
    clears: list[list[str]] = [[] for _ in names]
    for number, position in zip(*(truncates.column(name).to_pylist() for name in ("number", "position")), strict=True):
        clears[number].append(position)
    groups, start = [], 0
    for fact in by_number.to_pylist():
        at = int(fact["number"])
        database, table = names[at]
        group = RowGroup(
            file,
            row_group,
            database,
            table,
            lengths[at],
            fact["position_min"] or "",
            fact["position_max"] or "",
            fact["time_max"],
            clears[at],
            fact["removals_sum"],
            min_source_time=fact["time_min"],
            start=start,
        )
        group.before_bytes, after = (rows.column(name).slice(start, group.rows).nbytes for name in _IMAGES)
        group.image_bytes = group.before_bytes + after
        groups.append(group)
        start += group.rows
    return groups


def _images_of(rows: pa.Table) -> dict[str, list[str]] | None:
    """Return which images the rows of each operation have, None where rows of one operation differ."""
    there = {name: pc.is_valid(rows.column(name)) for name in _IMAGES}
    by_op = pa.table({"op": rows.column("op").cast(pa.string()), **there}).group_by("op", use_threads=False)
    extremes = [(name, extreme) for name in _IMAGES for extreme in ("min", "max")]
    images: dict[str, list[str]] = {}
    for one in by_op.aggregate(extremes).to_pylist():
        if one["op"] is None or any(one[f"{name}_min"] != one[f"{name}_max"] for name in _IMAGES):
            return None
        images[one["op"]] = [name for name in _IMAGES if one[f"{name}_min"]]
    return images


def _snapshots(rows: pa.Table) -> list[tuple[str, int]]:
    """Return the positions of snapshot rows with Kafka's time of the newest row at each."""
    ops = rows.column("op").cast(pa.string())
    if pc.index(ops, "snapshot").as_py() < 0:
        return []
    snapshots = rows.select(["position", "kafka_time"]).filter(pc.equal(ops, "snapshot"))
    newest = snapshots.group_by("position").aggregate([("kafka_time", "max")])
    times = newest.column("kafka_time_max").cast(pa.int64()).fill_null(0).to_pylist()
    return sorted(zip(newest.column("position").to_pylist(), times, strict=True))


def _changes_from(rows: pa.Table) -> str | None:
    """Return the position of the first row that is of no snapshot, None without any."""
    others = pc.not_equal(rows.column("op").cast(pa.string()), "snapshot")
    first: str | None = pc.min(rows.column("position").filter(others)).as_py()
    return first


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
            if before_of is not None:
                rows = _only_before(rows, before_of)
            if rows.num_rows > group.rows:
                _SHARED.add(key, rows)
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

    def footer(self, file: tuple[str, str, int], opened: pa.NativeFile) -> pq.FileMetaData:
        """Return a file's footer.

        :param file: root, name and size: no file is written twice, but one may be damaged and restored.
        """
        if file not in self._footers:
            self._footers[file] = pq.read_metadata(opened)
            while len(self._footers) > 1 and sum(f.serialized_size for f in self._footers.values()) > self._limit:
                self._footers.popitem(last=False)
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
