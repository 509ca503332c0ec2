# SPDX-License-Identifier: Apache-2.0
"""Compute how far the tables are behind the source, in seconds of source time and in records, partition by partition.

An idle source and one whose tool is dead look the same without heartbeats, so a lag in seconds has two bounds: the age
of the oldest change in Kafka that is not applied, and the time up to which everything is known to be applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from airflow_provider_cdc.core.plan.progress import SLACK_MS, Mark, PartitionFacts, heartbeat_progress

OffsetMap = Mapping[str, Mapping[int, int]]

FIRST_RECORDS = 20
"""Records behind the applied ones whose times are compared: their order is not exactly that of their times."""


class Verdict(StrEnum):
    """Comparison of a lag with its bound."""

    BELOW = "below"
    ABOVE = "above"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class PartitionLag:
    """Lag of one partition; times are milliseconds since 1970, None while they are unknown.

    :param records: number of offsets that no committed batch has read, control records included.
    :param oldest_ms: source time of the oldest change that is not applied; None also if all are.
    :param applied_ms: source time before which all changes are applied.
    :param received_ms: source time before which all changes are in the partition.
    :param why: why ``applied_ms`` is unknown, or what is wrong with the log.
    """

    topic: str
    partition: int
    records: int
    oldest_ms: int | None
    applied_ms: int | None
    received_ms: int | None
    why: str = ""

    @property
    def name(self) -> str:
        """``topic/partition``."""
        return f"{self.topic}/{self.partition}"


@dataclass(frozen=True)
class HeldTable:
    """A parked or waiting table: batches read its changes and did not apply them; times in milliseconds since 1970.

    :param name: ``database.table``.
    :param state: ``parked`` or ``waiting``.
    :param since_ms: when the first of these batches was planned: changes of it are at least that old; None if unknown.
    :param applied_ms: source time of the newest change that it holds; None before the first.
    """

    name: str
    state: str
    since_ms: int | None
    applied_ms: int | None

    def __str__(self) -> str:
        since = iso_time(self.since_ms)
        return f"{self.name} is {self.state}" + (f" since {since}" if since else "")


@dataclass(frozen=True)
class Lag:
    """Lag of a pipeline at one moment.

    :param at_ms: the moment by our clock, milliseconds since 1970.
    :param partitions: those that can carry rows of the pipeline.
    :param heartbeats: whether heartbeats show how far the tool is when the source is idle.
    :param held: tables whose changes were read and not applied.
    """

    at_ms: int
    partitions: tuple[PartitionLag, ...]
    heartbeats: bool
    held: tuple[HeldTable, ...] = ()

    @property
    def records(self) -> int:
        """Return the number of offsets that no committed batch has read."""
        return sum(part.records for part in self.partitions)

    @property
    def seconds(self) -> float | None:
        """Return the age of the oldest change that is not applied, 0 if all are; None while it is unknown.

        Of a table that is parked or waits the age is the time since then.
        """
        if any(part.records and part.oldest_ms is None for part in self.partitions):
            return None
        return self.least_seconds

    @property
    def least_seconds(self) -> float:
        """Return the seconds that the tables are behind at least."""
        return self._age(_least((*(p.oldest_ms for p in self.partitions), *(t.since_ms for t in self.held)))) or 0.0

    @property
    def most_seconds(self) -> float | None:
        """Return the seconds that the tables are behind at most; None while that of a partition is unknown."""
        return self._age(self.applied_ms)

    @property
    def received_seconds(self) -> float | None:
        """Return the seconds that the log is behind the source at most; None while that of a partition is unknown."""
        return self._age(self.received_ms)

    @property
    def applied_ms(self) -> int | None:
        """Return the source time before which all changes are applied; None while it is unknown."""
        return _least_of_all([*(part.applied_ms for part in self.partitions), *(t.applied_ms for t in self.held)])

    @property
    def received_ms(self) -> int | None:
        """Return the source time before which all changes are in Kafka; None while it is unknown."""
        return _least_of_all([part.received_ms for part in self.partitions])

    @property
    def skewed(self) -> bool:
        """Return whether the source's clock is ahead of ours."""
        return any((part.received_ms or 0) > self.at_ms for part in self.partitions)

    def compare(self, max_seconds: float | None, max_records: int | None = None) -> Verdict:
        """Compare the lag of the tables with its bounds; a bound that is None does not count."""
        if max_records is not None and self.records > max_records:
            return Verdict.ABOVE
        if max_seconds is None:
            return Verdict.BELOW
        if self.least_seconds > max_seconds:
            return Verdict.ABOVE
        return Verdict.BELOW if _within(self.most_seconds, max_seconds) else Verdict.UNKNOWN

    def compare_received(self, max_seconds: float) -> Verdict:
        """Compare the lag of the log behind the source with its bound."""
        if _within(self.received_seconds, max_seconds):
            return Verdict.BELOW
        # Without heartbeats the source may just be idle.
        return Verdict.ABOVE if self.heartbeats and self.received_ms is not None else Verdict.UNKNOWN

    def behind(self, *, received: bool = False) -> list[PartitionLag]:
        """Return the partitions, the furthest behind first: those of unknown time, then by time and records.

        :param received: by how far the log is behind the source.
        """

        def rank(part: PartitionLag) -> tuple[bool, int, int, str, int]:
            time = part.received_ms if received else part.applied_ms
            return time is not None, time or 0, -part.records, part.topic, part.partition

        return sorted(self.partitions, key=rank)

    def document(self, most: int = 20) -> dict[str, Any]:
        """Return plain JSON data.

        :param most: partitions to name in each list.
        """
        unread = sorted((part for part in self.partitions if part.records), key=lambda p: (-p.records, p.name))
        unknown = [part for part in self.partitions if part.applied_ms is None]
        return {
            "at": iso_time(self.at_ms),
            "seconds": self.seconds,
            "least_seconds": self.least_seconds,
            "most_seconds": self.most_seconds,
            "received_seconds": self.received_seconds,
            "records": self.records,
            "applied": iso_time(self.applied_ms),
            "received": iso_time(self.received_ms),
            "skewed": self.skewed,
            "held": [
                {"table": table.name, "state": table.state, "since": iso_time(table.since_ms)}
                for table in sorted(self.held, key=lambda table: (table.since_ms or 0, table.name))[:most]
            ],
            "partitions": {part.name: part.records for part in unread[:most]},
            "unknown": {part.name: part.why for part in unknown[:most]},
        }

    def _age(self, millis: int | None) -> float | None:
        return None if millis is None else max(0, self.at_ms - millis) / 1000


