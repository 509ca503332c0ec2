# SPDX-License-Identifier: Apache-2.0
"""Compute the source time up to which the log is known to be complete, partition by partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SLACK_MS = 10_000
"""Source clocks and the tool's clock differ: a mark counts only if it is this much beyond the requested time."""

NEAR_MS = 1_000
"""Rows written this shortly before a heartbeat still show whether the tool lagged at its time."""


@dataclass(frozen=True)
class Mark:
    """The source time that one record states.

    :param source_time_ms: everything before it was sent to the record's partition; milliseconds since 1970.
    :param kafka_time_ms: time at which Kafka stored the record, None if unknown.
    :param heartbeat: the record is a heartbeat, not a row.
    """

    offset: int
    source_time_ms: int
    kafka_time_ms: int | None = None
    heartbeat: bool = False


@dataclass(frozen=True)
class PartitionFacts:
    """Offsets and times at the end of one partition.

    :param low: first offset that Kafka still has.
    :param end: its end when it was read, exclusive.
    :param marks: times stated by the records read, in offset order.
    """

    topic: str
    partition: int
    low: int
    end: int
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class Hold:
    """A partition that holds progress back.

    :param progress_ms: source time up to which it is complete, None if unknown.
    :param why: one sentence for the log and the error.
    """

    topic: str
    partition: int
    progress_ms: int | None
    why: str


@dataclass(frozen=True)
class Received:
    """Progress of the log against a requested time.

    :param reached: whether everything the source committed before the time is in Kafka.
    :param progress_ms: source time up to which every partition is complete, slack deducted; None when one is unknown.
    :param holds: the partitions that have not reached it, the furthest behind first.
    :param proven: ``topic -> partition -> offset`` (exclusive) that proves each partition complete up to the time.
    """

    reached: bool
    progress_ms: int | None
    holds: tuple[Hold, ...]
    proven: dict[str, dict[int, int]]


def received(
    until_ms: int,
    facts: Sequence[PartitionFacts],
    heartbeats: Sequence[PartitionFacts] = (),
    *,
    slack_ms: int = SLACK_MS,
) -> Received:
    """Return whether all partitions hold everything that the source committed before a time.

    :param until_ms: the requested time, milliseconds since 1970.
    :param facts: ends of every partition that can carry rows of the pipeline.
    :param heartbeats: ends of the heartbeat topic's partitions, read *before* ``facts``: records that a
        heartbeat covers were sent before it, and so are below ends that are read after it.
    """
    needed = until_ms + slack_ms
    rows = [mark for fact in facts for mark in fact.marks if not mark.heartbeat]
    common = heartbeat_progress([mark for fact in heartbeats for mark in fact.marks], rows, slack_ms)
    known: list[int | None] = []
    holds: list[Hold] = []
    proven: dict[str, dict[int, int]] = {}
    for fact in facts:
        own = _own_progress(fact, rows, slack_ms)
        progress = max((time for time in (own, common) if time is not None), default=None)
        known.append(progress)
        if progress is None or progress < needed:
            shown = None if progress is None else progress - slack_ms
            holds.append(Hold(fact.topic, fact.partition, shown, _why(fact, own, bool(heartbeats))))
            continue
        first = next((mark.offset for mark in fact.marks if mark.source_time_ms >= needed and not mark.heartbeat), None)
        proven.setdefault(fact.topic, {})[fact.partition] = fact.end if first is None else first
    holds.sort(key=lambda hold: (hold.progress_ms is not None, hold.progress_ms or 0, hold.topic, hold.partition))
    times = [time for time in known if time is not None]
    complete = len(times) == len(known) and bool(times)
    return Received(bool(facts) and not holds, min(times) - slack_ms if complete else None, tuple(holds), proven)


def heartbeat_progress(heartbeats: Sequence[Mark], rows: Sequence[Mark], slack_ms: int = SLACK_MS) -> int | None:
    """Return the source time that heartbeats prove, None without heartbeats.

    A tool that is hours behind still sends heartbeats with the time of its own clock. Rows written at the time of the
    heartbeat or later that were already old when written reveal the delay: the heartbeat then proves no more than they.
    """
    best: int | None = None
    for beat in heartbeats:
        proven = beat.source_time_ms
        if beat.kafka_time_ms is not None:
            for row in rows:
                if row.kafka_time_ms is None or row.kafka_time_ms < beat.kafka_time_ms - NEAR_MS:
                    continue
                if row.kafka_time_ms - row.source_time_ms > slack_ms:
                    proven = min(proven, row.source_time_ms)
        best = proven if best is None else max(best, proven)
    return best


def _own_progress(fact: PartitionFacts, rows: Sequence[Mark], slack_ms: int) -> int | None:
    # The newest row by time, not by offset: times may run backwards inside a partition.
    newest = max((mark.source_time_ms for mark in fact.marks if not mark.heartbeat), default=None)
    beats = heartbeat_progress([mark for mark in fact.marks if mark.heartbeat], rows, slack_ms)
    return max((time for time in (newest, beats) if time is not None), default=None)


def _why(fact: PartitionFacts, own: int | None, beats: bool) -> str:
    if own is not None:
        idle = "" if beats else "; if it is idle, set source.heartbeat_topic"
        return f"its newest record is older than the requested time: does the connector run?{idle}"
    state = "is empty" if fact.low >= fact.end else "has no record with a time at its end"
    remedy = "the heartbeat topic is not there yet" if beats else "set source.heartbeat_topic to follow idle partitions"
    return f"it {state}; {remedy}"
