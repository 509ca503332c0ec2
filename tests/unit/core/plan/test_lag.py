# SPDX-License-Identifier: Apache-2.0
"""Lag in seconds and records."""

from __future__ import annotations

import json

from airflow_provider_cdc.core.plan.lag import lag


def test_seconds_and_records_behind() -> None:
    answer = lag(10_500, 4_000, {"t": {0: 10, 1: 5}}, {"t": {0: 7, 1: 5}})
    assert (answer.seconds, answer.records, answer.skewed) == (6.5, 3, False)
    assert answer.partitions == {"t/0": 3}
    assert json.loads(json.dumps(answer.document())) == answer.document()


def test_a_source_clock_ahead_of_ours_is_zero_and_noted() -> None:
    answer = lag(1_000, 4_000, {}, {})
    assert (answer.seconds, answer.skewed) == (0.0, True)


def test_unknown_progress_stays_unknown() -> None:
    assert lag(1_000, None, {}, {}).seconds is None


def test_what_no_batch_has_read_lags_by_what_the_log_still_has() -> None:
    assert lag(0, 0, {"t": {0: 10}}, {}, {"t": {0: 4}}).records == 6


def test_ends_below_what_is_applied_are_no_negative_lag() -> None:
    assert lag(0, 0, {"t": {0: 3, 1: 9}}, {"t": {0: 5, 1: 8}}).records == 1
