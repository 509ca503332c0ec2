# SPDX-License-Identifier: Apache-2.0
"""Distinguish an old look at the lag from the present one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow_provider_cdc.ledger import Ledger, ProgressSample
from airflow_provider_cdc.observability.freshness import FIRST_RUN, age_text, is_present, longest_age
from airflow_provider_cdc.surface.notifier import _lag

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def every(minutes: int, last: timedelta = timedelta(0), count: int = 5) -> list[datetime]:
    return [NOW - last - timedelta(minutes=minutes * n) for n in range(count - 1, -1, -1)]


def test_a_figure_is_present_for_twice_the_usual_distance_of_figures() -> None:
    assert is_present(every(60, timedelta(minutes=120)), NOW)
    assert not is_present(every(60, timedelta(minutes=121)), NOW)
    # one long pause does not make the distance longer
    assert longest_age([NOW - timedelta(days=9), *every(60)]) == timedelta(hours=2)


def test_without_history_one_constant_counts() -> None:
    assert longest_age([NOW]) == longest_age([]) == longest_age(every(1)) == timedelta(minutes=10)
    assert not is_present([NOW - timedelta(minutes=11)], NOW)
    assert longest_age([NOW], FIRST_RUN) == timedelta(days=1)
    assert longest_age(every(60), FIRST_RUN) == timedelta(hours=2)


def test_ages_are_in_minutes_or_hours() -> None:
    assert age_text(NOW - timedelta(minutes=60), NOW) == "60 min ago"
    assert age_text(NOW - timedelta(hours=5), NOW) == "5 h ago"


def test_a_notification_does_not_show_an_old_lag_as_the_present_one(tmp_path: object) -> None:
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    seen = datetime.now(UTC).replace(second=0, microsecond=0)
    ledger.record_progress("shop", ProgressSample(seen, seen, seen, 0.0, 0))
    (line,) = _lag(ledger, "shop")
    assert line.startswith("Lag at ")
    old = seen - timedelta(minutes=60)
    ledger.record_progress("bank", ProgressSample(old, old, old, 0.0, 0))
    (line,) = _lag(ledger, "bank")
    assert line.startswith(("Lag: unknown, last seen 60 min ago", "Lag: unknown, last seen 61 min ago"))
