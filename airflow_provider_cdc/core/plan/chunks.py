"""Cutting a range into tasks of similar size: large partitions are split, small ones share a task."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from airflow_provider_cdc.core.plan.ranges import Range, Slice

LEAST = 20_000
"""Records below which a task costs more than it saves."""


@dataclass(frozen=True)
class Chunk:
    """What one landing task reads, by topic, partition and offset.

    :param number: place among the batch's chunks, from 0; stable for the same range and settings.
    """

    number: int
    slices: tuple[Slice, ...]

    @property
    def records(self) -> int:
        """Offsets to read."""
        return sum(part.records for part in self.slices)


def chunks(planned: Range, chunk_records: int, *, parallelism: int | None = None, split: bool = True) -> list[Chunk]:
    """Cut a range into chunks; the same arguments always give the same chunks.

    :param chunk_records: most records of one chunk.
    :param parallelism: tasks that can run at a time; a small range is then cut finer, so that none is idle.
    :param split: whether a partition may be cut into several pieces.
    """
    size = chunk_records
    if parallelism:
        size = min(size, max(LEAST, -(-planned.records // parallelism)))
    groups: list[list[Slice]] = []
    filled = size
    for part in planned.slices():
        for piece in _pieces(part, size) if split else [part]:
            if filled + piece.records > size:
                groups.append([])
                filled = 0
            groups[-1].append(piece)
            filled += piece.records
    return [Chunk(number, tuple(group)) for number, group in enumerate(groups)]


def _pieces(part: Slice, size: int) -> list[Slice]:
    """Split one partition's offsets evenly into as few pieces as fit."""
    count = -(-part.records // size)
    cuts = [part.start + part.records * place // count for place in range(count + 1)]
    return [Slice(part.topic, part.partition, low, high) for low, high in pairwise(cuts)]
