# SPDX-License-Identifier: Apache-2.0
"""Cut the ranges of a batch into chunks of similar size, and group the chunks into landing tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from airflow_provider_cdc.core.model.offsets import OffsetRange

LEAST = 20_000
"""Records below which a task costs more than it saves."""


def cut_ranges(
    ranges: Sequence[OffsetRange], chunk_records: int, *, parallelism: int | None = None
) -> list[OffsetRange]:
    """Cut ranges of partitions into chunks; the same arguments always give the same chunks.

    :param chunk_records: most records of one chunk.
    :param parallelism: tasks that can run at a time; small ranges are then cut finer, so that none is idle.
    """
    size = chunk_records
    if parallelism:
        size = min(size, max(LEAST, -(-sum(whole.records for whole in ranges) // parallelism)))
    return [chunk for whole in ranges for chunk in _cut_evenly(whole, size)]


def _cut_evenly(whole: OffsetRange, size: int) -> list[OffsetRange]:
    """Split one partition's offsets evenly into as few chunks as fit, an empty range into itself."""
    count = max(1, -(-whole.records // size))
    cuts = [whole.start + whole.records * index // count for index in range(count + 1)]
    return [OffsetRange(whole.topic, whole.partition, low, high) for low, high in pairwise(cuts)]


def group_chunks(chunks: Sequence[OffsetRange], parallelism: int, chunk_records: int) -> list[list[OffsetRange]]:
    """Group chunks into landing tasks; small ones share a task and its consumer, never two of one partition."""
    total = sum(chunk.records for chunk in chunks)
    groups = [_Group() for _ in range(max(1, min(len(chunks), max(parallelism, -(-total // chunk_records)))))]
    for chunk in sorted(chunks, key=lambda chunk: -chunk.records):
        free = [group for group in groups if (chunk.topic, chunk.partition) not in group.partitions]
        if not free:
            free = [_Group()]
            groups += free
        min(free, key=lambda group: group.records).add(chunk)
    return [group.chunks for group in groups if group.chunks]


@dataclass(slots=True)
class _Group:
    """Chunks of one landing task.

    :ivar partitions: their topic-partitions.
    """

    chunks: list[OffsetRange] = field(default_factory=list)
    partitions: set[tuple[str, int]] = field(default_factory=set)
    records: int = 0

    def add(self, chunk: OffsetRange) -> None:
        self.chunks.append(chunk)
        self.partitions.add((chunk.topic, chunk.partition))
        self.records += chunk.records
