# SPDX-License-Identifier: Apache-2.0
"""Random histories of tables of one structure, which are resolved together wherever they can be, against the model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.formats.registry import open_format
from spark_jobs.tasks import tables_together
from tests.histories.cases import case_of, judge
from tests.histories.log import Log
from tests.histories.together import resolve_all_together
from tests.histories.tools import TOOLS
from tests.sample import TIMES, amount

LEAST = amount(1, 2)  # more where those show nothing of what is asked for


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Count what was resolved together by the number of tables."""
    counts = Counter[int]()
    resolve = tables_together.resolve_together

    def counted(rows: Any, owners: Any, timelines: Any, *more: Any) -> Any:
        plans = resolve(rows, owners, timelines, *more)
        counts[0 if plans is None else len(timelines)] += 1
        return plans

    resolve_all_together(monkeypatch)
    monkeypatch.setattr(tables_together, "resolve_together", counted)
    return counts


@pytest.mark.every(2)
@pytest.mark.parametrize("name", sorted(TOOLS))
def test_every_table_equals_the_model(name: str, log: Log, lake: Path, resolved: Counter[int]) -> None:
    wire, failures = open_format(name, TOOLS[name].options), []
    together = not wire.partial_images
    for number, seed in enumerate(range(700, 700 + 2 * TIMES)):
        if number >= LEAST and bool(resolved[2] + resolved[3]) == together:
            break
        verdict = judge(case_of(name, seed, "sharded", sizes=(15, 25)), log, lake)
        if verdict.failure:
            failures.append(f"{name} {seed}, made smaller:\n{verdict.failure}")
    assert not failures, "\n\n".join(failures)
    assert bool(resolved[2] + resolved[3]) == together, resolved