def lag(
    at_ms: int,
    facts: Sequence[PartitionFacts],
    heartbeats: Sequence[PartitionFacts],
    applied: OffsetMap,
    firsts: Mapping[tuple[str, int], Sequence[Mark]],
    held: Sequence[HeldTable] = (),
) -> Lag:
    """Return the lag of a pipeline.

    :param at_ms: time of the look, milliseconds since 1970.
    :param facts: ends of every partition that can carry rows of the pipeline.
    :param heartbeats: ends of the heartbeat topic's partitions, read before ``facts``.
    :param applied: end of the last committed batch, exclusive.
    :param firsts: times of the first records behind ``applied``, of each partition that has some.
    :param held: tables whose changes batches read and did not apply.
    """
    rows = [mark for fact in facts for mark in fact.marks if not mark.heartbeat]
    beats = [mark for fact in heartbeats for mark in fact.marks]
    common = heartbeat_progress(beats, rows, SLACK_MS)
    within = [mark for fact in facts for mark in fact.marks if mark.heartbeat]
    partitions = (_partition(fact, rows, common, applied, firsts) for fact in facts)
    return Lag(at_ms, tuple(partitions), bool(beats or within), tuple(held))


def unread_windows(facts: Sequence[PartitionFacts], applied: OffsetMap) -> dict[tuple[str, int], tuple[int, int]]:
    """Return the half-open offsets of the first records that no committed batch has read."""
    windows = {}
    for fact in facts:
        start = max(fact.low, applied.get(fact.topic, {}).get(fact.partition, fact.low))
        if start < fact.end:
            windows[fact.topic, fact.partition] = (start, min(fact.end, start + FIRST_RECORDS))
    return windows


def _partition(
    fact: PartitionFacts,
    rows: Sequence[Mark],
    common: int | None,
    applied: OffsetMap,
    firsts: Mapping[tuple[str, int], Sequence[Mark]],
) -> PartitionLag:
    own = max((mark.source_time_ms for mark in fact.marks if not mark.heartbeat), default=None)
    beats = heartbeat_progress([mark for mark in fact.marks if mark.heartbeat], rows, SLACK_MS)
    received = max((time for time in (own, beats, common) if time is not None), default=None)
    end = applied.get(fact.topic, {}).get(fact.partition, fact.low)
    times = [mark.source_time_ms for mark in firsts.get((fact.topic, fact.partition), ()) if not mark.heartbeat]
    records, oldest, why = max(0, fact.end - end), min(times, default=None), ""
    done = oldest
    if end > fact.end:
        records, done, why = fact.end - fact.low, None, "its log ends before the last batch did"
    elif end < fact.low:
        done, why = None, "Kafka deleted records that no batch has read"
    elif not records:
        done, why = received, "it has no record with a time; set source.heartbeat_topic to follow idle partitions"
    elif done is None:
        why = "its first records that are not applied state no time"
    return PartitionLag(fact.topic, fact.partition, records, oldest, done, received, "" if done is not None else why)


def _within(seconds: float | None, bound: float) -> bool:
    return seconds is not None and seconds <= bound


def _least(times: Iterable[int | None]) -> int | None:
    return min((time for time in times if time is not None), default=None)


def _least_of_all(times: Sequence[int | None]) -> int | None:
    return _least(times) if times and None not in times else None


def iso_time(millis: int | None) -> str | None:
    """Return milliseconds since 1970 as ISO text in UTC."""
    return None if millis is None else datetime.fromtimestamp(millis / 1000, UTC).isoformat()
