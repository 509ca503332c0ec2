# SPDX-License-Identifier: Apache-2.0
"""No table is well and wrong whatever operators do to lakes and to what they stated; nothing outside changes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.histories.cases import case_of
from tests.histories.log import Log
from tests.histories.moved import Moved
from tests.histories.run import described
from tests.histories.tools import TOOLS
from tests.sample import amount

SEEDS = range(300, 308)
LEAST = amount(2, 4)  # more where those show nothing of what is asked for


@pytest.mark.every(2)
@pytest.mark.parametrize("name", TOOLS)
def test_no_table_is_wrong_after_acts_on_lakes_and_statements(name: str, log: Log, lake: Path) -> None:
    acts: Counter[str] = Counter()
    for number, seed in enumerate(SEEDS):
        if number >= LEAST and len(acts) >= 4:
            break
        history = Moved(case_of(name, seed, sizes=(5, 8)), log, lake)
        problems = history.run()
        assert not problems, described(history.case, history.story, problems)
        acts.update(history.acts)
    assert len(acts) >= 4
