# SPDX-License-Identifier: Apache-2.0
"""Judge cases: one by one, made smaller where a table is wrong, or many in a process."""

from __future__ import annotations

import re
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.histories.log import Log
from tests.histories.place import lake_folder
from tests.histories.run import Case, described
from tests.histories.shrink import nature, smaller
from tests.postgres_histories.generate import case_of
from tests.postgres_histories.replay import PgCase, PgReplay

SHRINK_SECONDS = 30.0


@dataclass
class Figures:
    """Report the outcomes of cases.

    :ivar cases: by ``equal``, ``parked`` (some tables) and ``wrong``; ``tables`` are those at the end.
    :ivar reasons: of parked tables.
    :ivar failures: per seed the case that failed, made smaller.
    """

    cases: Counter[str] = field(default_factory=Counter)
    tables: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    agreed: int = 0
    failures: dict[int, str] = field(default_factory=dict)

    def add(self, other: Figures) -> None:
        """Add what came of more cases."""
        self.cases += other.cases
        self.tables += other.tables
        self.reasons += other.reasons
        self.agreed += other.agreed
        self.failures |= other.failures


def judge(case: PgCase, log: Log, lake: Path, seconds: float = SHRINK_SECONDS) -> Figures:
    """Replay a case, and make it smaller where a table is wrong.

    :param seconds: time to make it smaller.
    """
    attempt = PgReplay(case, log, lake)
    problems = attempt.run()
    if not problems:
        parked = Counter(attempt.parked.values())
        tables = Counter(equal=attempt.equal.total(), parked=parked.total())
        return Figures(Counter(["parked" if parked else "equal"]), tables, parked, attempt.agreed)
    kind = _nature(problems)

    def fails(one: Case) -> bool:
        try:
            return _nature(PgReplay(one, log, lake).run()) == kind
        except Exception:  # the model cannot carry out what is left of the history
            return False

    case = smaller(case, fails, seconds)
    attempt = PgReplay(case, log, lake)
    text = described(case, attempt.story, attempt.run())
    flags = f"logs_ddl={case.logs_ddl}, on_unseen={case.on_unseen}, {case.style}"
    return Figures(Counter(["wrong"]), failures={case.seed: f"{text}\n{flags}"})


def _nature(problems: Sequence[str]) -> tuple[str, ...]:
    """Return what kind of failure it is, with the code or the first words of a reason."""
    text = problems[0].partition(": ")[2] if problems else ""
    code = re.search(r"\[([a-z_.]+)\]", text)
    return nature(problems), code[1] if code else text.partition(": ")[2][:30] if "is parked" in text else ""


def judge_all(seeds: Sequence[int], sizes: Sequence[int] | None = None, seconds: float = SHRINK_SECONDS) -> Figures:
    """Judge the cases of some seeds in this process."""
    figures, log = Figures(), Log()
    with pytest.MonkeyPatch.context() as patch, lake_folder() as lake:
        log.install(patch)
        for seed in seeds:
            try:
                one = judge(case_of(seed, *([sizes] if sizes else [])), log, lake, seconds)
            except Exception:
                one = Figures(Counter(["wrong"]), failures={seed: traceback.format_exc()})
            one.failures = dict.fromkeys([seed] if one.failures else [], "\n".join(one.failures.values()))
            figures.add(one)
    return figures


def timed(seeds: Sequence[int]) -> tuple[Figures, float]:
    """Judge the cases of some seeds, and return how long it took."""
    started = time.monotonic()
    return judge_all(seeds), time.monotonic() - started
