# SPDX-License-Identifier: Apache-2.0
"""A table of one kind whose commits are measured."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from spark_jobs.sinks.commits import Commit
from spark_jobs.sinks.contract import Action, Sink, Stored, Verb
from tests.sinks.actions import columns_of
from tests.sinks.kinds import sink_of

APP = "cdc/bench/t/0"
KINDS = ["delta", "delta merge-on-read", "iceberg", "iceberg copy-on-write"]
_TEXTS = 1_000  # different values of a text column


@dataclass(frozen=True)
class Figure:
    """Hold what one commit took."""

    kind: str
    case: str
    cpu_seconds: float
    seconds: float
    written: int
    files: int


def commit_of(bench: Bench) -> Commit:
    """Return the next commit of a table."""
    bench.seq += 1
    return Commit(APP, bench.seq, {"app": APP, "seq": bench.seq})


def content(keys: np.ndarray, mark: int) -> pa.Table:
    """Return rows of twelve columns."""
    count = len(keys)
    texts = pa.array([f"text {mark} {number}" for number in range(_TEXTS)])
    columns = {"id": pa.array(keys, pa.int64())}
    for number in range(5):
        columns[f"n{number}"] = pa.array((keys * (number + 3) + mark) % 100_003, pa.int64())
    for number in range(4):
        columns[f"t{number}"] = texts.take(pa.array((keys + number) % _TEXTS))
    columns["at"] = pa.array(keys * 1_000_000 % (1 << 50), pa.timestamp("us"))
    columns["price"] = pa.array(np.full(count, mark + 0.5))
    return pa.table(columns)


class Bench:
    """One table of one kind, and its merges."""

    def __init__(self, kind: str, rows: int, files: int, folder: Path, name: str = "t") -> None:
        self.kind, self.rows, self.seq = kind, rows, 0
        self.sink: Sink[Stored] = sink_of(kind, folder)
        self.location = str(folder / "db" / name)
        for part in np.array_split(np.arange(rows, dtype=np.int64), files):
            self._commit("append" if self.seq else "create", content(part, 0), None)
        self.keys = rows

    def _commit(self, verb: Verb, rows: pa.Table, deletes: pa.Table | None) -> None:
        columns = columns_of(rows.schema, "id")
        action = Action(verb, commit_of(self), rows, deletes, ["id"], columns=columns)
        self.sink.task_writer().commit(self.sink.open(self.location), action)

    def merge(self, case: str, changed: np.ndarray, gone: np.ndarray) -> Figure:
        """Merge changed and new rows in, and remove others."""
        new = np.arange(self.keys, self.keys + len(changed) // 10, dtype=np.int64)
        self.keys += len(new)
        rows = content(np.concatenate([changed, new]), self.seq)
        return self.measured(case, lambda: self._commit("merge", rows, pa.table({"id": pa.array(gone, pa.int64())})))

    def measured(self, case: str, commit: Callable[[], object]) -> Figure:
        """Measure one commit."""
        before, wall = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
        known = self.files()
        commit()
        after, wall = resource.getrusage(resource.RUSAGE_SELF), time.monotonic() - wall
        fresh = {path: size for path, size in self.files().items() if path not in known}
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Figure(self.kind, case, round(cpu, 3), round(wall, 3), sum(fresh.values()), len(fresh))

    def files(self) -> dict[str, int]:
        """Return the sizes of all files."""
        return {str(path): path.stat().st_size for path in Path(self.location).rglob("*") if path.is_file()}
