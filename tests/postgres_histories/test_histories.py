# SPDX-License-Identifier: Apache-2.0
"""A sample of the random histories of a PostgreSQL source; ``python -m tests.postgres_histories`` runs more."""

from __future__ import annotations

import pytest

from tests.postgres_histories.judge import Figures, judge_all
from tests.sample import TIMES

FIRST, CHUNK = 100_000, 12
_SIZES = (5, 8, 12)  # steps: most mistakes need few
_SHOWN = 2
_EQUAL = 0.7  # of the tables, at least: a table that is parked proves little


@pytest.mark.parametrize("chunk", range(2 * TIMES))
def test_every_table_equals_the_model_or_is_parked_for_what_happened(chunk: int) -> None:
    start = FIRST + chunk * CHUNK
    figures: Figures = judge_all(range(start, start + CHUNK), _SIZES, seconds=20.0)
    if figures.failures:
        pytest.fail("\n\n".join(list(figures.failures.values())[:_SHOWN]), pytrace=False)
    assert figures.tables["equal"] >= _EQUAL * figures.tables.total()
