"""Runs random histories and prints what came of them: ``python -m tests.histories --cases 1000``."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

from tests.histories.cases import case_of, judge
from tests.histories.log import Log
from tests.histories.place import lake_folder
from tests.histories.tools import TOOLS

CHUNK = 20  # cases of one format that a process takes at a time
SHRINK_SECONDS = 30.0
BAD = ("waiting", "wrong")


@dataclass
class Line:
    """What came of the cases of one format.

    :param verdicts: cases by verdict.
    :param codes: parked tables by code.
    :param failures: per seed the case that failed, made smaller.
    """

    format: str
    verdicts: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    statements: int = 0
    seconds: float = 0.0
    failures: dict[int, str] = field(default_factory=dict)

    def add(self, other: Line) -> None:
        """Add what came of more cases."""
        self.verdicts += other.verdicts
        self.codes += other.codes
        self.statements += other.statements
        self.seconds += other.seconds
        self.failures |= other.failures


def run(name: str, seeds: Sequence[int]) -> Line:
    """Run the cases of these seeds in this process."""
    line, log = Line(name), Log()
    started = time.monotonic()
    with pytest.MonkeyPatch.context() as patch, lake_folder() as lake:
        log.install(patch)
        for seed in seeds:
            verdict = judge(case_of(name, seed), log, lake, seconds=SHRINK_SECONDS)
            line.verdicts[verdict.kind] += 1
            line.codes.update(verdict.parked)
            line.statements += verdict.statements
            if verdict.failure:
                line.failures[seed] = verdict.failure
    line.seconds = time.monotonic() - started
    return line


def chunks(names: Sequence[str], cases: int, first: int) -> list[tuple[str, range]]:
    """Spread cases evenly over formats, the chunks of all formats mixed."""
    each = -(-cases // len(names))
    starts = range(first, first + each, CHUNK)
    return [(name, range(start, min(start + CHUNK, first + each))) for start in starts for name in names]


def results(work: Sequence[tuple[str, range]], jobs: int) -> Iterator[Line]:
    """Yield what came of each chunk."""
    if jobs == 1:
        yield from (run(name, seeds) for name, seeds in work)
        return
    # Arrow's threads do not survive a fork
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for future in as_completed([pool.submit(run, name, seeds) for name, seeds in work]):
            yield future.result()


def table(lines: Sequence[Line]) -> str:
    """Return the figures of all formats as a table."""
    total = Line("all")
    for line in lines:
        total.add(line)
    heads = ("format", "cases", "equal", "parked", "waiting", "wrong", "statements", "seconds")
    rows = [f"{heads[0]:22}" + "".join(f"{head:>11}" for head in heads[1:])]
    for line in [*lines, total]:
        counts = [line.verdicts.total(), *(line.verdicts[kind] for kind in heads[2:6]), line.statements]
        codes = ", ".join(f"{code} {count}" for code, count in sorted(line.codes.items()))
        rows.append(
            f"{line.format:22}" + "".join(f"{count:11}" for count in counts) + f"{line.seconds:11.1f}  {codes}".rstrip()
        )
    return "\n".join(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 where a table was wrong or waits for ever."""
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="how many, over all formats (default 1000)")
    parser.add_argument("--seed", type=int, default=0, help="first seed of each format (default 0)")
    parser.add_argument("--format", action="append", choices=sorted(TOOLS), help="only this format; may be repeated")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--failures", type=Path, help="folder for failed cases (default: a new temporary one)")
    options = parser.parse_args(arguments)
    names = options.format or list(TOOLS)
    folder = None
    lines = {name: Line(name) for name in names}
    work, started = chunks(names, options.cases, options.seed), time.monotonic()
    for number, line in enumerate(results(work, options.jobs), 1):
        lines[line.format].add(line)
        print(f"\r{number}/{len(work)} chunks, {time.monotonic() - started:.0f} s ", end="", file=sys.stderr)
        for seed, failure in line.failures.items():
            folder = folder or options.failures or Path(tempfile.mkdtemp(prefix="histories-"))
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{line.format}-{seed}.txt"
            path.write_text(failure)
            print(f"\n{line.format} seed {seed}: {path}", file=sys.stderr)
    print(file=sys.stderr)
    if options.json:
        print(json.dumps({"seconds": time.monotonic() - started, "formats": [asdict(line) for line in lines.values()]}))
    else:
        print(table(list(lines.values())))
    return int(any(line.verdicts[kind] for line in lines.values() for kind in BAD))


if __name__ == "__main__":
    sys.exit(main())
