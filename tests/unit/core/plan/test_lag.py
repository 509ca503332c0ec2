# SPDX-License-Identifier: Apache-2.0
"""Lag of the tables and of the log: its two bounds in seconds, its records, and what makes it unknown."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from airflow_provider_cdc.core.plan.lag import Lag, Verdict, lag, unread_windows
from airflow_provider_cdc.core.plan.progress import Mark, PartitionFacts

NOW = 10 * 3600_000
SECOND = 1000


def part(low: int, *times: int, partition: int = 0) -> PartitionFacts:
    """Return a partition whose records state these times."""
    marks = tuple(Mark(low + offset, time, time) for offset, time in enumerate(times))
    return PartitionFacts("t", partition, low, low + len(times), marks)


def beats(*times: int) -> list[PartitionFacts]:
    marks = tuple(Mark(offset, time, time, heartbeat=True) for offset, time in enumerate(times))
    return [PartitionFacts("beats", 0, 0, len(times), marks)]


def measure(facts: Sequence[PartitionFacts], applied: dict[int, int], heartbeats: Sequence[PartitionFacts] = ()) -> Lag:
    """Return the lag where the first records that are not applied state what the facts say."""
    offsets = {"t": applied}
    windows = unread_windows(facts, offsets)
    firsts = {
        (fact.topic, fact.partition): [m for m in fact.marks if windows[fact.topic, fact.partition][0] <= m.offset]
        for fact in facts
        if (fact.topic, fact.partition) in windows
    }
    return lag(NOW, facts, heartbeats, offsets, firsts)


def test_the_oldest_change_that_is_not_applied_decides() -> None:
    facts = [
        part(0, NOW - 60 * SECOND, NOW - 50 * SECOND, NOW - SECOND, partition=0),
        part(0, NOW - 9 * SECOND, partition=1),
    ]
    answer = measure(facts, {0: 1, 1: 0})
    assert (answer.seconds, answer.most_seconds, answer.records) == (50.0, 50.0, 3)
    assert answer.behind()[0].name == "t/0"
    assert answer.document()["partitions"] == {"t/0": 2, "t/1": 1}
    assert json.loads(json.dumps(answer.document())) == answer.document()


def test_an_idle_source_with_heartbeats_has_no_lag() -> None:
    answer = measure([part(0, NOW - 3600 * SECOND)], {0: 1}, beats(NOW))
    assert (answer.seconds, answer.most_seconds, answer.records) == (0.0, 0.0, 0)
    assert answer.compare(0) == Verdict.BELOW


def test_an_idle_source_without_heartbeats_is_unknown_beyond_its_newest_record() -> None:
    answer = measure([part(0, NOW - 3600 * SECOND)], {0: 1})
    assert (answer.seconds, answer.most_seconds) == (0.0, 3600.0)
    assert answer.compare(3600) == Verdict.BELOW
    assert answer.compare(3599) == Verdict.UNKNOWN
    assert answer.compare_received(3599) == Verdict.UNKNOWN


def test_a_tool_whose_heartbeats_end_leaves_the_log_behind() -> None:
    answer = measure([part(0, NOW - 3600 * SECOND)], {0: 1}, beats(NOW - 600 * SECOND))
    assert answer.compare_received(599) == Verdict.ABOVE
    assert answer.compare_received(600) == Verdict.BELOW
    assert answer.compare(599) == Verdict.UNKNOWN, "all that is in Kafka is applied"


def test_records_are_compared_on_their_own() -> None:
    answer = measure([part(0, *range(5))], {0: 2})
    assert answer.compare(None, 3) == Verdict.BELOW
    assert answer.compare(None, 2) == Verdict.ABOVE
    assert answer.compare(1e9, 2) == Verdict.ABOVE


def test_a_source_clock_ahead_of_ours_is_zero_and_noted() -> None:
    answer = measure([part(0, NOW + 5 * SECOND)], {0: 0})
    assert (answer.seconds, answer.most_seconds, answer.skewed) == (0.0, 0.0, True)


def test_an_added_partition_that_no_batch_has_read_lags_by_what_it_has() -> None:
    facts = [part(0, NOW, partition=0), part(0, NOW - 9 * SECOND, partition=1), part(0, partition=2)]
    answer = measure(facts, {0: 1})
    assert (answer.records, answer.seconds) == (1, 9.0)
    assert (answer.most_seconds, answer.compare(10)) == (None, Verdict.UNKNOWN)
    assert answer.compare(8) == Verdict.ABOVE, "one late partition is enough"
    assert list(answer.document()["unknown"]) == ["t/2"]
    assert measure(facts, {0: 1}, beats(NOW)).compare(10) == Verdict.BELOW


@pytest.mark.parametrize(
    "facts, applied, words, records",
    [(part(7), 4, "deleted records", 3), (part(3, NOW, NOW), 9, "ends before the last batch", 2)],
    ids=["emptied", "created again"],
)
def test_records_that_are_gone_make_the_lag_unknown(
    facts: PartitionFacts, applied: int, words: str, records: int
) -> None:
    answer = measure([facts], {0: applied}, beats(NOW))
    assert (answer.records, answer.most_seconds, answer.compare(10)) == (records, None, Verdict.UNKNOWN)
    assert words in answer.document()["unknown"]["t/0"]


def test_records_without_a_time_make_the_lag_unknown() -> None:
    answer = measure([PartitionFacts("t", 0, 0, 3)], {0: 1}, beats(NOW))
    assert (answer.records, answer.seconds, answer.most_seconds) == (2, None, None)
    assert "state no time" in answer.document()["unknown"]["t/0"]


def test_no_partition_is_no_knowledge() -> None:
    answer = lag(NOW, [], [], {}, {})
    assert (answer.most_seconds, answer.received_seconds, answer.compare(10)) == (None, None, Verdict.UNKNOWN)


def test_only_the_first_records_are_read() -> None:
    windows = unread_windows([part(5, *range(1000)), part(0, 1, partition=1)], {"t": {0: 100, 1: 1}})
    assert windows == {("t", 0): (100, 120)}
