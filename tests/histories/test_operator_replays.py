# SPDX-License-Identifier: Apache-2.0
"""Random histories in which an operator replays random ranges between the batches: the tables stay equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.histories.cases import case_of
from tests.histories.log import Log
from tests.histories.replaying import WithReplays
from tests.histories.run import described
from tests.histories.tools import TOOLS
from tests.sample import amount

SEEDS = range(200, 208)
LEAST = amount(2, 4)  # more where those show nothing of what is asked for


@pytest.mark.every(2)
@pytest.mark.parametrize("name", TOOLS)
def test_rows_never_move_backwards(name: str, log: Log, lake: Path) -> None:
    replayed = 0
    for number, seed in enumerate(SEEDS):
        if number >= LEAST and replayed:
            break
        history = WithReplays(case_of(name, seed, sizes=(5, 8)), log, lake)
        problems = history.run()
        assert not problems, described(history.case, history.story, problems)
        replayed += history.replayed
    assert replayed > 0
