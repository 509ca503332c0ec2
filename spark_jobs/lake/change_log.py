# SPDX-License-Identifier: Apache-2.0
"""Write the change log: decoded changes of every batch in parquet files, whose row groups are of one or few tables.

``manifest.py`` has its documents, ``row_groups.py`` reads it.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_provider_cdc.core.arrays import IntArray
from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA
from spark_jobs.lake.coded_rows import CodedRows, CodedSlice, is_word
from spark_jobs.lake.manifest import RowGroup
from spark_jobs.lake.storage import Storage

# rows of several tables sorted at a time: more would leave the processor's cache, fewer leave each table crumbs
_SORTED_TOGETHER = 20_000
_ROWS_EACH = 50  # of each table sorted at a time, on average: of thousands of tables more rows are sorted together
_ROW_GROUP_BYTES = 16 << 20  # in memory, of one table: held longer, rows only grow cold before they are written
_SHARED_BYTES = 1 << 20  # in memory: tables with fewer rows than that share row groups, each of which costs as much
_SPAN_ROWS = 200  # on average: shorter stretches of one table are sorted together with those of other batches
_CHUNK_ROWS = 500  # on average: chunks of fewer rows cost more to write than to copy
_NAMES = ("database", "table")
_IMAGES = ("before", "after")


class LogWriter:
    """Write one land task's rows; ``close`` returns the row groups for the manifest.

    :param describe: note what rows say of their columns, where nothing else states the tables' structure.
    :param snapshots: whether snapshot rows share the position in the log that their snapshot stands at.
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
        # a name of its own per attempt: a task that runs twice leaves a file that no manifest names
        self._name = f"{folder}/{uuid.uuid4().hex}.parquet"
        self._file: pq.ParquetWriter | None = None
        self._stream: pa.NativeFile | None = None
        self._mixed: list[pa.RecordBatch] = []  # the last batches, from one on that has short stretches of tables
        self._pieces: dict[tuple[str, str], list[CodedSlice]] = {}  # by database and table
        self._held: dict[tuple[str, str], int] = {}  # bytes of a table's pieces
        self._groups: list[RowGroup] = []
        self._row_groups = 0  # written so far
        self._tables = 0  # that the last rows of several tables were of
        self.rows = self.size = 0
        self.descriptions: list[dict[str, Any]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Take row changes of one decoded batch."""
        if not batch.num_rows:
            return
        self.rows += batch.num_rows
        size = batch.nbytes
        self.size += size
        rows = pa.Table.from_batches([batch])
        tables = _Tables(rows)
        if not self._mixed and tables.count_spans() <= max(1, len(batch) // _SPAN_ROWS):
            coded = CodedRows(rows)
            for name, start, end in tables.spans():
                self._hold(name, coded.slice(start, end - start), size * (end - start) // len(batch))
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
        tables = _Tables(rows)
        coded = CodedRows(tables.sort(rows))
        for name, start, end in tables.spans():
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
        together = [piece for of_table in pieces for piece in of_table]
        rows = CodedRows.joined(together)
        if rows.num_rows < _CHUNK_ROWS * len(together):
            rows = rows.combine_chunks()
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
        if is_word(rows.column("op").combine_chunks(), "snapshot").any():
            for group in groups:
                of_table = rows.slice(group.start, group.rows)
                snapshots = _snapshots(of_table)
                if self._with_snapshots:
                    group.snapshots, group.changes_from = snapshots, _changes_from(of_table)
                else:
                    group.loaded_until = max((time for _, time in snapshots), default=0)
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
        """Note each distinct description of a table's columns with the first and the last position that has it.

        Those of snapshot rows are noted apart, and one that goes and comes back each time.
        """
        times = rows.select(["columns", "position"]).append_column("time", rows.column("source_time").cast(pa.int64()))
        times = times.append_column("number", _numbers(lengths))
        times = times.append_column("read", pc.equal(rows.column("op").cast(pa.string()), "snapshot"))
        bounds = [("position", "min"), ("position", "max"), ("time", "max")]
        described = times.group_by(["number", "columns", "read"], use_threads=False).aggregate(bounds)
        if described.num_rows > len(pc.unique(described.column("number"))):
            described = _in_turn(times).group_by(["number", "columns", "read", "turn"], use_threads=False)
            described = described.aggregate(bounds)
        for row in described.to_pylist():
            database, table = names[row["number"]]
            if row["columns"] is not None and database:
                description = {
                    "columns": row["columns"],
                    "position": row["position_min"] or "",
                    "last": row["position_max"] or "",
                    "time": row["time_max"],
                    **({"read": True} if row["read"] else {}),
                }
                self.descriptions.append({"database": database, "table": table, **description})


class _Tables:
    """State which table each row is of.

    :param rows: with one dictionary for all chunks of a column.
    """

    def __init__(self, rows: pa.Table) -> None:
        (databases, self._databases), (tables, self._tables) = (_codes(rows.column(name)) for name in _NAMES)
        self._marks = databases * (len(self._tables) + 1) + tables

    def sort(self, rows: pa.Table) -> pa.Table:
        """Return the rows table by table; what this says is then of them."""
        if not (self._marks[1:] < self._marks[:-1]).any():
            return rows
        order = np.argsort(self._marks, kind="stable")
        self._marks = self._marks[order]
        return rows.take(pa.array(order))

    def count_spans(self) -> int:
        """Return how many stretches there are; naming each costs more."""
        return 1 + int(np.count_nonzero(self._marks[1:] != self._marks[:-1]))

    def spans(self) -> list[tuple[tuple[str, str], int, int]]:
        """Return the stretches of rows of one table: its names, the first row and the one behind the last."""
        cuts = (np.flatnonzero(self._marks[1:] != self._marks[:-1]) + 1).tolist()
        return [(self._name(int(self._marks[a])), a, b) for a, b in pairwise([0, *cuts, len(self._marks)])]

    def _name(self, mark: int) -> tuple[str, str]:
        database, table = divmod(mark, len(self._tables) + 1)
        return self._databases[database] or "", self._tables[table] or ""


def _in_turn(described: pa.Table) -> pa.Table:
    """Return rows by position with a number that rises where another description of their table follows."""
    rows = described.sort_by([("number", "ascending"), ("position", "ascending")]).unify_dictionaries()
    codes = [rows.column("number"), pa.chunked_array(_codes(rows.column("columns"))[:1]), rows.column("read")]
    values = [code.to_numpy(zero_copy_only=False) for code in codes]
    changed = np.logical_or.reduce([value[1:] != value[:-1] for value in values])
    return rows.append_column("turn", pa.chunked_array([np.cumsum(np.r_[False, changed])]))


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
    ops = rows.column("op").combine_chunks()
    starts = np.cumsum([0, *lengths])[:-1]
    removals = np.add.reduceat(is_word(ops, "delete", "update"), starts, dtype=np.int64).tolist()
    clears: list[list[str]] = [[] for _ in names]
    truncates = np.flatnonzero(is_word(ops, "truncate"))
    numbers = np.searchsorted(starts, truncates, side="right") - 1
    for number, position in zip(numbers, rows.column("position").take(truncates).to_pylist(), strict=True):
        clears[number].append(position)
    groups = []
    bounds = _bounds_of_runs(rows, starts) or _bounds(rows, lengths)
    for at, (low, high, oldest, newest) in enumerate(bounds):
        before, after = (rows.column(name).slice(starts[at], lengths[at]).nbytes for name in _IMAGES)
        group = RowGroup(
            file,
            row_group,
            *names[at],
            lengths[at],
            low or "",
            high or "",
            newest,
            clears[at],
            removals[at],
            min_source_time=oldest,
            start=int(starts[at]),
            image_bytes=before + after,
            before_bytes=before,
        )
        groups.append(group)
    return groups


_Bounds = tuple[str | None, str | None, int | None, int | None]
"""Lowest and highest position, oldest and newest source time of a table's rows."""


def _bounds_of_runs(rows: pa.Table, starts: IntArray) -> list[_Bounds] | None:
    """Return the bounds of each table, None where positions or times are missing.

    Positions mostly rise: the bounds of a run in which they do are its ends.

    :param starts: first row of each table.
    """
    positions, times = (rows.column(name).combine_chunks() for name in ("position", "source_time"))
    if positions.null_count or times.null_count:
        return None
    falls = np.flatnonzero(pc.less(positions[1:], positions[:-1]).to_numpy(zero_copy_only=False)) + 1
    runs = np.union1d(starts, falls)
    ends = np.append(runs[1:], len(positions)) - 1
    lows, highs = (positions.take(pa.array(at)).to_pylist() for at in (runs, ends))
    spans = list(pairwise([*np.searchsorted(runs, starts).tolist(), len(runs)]))
    numbers = times.cast(pa.int64()).to_numpy()
    oldest, newest = (extreme.reduceat(numbers, starts).tolist() for extreme in (np.minimum, np.maximum))
    lowest, highest = [min(lows[a:b]) for a, b in spans], [max(highs[a:b]) for a, b in spans]
    return list(zip(lowest, highest, oldest, newest, strict=True))


def _bounds(rows: pa.Table, lengths: Sequence[int]) -> list[_Bounds]:
    """Return the bounds of each table, whatever the order of its rows."""
    times = rows.column("source_time").cast(pa.int64())
    facts = pa.table({"number": _numbers(lengths), "position": rows.column("position"), "time": times})
    extremes = [(name, extreme) for name in ("position", "time") for extreme in ("min", "max")]
    bounds = facts.group_by("number", use_threads=False).aggregate(extremes)
    return list(zip(*(bounds.column(f"{name}_{extreme}").to_pylist() for name, extreme in extremes), strict=True))


def _images_of(rows: pa.Table) -> dict[str, list[str]] | None:
    """Return which images the rows of each operation have, None where rows of one operation differ."""
    ops = rows.column("op").combine_chunks()
    if ops.null_count:
        return None
    there = {name: rows.column(name).is_valid().to_numpy() for name in _IMAGES}
    images: dict[str, list[str]] = {}
    for op in ops.dictionary.to_pylist():
        of_op = is_word(ops, op)
        counts = {name: np.count_nonzero(valid[of_op]) for name, valid in there.items()}
        if not set(counts.values()) <= {0, np.count_nonzero(of_op)}:
            return None
        images[op] = [name for name, count in counts.items() if count]
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
