# SPDX-License-Identifier: Apache-2.0
"""A sample of the random histories of every format, against the model; ``make histories`` runs more and longer ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.histories.cases import case_of, judge, some_flaws
from tests.histories.log import Log

_SHOWN = 2  # a chunk with more failures stops: each is made small before it is shown
_SIZES = (5, 8, 10)  # statements: most mistakes need few


def test_every_table_equals_the_model(name: str, seeds: range, log: Log, lake: Path) -> None:
    failures: list[str] = []
    for seed in seeds:
        verdict = judge(case_of(name, seed, sizes=_SIZES, flaws=some_flaws(name, seed)), log, lake)
        if verdict.failure:
            failures.append(f"{name} {seed}, made smaller:\n{verdict.failure}")
        if len(failures) == _SHOWN:
            break
    if failures:
        pytest.fail("\n\n".join(failures), pytrace=False)
