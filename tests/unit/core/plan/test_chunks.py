# SPDX-License-Identifier: Apache-2.0
"""A range is cut into chunks, and chunks are grouped into tasks, without losing or repeating an offset."""

from __future__ import annotations

import random

import pytest

from airflow_provider_cdc.core.model.offsets import OffsetRange
from airflow_provider_cdc.core.plan.chunks import LEAST, cut_ranges, group_chunks


def ranges_of(sizes: dict[str, list[int]], first: int = 0) -> list[OffsetRange]:
    """Return a range of each partition that has records, from the numbers of records by topic."""
    counted = [(topic, partition, count) for topic, counts in sizes.items() for partition, count in enumerate(counts)]
    return [OffsetRange(topic, partition, first, first + count) for topic, partition, count in counted if count]


def test_an_empty_range_needs_no_task() -> None:
    assert cut_ranges(ranges_of({"t": [0, 0]}), 100) == []
    assert group_chunks([], 2, 100) == []


def test_a_large_partition_is_split_evenly() -> None:
    assert cut_ranges(ranges_of({"t": [250]}, first=7), 100) == [
        OffsetRange("t", 0, 7, 90),
        OffsetRange("t", 0, 90, 173),
        OffsetRange("t", 0, 173, 257),
    ]


def test_a_thousand_small_topics_share_a_few_tasks() -> None:
    chunks = cut_ranges(ranges_of({f"t{number:04d}": [10] for number in range(1000)}), 2500)
    groups = group_chunks(chunks, 4, 2500)
    assert [sum(chunk.records for chunk in group) for group in groups] == [2500] * 4


def test_chunks_of_one_partition_are_never_in_one_task() -> None:
    """A task reads its chunks through one consumer, which has one position in each partition."""
    chunks = [*cut_ranges(ranges_of({"t": [300]}), 100), OffsetRange("u", 0, 0, 5)]
    groups = group_chunks(chunks, 1, 1_000)
    assert sorted(len(group) for group in groups) == [1, 1, 2]
    assert all(len({(chunk.topic, chunk.partition) for chunk in group}) == len(group) for group in groups)


def test_a_small_range_is_cut_finer_for_tasks_that_would_be_idle_but_not_too_fine() -> None:
    assert len(cut_ranges(ranges_of({"t": [8 * LEAST]}), 1_000_000, parallelism=4)) == 4
    assert len(cut_ranges(ranges_of({"t": [2 * LEAST]}), 1_000_000, parallelism=16)) == 2
    assert len(cut_ranges(ranges_of({"t": [LEAST // 2]}), 1_000_000, parallelism=16)) == 1


@pytest.mark.parametrize("seed", range(50))
def test_every_offset_is_in_exactly_one_chunk_and_task_and_no_chunk_is_too_large(seed: int) -> None:
    dice = random.Random(seed)
    size = dice.choice([1, 10, 100, 1000])
    records = [0, 1, 7, 99, min(1234, 150 * size)]  # of a partition; of single records as chunks there are many
    sizes = {f"t{n}": [dice.choice(records) for _ in range(dice.randint(1, 4))] for n in range(6)}
    ranges = ranges_of(sizes, dice.randint(0, 9))
    chunks = cut_ranges(ranges, size)
    assert chunks == cut_ranges(ranges, size)
    assert all(0 < chunk.records <= size for chunk in chunks)
    cut = [(chunk.topic, chunk.partition, at) for chunk in chunks for at in range(chunk.start, chunk.end)]
    assert cut == [(s.topic, s.partition, at) for s in ranges for at in range(s.start, s.end)]
    grouped = [chunk for group in group_chunks(chunks, dice.randint(1, 4), size) for chunk in group]
    assert sorted(grouped, key=lambda chunk: (chunk.topic, chunk.partition, chunk.start)) == chunks
