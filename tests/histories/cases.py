# SPDX-License-Identifier: Apache-2.0
"""Cases by seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from spark_jobs.driver.task_runner import Runner
from tests.histories.flaws import FILTERED, FLAWS, HIDDEN_HELPERS, LOST_COLUMNS, NEEDS, flawed
from tests.histories.generate import SHARDED, SIZES, THEMES, history
from tests.histories.log import Log, Partitions
from tests.histories.neutral import EVENT_ROWS
from tests.histories.run import Case, Replay, described, inline
from tests.histories.shrink import WAITING, nature, smaller
from tests.histories.tools import TOOLS, Style


@dataclass(frozen=True)
class Verdict:
    """Report the outcome of a case.

    :param kind: ``equal``, ``parked`` (some tables, all for what their format's page names), ``waiting`` or ``wrong``.
    :param parked: codes of those tables.
    :param statements: how many the case had.
    :param agreed: rows before changes that had the values that the log says.
    :param failure: for people, the case as small as it got, as a test; empty where no table was wrong.
    """

    kind: str
    parked: tuple[str, ...]
    statements: int
    failure: str = ""
    agreed: int = 0


def case_of(
    name: str,
    seed: int,
    theme: str | None = None,
    sizes: Sequence[int] = SIZES,
    flaws: Collection[str] = (),
    *,
    misses: bool = False,
) -> Case:
    """Return the case of a seed, always the same.

    :param name: of the wire format.
    :param theme: name of one of :data:`THEMES`, or ``sharded``; None for any of them but that.
    :param sizes: numbers of statements to choose from.
    :param flaws: of the tool, by the names of tests/histories/flaws.py.
    :param misses: whether the tool may miss statements, and take a new full snapshot then.
    """
    tool = TOOLS[name]
    rnd = random.Random(f"{name} {theme} {seed}")
    subject = SHARDED if theme == SHARDED.name else THEMES[theme or rnd.choice(list(THEMES))]
    server = tool.gtids or random.Random(f"{name} {seed} server").choice(("mysql", "mariadb"))
    palette = flawed(tool.palette, flaws, server)
    statements = history(subject, rnd, palette, tool.lacks, sizes)
    clock = tool.by_clock
    again = random.Random(f"{name} {seed} log")
    partitions, ties = rnd.choice((1, 2, 3)), rnd.choice((0.0, 0.0, 0.5))
    style = Style(
        partitions=partitions,
        embedded=rnd.random() < 0.5,
        snapshot_null=rnd.random() < 0.3,
        transactions=rnd.random() < 0.15,
        heartbeats=rnd.random() < 0.2,
        snapshot_after=rnd.choice((0, 0, rnd.randint(1, len(statements) // 2))) if tool.snapshots else 0,
        snapshot_dies=rnd.random() < 0.3,
        file=rnd.choice((1, 9, 999_998)),
        topic_per_table=tool.topics and not clock and rnd.random() < 0.3,
        rows=rnd.choice((1, EVENT_ROWS)) if tool.numbers_records else 1,
        minimal=bool(tool.partial) and rnd.random() < 0.3,
        ties=ties,
    )
    if flaws:
        style = _with_flaws(style, flaws, palette.server, random.Random(f"{name} {seed} flaws"))
    if HIDDEN_HELPERS in flaws:
        clock = True  # no log that begins again: where a helper's row is missing, nobody sees that it does
    if tool.timed and not clock and again.random() < 0.3:
        # a log that begins again is recognised where files fall by two, or by a fall on each partition
        first = min(style.snapshot_after + 4, len(statements))
        style = replace(style, file=again.choice((9, 999_998)))
        style = replace(style, log_restarts=(again.randint(first, len(statements)),))
        if not tool.gtids or tool.numbers_records:  # numbers have no files to fall by
            style = replace(style, partitions=1, topic_per_table=False)
    if misses and tool.connector and not style.log_restarts and again.random() < 0.7:
        first = again.randint(style.snapshot_after, len(statements) - 1)
        style = replace(style, missed=(first, first + again.randint(1, 12)))
    batches = rnd.choice((1, 2, 2, 3, 4))
    return Case(
        seed,
        tuple(statements),
        style,
        batches=batches,
        ragged=rnd.choice((0.0, 0.5, 1.0)),
        late=rnd.choice((0, 0, 0, 1, 2, 3)),
        restarts=rnd.choice((0, 0, 1, 3)),
        doubles=rnd.choice((0.0, 0.0, 0.1)),
        replays=rnd.choice((0, 0, 1, 2)) * (not style.log_restarts),
        crashes=rnd.choice((0.0, 0.0, 0.4)),
        repeats=0.2,
        losses=rnd.choice((0.0, 0.0, 0.3)),
        recreated=0.0 if clock else again.choice((0.0, 0.0, 0.3)),
        on_drop=rnd.choice(("keep", "keep", "apply")),
        format=name,
    )


def some_flaws(name: str, seed: int) -> frozenset[str]:
    """Return the flaws of a case's tool: none in two of three, else one or two that the tool can have."""
    rnd = random.Random(f"{name} {seed} some flaws")
    able = [flaw for flaw in FLAWS if not set(NEEDS.get(flaw, ())) & set(TOOLS[name].lacks)]
    able = able if TOOLS[name].connector else [flaw for flaw in able if flaw != LOST_COLUMNS]
    return frozenset(rnd.sample(able, rnd.choice((1, 1, 2))) if rnd.random() < 0.33 else ())


def _with_flaws(style: Style, flaws: Collection[str], server: str, rnd: random.Random) -> Style:
    stated = server if rnd.random() < 0.5 else ""
    # where rows lack what did not change, nothing shows that a column is left out
    minimal = style.minimal and FILTERED not in flaws
    states_filter = rnd.random() < 0.7
    style = replace(style, flaws=frozenset(flaws), server=stated, states_filter=states_filter, minimal=minimal)
    if HIDDEN_HELPERS in flaws:
        return replace(style, snapshot_after=0, snapshot_dies=False)
    return style


def judge(
    case: Case,
    log: Log,
    root: Path,
    run_tasks: Runner = inline,
    before_run: Callable[[Partitions], None] | None = None,
    seconds: float = 20.0,
    kind: type[Replay] = Replay,
) -> Verdict:
    """Replay a case.

    :param seconds: time to make one that fails smaller.
    :param kind: how it is replayed.
    """

    def replay(one: Case) -> tuple[Replay, list[str]]:
        attempt = kind(one, log, root, run_tasks, before_run)
        return attempt, attempt.run()

    count = len(case.statements)
    attempt, problems = replay(case)
    expected_nature = nature(problems)
    if not expected_nature:
        parked = tuple(sorted(attempt.parked.values()))
        return Verdict("parked" if parked else "equal", parked, count, agreed=attempt.agreed)
    case = smaller(case, lambda candidate: nature(replay(candidate)[1]) == expected_nature, seconds)
    attempt, problems = replay(case)
    failure = f"{described(case, attempt.story, problems)}\n\n{as_test(case)}"
    return Verdict("waiting" if expected_nature == WAITING else "wrong", (), count, failure)


def as_test(case: Case) -> str:
    """Return a case as the code of a test."""
    name = f"test_{case.format.replace('-', '_')}_{case.seed}"
    return f"def {name}(log: Log, lake: Path) -> None:\n    assert not Replay({case!r}, log, lake).run()\n"
