"""The change log: decoded changes of every batch, one parquet file per land task with a row group per table."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA
from spark_jobs.storage import Storage


@dataclass(slots=True)
class Group:
    """One table's rows in one file: a row group and the span of positions in it."""

    file: str
    row_group: int
    database: str
    table: str
    rows: int
    min_position: str
    max_position: str
    max_source_time: int | None
    clears: list[str] = field(default_factory=list)  # positions of truncates


@dataclass(slots=True)
class Manifest:
    """What makes a batch of the change log visible: its files by table."""

    seq: int
    groups: list[Group] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)

    @staticmethod
    def from_document(data: dict[str, Any]) -> Manifest:
        """Rebuild from :meth:`document`."""
        return Manifest(data["seq"], [Group(**group) for group in data["groups"]])


def log_folder(pipeline_folder: str, seq: int) -> str:
    """Return the folder of one batch's files inside the storage."""
    return f"{pipeline_folder}/log/{seq:08d}"


class LogWriter:
    """Writes one land task's rows; ``close`` gives the groups for the manifest.

    :param describe: note what rows say of their columns, where nothing else tells the tables' structure.
    :ivar rows: changes taken so far; ``size`` their bytes in memory.
    """

    def __init__(self, storage: Storage, folder: str, describe: bool = False) -> None:
        self._storage, self._described = storage, describe
        storage.make_folder(folder)
        # a name of its own per attempt: a task that runs twice leaves a file that no manifest names
        self._name = f"{folder}/{uuid.uuid4().hex}.parquet"
        self._pieces: dict[tuple[str, str], list[pa.RecordBatch]] = {}  # by database and table
        self.rows = self.size = 0
        self.descriptions: list[dict[str, str]] = []

    def add(self, batch: pa.RecordBatch, logged: pa.Array | None) -> None:
        """Take changes of one decoded batch.

        :param logged: which of them belong into the log, None for all.
        """
        changes, spans = _by_table(batch, logged)
        for name, start, end in spans:
            self._pieces.setdefault(name, []).append(changes.slice(start, end - start))
        self.rows += changes.num_rows
        self.size += changes.nbytes

    def close(self) -> list[Group]:
        """Write the file, a row group per table."""
        if not self._pieces:
            return []
        groups: list[Group] = []
        with pq.ParquetWriter(
            self._storage.path(self._name),
            CHANGE_SCHEMA,
            filesystem=self._storage.filesystem,
            compression="lz4",
            use_dictionary=["topic", "kind", "op", "database", "schema", "table", "columns"],
            write_statistics=False,
        ) as writer:
            for (database, table), pieces in self._pieces.items():
                rows = pa.Table.from_batches(pieces, CHANGE_SCHEMA).unify_dictionaries()
                writer.write_table(rows, row_group_size=max(1, rows.num_rows))
                groups.append(_group(self._name, len(groups), database, table, rows))
                if self._described and database:
                    self._describe(database, table, rows)
        return groups

    def _describe(self, database: str, table: str, rows: pa.Table) -> None:
        """Note each distinct description of a table's columns with the first position that has it."""
        for row in rows.group_by("columns").aggregate([("position", "min")]).to_pylist():
            if row["columns"] is not None:
                found = {"columns": row["columns"], "position": row["position_min"] or ""}
                self.descriptions.append({"database": database, "table": table, **found})


def _by_table(
    batch: pa.RecordBatch, logged: pa.Array | None
) -> tuple[pa.RecordBatch, list[tuple[tuple[str, str], int, int]]]:
    """Return the logged changes by database and table, and from where to where each has its own.

    Mostly that is the batch as it is: rows are moved, once, where it has others or mixes tables.
    """
    databases, tables = (_codes(batch.column(name)) for name in ("database", "table"))
    marks = databases[0] * (len(tables[1]) + 1) + tables[0]
    rows = np.arange(len(marks)) if logged is None else np.flatnonzero(logged.to_numpy(zero_copy_only=False))
    marks = marks[rows]
    mixed = bool((marks[1:] < marks[:-1]).any())
    if mixed:
        order = np.argsort(marks, kind="stable")
        rows, marks = rows[order], marks[order]
    if mixed or len(rows) < batch.num_rows:
        batch = batch.take(pa.array(rows))
    starts: Any = np.flatnonzero(np.r_[True, marks[1:] != marks[:-1]]) if len(marks) else []
    spans = []
    for start, end in zip(starts, [*starts[1:], len(marks)], strict=True):
        database, table = divmod(int(marks[start]), len(tables[1]) + 1)
        spans.append(((databases[1][database] or "", tables[1][table] or ""), start, end))
    return batch, spans


def _codes(column: pa.DictionaryArray) -> tuple[np.ndarray, list[str | None]]:
    words = [*column.dictionary.to_pylist(), None]
    codes = pc.fill_null(column.indices, len(words) - 1).to_numpy(zero_copy_only=False)
    return codes.astype(np.int64), words


def _group(name: str, number: int, database: str, table: str, rows: pa.Table) -> Group:
    span = pc.min_max(rows.column("position")).as_py()
    newest = pc.max(rows.column("source_time").cast(pa.int64())).as_py()
    truncated = rows.filter(pc.equal(rows.column("op").cast(pa.string()), "truncate")).column("position").to_pylist()
    return Group(name, number, database, table, rows.num_rows, span["min"] or "", span["max"] or "", newest, truncated)


def read_groups(
    storage: Storage, groups: Sequence[Group], columns: Sequence[str], *, before_of: Sequence[str] | None = None
) -> pa.Table:
    """Read row groups, files in the order of their names, row groups in order.

    :param before_of: operations whose image ``before`` is wanted, None means all; it is half of what updates carry.
    """
    by_file: dict[str, list[int]] = {}
    for group in groups:
        by_file.setdefault(group.file, []).append(group.row_group)
    tables = []
    for name in sorted(by_file):
        with pq.ParquetFile(
            storage.path(name),
            filesystem=storage.filesystem,
            read_dictionary=["op", "columns", "topic"],
            pre_buffer=True,
        ) as file:
            for number in sorted(by_file[name]):
                rows = file.read_row_group(number, columns=list(columns), use_threads=False)
                tables.append(rows if before_of is None else _only_before(rows, before_of))
    return pa.concat_tables(tables, promote_options="permissive").select(list(columns))


def _only_before(rows: pa.Table, ops: Sequence[str]) -> pa.Table:
    place = rows.schema.get_field_index("before")
    wanted = pc.is_in(rows.column("op").cast(pa.string()), pa.array(ops, pa.string()))
    return rows.set_column(place, "before", pc.if_else(wanted, rows.column("before"), None))
