# SPDX-License-Identifier: Apache-2.0
"""Runs random histories and prints what came of them: ``python -m tests.histories --cases 1000``."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.histories.many import Line, chunks, run
from tests.histories.tools import TOOLS
from tests.sinks.kinds import OPTIONS

BAD = ("waiting", "wrong")


def results(work: Sequence[tuple[str, range]], jobs: int, how: Mapping[str, Any]) -> Iterator[Line]:
    """Yield what came of each chunk.

    :param how: options of :func:`run`.
    """
    if jobs == 1:
        yield from (run(name, seeds, **how) for name, seeds in work)
        return
    # Arrow's threads do not survive a fork
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for future in as_completed([pool.submit(run, name, seeds, **how) for name, seeds in work]):
            yield future.result()


def table(lines: Sequence[Line]) -> str:
    """Return the figures of all formats as a table."""
    total = Line("all")
    for line in lines:
        total.add(line)
    heads = ("format", "cases", "equal", "parked", "waiting", "wrong", "statements", "agreed", "seconds")
    rows = [f"{heads[0]:22}" + "".join(f"{head:>11}" for head in heads[1:])]
    for line in [*lines, total]:
        counts = [line.verdicts.total(), *(line.verdicts[kind] for kind in heads[2:6]), line.statements, line.agreed]
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
    help_text = "let operators repair, replay, rebuild, decide, maintain and remove old rows between the batches"
    parser.add_argument("--operators", action="store_true", help=help_text)
    parser.add_argument("--buckets", action="store_true", help="split every table by key that can be")
    help_text = "let tables be alike, and resolve them together"
    parser.add_argument("--together", action="store_true", help=help_text)
    help_text = "let operators move, copy and respell the lake, and change and take back what they stated"
    parser.add_argument("--moved", action="store_true", help=help_text)
    help_text = "let operators change the rules of target, also those that give several tables one name"
    parser.add_argument("--routed", action="store_true", help=help_text)
    help_text = "kind of the tables (default delta)"
    parser.add_argument("--sink", choices=list(OPTIONS)[:-1], default="delta", help=help_text)
    help_text = "let tables have an order of rows and partitions at random, as far as the sink can"
    parser.add_argument("--layouts", action="store_true", help=help_text)
    parser.add_argument("--shapes", action="store_true", help="let tables have rules for their columns at random")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--failures", type=Path, help="folder for failed cases (default: a new temporary one)")
    options = parser.parse_args(arguments)
    names = options.format or list(TOOLS)
    ways = ("operators", "buckets", "together", "moved", "routed", "sink", "layouts", "shapes")
    how = {name: getattr(options, name) for name in ways}
    folder = None
    lines = {name: Line(name) for name in names}
    work, started = chunks(names, options.cases, options.seed), time.monotonic()
    for number, line in enumerate(results(work, options.jobs, how), 1):
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
