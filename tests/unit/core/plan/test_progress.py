# SPDX-License-Identifier: Apache-2.0
"""When a log is known to hold everything the source committed before a time, and which partition keeps it open."""

from __future__ import annotations

from airflow_provider_cdc.core.plan.progress import SLACK_MS, Mark, PartitionFacts, received

TEN = 10 * 3600_000
MINUTE = 60_000


def row(offset: int, source: int, kafka: int | None = None) -> Mark:
    return Mark(offset, source, source if kafka is None else kafka)


def beat(offset: int, source: int, kafka: int | None = None) -> Mark:
    return Mark(offset, source, source if kafka is None else kafka, heartbeat=True)


def part(number: int, *marks: Mark, low: int = 0, end: int | None = None) -> PartitionFacts:
    last = max((mark.offset + 1 for mark in marks), default=low)
    return PartitionFacts("t", number, low, last if end is None else end, marks)


def test_a_row_beyond_the_time_and_the_slack_is_proof() -> None:
    answer = received(TEN, [part(0, row(3, TEN - 1), row(4, TEN + SLACK_MS))])
    assert answer.reached and answer.holds == ()
    assert answer.progress_ms == TEN
    assert answer.proven == {"t": {0: 4}}, "the proving row itself is not needed"


def test_a_row_within_the_slack_is_no_proof() -> None:
    answer = received(TEN, [part(0, row(4, TEN + SLACK_MS - 1))])
    assert not answer.reached and answer.holds[0].progress_ms == TEN - 1


def test_the_partition_that_holds_back_is_named_with_how_far_it_is() -> None:
    ahead, behind = part(0, row(9, TEN + MINUTE)), part(1, row(2, TEN - MINUTE))
    answer = received(TEN, [ahead, behind])
    assert not answer.reached
    (hold,) = answer.holds
    assert (hold.topic, hold.partition, hold.progress_ms) == ("t", 1, TEN - MINUTE - SLACK_MS)
    assert "older than the requested time" in hold.why and "heartbeat_topic" in hold.why
    assert answer.progress_ms == TEN - MINUTE - SLACK_MS
    assert answer.proven == {"t": {0: 9}}


def test_times_that_run_backwards_do_not_take_proof_away() -> None:
    assert received(TEN, [part(0, row(4, TEN + MINUTE), row(5, TEN - MINUTE))]).reached


def test_an_idle_or_empty_partition_without_heartbeats_is_never_known() -> None:
    for idle, words in ((part(0, end=0), "is empty"), (part(0, end=7), "no record with a time")):
        answer = received(TEN, [idle, part(1, row(1, TEN + MINUTE))])
        assert not answer.reached and answer.progress_ms is None
        assert words in answer.holds[0].why and "source.heartbeat_topic" in answer.holds[0].why


def test_heartbeats_cover_idle_partitions_up_to_their_end() -> None:
    answer = received(TEN, [part(0, end=0), part(1, row(5, TEN - MINUTE))], [part(0, beat(1, TEN + MINUTE))])
    assert answer.reached and answer.proven == {"t": {0: 0, 1: 6}}
    assert answer.progress_ms == TEN + MINUTE - SLACK_MS


def test_a_heartbeat_of_a_tool_that_is_behind_vouches_for_no_more_than_its_rows() -> None:
    # The tool works through the morning's changes at noon and beats with noon's clock.
    noon = TEN + 120 * MINUTE
    late = part(0, row(5, TEN - MINUTE, kafka=noon + 50))
    answer = received(TEN, [late, part(1, end=0)], [part(0, beat(1, noon))])
    assert not answer.reached
    assert {hold.partition for hold in answer.holds} == {0, 1}
    caught_up = received(TEN, [late, part(1, end=0)], [part(0, beat(1, noon), beat(2, noon + MINUTE))])
    assert caught_up.reached, "a later beat without old rows after it"


def test_a_heartbeat_topic_without_a_heartbeat_is_reported() -> None:
    answer = received(TEN, [part(0, end=0)], [part(0, end=0)])
    assert "not there yet" in answer.holds[0].why


def test_marks_inside_the_data_count_too() -> None:
    assert received(TEN, [part(0, row(1, TEN - MINUTE), beat(2, TEN + MINUTE))]).reached


def test_the_furthest_behind_is_named_first_and_unknown_ones_before() -> None:
    answer = received(TEN, [part(0, row(1, TEN - 5)), part(1, row(1, TEN - MINUTE)), part(2, end=0)])
    assert [hold.partition for hold in answer.holds] == [2, 1, 0]


def test_no_partition_is_no_answer() -> None:
    answer = received(TEN, [])
    assert not answer.reached and answer.progress_ms is None
