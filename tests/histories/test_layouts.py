# SPDX-License-Identifier: Apache-2.0
"""A sample of the random histories whose tables have orders and partitions at random, and change them with columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spark_jobs.sinks.iceberg.sink import IcebergSink
from spark_jobs.sinks.iceberg.table import IcebergTable
from tests.histories.cases import case_of, judge
from tests.histories.layouts import lay_out_at_random
from tests.histories.log import Log
from tests.sample import amount

SEEDS = range(40, 46)
LEAST = amount(2, 3)  # more where those show nothing of what is asked for
_SIZES = (8, 10)
_CASES = [(name, sink) for name in ("debezium-json", "canal-json") for sink in ("iceberg", "iceberg copy-on-write")]


@pytest.mark.parametrize(("name", "sink"), _CASES)
def test_tables_with_partitions_at_random_equal_the_model(
    name: str, sink: str, log: Log, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out_at_random(monkeypatch, partitions=True)
    ways, opened = set[str](), IcebergSink.open

    def watched(self: IcebergSink, location: str, version: int | None = None) -> IcebergTable:
        stored = opened(self, location, version)
        if stored.exists:
            ways.update(str(field.transform) for field in stored.table.spec().fields)
        return stored

    monkeypatch.setattr(IcebergSink, "open", watched)
    for number, seed in enumerate(SEEDS):
        if number >= LEAST and len(ways) >= 3:
            break
        verdict = judge(replace(case_of(name, seed, sizes=_SIZES), sink=sink), log, lake)
        assert not verdict.failure, verdict.failure
    assert len(ways) >= 3
