# SPDX-License-Identifier: Apache-2.0
"""Answers of a lag sensor: bounds, looks in a row, alarm, and what an unknown lag means."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.plan.lag import HeldTable, Lag, PartitionLag
from airflow_provider_cdc.watch.condition import Answer
from airflow_provider_cdc.watch.lag import LagCondition, as_seconds

PIPELINE = CdcPipeline.from_dict(
    {"name": "shop", "source": {"topics": ["t"], "format": "canal-json"}, "sink": {"type": "delta", "root": "/lake"}}
)
NOW = 1_000_000_000


def behind(seconds: float, records: int = 3) -> Lag:
    """Return a lag whose oldest change that is not applied is this old."""
    then = NOW - int(seconds * 1000)
    parts = (PartitionLag("t", 0, records, then, then, NOW), PartitionLag("t", 1, 0, None, NOW, NOW))
    return Lag(NOW, parts, heartbeats=True)


IDLE = Lag(NOW, (PartitionLag("t", 0, 0, None, NOW - 3_600_000, NOW - 3_600_000),), heartbeats=False)
SILENT = Lag(NOW, (PartitionLag("t", 0, 0, None, None, None, "it is empty"),), heartbeats=False)


def answers(looks: list[Lag], **arguments: Any) -> list[Answer]:
    condition = LagCondition(PIPELINE, **arguments)
    return [condition.judge(None, look) for look in looks]


def reached(looks: list[Lag], **arguments: Any) -> list[bool]:
    return [answer.reached for answer in answers(looks, **arguments)]


def test_either_bound_holds_back_and_names_the_partition() -> None:
    assert reached([behind(60), behind(61)], max_seconds=60) == [True, False]
    assert reached([behind(0, 3), behind(0, 4)], max_records=3) == [True, False]
    (answer,) = answers([behind(61)], max_seconds=60)
    assert answer.holds == ("t/0",) and "t/0 (3 records, applied up to " in answer.message
    (answer,) = answers([behind(1, 9)], max_seconds=60, max_records=8)
    assert answer.holds == ("t/0",)


def test_looks_in_a_row_must_agree() -> None:
    looks = [behind(1), behind(99), behind(1), behind(1), behind(1), behind(99)]
    assert reached(looks, max_seconds=60, for_looks=3) == [False, False, False, False, True, False]
    waiting = answers(looks[:1], max_seconds=60, for_looks=3)[0]
    assert "1 of 3 looks" in waiting.message and not waiting.alarm


def test_an_alarm_ends_waiting_when_the_lag_stays_above() -> None:
    looks = [behind(99), behind(1), behind(99), behind(99)]
    alarms = [answer.alarm for answer in answers(looks, max_seconds=60, for_looks=2, raise_above=True)]
    assert alarms == [False, False, False, True]
    assert not any(answer.alarm for answer in answers(looks, max_seconds=60, for_looks=2))


@pytest.mark.parametrize("lag", [IDLE, SILENT], ids=["idle without heartbeats", "no time at all"])
def test_an_unknown_lag_is_what_the_policy_says(lag: Lag) -> None:
    outcomes = {
        policy: (answer.reached, answer.alarm)
        for policy in ("wait", "pass", "fail")
        for answer in answers([lag], max_seconds=60, unknown=policy)
    }
    assert outcomes == {"wait": (False, False), "pass": (True, False), "fail": (False, True)}
    (answer,) = answers([lag], max_seconds=60)
    assert answer.document["verdict"] == "unknown" and answer.holds == ("t/0",)
    assert reached([IDLE], max_seconds=3600) == [True], "its newest record is proof enough"


def test_the_log_is_compared_by_itself() -> None:
    late = Lag(NOW, (PartitionLag("t", 0, 9, NOW - 9_000, NOW - 9_000, NOW - 5_000),), heartbeats=True)
    assert reached([late], max_seconds=5, of="received") == [True]
    (answer,) = answers([late], max_seconds=4, of="received", raise_above=True)
    assert answer.alarm and "received up to" in answer.message


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({}, "needs a bound"),
        ({"max_seconds": 1, "of": "landed"}, "applied, received"),
        ({"max_seconds": 1, "unknown": "maybe", "for_looks": 0}, r"wait, pass, fail.*for_looks"),
        ({"max_records": 1, "of": "received"}, "no bound in records"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        LagCondition(PIPELINE, **arguments)


def test_spans_are_read_in_any_form() -> None:
    assert [as_seconds("max_lag", value) for value in (timedelta(minutes=2), 90, 1.5, "60", None, "None", "")] == [
        120.0, 90.0, 1.5, 60.0, None, None, None,
    ]  # fmt: skip
    for wrong in ("five", -1, True, "inf", "nan"):
        with pytest.raises(ConfigurationError, match="max_lag"):
            as_seconds("max_lag", wrong)


def held(minutes: int | None, applied_minutes: int | None) -> Lag:
    """Return the lag of a pipeline whose offsets are all read, and that has a parked table."""
    since, applied = (None if ago is None else NOW - ago * 60_000 for ago in (minutes, applied_minutes))
    parts = (PartitionLag("t", 0, 0, None, NOW, NOW),)
    return Lag(NOW, parts, heartbeats=True, held=(HeldTable("shop.t", "parked", since, applied),))


def test_a_pipeline_with_a_parked_table_is_not_current() -> None:
    lag = held(30, 45)
    assert (lag.seconds, lag.least_seconds, lag.most_seconds) == (1800.0, 1800.0, 2700.0)
    (answer,) = answers([lag], max_seconds=60, raise_above=True)
    assert not answer.reached and answer.alarm
    assert "shop.t is parked since " in answer.message and "shop.t" in answer.holds
    assert answer.document["held"][0]["table"] == "shop.t"


def test_where_a_table_stopped_is_not_known_nothing_is_below() -> None:
    assert reached([held(None, None)], max_seconds=60) == [False]
    assert held(None, None).most_seconds is None
