# SPDX-License-Identifier: Apache-2.0
"""Compute the offsets that the next batch reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from airflow_provider_cdc.core.errors import SourceError
from airflow_provider_cdc.core.model.offsets import OffsetRange, Offsets

OffsetMap = Mapping[str, Mapping[int, int]]

_SHOWN = 5
_REBUILD = (
    "the tables can no longer follow this log without a gap: take a new snapshot and rebuild the pipeline, "
    "or run `airflow-cdc sync --accept-loss` once to continue with what is left"
)


@dataclass(frozen=True)
class Loss:
    """Records that Kafka deleted before they were read: ``[start, end)`` of a partition.

    :param end: None where it is unknown: the topic is gone, or was deleted and created again.
    """

    topic: str
    partition: int
    start: int
    end: int | None


@dataclass(frozen=True)
class Range:
    """Offsets of one batch, of every known partition; start = end where there is nothing to read.

    :param joined: partitions that no batch has read before.
    :param lost: records that are skipped because loss was accepted.
    :param heartbeat_topic: its records alone are no reason to start an engine.
    :param topics: Kafka's id of each topic, where known.
    :param cut_at: time up to which the log is read where the request asks for more; None where this is all of it.
    """

    start: Offsets
    end: Offsets
    joined: tuple[tuple[str, int], ...] = ()
    lost: tuple[Loss, ...] = ()
    heartbeat_topic: str | None = None
    topics: dict[str, str] = field(default_factory=dict)
    cut_at: datetime | None = None

    def offset_ranges(self) -> list[OffsetRange]:
        """Return the ranges that have records, by topic and partition."""
        ranges = [
            OffsetRange(topic, partition, self.start[topic][partition], self.end[topic][partition])
            for topic in sorted(self.end)
            for partition in sorted(self.end[topic])
        ]
        return [part for part in ranges if part.records]

    @property
    def records(self) -> int:
        """Return the number of offsets to read; control records and compacted ones included."""
        return sum(part.records for part in self.offset_ranges())

    @property
    def empty(self) -> bool:
        """Return whether there is nothing but heartbeats to read."""
        return all(part.topic == self.heartbeat_topic for part in self.offset_ranges())


def plan_range(
    last_end: OffsetMap | None,
    lows: OffsetMap,
    highs: OffsetMap,
    until: OffsetMap | None = None,
    *,
    schema_topic: str | None = None,
    heartbeat_topic: str | None = None,
    selects: Callable[[str], bool] | None = None,
    accept_loss: bool = False,
    known_ids: Mapping[str, str] | None = None,
    ids: Mapping[str, str] | None = None,
) -> Range:
    """Return the offsets of the next batch.

    :param last_end: end of the last batch; None or empty on the pipeline's first.
    :param lows: first offset that each existing partition still has.
    :param highs: present end of each (the last stable offset), exclusive.
    :param until: end that the request asks for; a partition that is missing there is read to its present end. Never
        used for the schema topic: a row must not be read before the change of its table.
    :param selects: returns whether the pipeline still reads a topic; a topic that it left keeps its offset.
    :param accept_loss: continue at the first offset that Kafka still has instead of raising.
    :param known_ids: Kafka's ids of the topics of the last batch; a topic with another id now was created again.
    :param ids: the present ids.
    :raises SourceError: ``kafka.offsets_expired``, ``kafka.topic_gone``, ``kafka.topic_recreated``.
    """
    known, now = known_ids or {}, ids or {}
    other = {topic for topic in now if known.get(topic, now[topic]) != now[topic]}
    planning = _Planning(last_end or {}, lows, highs, heartbeat_topic, accept_loss, other)
    planning.start_missing(selects or (lambda topic: True))
    planning.start_existing()
    planning.raise_any()
    for topic, partitions in planning.start.items():
        for partition, start in partitions.items():
            high = highs.get(topic, {}).get(partition, start)
            end = high
            if until is not None and topic != schema_topic:
                end = min(high, until.get(topic, {}).get(partition, high))
            planning.end.setdefault(topic, {})[partition] = max(start, end)
    topics = {topic: topic_id for topic, topic_id in {**known, **now}.items() if topic in planning.end}
    return Range(planning.start, planning.end, tuple(planning.joined), tuple(planning.lost), heartbeat_topic, topics)


@dataclass
class _Planning:
    """Starts of a range, and the losses that prevent it.

    :param recreated_topics: topics that have another id than before.
    """

    last_end: OffsetMap
    lows: OffsetMap
    highs: OffsetMap
    heartbeat_topic: str | None
    accept_loss: bool
    recreated_topics: set[str]
    start: Offsets = field(default_factory=dict)
    end: Offsets = field(default_factory=dict)
    joined: list[tuple[str, int]] = field(default_factory=list)
    lost: list[Loss] = field(default_factory=list)
    gone: list[tuple[str, int, int]] = field(default_factory=list)
    recreated: list[tuple[str, int, int]] = field(default_factory=list)

    def start_missing(self, selects: Callable[[str], bool]) -> None:
        """Set starts of known partitions that the cluster does not have, or that the pipeline no longer reads."""
        for topic, partitions in self.last_end.items():
            for partition, offset in partitions.items():
                if partition in self.highs.get(topic, {}):
                    continue
                missed = selects(topic) and topic != self.heartbeat_topic
                if missed and self.accept_loss:
                    self.lost.append(Loss(topic, partition, offset, None))
                    continue  # forgotten: a later partition of that name is a new one
                self.start.setdefault(topic, {})[partition] = offset
                if missed:
                    (self.recreated if topic in self.recreated_topics else self.gone).append((topic, partition, offset))

    def start_existing(self) -> None:
        """Set starts of partitions that the cluster has."""
        for topic, partitions in self.highs.items():
            for partition, high in partitions.items():
                self.start.setdefault(topic, {})[partition] = self._start(topic, partition, high)

    def _start(self, topic: str, partition: int, high: int) -> int:
        low = self.lows[topic][partition]
        offset = self.last_end.get(topic, {}).get(partition)
        if offset is None:
            self.joined.append((topic, partition))
            # Only the first batch may begin in the middle: it belongs to the snapshot that created the tables.
            offset = 0 if self.last_end else low
        if topic == self.heartbeat_topic:
            return low if offset > high or topic in self.recreated_topics else max(offset, low)
        if offset > high or topic in self.recreated_topics:
            self._restart(topic, partition, offset, low)
            return low
        if offset < low:
            self.lost.append(Loss(topic, partition, offset, low))
            return low
        return offset

    def _restart(self, topic: str, partition: int, offset: int, low: int) -> None:
        """Note a partition of a topic that was created again: what the old one still had is unknown."""
        if not self.accept_loss:
            self.recreated.append((topic, partition, offset))
            return
        self.lost.append(Loss(topic, partition, offset, None))
        if low:
            self.lost.append(Loss(topic, partition, 0, low))

    def raise_any(self) -> None:
        """Raise for lost records, all partitions at once."""
        if self.gone:
            raise _error("kafka.topic_gone", "topics or partitions that the pipeline reads are gone", self.gone)
        if self.recreated:
            text = "the topic was deleted and created again, or the connection leads to another cluster"
            if self.recreated[0][0] not in self.recreated_topics:
                text = "the log ends before the last batch did: the topic was deleted and created again, or truncated"
            raise _error("kafka.topic_recreated", text, self.recreated)
        if self.lost and not self.accept_loss:
            raise _expired(self.lost)


def _error(code: str, text: str, offsets: Sequence[tuple[str, int, int]]) -> SourceError:
    topic, partition, offset = offsets[0]
    where = {"topic": topic, "partition": partition, "offset": offset, "partitions": _shown(offsets)}
    hint = f"leave it out of source.topics if it ended on purpose; otherwise {_REBUILD}"
    return SourceError(code, text, where=where, hint=hint)


def _expired(lost: Sequence[Loss]) -> SourceError:
    first = lost[0]
    ends = [loss.end or loss.start for loss in lost]  # known: a topic that was created again is reported as such
    total = sum(end - loss.start for end, loss in zip(ends, lost, strict=True))
    text = f"Kafka deleted {total} records before they were read, first offsets {first.start} to {ends[0] - 1}"
    starts = [(loss.topic, loss.partition, loss.start) for loss in lost]
    where = {
        "topic": first.topic,
        "partition": first.partition,
        "offset": first.start,
        "first_kept": ends[0],
        "partitions": _shown(starts),
    }
    return SourceError("kafka.offsets_expired", text, where=where, hint=f"{_REBUILD}; raise the topic's retention")


def _shown(offsets: Sequence[tuple[str, int, int]]) -> str:
    names = [f"{topic}/{partition}" for topic, partition, _ in offsets[:_SHOWN]]
    rest = len(offsets) - len(names)
    return " ".join(names) + (f" and {rest} more" if rest else "")
