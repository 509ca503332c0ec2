# SPDX-License-Identifier: Apache-2.0
"""Many cases of one format: run and counted."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from tests.histories.buckets import split_every_table
from tests.histories.cases import Verdict, case_of, judge, some_flaws
from tests.histories.generate import SHARDED
from tests.histories.layouts import lay_out_at_random
from tests.histories.log import Log
from tests.histories.moved import Moved
from tests.histories.operators import Operated
from tests.histories.place import lake_folder
from tests.histories.routed import Meeting
from tests.histories.run import Replay
from tests.histories.shaped import ShapedReplay
from tests.histories.together import resolve_all_together

CHUNK = 20  # cases of one format that a process takes at a time
SHRINK_SECONDS = 30.0


@dataclass
class Line:
    """Report the outcomes of the cases of one format.

    :param verdicts: cases by verdict.
    :param codes: parked tables by code.
    :param failures: per seed the case that failed, made smaller.
    """

    format: str
    verdicts: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    statements: int = 0
    agreed: int = 0
    seconds: float = 0.0
    failures: dict[int, str] = field(default_factory=dict)

    def add(self, other: Line) -> None:
        """Add what came of more cases."""
        self.verdicts += other.verdicts
        self.codes += other.codes
        self.statements += other.statements
        self.agreed += other.agreed
        self.seconds += other.seconds
        self.failures |= other.failures


def run(
    name: str,
    seeds: Sequence[int],
    *,
    operators: bool = False,
    buckets: bool = False,
    together: bool = False,
    moved: bool = False,
    routed: bool = False,
    sink: str = "delta",
    layouts: bool = False,
    shapes: bool = False,
) -> Line:
    """Run the cases of these seeds in this process.

    :param operators: whether operators act between the batches.
    :param buckets: whether tables are split by key.
    :param together: whether tables are alike, and resolved together where they can be.
    :param sink: kind of the tables.
    :param layouts: whether tables have an order and partitions at random, as far as the sink can.
    :param shapes: whether tables have rules for their columns.
    :param moved: whether operators move the lake, and change and take back what they stated.
    :param routed: whether operators change the rules that name tables in the target.
    """
    acts = {Moved: moved, Meeting: routed, Operated: operators, ShapedReplay: shapes, Replay: True}
    kind = next(kind for kind, asked in acts.items() if asked)
    line, log = Line(name), Log()
    started = time.monotonic()
    with pytest.MonkeyPatch.context() as patch, lake_folder() as lake:
        log.install(patch)
        if buckets:
            split_every_table(patch)
        if together:
            resolve_all_together(patch)
        if layouts:
            lay_out_at_random(patch, partitions=sink.startswith("iceberg"))
        theme = SHARDED.name if together else None
        for seed in seeds:
            flaws = some_flaws(name, seed) if kind is Replay and not theme else ()
            try:
                case = replace(case_of(name, seed, theme, flaws=flaws, misses=shapes), sink=sink)
                verdict = judge(case, log, lake, seconds=SHRINK_SECONDS, kind=kind)
            except Exception:  # an error of a library may not be pickled, and would say nothing of the case
                verdict = Verdict("wrong", (), 0, f"{name} seed {seed}:\n{traceback.format_exc()}")
            line.verdicts[verdict.kind] += 1
            line.codes.update(verdict.parked)
            line.statements += verdict.statements
            line.agreed += verdict.agreed
            if verdict.failure:
                line.failures[seed] = verdict.failure
    line.seconds = time.monotonic() - started
    return line


def chunks(names: Sequence[str], cases: int, first: int) -> list[tuple[str, range]]:
    """Spread cases evenly over formats, the chunks of all formats mixed."""
    each = -(-cases // len(names))
    starts = range(first, first + each, CHUNK)
    return [(name, range(start, min(start + CHUNK, first + each))) for start in starts for name in names]
