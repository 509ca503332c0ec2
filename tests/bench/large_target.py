# SPDX-License-Identifier: Apache-2.0
"""A table with many stored rows: changes of few of them, changes of its layout; and a snapshot that makes one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, QueryBuilder, write_deltalake

from tests.bench.data import Feed, Record, differences
from tests.bench.structure import COLUMNS, EXPECTED, START, Column

FIRST_KEY = 1_000  # of the stored rows: above those of the batch that makes the table
_FILE_ROWS = 500_000
_RECENT = 0.02  # of the stored keys
_UPDATED, _DELETED = 0.81, 0.09  # of the changes; the others are inserts


def fill(location: Path, rows: int) -> None:
    """Append stored rows to a contestant's table, with the mark by which ours knows its own commits."""
    marks = CommitProperties(custom_metadata={"cdc": '{"app": "cdc/bench/filled/0"}'})
    for first in range(0, rows, _FILE_ROWS):
        ids = np.arange(FIRST_KEY + first, FIRST_KEY + min(rows, first + _FILE_ROWS))
        write_deltalake(str(location), _stored(ids), mode="append", commit_properties=marks)


def _stored(ids: np.ndarray[Any, Any]) -> pa.Table:
    """Return rows whose texts end with their key, so that files are as large as those of real rows."""
    texts, numbers = pa.array(ids).cast(pa.string()), pa.array(ids)

    def text(head: str) -> pa.Array:
        return pc.binary_join_element_wise(pa.scalar(head), texts, "")

    micros = pa.array((START + ids % 1_000_000) * 1_000_000)
    columns = {
        "id": numbers,
        "customer": text("customer "),
        "email": text("user@mail.example "),
        "street": text("north street "),
        "note": text("stored order "),
        "amount": pa.array(ids % 10**9).cast(pa.decimal128(19, 0)).cast(pa.decimal128(21, 2)),
        "quantity": pa.array(ids % 5000),
        "created": micros,
        "weight": pa.array(ids / 7),
        "due": pa.array(20_000 + ids % 1000, pa.int32()),
        "status": pa.array(ids % 7),
        "updated": micros,
    }
    return pa.table([columns[field.name].cast(field.type) for field in EXPECTED], schema=EXPECTED)


@dataclass(frozen=True)
class LayoutChange:
    """An ALTER TABLE, and how rows look after it.

    clause: what it does.
    columns: all that the table has after it.
    image: what is in later images in place of the name of the note.
    view: the columns as they were before.
    changed: whether a row comes from the records.
    """

    name: str
    clause: str
    columns: list[Column]
    image: bytes
    view: str
    changed: str


_NOTE = b'"note":'
_CHANGED = "note LIKE '% v%'"
_ADDED: Column = ("remark", 12, "VARCHAR", 64, None, True)
LAYOUT_CHANGES = (
    LayoutChange(
        "ADD COLUMN",
        "ADD COLUMN `remark` varchar(64) DEFAULT NULL",
        [*COLUMNS, _ADDED],
        b'"remark":"new","note":',
        ", ".join(EXPECTED.names),
        f"id < {FIRST_KEY} OR remark = 'new'",
    ),
    LayoutChange(
        "RENAME COLUMN",
        "RENAME COLUMN `note` TO `remark`",
        [("remark", *column[1:]) if column[0] == "note" else column for column in COLUMNS],
        b'"remark":',
        ", ".join("remark AS note" if name == "note" else name for name in EXPECTED.names),
        "remark LIKE '% v%'",
    ),
)


class Changes:
    """Changes of keys of a table with stored rows.

    rows: how many are stored.
    recent: whether the keys are of the newest rows, else from everywhere.
    layout: the change of the table's layout that goes before them.
    """

    def __init__(self, feed: Feed, rows: int, changes: int, recent: bool, layout: LayoutChange | None = None) -> None:
        self._feed, self._rows, self._layout = feed, rows, layout
        first = FIRST_KEY + (int(rows * (1 - _RECENT)) if recent else 0)
        touched = int(changes * (_UPDATED + _DELETED))
        keys = random.Random(7).sample(range(first, FIRST_KEY + rows), min(touched, FIRST_KEY + rows - first))
        updated = len(keys) * 9 // 10
        new = range(FIRST_KEY + rows, FIRST_KEY + rows + changes - touched)
        self._kinds = [*(("u", key) for key in keys[:updated]), *(("d", key) for key in keys[updated:])]
        self._kinds += [("c", key) for key in new]
        random.Random(8).shuffle(self._kinds)

    def records(self) -> Iterator[Record]:
        """Return the records of the changes."""
        if self._layout is None:
            yield from self._feed.of_keys(self._kinds)
            return
        statement = f"ALTER TABLE `{self._feed.table_names[0]}` {self._layout.clause}"
        yield self._feed.altered(statement, self._layout.columns)
        for record in self._feed.of_keys(self._kinds):
            value = record.value
            yield record if value is None else record._replace(value=value.replace(_NOTE, self._layout.image))

    def wrong(self, location: Path) -> str:
        """Say how a table differs from what it must be, empty if it does not: changed rows by cell, others by sums."""
        view, is_changed = ("*", _CHANGED) if self._layout is None else (self._layout.view, self._layout.changed)
        run = QueryBuilder().register("t", DeltaTable(str(location))).execute
        changed = pa.table(run(f"SELECT {view} FROM t WHERE {is_changed}").read_all())
        (expected,) = self._feed.expected().values()
        if problem := differences(expected, changed):
            return f"changed rows: {problem}"
        columns = "count(*) AS n, sum(id) AS ids, sum(quantity) AS quantities"
        (rest,) = pa.table(run(f"SELECT {columns} FROM t WHERE ({is_changed}) IS NOT TRUE").read_all()).to_pylist()
        gone = np.array([key - FIRST_KEY for kind, key in self._kinds if kind != "c"])
        ids = np.delete(np.arange(FIRST_KEY, FIRST_KEY + self._rows), gone)
        sums = {"n": len(ids), "ids": int(ids.sum()), "quantities": int((ids % 5000).sum())}
        return "" if rest == sums else f"other rows: {rest} instead of {sums}"


class Snapshot:
    """An initial snapshot of a table."""

    def __init__(self, feed: Feed, rows: int) -> None:
        self._feed, self._rows, self._quantities = feed, rows, 0

    def records(self) -> Iterator[Record]:
        """Return its records."""
        self._quantities = 0
        for record, quantity in self._feed.snapshot(self._rows):
            self._quantities += quantity
            yield record

    def wrong(self, location: Path) -> str:
        """Say how a table's sums differ from what they must be, empty if they do not."""
        run = QueryBuilder().register("t", DeltaTable(str(location))).execute
        columns = "count(*) AS n, count(DISTINCT id) AS keys, sum(id) AS ids, sum(quantity) AS quantities"
        (sums,) = pa.table(run(f"SELECT {columns} FROM t").read_all()).to_pylist()
        ids = self._rows * (self._rows + 1) // 2
        expected = {"n": self._rows, "keys": self._rows, "ids": ids, "quantities": self._quantities}
        return "" if sums == expected else f"{sums} instead of {expected}"
