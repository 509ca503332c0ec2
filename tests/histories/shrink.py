# SPDX-License-Identifier: Apache-2.0
"""Makes a failing case smaller: fewer statements, fewer complications, as long as it still fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tests.histories.run import Case

WAITING = "is waiting"


def smaller(case: Case, fails: Callable[[Case], bool], seconds: float = 20.0) -> Case:
    """Return a case that fails too and has as little as could be found in the time."""
    end = time.monotonic() + seconds
    improved = True
    while improved and time.monotonic() < end:
        improved = False
        for candidate in _candidates(case):
            if time.monotonic() > end:
                break
            # another seed cuts and spreads the smaller history in another way
            failing = next((c for c in _reseeded(candidate) if fails(c)), None)
            if failing is not None:
                case, improved = failing, True
                break
    return case


def _reseeded(case: Case) -> Iterator[Case]:
    yield from (replace(case, seed=case.seed + more) for more in range(3))


def nature(problems: Sequence[str]) -> str:
    """Return what kind of failure it is, so that a smaller case is one of the same kind."""
    text = problems[0] if problems else ""
    words = (word for word in _NATURES if word in text)
    return next(words, text[:60])


_NATURES = (
    "columns",
    "too much",
    "missing",
    "is gone",
    "two tables",
    "not marked",
    "no table",
    "is parked",
    WAITING,
    "repeat",
    "failed",
    "state but",
)


def _candidates(case: Case) -> Iterator[Case]:
    count = len(case.statements)
    size = count // 2
    while size >= 1:
        for start in range(0, count, size):
            remaining = case.statements[:start] + case.statements[start + size :]
            before = case.style.snapshot_after - max(0, min(size, case.style.snapshot_after - start))
            yield replace(case, statements=remaining, style=replace(case.style, snapshot_after=before))
        size //= 2
    simpler = (
        {"crashes": 0.0},
        {"repeats": 0.0},
        {"losses": 0.0},
        {"doubles": 0.0},
        {"restarts": 0},
        {"replays": 0},
        {"late": 0},
        {"recreated": 0.0},
        {"ragged": 0.0},
        {"batches": case.batches - 1 or 1},
    )
    for change in simpler:
        candidate = replace(case, **change)  # type: ignore[arg-type]
        if candidate != case:
            yield candidate
    plain = (
        {"partitions": 1},
        {"embedded": True},
        {"transactions": False},
        {"heartbeats": False},
        {"snapshot_after": 0},
        {"snapshot_dies": False},
        {"snapshot_null": False},
        # where the log begins again at lower files, there have to be some
        {"file": case.style.file if case.style.log_restarts else 1},
        {"topic_per_table": False},
        {"rows": 1},
        {"ties": 0.0},
        {"minimal": False},
        {"log_restarts": case.style.log_restarts[1:]},
        {"missed": (0, 0)},
    )
    for change in plain:
        candidate = replace(case, style=replace(case.style, **change))  # type: ignore[arg-type]
        if candidate != case:
            yield candidate
