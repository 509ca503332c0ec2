# SPDX-License-Identifier: Apache-2.0
"""A sample of random histories with rules for columns and rows; ``python -m tests.histories --shapes`` runs more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.histories.cases import case_of, judge
from tests.histories.log import Log
from tests.histories.shaped import ShapedReplay
from tests.histories.tools import TOOLS
from tests.sample import amount

_SIZES = (5, 8, 10)  # statements


@pytest.mark.every(2)
@pytest.mark.parametrize("name", TOOLS)
def test_every_table_equals_the_same_rules_in_plain_python(name: str, log: Log, lake: Path) -> None:
    for seed in range(500, 500 + amount(2, 4)):
        verdict = judge(case_of(name, seed, sizes=_SIZES, misses=True), log, lake, kind=ShapedReplay)
        assert not verdict.failure, verdict.failure
