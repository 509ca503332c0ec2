# SPDX-License-Identifier: Apache-2.0
"""Offsets of topic-partitions, and ranges of them."""

from __future__ import annotations

from dataclasses import dataclass

Offsets = dict[str, dict[int, int]]
"""Offsets by topic and partition; as an end they are exclusive."""


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets of one topic-partition, half-open."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def records(self) -> int:
        """Offsets in the range; control records and compacted ones included."""
        return self.end - self.start
