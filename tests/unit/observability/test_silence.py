# SPDX-License-Identifier: Apache-2.0
"""Distinguish a source without news from one that is silent for longer than usual."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_provider_cdc.core.plan.lag import Lag, PartitionLag
from airflow_provider_cdc.ledger import Ledger
from airflow_provider_cdc.observability.silence import silence_text

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def ledger_of(folder: Path, *ages: int) -> Ledger:
    """Return a ledger with a batch for each age in minutes of what it reached."""
    ledger = Ledger(f"sqlite:///{folder / 'ledger.db'}")
    with ledger.lease("shop", "me") as lease:
        for number, age in enumerate(ages):
            batch = ledger.plan(lease, {"t": {0: number}}, {"t": {0: number + 1}}, None)
            reached = (NOW - timedelta(minutes=age)).isoformat()
            ledger.commit(lease, batch.seq, {"status": "done", "cut": {"source_time": reached}}, {})
    return ledger


def look(*ages: int | None) -> Lag:
    """Return a look at partitions whose newest records have ages in minutes."""
    at = int(NOW.timestamp() * 1000)
    times = [None if age is None else at - age * 60_000 for age in ages]
    return Lag(at, tuple(PartitionLag("t", n, 0, None, time, time) for n, time in enumerate(times)), heartbeats=False)


@pytest.mark.parametrize(
    ("batches", "newest", "said"),
    [
        ((180, 120, 60), (60,), ""),
        ((180, 120, 60), (121,), "its newest record is 2 h old; batches usually bring newer ones every 60 min."),
        ((180, 120, 60), (9000, 10), ""),  # of tables that rarely change
        ((25, 20, 15), (15, None), "its newest record is 15 min old; batches usually bring newer ones every 5 min."),
        ((180, 180, 180), (180,), ""),  # one moment says nothing of what is usual
        ((4000,), (4000,), "its newest record is 3 d old."),
        ((60,), (None,), ""),
        ((), (4000,), ""),
    ],
)
def test_older_than_twice_the_usual_distance_is_silent(
    batches: tuple[int, ...], newest: tuple[int | None, ...], said: str, tmp_path: Path
) -> None:
    text = silence_text(ledger_of(tmp_path, *batches), "shop", look(*newest))
    assert text.startswith(f"the source is silent: {said}") if said else text == ""
