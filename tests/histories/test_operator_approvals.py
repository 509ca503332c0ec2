# SPDX-License-Identifier: Apache-2.0
"""Random histories whose policies ask: operators approve and deny in random order, in the end all is approved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.histories.approving import WithApprovals
from tests.histories.cases import case_of
from tests.histories.log import Log
from tests.histories.run import described
from tests.histories.tools import TOOLS
from tests.sample import amount

SEEDS = range(900, 908)
LEAST = amount(2, 4)  # more where those show nothing of what is asked for


@pytest.mark.every(2)
@pytest.mark.parametrize("name", [name for name, tool in TOOLS.items() if "truncate" not in tool.lacks])
def test_tables_are_equal_once_everything_is_approved(name: str, log: Log, lake: Path) -> None:
    decided = 0
    for number, seed in enumerate(SEEDS):
        if number >= LEAST and decided:
            break
        history = WithApprovals(replace(case_of(name, seed, sizes=(5, 8)), on_drop="ask"), log, lake)
        problems = history.run()
        assert not problems, described(history.case, history.story, problems)
        decided += history.decided
    assert decided > 0
