# SPDX-License-Identifier: Apache-2.0
"""Random histories whose tables are all resolved, typed and written in pieces, as large ones are, against the model."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.apply import ordered_changes
from airflow_provider_cdc.core.config import RunPolicy
from spark_jobs.sinks.delta import task_writer
from tests.histories.cases import case_of, judge
from tests.histories.log import Log
from tests.histories.tools import TOOLS
from tests.sample import amount

_SEEDS = range(200, 200 + amount(1, 3))


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Take every table for a large one with large rows; count what is written in pieces."""
    counts = Counter[str]()
    write = task_writer._write_files

    def counted(location: Any, action: Any, **options: Any) -> None:
        counts[action.verb] += 1
        write(location, action, **options)

    monkeypatch.setattr("tests.histories.run.RunPolicy", partial(RunPolicy, apply_bytes=1))
    monkeypatch.setattr(ordered_changes, "PORTION_BYTES", 200)
    monkeypatch.setattr(task_writer, "_write_files", counted)
    return counts


@pytest.mark.every(2)
@pytest.mark.parametrize("name", TOOLS)
def test_every_table_equals_the_model(name: str, log: Log, lake: Path, written: Counter[str]) -> None:
    failures = [
        f"{name} {seed}, made smaller:\n{verdict.failure}"
        for seed in _SEEDS
        if (verdict := judge(case_of(name, seed, sizes=(5, 8, 10)), log, lake)).failure
    ]
    assert not failures, "\n\n".join(failures)
    assert written["create"]
