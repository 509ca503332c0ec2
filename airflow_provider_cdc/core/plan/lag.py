# SPDX-License-Identifier: Apache-2.0
"""Compute the lag of the tables, in seconds of source time and in records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

OffsetMap = Mapping[str, Mapping[int, int]]


@dataclass(frozen=True)
class Lag:
    """Distance between the applied and the present end of the log.

    :param seconds: reference time minus applied progress, never negative; None when progress is unknown.
    :param records: number of offsets not applied yet, control records included.
    :param skewed: the source's clock is ahead of ours: the seconds would have been negative.
    :param partitions: records by ``topic/partition``, only those above zero.
    """

    seconds: float | None
    records: int
    skewed: bool
    partitions: dict[str, int]

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "seconds": self.seconds,
            "records": self.records,
            "skewed": self.skewed,
            "partitions": dict(self.partitions),
        }


def lag(
    reference_ms: int, applied_ms: int | None, ends: OffsetMap, applied: OffsetMap, lows: OffsetMap | None = None
) -> Lag:
    """Return the lag of applied offsets and time.

    :param reference_ms: now, or received progress; milliseconds since 1970.
    :param applied_ms: source time up to which the tables are complete.
    :param ends: present ends, exclusive.
    :param applied: end of the last committed batch.
    :param lows: first offsets that Kafka still has; a partition that no batch has read lags by all it still has.
    """
    partitions = {}
    for topic in sorted(ends):
        for partition in sorted(ends[topic]):
            first = (lows or {}).get(topic, {}).get(partition, 0)
            behind = ends[topic][partition] - applied.get(topic, {}).get(partition, first)
            if behind > 0:
                partitions[f"{topic}/{partition}"] = behind
    seconds = None if applied_ms is None else (reference_ms - applied_ms) / 1000
    skewed = seconds is not None and seconds < 0
    return Lag(None if seconds is None else max(0.0, seconds), sum(partitions.values()), skewed, partitions)
