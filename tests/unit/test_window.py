# SPDX-License-Identifier: Apache-2.0
"""The end of a window follows from the argument, else from the run; an exact window waits for those before it."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_cdc.batch.window import ExactWindow, choose_until
from airflow_provider_cdc.core.errors import ConfigurationError, SourceError
from airflow_provider_cdc.ledger import Lease, Ledger
from tests.sample import amount

TEN = datetime(2026, 11, 21, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)


def event(**extra: Any) -> SimpleNamespace:
    return SimpleNamespace(extra=extra)


def ours(until: datetime | None, pipeline: str = "shop") -> SimpleNamespace:
    return event(pipeline=pipeline, until=until and until.isoformat())


@pytest.mark.parametrize(
    ("value", "context", "expected", "rule"),
    [
        (TEN, {"data_interval_end": TEN + HOUR}, TEN, "argument"),
        ("2026-11-21T10:00:00", {}, TEN, "argument"),
        ("now", {"data_interval_end": TEN}, None, "until is now"),
        (None, {"data_interval_end": TEN}, TEN, "data interval"),
        ("", {"data_interval_end": TEN}, TEN, "data interval"),
        ("None", {"data_interval_end": None}, None, "neither"),
        (None, {}, None, "neither"),
        (None, {"triggering_asset_events": {"a": [ours(TEN)]}}, TEN, "asset event"),
        (None, {"data_interval_end": TEN, "triggering_asset_events": {"a": [ours(TEN + HOUR)]}}, TEN, "data interval"),
        # The newest event of each asset; of several pipelines the one that is behind.
        (None, {"triggering_asset_events": {"a": [ours(TEN), ours(TEN + HOUR)]}}, TEN + HOUR, "asset event"),
        (None, {"triggering_asset_events": {"a": [ours(TEN + HOUR)], "b": [ours(TEN, "b")]}}, TEN, "asset event"),
        # Events of others, and of a batch without a time.
        (None, {"triggering_asset_events": {"a": [event(until="2026-11-21")]}}, None, "neither"),
        (None, {"triggering_asset_events": {"a": [ours(None)]}}, None, "neither"),
        (None, {"triggering_asset_events": {"a": [SimpleNamespace(extra=None)]}}, None, "neither"),
    ],
)
def test_the_end_is_the_argument_else_what_the_run_says(
    value: Any, context: dict[str, Any], expected: datetime | None, rule: str
) -> None:
    until = choose_until(value, context)
    assert until.at == expected
    assert rule in until.rule and rule in str(until)


@pytest.mark.parametrize("value", ["soon", 7, "{{ data_interval_end }}", "{% if x %}"])
def test_what_is_no_time_is_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="until: "):
        choose_until(value, {"data_interval_end": TEN})


# ---- exact windows


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")


def hour(number: int) -> ExactWindow:
    """Return the window of an hour, from 0."""
    return ExactWindow(TEN + number * HOUR, TEN + (number + 1) * HOUR)


def commit(ledger: Ledger, lease: Lease, until: datetime | None) -> None:
    batch = ledger.plan(lease, {}, {}, until)
    ledger.commit(lease, batch.seq, {"status": "empty"})


def test_a_window_waits_for_the_one_before_it_and_says_how_far_things_are(ledger: Ledger) -> None:
    with ledger.lease("shop", "a", 30) as lease:
        assert "applied: no window yet" in hour(2).holds_back(ledger, "shop")
        commit(ledger, lease, TEN + HOUR)
        assert "applied: up to 2026-11-21T11:00:00+00:00" in hour(2).holds_back(ledger, "shop")
        assert hour(1).holds_back(ledger, "shop") == ""
        batch = ledger.plan(lease, {}, {}, hour(2).until)
        assert hour(2).holds_back(ledger, "shop") == "", "its own batch is to be finished"
        ledger.commit(lease, batch.seq, {"status": "empty"})
        assert hour(2).holds_back(ledger, "shop") == hour(3).holds_back(ledger, "shop") == ""


def test_a_window_inside_of_another_batch_is_refused(ledger: Ledger) -> None:
    with ledger.lease("shop", "a", 30) as lease:
        commit(ledger, lease, TEN + 3 * HOUR)
    for number in (0, 1):
        with pytest.raises(SourceError, match=r"is part of batch 1") as refused:
            hour(number).holds_back(ledger, "shop")
        assert refused.value.code == "window.passed"
    assert hour(2).holds_back(ledger, "shop") == "", "the batch of exactly this end is its own"


@pytest.mark.parametrize("seed", range(amount(4, 20)))
def test_windows_that_are_asked_for_in_any_order_are_committed_in_theirs(ledger: Ledger, seed: int) -> None:
    """Several at a time, as a backfill starts them; each that may go on commits its batch."""
    order = random.Random(seed)
    open_windows = [hour(number) for number in range(12)]
    committed: list[ExactWindow] = []
    with ledger.lease("shop", "a", 30) as lease:
        commit(ledger, lease, TEN)
        while open_windows:
            window = order.choice(open_windows[:3])
            if window.holds_back(ledger, "shop") == "":
                commit(ledger, lease, window.until)
                committed.append(window)
                open_windows.remove(window)
    assert committed == [hour(number) for number in range(12)]
    assert [batch.until for batch in ledger.batches("shop", after=1)] == [window.until for window in committed]
