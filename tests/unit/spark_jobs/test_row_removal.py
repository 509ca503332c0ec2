# SPDX-License-Identifier: Apache-2.0
"""Rows of a table without key are removed where they are: other files stay, and of equal rows one goes for each."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.sinks import row_group_files
from spark_jobs.sinks.commits import Commit
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.delta import stored_files
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.sinks.delta.task_writer import TaskWriter

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.float64()), ("d", pa.string()), ("e", pa.int32())])
Row = tuple[Any, ...]


def table(*rows: Row) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def comparable(rows: pa.Table) -> Counter[Row]:
    """Return how often each row is there; both zeros and NaN are told apart from other values by their text."""
    return Counter(tuple(map(repr, row.values())) for row in rows.to_pylist())


def commit(location: str, seq: int, verb: Any, rows: pa.Table, deletes: pa.Table | None = None) -> list[pa.Table]:
    """Make a commit; return what it reports as without an equal row."""
    unmatched: list[pa.Table] = []
    facts = Commit("a", seq, {"app": "a", "seq": seq})
    action = Action(verb, facts, rows, deletes, unmatched=unmatched.append)
    TaskWriter().commit(DeltaLocation(location, {}), action)
    assert DeltaLocation(location, {}).applied("a") == seq
    return unmatched


def paths(location: str) -> set[str]:
    return set(DeltaLocation(location, {}).table.file_uris())


def test_random_removals_leave_what_a_multiset_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_files, "PIECE_BYTES", 300)  # a few rows at a time
    chance = random.Random(5)

    def rows(count: int) -> list[Row]:
        values = [[1, 2, None], ["x", "é" * 40, None], [0.0, -0.0, float("nan"), None], ["", None], [7, None]]
        return [tuple(chance.choice(of_column) for of_column in values) for _ in range(count)]

    for case in range(12):
        location = str(tmp_path / str(case))
        commit(location, 1, "create", table(*rows(20)))
        for seq in (2, 3):
            commit(location, seq, "append", table(*rows(20)))
        expected = comparable(DeltaLocation(location, {}).rows())
        for seq in (4, 5):
            adds, removes = table(*rows(chance.randrange(4))), table(*rows(chance.randrange(12)))
            (unmatched,) = commit(location, seq, "subtract", adds, removes)
            gone = comparable(removes) - comparable(unmatched)
            assert comparable(unmatched) == comparable(removes) - expected
            expected = expected - gone + comparable(adds)
            assert comparable(DeltaLocation(location, {}).rows()) == expected


def test_only_files_that_hold_such_rows_are_written_again(tmp_path: Path) -> None:
    location = str(tmp_path)
    commit(location, 1, "create", table((1, "x", 0.5, "p", 1), (1, "x", 0.5, "p", 1), (2, "y", 0.5, "p", 1)))
    commit(location, 2, "append", table((2, "y", 0.5, "p", 2), (3, "z", 0.5, "p", 2)))
    commit(location, 3, "append", table((8, "z", 0.5, "p", 2), (9, "z", 0.5, "p", 2)))
    before = paths(location)
    # the second file has a row that equals it but for the last column
    (unmatched,) = commit(location, 4, "subtract", table(), table((1, "x", 0.5, "p", 1), (2, "y", 0.5, "p", 1)))
    assert not unmatched.num_rows
    assert len(before - paths(location)) == 1
    assert sorted(row["a"] for row in DeltaLocation(location, {}).rows().to_pylist()) == [1, 2, 3, 8, 9]


def test_removals_without_an_equal_row_are_reported_and_change_no_file(tmp_path: Path) -> None:
    location = str(tmp_path)
    commit(location, 1, "create", table((1, "x", 0.5, "p", 1)))
    before = paths(location)
    (unmatched,) = commit(location, 2, "subtract", table(), table((1, "x", 0.5, "p", 2), (1, "x", 0.5, "p", 2)))
    assert unmatched.num_rows == 2
    assert paths(location) == before


def test_a_removal_stays_in_the_range_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_group_files, "_FULL_BYTES", 1)
    location = str(tmp_path)
    commit(location, 1, "create", table(*((n, "x", 0.5, "p", 1) for n in range(10))))
    commit(location, 2, "append", table(*((n, "x", 0.5, "p", 1) for n in range(10, 20))))
    commit(location, 3, "subtract", table(), table((4, "x", 0.5, "p", 1), (14, "x", 0.5, "p", 1)))
    files = pa.table(DeltaLocation(location, {}).table.get_add_actions()).to_pylist()
    assert sorted((file["min"]["a"], file["max"]["a"]) for file in files) == [(0, 9), (10, 19)]
