# SPDX-License-Identifier: Apache-2.0
"""The witness alone notices those losses that were silent once of which the log shows something."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.histories.log import Log
from tests.histories.silent_case import Noticed, Silent
from tests.histories.switched_off import CASES, expected, outcome, page_lines

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "equal.md"


@pytest.mark.every(2)
@pytest.mark.parametrize("case", CASES, ids=[f"{number}-{case.kind}" for number, case in enumerate(CASES)])
def test_the_witness_notices_a_loss_whose_fix_is_switched_off(case: Silent, log: Log, lake: Path) -> None:
    assert outcome(case, log, lake) == expected(case), case.what


def test_the_page_lists_what_is_noticed() -> None:
    text, compared = PAGE.read_text(), [case for case in CASES if case.noticed in (Noticed.SAME, Noticed.LATER)]
    assert "\n".join(page_lines()) in text
    assert f"Of {len(CASES)} histories {len(compared)} are noticed" in text
