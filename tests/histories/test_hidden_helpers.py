# SPDX-License-Identifier: Apache-2.0
"""Random histories in which tables are rebuilt as by gh-ost, and the log lacks the rows of the helper tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.histories.cases import case_of, judge
from tests.histories.flaws import HIDDEN_HELPERS
from tests.histories.log import Log
from tests.histories.tools import TOOLS, UNREAD
from tests.sample import amount

CASES = 8
LEAST = amount(2, 4)  # more where those show nothing of what is asked for


@pytest.mark.every(2)
@pytest.mark.parametrize("name", [name for name, tool in TOOLS.items() if "ghost" not in tool.lacks])
def test_no_table_is_well_without_the_rows_of_a_helper(name: str, log: Log, lake: Path) -> None:
    codes: Counter[str] = Counter()
    failures = []
    for seed in range(CASES):
        if seed >= LEAST and any(code in UNREAD for code in codes):
            break
        case = case_of(name, seed, "renames", sizes=(15, 25))
        style = replace(
            case.style, flaws=frozenset({HIDDEN_HELPERS}), snapshot_after=0, snapshot_dies=False, log_restarts=()
        )
        verdict = judge(replace(case, style=style), log, lake / str(seed))
        codes.update(verdict.parked)
        failures += [verdict.failure] * (verdict.kind in ("wrong", "waiting"))
    assert not failures, failures[0]
    assert any(code in UNREAD for code in codes), "no case had a helper with rows"
