# SPDX-License-Identifier: Apache-2.0
"""A table with many stored rows, and changes of few of them: recent keys, or keys from everywhere."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, QueryBuilder, write_deltalake

from tests.bench.data import Feed, Record, differences
from tests.bench.structure import EXPECTED, START

FIRST_KEY = 1_000  # of the stored rows: above those of the batch that makes the table
_FILE_ROWS = 500_000
_RECENT = 0.02  # of the stored keys
_UPDATED, _DELETED = 0.81, 0.09  # of the changes; the others are inserts


def fill(location: Path, rows: int) -> None:
    """Append stored rows to a contestant's table, with the mark by which ours knows its own commits."""
    marks = CommitProperties(custom_metadata={"cdc": '{"app": "bench"}'})
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


class Changes:
    """Changes of keys of a table with stored rows.

    rows: how many are stored.
    recent: whether the keys are of the newest rows, else from everywhere.
    """

    def __init__(self, feed: Feed, rows: int, changes: int, recent: bool) -> None:
        self._feed, self._rows = feed, rows
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
        return self._feed.of_keys(self._kinds)

    def wrong(self, location: Path) -> str:
        """Say how a table differs from what it must be, empty if it does not: changed rows by cell, others by sums."""
        run = QueryBuilder().register("t", DeltaTable(str(location))).execute
        changed = pa.table(run("SELECT * FROM t WHERE note LIKE '% v%'").read_all())
        (expected,) = self._feed.expected().values()
        if problem := differences(expected, changed):
            return f"changed rows: {problem}"
        columns = "count(*) AS n, sum(id) AS ids, sum(quantity) AS quantities"
        (rest,) = pa.table(run(f"SELECT {columns} FROM t WHERE note NOT LIKE '% v%'").read_all()).to_pylist()
        gone = np.array([key - FIRST_KEY for kind, key in self._kinds if kind != "c"])
        ids = np.delete(np.arange(FIRST_KEY, FIRST_KEY + self._rows), gone)
        sums = {"n": len(ids), "ids": int(ids.sum()), "quantities": int((ids % 5000).sum())}
        return "" if rest == sums else f"other rows: {rest} instead of {sums}"
