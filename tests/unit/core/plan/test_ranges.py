# SPDX-License-Identifier: Apache-2.0
"""Ranges of the next batch: start, end, and records that the log no longer has."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.errors import SourceError, Terminal
from airflow_provider_cdc.core.model.offsets import OffsetRange, Offsets
from airflow_provider_cdc.core.plan.ranges import Loss, plan_range


def lows(*partitions: int, topic: str = "t") -> Offsets:
    return {topic: dict(enumerate(partitions))}


highs = ends = lows


def refused(code: str, *arguments: object, **options: object) -> SourceError:
    with pytest.raises(SourceError) as error:
        plan_range(*arguments, **options)  # type: ignore[arg-type]
    assert error.value.code == code and isinstance(error.value, Terminal)
    return error.value


def test_the_first_batch_starts_at_what_the_log_still_has() -> None:
    planned = plan_range(None, lows(5, 0), highs(9, 3))
    assert planned.start == {"t": {0: 5, 1: 0}} and planned.end == {"t": {0: 9, 1: 3}}
    assert planned.joined == (("t", 0), ("t", 1)) and planned.records == 7


def test_the_next_batch_starts_where_the_last_ended() -> None:
    planned = plan_range(ends(4, 3), lows(0, 0), highs(9, 3))
    assert planned.offset_ranges() == [OffsetRange("t", 0, 4, 9)]
    assert planned.end == {"t": {0: 9, 1: 3}} and planned.joined == ()


def test_nothing_new_is_an_empty_range_that_still_names_every_partition() -> None:
    planned = plan_range(ends(4, 3), lows(0, 0), highs(4, 3))
    assert planned.empty and planned.records == 0 and planned.start == planned.end == {"t": {0: 4, 1: 3}}


def test_a_new_partition_and_a_new_topic_join_at_their_beginning() -> None:
    planned = plan_range(ends(4), {**lows(0, 0), **lows(0, topic="u")}, {**highs(4, 6), **highs(2, topic="u")})
    assert planned.offset_ranges() == [OffsetRange("t", 1, 0, 6), OffsetRange("u", 0, 0, 2)]
    assert planned.joined == (("t", 1), ("u", 0))


def test_a_new_partition_that_lost_its_beginning_is_reported() -> None:
    error = refused("kafka.offsets_expired", ends(4), lows(0, 3), highs(4, 6))
    assert error.where["topic"] == "t" and error.where["partition"] == 1
    assert "deleted 3 records" in error.message and "offsets 0 to 2" in error.message


def test_expired_offsets_name_the_partitions_what_is_lost_and_the_way_out() -> None:
    error = refused("kafka.offsets_expired", ends(4, 5, 9), lows(10, 5, 10), highs(20, 20, 20))
    assert "deleted 7 records" in error.message and "offsets 4 to 9" in error.message
    assert error.where["partitions"] == "t/0 t/2" and error.where["first_kept"] == 10
    assert "rebuild" in error.hint and "--accept-loss" in error.hint


def test_accepted_loss_goes_on_with_what_is_left_and_says_what_is_gone() -> None:
    planned = plan_range(ends(4, 5), lows(10, 5), highs(20, 20), accept_loss=True)
    assert planned.lost == (Loss("t", 0, 4, 10),) and planned.start == {"t": {0: 10, 1: 5}}


def test_a_log_that_ends_before_the_last_batch_did_was_made_again() -> None:
    error = refused("kafka.topic_recreated", ends(4), lows(0), highs(3))
    assert error.where["offset"] == 4
    planned = plan_range(ends(4), lows(0), highs(3), accept_loss=True)
    assert planned.offset_ranges() == [OffsetRange("t", 0, 0, 3)] and planned.lost == (Loss("t", 0, 4, None),)


def test_a_topic_with_another_id_was_made_again_however_long_it_is() -> None:
    ids = {"known_ids": {"t": "a"}, "ids": {"t": "b"}}
    error = refused("kafka.topic_recreated", ends(4, 2), lows(0, 0), highs(9, 2), **ids)
    assert error.where["partitions"] == "t/0 t/1" and "--accept-loss" in error.hint
    planned = plan_range(ends(4, 2), lows(0, 1), highs(9, 3), accept_loss=True, **ids)  # type: ignore[arg-type]
    assert planned.offset_ranges() == [OffsetRange("t", 0, 0, 9), OffsetRange("t", 1, 1, 3)]
    assert planned.lost == (Loss("t", 0, 4, None), Loss("t", 1, 2, None), Loss("t", 1, 0, 1))
    assert planned.topics == {"t": "b"}


def test_a_topic_made_again_with_fewer_partitions_is_not_called_gone() -> None:
    ids = {"known_ids": {"t": "a"}, "ids": {"t": "b"}}
    error = refused("kafka.topic_recreated", ends(4, 2), lows(0), highs(9), **ids)
    assert error.where["partitions"] == "t/1 t/0"
    planned = plan_range(ends(4, 2), lows(0), highs(9), accept_loss=True, **ids)  # type: ignore[arg-type]
    assert planned.end == highs(9) and planned.lost == (Loss("t", 1, 2, None), Loss("t", 0, 4, None))


@pytest.mark.parametrize(("known", "now"), [({}, {"t": "b"}), ({"t": "a"}, {}), ({"t": "a"}, {"t": "a"})])
def test_an_id_that_is_missing_or_the_same_says_nothing(known: dict[str, str], now: dict[str, str]) -> None:
    planned = plan_range(ends(4), lows(0), highs(9), known_ids=known, ids=now)
    assert planned.offset_ranges() == [OffsetRange("t", 0, 4, 9)] and planned.topics == {**known, **now}


def test_a_topic_that_the_pipeline_left_keeps_its_id_with_its_place() -> None:
    last = {**ends(4), **ends(7, topic="old")}
    planned = plan_range(
        last, lows(0), highs(9), selects=lambda topic: topic != "old", known_ids={"t": "a", "old": "o"}, ids={"t": "a"}
    )
    assert planned.topics == {"t": "a", "old": "o"}


def test_the_heartbeat_topic_may_have_another_id() -> None:
    planned = plan_range(ends(4), lows(0), highs(9), heartbeat_topic="t", known_ids={"t": "a"}, ids={"t": "b"})
    assert planned.start == {"t": {0: 0}} and planned.topics == {"t": "b"} and planned.lost == ()


def test_a_topic_that_is_gone_is_reported_unless_the_pipeline_left_it() -> None:
    last = {**ends(4), **ends(7, topic="old")}
    error = refused("kafka.topic_gone", last, lows(0), highs(9))
    assert error.where["topic"] == "old" and "source.topics" in error.hint
    planned = plan_range(last, lows(0), highs(9), selects=lambda topic: topic != "old")
    assert planned.end == {**ends(9), **ends(7, topic="old")}, "it keeps its place, should it be read again"
    forgotten = plan_range(last, lows(0), highs(9), accept_loss=True)
    assert forgotten.lost == (Loss("old", 0, 7, None),)
    assert forgotten.end == ends(9)


def test_a_partition_that_is_gone_is_reported() -> None:
    assert refused("kafka.topic_gone", ends(4, 4), lows(0), highs(9)).where["partition"] == 1


def test_until_ends_the_range_and_a_partition_without_one_is_read_to_its_end() -> None:
    planned = plan_range(ends(0, 0), lows(0, 0), highs(9, 9), until={"t": {0: 5}})
    assert planned.end == ends(5, 9)


def test_the_end_is_never_below_the_start_nor_beyond_the_log() -> None:
    planned = plan_range(ends(6, 0), lows(0, 0), highs(9, 9), until={"t": {0: 3, 1: 40}})
    assert planned.end == ends(6, 9)


def test_the_schema_topic_is_read_to_its_present_end_whatever_was_asked_for() -> None:
    planned = plan_range(
        {**ends(0), **ends(0, topic="ddl")},
        {**lows(0), **lows(0, topic="ddl")},
        {**highs(9), **highs(4, topic="ddl")},
        until={"t": {0: 2}, "ddl": {0: 1}},
        schema_topic="ddl",
    )
    assert planned.end == {**ends(2), **ends(4, topic="ddl")}


def test_heartbeats_alone_are_no_work_and_their_loss_is_no_error() -> None:
    planned = plan_range(
        {**ends(4), **ends(2, topic="beat")},
        {**lows(0), **lows(50, topic="beat")},
        {**highs(4), **highs(60, topic="beat")},
        heartbeat_topic="beat",
    )
    assert planned.empty and planned.records == 10 and planned.end["beat"] == {0: 60}
    again = plan_range(planned.end, {**lows(0), **lows(0, topic="beat")}, {**highs(4), **highs(3, topic="beat")},
                       heartbeat_topic="beat")  # fmt: skip
    assert again.start["beat"] == {0: 0} and again.end["beat"] == {0: 3}
    assert plan_range(planned.end, lows(0), highs(4), heartbeat_topic="beat").end["beat"] == {0: 60}


def test_batches_in_a_row_read_every_offset_once() -> None:
    last_end: Offsets = {}
    seen: list[tuple[str, int, int]] = []
    for end in (3, 3, 10, 11):
        planned = plan_range(last_end, lows(0, 0), highs(end, end * 2))
        seen += [
            (part.topic, part.partition, at) for part in planned.offset_ranges() for at in range(part.start, part.end)
        ]
        last_end = planned.end
    assert sorted(seen) == [("t", 0, at) for at in range(11)] + [("t", 1, at) for at in range(22)]


def test_many_lost_partitions_are_counted_not_listed() -> None:
    error = refused("kafka.offsets_expired", ends(*[0] * 50), lows(*[2] * 50), highs(*[5] * 50))
    assert error.where["partitions"].endswith("and 45 more") and len(str(error)) < 700
