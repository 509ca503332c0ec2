# SPDX-License-Identifier: Apache-2.0
"""Positions by the tool's clock say themselves which changes they cannot order."""

from __future__ import annotations

from airflow_provider_cdc.core.model.clock_position import (
    WIDTHS,
    earliest_unordered,
    latest_unordered,
    one_instant,
    partition_number,
    reaches,
    unordered,
)


def position(tool: int, topic: str = "t", partition: int = 0, offset: int = 0, batch: int = 0, source: int = 1) -> str:
    numbers = (tool, source, partition_number(topic, partition), offset, 0, batch)
    return ".".join(["c", *(f"{number:0{width}d}" for number, width in zip(numbers, WIDTHS, strict=True))])


def test_changes_of_one_partition_are_ordered() -> None:
    assert not unordered(position(5, offset=1), position(5, offset=2))


def test_changes_of_one_millisecond_on_two_partitions_are_not() -> None:
    assert unordered(position(5), position(5, partition=1))
    assert unordered(position(5, source=1), position(5, partition=1, source=2))
    assert not unordered(position(5), position(6, partition=1))


def test_changes_of_one_batch_of_the_tool_are_unordered_between_topics_only() -> None:
    assert unordered(position(5, batch=7), position(45, topic="u", batch=7))
    assert not unordered(position(5, batch=7), position(45, partition=1, batch=7))
    assert not unordered(position(5, batch=7), position(45, topic="u", batch=8))
    assert not unordered(position(5), position(45, topic="u"))


def test_a_batch_number_that_comes_again_after_a_restart_is_another_batch() -> None:
    assert not unordered(position(5, batch=7), position(5 + 3_600_000, topic="u", batch=7))


def test_the_bounds_hold_everything_that_is_unordered() -> None:
    one = position(100_000, batch=7)
    for other in (position(99_960, topic="u", batch=7), position(100_050, topic="u", batch=7), position(100_000, "u")):
        assert unordered(one, other)
        assert earliest_unordered(one) <= other < latest_unordered(one)


def test_other_positions_are_exact() -> None:
    exact = "0000.0000000001.00000000000000000004.0000000000"
    assert not unordered(exact, position(5))
    assert not one_instant(exact, exact)
    assert (earliest_unordered(exact), latest_unordered(exact)) == (exact, exact)
    assert reaches(exact, exact)
    assert not reaches("", exact)


def test_what_ends_in_an_instant_may_hold_changes_that_belong_after_its_end() -> None:
    assert reaches(position(5), position(5, partition=1))
    assert not reaches(position(4), position(5, partition=1))
