# SPDX-License-Identifier: Apache-2.0
"""Random histories whose tables are split by key wherever they can be, against the model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.driver import key_buckets
from tests.histories.buckets import split_every_table
from tests.histories.cases import case_of, judge
from tests.histories.log import Log
from tests.histories.tools import TOOLS
from tests.sample import amount

_SEEDS = {name: range(400, 400 + amount(1, 2)) for name in TOOLS}


@pytest.fixture
def committed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the commits of split tables by what they do, and the tasks that settle keys in doubt."""
    counts = Counter[str]()
    commit, settle = key_buckets.commit_parts, key_buckets.settle

    def counted(*arguments: Any) -> Any:
        report = commit(*arguments)
        counts[report.action] += 1
        return report

    def settled(*arguments: Any) -> Any:
        report = settle(*arguments)
        counts["settled"] += report.part is not None
        return report

    split_every_table(monkeypatch)
    monkeypatch.setattr(key_buckets, "commit_parts", counted)
    monkeypatch.setattr(key_buckets, "settle", settled)
    return counts


def test_every_table_equals_the_model(log: Log, lake: Path, committed: Counter[str]) -> None:
    failures = [
        f"{name} {seed}, made smaller:\n{verdict.failure}"
        for name, seeds in _SEEDS.items()
        for seed in seeds
        if (verdict := judge(case_of(name, seed, sizes=(8, 10)), log, lake)).failure
    ]
    assert not failures, "\n\n".join(failures)
    assert committed["create"] and committed["merge"] and committed["append"], committed


@pytest.mark.parametrize("name", [name for name, tool in TOOLS.items() if tool.by_clock])
def test_keys_in_doubt_are_settled_by_the_images_of_their_changes(
    name: str, log: Log, lake: Path, committed: Counter[str]
) -> None:
    for seed in range(6000, 6020):
        failure = judge(case_of(name, seed, "sharded", sizes=(15, 25)), log, lake).failure
        assert not failure, failure
        if committed["settled"] > 1 and committed["create"] and committed["merge"]:
            return
    raise AssertionError(committed)
