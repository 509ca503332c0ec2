"""Random histories on the pure kernel with the task writer, against the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.histories.cases import case_of, check
from tests.histories.log import Log

_TOLD = 2  # a chunk with more failures stops: each is made small before it is told


def test_every_table_equals_the_model(theme: str, seeds: range, log: Log, lake: Path) -> None:
    failures: list[str] = []
    for seed in seeds:
        failure = check(case_of(theme, seed), log, lake)
        if failure is not None:
            failures.append(f"{theme} {seed}, made smaller:\n{failure}")
        if len(failures) == _TOLD:
            break
    if failures:
        pytest.fail("\n\n".join(failures), pytrace=False)
