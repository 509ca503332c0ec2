"""Cases by seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from spark_jobs.sync import Runner
from tests.histories.generate import THEMES, history
from tests.histories.log import Log, Partitions
from tests.histories.run import Case, Replay, inline, told
from tests.histories.shrink import nature, smaller
from tests.histories.wire import Style


def case_of(theme: str, seed: int) -> Case:
    """Return the case of a seed, always the same."""
    rnd = random.Random(f"{theme} {seed}")
    statements = history(THEMES[theme], rnd)
    style = Style(
        partitions=rnd.choice((1, 2, 3)),
        embedded=rnd.random() < 0.5,
        snapshot_null=rnd.random() < 0.3,
        transactions=rnd.random() < 0.15,
        heartbeats=rnd.random() < 0.2,
        snapshot_after=rnd.choice((0, 0, rnd.randint(1, len(statements) // 2))),
        file=rnd.choice((1, 9, 999_998)),
    )
    return Case(
        seed,
        tuple(statements),
        style,
        batches=rnd.choice((1, 2, 2, 3, 4)),
        ragged=rnd.choice((0.0, 0.5, 1.0)),
        restarts=rnd.choice((0, 0, 1, 3)),
        doubles=rnd.choice((0.0, 0.0, 0.1)),
        crashes=rnd.choice((0.0, 0.0, 0.4)),
        repeats=0.2,
    )


def check(
    case: Case,
    log: Log,
    root: Path,
    run_tasks: Runner = inline,
    before_run: Callable[[Partitions], None] | None = None,
) -> str | None:
    """Replay a case; return the failure, as small as it gets, or None."""

    def replay(one: Case) -> tuple[Replay, list[str]]:
        attempt = Replay(one, log, root, run_tasks, before_run)
        return attempt, attempt.run()

    wanted = nature(replay(case)[1])
    if not wanted:
        return None
    case = smaller(case, lambda candidate: nature(replay(candidate)[1]) == wanted)
    attempt, problems = replay(case)
    return told(case, attempt.story, problems)
