# SPDX-License-Identifier: Apache-2.0
"""Tables of each registered kind, for a test to commit to, and the ways in which rows get into them."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.config.sinks.kinds import SINKS, SinkKind
from airflow_provider_cdc.sinks.contract import TableReader
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.commits import Choice, WriterName
from spark_jobs.sinks.contract import Action, Sink, Stored, Writer, WriterRule
from tests.sample import ALL
from tests.sinks.actions import columns_of, commit, in_pieces
from tests.sinks.kinds import OPTIONS, options_of, type_of

FOLDER = SinkKind("tests.sinks.parquet_folder", "tests.sinks.parquet_folder", "pyarrow")
DRIVEN = {"iceberg at once", "parquet folder"}  # the driver commits; registered by a test
KINDS = {**{name: SINKS[type_of(name)] for name in OPTIONS if name not in DRIVEN}, "parquet folder": FOLDER}
WITH_SPARK = {"delta"}
SHARED = {"iceberg", "iceberg copy-on-write"}  # tasks may share a merge
# they share what differs by way with another
FEWER = {"delta merge-on-read", "iceberg copy-on-write", "iceberg rest", "parquet folder"}


WAYS = [
    *((kind, "task") for kind in KINDS),
]
OTHER_WAYS = [
    # merges of parts by Spark are in tests/spark/test_auto_writer.py
    *((kind, way) for kind in KINDS if kind in WITH_SPARK for way in ("spark", *["spark in parts"] * ALL)),
    *((kind, way) for kind in KINDS if ALL or kind not in FEWER for way in ("task in pieces", "task in parts")),
    *(
        (kind, way)
        for kind in KINDS
        if kind in SHARED
        for way in ("tasks", "tasks in parts")
        if ALL or way == "tasks" or kind not in FEWER
    ),
]


def tables_of(kind: str, root: Path) -> Tables:
    """Return tables of a kind below a folder."""
    modules, options = KINDS[kind], options_of(kind, root)
    writer, reader = (importlib.import_module(name) for name in (modules.writer, modules.reader))
    return Tables(writer.open_sink(options), root, reader.reader(), options)


@dataclass
class Tables:
    """Tables of one kind, and a way to commit to them.

    :param spark: commits what was staged in a folder, None where tasks commit.
    :param change: changes each action before its commit.
    :ivar first: version that the table was made with.
    """

    sink: Sink[Stored]
    root: Path
    reader: TableReader
    options: dict[str, str]
    spark: Callable[[str], None] | None = None
    change: Callable[[Tables, Action], Action] = lambda tables, action: action
    number: int = 0
    first: int = 0

    @property
    def location(self) -> str:
        return str(self.root / "db" / "t")

    def open(self, version: int | None = None) -> Stored:
        return self.sink.open(self.location, version)

    def writer(self) -> Writer[Stored]:
        """Return the writer of the next commit."""
        name: WriterName = "task" if self.spark is None else "spark"
        rule, storage = WriterRule(Choice(name, "stated"), 1 << 40, 1 << 40), Storage(str(self.root / "stage"))
        return self.sink.writer(rule, storage, f"_cdc/staged/{self.number}")

    def do(self, action: Action, *, target: Stored | None = None) -> None:
        """Carry out an action; on what was opened before, where that is given."""
        self.number += 1
        if action.columns is None:
            action.columns = columns_of(action.rows.schema, *action.key)
        self.writer().commit(target or self.open(), self.change(self, action))
        if self.spark is not None:
            self.spark(f"_cdc/staged/{self.number}")

    def create(self, first: pa.Table) -> None:
        self.do(Action("create", commit(1), first))
        self.first = self.open().version or 0

    def rows(self) -> list[dict[str, Any]]:
        return self.open().rows().sort_by("id").to_pylist()


def whole_in_pieces(tables: Tables, action: Action) -> Action:
    return in_pieces(action)


def in_parts(tables: Tables, action: Action) -> Action:
    """Return the same action with rows that two other tasks wrote; what is left of the table cannot be in parts."""
    if action.remaining is not None or action.verb == "subtract":
        return action
    half, parts, target, writer = action.rows.num_rows // 2, [], tables.open(), tables.writer()
    for piece in (action.rows.slice(0, half), action.rows.slice(half)):
        files = writer.row_files(target, action.columns or columns_of(piece.schema, *action.key))
        if files is None:
            return action
        files.add(piece)
        parts.append(files.written())
    return replace(action, rows=action.rows.schema.empty_table(), parts=parts)


def here(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Run tasks in this process; what they are sent and answer goes through pickle, as to other processes."""
    return [pickle.loads(pickle.dumps(function(pickle.loads(pickle.dumps(item))))) for item in items]


def commit_shared(tables: Tables, root: Path, folder: str) -> None:
    """Commit what a task staged, in as many parts as there are files."""
    committer = tables.sink.committer(None, Storage(str(root / "stage")), here)
    assert committer is not None
    (problem,) = committer.commit([folder], 100)
    if problem is not None:
        raise problem
