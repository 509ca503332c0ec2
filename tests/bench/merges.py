# SPDX-License-Identifier: Apache-2.0
"""Measure what one merge costs in each kind of table and each way of writing: CPU, bytes and files.

``python -m tests.bench.merges --rows 20000000``. Every case is checked: the table has as many rows as it should have.
Compare figures of one run.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from spark_jobs.sinks.commits import Commit
from spark_jobs.sinks.contract import Action, Sink, Stored
from tests.bench.report import say
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

    def __init__(self, kind: str, rows: int, files: int, folder: Path) -> None:
        self.kind, self.rows, self.folder, self.seq = kind, rows, folder, 0
        self.sink: Sink[Stored] = sink_of(kind, folder)
        self.location = str(folder / "db" / "t")
        for part in np.array_split(np.arange(rows, dtype=np.int64), files):
            self._commit("append" if self.seq else "create", content(part, 0), None)
        self.keys = rows

    def _commit(self, verb: str, rows: pa.Table, deletes: pa.Table | None) -> None:
        self.seq += 1
        commit = Commit(APP, self.seq, {"app": APP, "seq": self.seq})
        columns = columns_of(rows.schema, "id")
        action = Action(verb, commit, rows, deletes, ["id"], columns=columns)  # type: ignore[arg-type]
        self.sink.task_writer().commit(self.sink.open(self.location), action)

    def merge(self, case: str, changed: np.ndarray, gone: np.ndarray) -> Figure:
        """Merge changed and new rows in, and remove others."""
        new = np.arange(self.keys, self.keys + len(changed) // 10, dtype=np.int64)
        self.keys += len(new)
        rows = content(np.concatenate([changed, new]), self.seq)
        before, wall = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
        known = self._files()
        self._commit("merge", rows, pa.table({"id": pa.array(gone, pa.int64())}))
        after, wall = resource.getrusage(resource.RUSAGE_SELF), time.monotonic() - wall
        fresh = {path: size for path, size in self._files().items() if path not in known}
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Figure(self.kind, case, round(cpu, 3), round(wall, 3), sum(fresh.values()), len(fresh))

    def _files(self) -> dict[str, int]:
        return {str(path): path.stat().st_size for path in self.folder.rglob("*") if path.is_file()}


def run(kind: str, rows: int, changes: int, chance: np.random.Generator, folder: Path) -> list[Figure]:
    """Measure one kind."""
    bench = Bench(kind, rows, max(1, rows // 50_000 if rows <= 1_000_000 else rows // 500_000), folder)
    near, spread = rows // 2 + np.arange(changes), chance.choice(rows, changes, replace=False)
    tenth = changes // 10
    figures = [
        bench.merge(f"{changes} near", near[tenth:], near[:tenth]),
        bench.merge(f"{changes} spread", spread[tenth:], spread[:tenth]),
        bench.merge(f"{changes} near, after spread", near[tenth:] + changes, near[:tenth] + changes),
    ]
    gone = len(set(near[:tenth]) | set(spread[:tenth]) | set(near[:tenth] + changes))
    gone -= len({*spread[:tenth]} & {*(near[tenth:] + changes)})
    again = {*near[:tenth]} & {*spread[tenth:]}
    expected = bench.keys - gone + len(again)
    actual = sum(piece.num_rows for piece in bench.sink.open(bench.location).pieces())
    assert actual == expected, (kind, actual, expected)
    return figures


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.merges", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the table (default 1,000,000)")
    parser.add_argument("--changes", type=int, default=10_000, help="changed keys of a merge (default 10,000)")
    parser.add_argument("--kind", action="append", choices=KINDS, help="may be repeated; default: all")
    parser.add_argument("--rounds", type=int, default=3, help="the least of each figure counts (default 3)")
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args(arguments)
    kinds, least = options.kind or KINDS, dict[tuple[str, str], Figure]()
    cpu: Callable[[Figure], float] = lambda figure: figure.cpu_seconds  # noqa: E731
    for number in range(options.rounds):
        for kind in kinds:
            folder = Path(tempfile.mkdtemp(prefix="cdc-merges-"))
            try:
                for figure in run(kind, options.rows, options.changes, np.random.default_rng(number), folder):
                    where = (kind, figure.case)
                    least[where] = min(least.get(where, figure), figure, key=cpu)
            finally:
                shutil.rmtree(folder)
    say(f"{options.rows} rows, least of {options.rounds} rounds")
    for figure in least.values():
        say(
            f"{figure.kind:24}{figure.case:28}{figure.cpu_seconds:8.2f} CPU-s {figure.seconds:8.2f} s"
            f"{figure.written / 1e6:9.1f} MB in {figure.files} files"
        )
    if options.json:
        options.json.write_text(json.dumps([asdict(figure) for figure in least.values()], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
