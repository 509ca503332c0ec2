# SPDX-License-Identifier: Apache-2.0
"""Runs random histories of a PostgreSQL source: ``python -m tests.postgres_histories --cases 2000``."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from tests.postgres_histories.judge import Figures, judge_all

CHUNK = 20  # cases that a process takes at a time


def _results(work: Sequence[range], jobs: int, seconds: float) -> Iterator[Figures]:
    if jobs == 1:
        yield from (judge_all(seeds, seconds=seconds) for seeds in work)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for future in as_completed([pool.submit(judge_all, seeds, None, seconds) for seeds in work]):
            yield future.result()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 where a table was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.postgres_histories", description=__doc__)
    parser.add_argument("--cases", type=int, default=2000, help="how many (default 2000)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--shrink", type=float, default=30.0, help="seconds to make a failed case smaller (default 30)")
    parser.add_argument("--failures", type=Path, help="folder for failed cases (default: a new temporary one)")
    options = parser.parse_args(arguments)
    end, figures, folder = options.seed + options.cases, Figures(), options.failures
    work = [range(start, min(start + CHUNK, end)) for start in range(options.seed, end, CHUNK)]
    started = time.monotonic()
    for number, one in enumerate(_results(work, options.jobs, options.shrink), 1):
        figures.add(one)
        for seed, text in one.failures.items():
            folder = folder or Path(tempfile.mkdtemp(prefix="postgres-histories-"))
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{seed}.txt").write_text(text)
            print(f"seed {seed}: {folder / f'{seed}.txt'}", file=sys.stderr, flush=True)
        print(
            f"\r{number}/{len(work)} chunks, {time.monotonic() - started:.0f} s ", end="", file=sys.stderr, flush=True
        )
    print(file=sys.stderr)
    for what, counts in (("cases", figures.cases), ("tables", figures.tables), ("reasons", figures.reasons)):
        print(f"{what}: " + ", ".join(f"{name} {count}" for name, count in counts.most_common()))
    print(f"rows that agreed with the log: {figures.agreed}, seconds: {time.monotonic() - started:.0f}")
    return int(bool(figures.cases["wrong"]))


if __name__ == "__main__":
    sys.exit(main())
