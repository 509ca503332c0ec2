"""A range is cut into tasks of similar size, without losing or repeating an offset."""

from __future__ import annotations

import random

import pytest

from airflow_provider_cdc.core.plan.chunks import LEAST, chunks
from airflow_provider_cdc.core.plan.ranges import Offsets, Range, Slice


def range_of(sizes: dict[str, list[int]], first: int = 0) -> Range:
    start: Offsets = {topic: {p: first for p, _ in enumerate(counts)} for topic, counts in sizes.items()}
    end: Offsets = {topic: {p: first + count for p, count in enumerate(counts)} for topic, counts in sizes.items()}
    return Range(start, end)


def test_an_empty_range_needs_no_task() -> None:
    assert chunks(range_of({"t": [0, 0]}), 100) == []


def test_a_large_partition_is_split_evenly() -> None:
    found = chunks(range_of({"t": [250]}, first=7), 100)
    assert [chunk.slices for chunk in found] == [
        (Slice("t", 0, 7, 90),),
        (Slice("t", 0, 90, 173),),
        (Slice("t", 0, 173, 257),),
    ]


def test_a_thousand_small_topics_share_a_few_tasks() -> None:
    found = chunks(range_of({f"t{number:04d}": [10] for number in range(1000)}), 2500)
    assert [chunk.records for chunk in found] == [2500] * 4
    assert [chunk.number for chunk in found] == [0, 1, 2, 3]


def test_a_small_range_is_cut_finer_for_tasks_that_would_be_idle_but_not_too_fine() -> None:
    assert len(chunks(range_of({"t": [8 * LEAST]}), 1_000_000, parallelism=4)) == 4
    assert len(chunks(range_of({"t": [2 * LEAST]}), 1_000_000, parallelism=16)) == 2
    assert len(chunks(range_of({"t": [LEAST // 2]}), 1_000_000, parallelism=16)) == 1


@pytest.mark.parametrize("seed", range(50))
def test_every_offset_is_in_exactly_one_chunk_and_no_chunk_is_too_large(seed: int) -> None:
    dice = random.Random(seed)
    sizes = {f"t{n}": [dice.choice([0, 1, 7, 99, 1234]) for _ in range(dice.randint(1, 4))] for n in range(6)}
    planned, size = range_of(sizes, dice.randint(0, 9)), dice.choice([1, 10, 100, 1000])
    found = chunks(planned, size)
    assert found == chunks(planned, size)
    assert all(0 < chunk.records <= size for chunk in found)
    got = [(s.topic, s.partition, at) for chunk in found for s in chunk.slices for at in range(s.start, s.end)]
    assert got == [(s.topic, s.partition, at) for s in planned.slices() for at in range(s.start, s.end)]
