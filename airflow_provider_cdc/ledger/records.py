# SPDX-License-Identifier: Apache-2.0
"""Describe batches, and offsets and times as JSON data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from airflow_provider_cdc.core.model.offsets import Offsets
from airflow_provider_cdc.core.model.status import BatchStatus
from airflow_provider_cdc.ledger.owner import TaskTry

SYNC = "sync"
"""Kind of the batches that follow the log; each starts where the last of them ended."""


@dataclass(frozen=True)
class Batch:
    """One numbered, immutable range of a pipeline, and its result.

    :param seq: number in the pipeline, from 1 without gaps.
    :param kind: kind of the request, e.g. ``sync``.
    :param start: first offsets.
    :param end: offsets after the last, exclusive.
    :param until: source time the request named; None is "what is there now", or not the last batch of its request.
    :param cut_at: time up to which the log was read for a batch that is not the last of its request; None of others.
    :param result: result document; while planned None, or where the engine crashed the last time.
    :param topics: Kafka's id of each topic in the range; None where the batch was planned without them.
    :param lost: records that Kafka deleted before any batch read them: ``topic``, ``partition``, ``start`` and ``end``.
    :param task: the Airflow task that worked on it last; None of a command line.
    :param engine: the engine that was started last, at ``started_at``.
    :param application_id: id of its Spark application; None before it runs, and of the inline engine.
    """

    pipeline: str
    seq: int
    kind: str
    status: BatchStatus
    start: Offsets
    end: Offsets
    until: datetime | None
    planned_at: datetime
    committed_at: datetime | None = None
    result: dict[str, Any] | None = None
    topics: dict[str, str] | None = None
    lost: list[dict[str, Any]] = field(default_factory=list)
    task: TaskTry | None = None
    engine: str | None = None
    application_id: str | None = None
    started_at: datetime | None = None
    cut_at: datetime | None = None

    @property
    def committed(self) -> bool:
        """Return whether the tables hold this batch."""
        return self.status == BatchStatus.COMMITTED

    @property
    def records(self) -> int:
        """Return the number of offsets in the range; control records and compacted ones included."""
        return sum(
            end - self.start.get(topic, {}).get(partition, end)
            for topic, partitions in self.end.items()
            for partition, end in partitions.items()
        )

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "pipeline": self.pipeline,
            "seq": self.seq,
            "kind": self.kind,
            "status": self.status.value,
            "start": offsets_document(self.start),
            "end": offsets_document(self.end),
            "until": time_text(self.until),
            "cut_at": time_text(self.cut_at),
            "planned_at": time_text(self.planned_at),
            "committed_at": time_text(self.committed_at),
            "result": self.result,
            "topics": self.topics,
            "lost": self.lost,
            **TaskTry.columns_of(self.task),
            "engine": self.engine,
            "application_id": self.application_id,
            "started_at": time_text(self.started_at),
        }

    @staticmethod
    def from_document(data: Mapping[str, Any]) -> Batch:
        """Rebuild from :meth:`document`."""
        return Batch(
            pipeline=data["pipeline"],
            seq=data["seq"],
            kind=data["kind"],
            status=BatchStatus(data["status"]),
            start=parse_offsets(data["start"]),
            end=parse_offsets(data["end"]),
            until=parse_time(data["until"]),
            planned_at=datetime.fromisoformat(data["planned_at"]),
            committed_at=parse_time(data["committed_at"]),
            result=data["result"],
            topics=data["topics"],
            lost=data["lost"] or [],
            task=TaskTry.from_columns(data),
            engine=data.get("engine"),
            application_id=data.get("application_id"),
            started_at=parse_time(data.get("started_at")),
            cut_at=parse_time(data.get("cut_at")),
        )


@dataclass(frozen=True)
class LakeBatch:
    """A batch that the lake has and the ledger lacks.

    :param start: first offsets, as JSON data.
    :param end: offsets after the last, as JSON data.
    :param topics: Kafka's id of each topic.
    :param cut_at: as of :class:`Batch`.
    :param result: result as the ledger keeps it; None where the batch is unfinished.
    :param tables: state documents by table id after the batch; None forgets the table.
    :param schema_changes: documents with their ``id``.
    :param past: where it stands for all batches up to it, what these left of tables and schema changes, ascending;
        then ``tables`` and ``schema_changes`` are empty.
    """

    seq: int
    start: dict[str, dict[str, int]]
    end: dict[str, dict[str, int]]
    until: datetime | None
    planned_at: datetime
    topics: dict[str, str]
    cut_at: datetime | None = None
    result: dict[str, Any] | None = None
    tables: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    schema_changes: Sequence[Mapping[str, Any]] = ()
    past: Sequence[PastBatch] = ()


@dataclass(frozen=True)
class PastBatch:
    """Hold what is left of a batch that a later one stands for; members are those of :class:`LakeBatch`."""

    seq: int
    tables: Mapping[str, Mapping[str, Any] | None]
    schema_changes: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class ProgressSample:
    """Hold what was seen of a pipeline's progress at one moment.

    :param seen_at: when; two samples of one moment are one.
    :param received: source time up to which the log is complete; None where it is not known.
    :param applied: source time that the tables have reached; None where it is not known.
    :param lag_seconds: source time between the newest record and what is applied; None where it is not known.
    :param lag_records: number of offsets that no committed batch has read; None where it is not known.
    """

    seen_at: datetime
    received: datetime | None = None
    applied: datetime | None = None
    lag_seconds: float | None = None
    lag_records: int | None = None

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "seen_at": time_text(self.seen_at),
            "received": time_text(self.received),
            "applied": time_text(self.applied),
            "lag_seconds": self.lag_seconds,
            "lag_records": self.lag_records,
        }

    @staticmethod
    def from_document(data: Mapping[str, Any]) -> ProgressSample:
        """Rebuild from :meth:`document`."""
        return ProgressSample(
            datetime.fromisoformat(data["seen_at"]),
            parse_time(data["received"]),
            parse_time(data["applied"]),
            data["lag_seconds"],
            data["lag_records"],
        )


def offsets_document(offsets: Mapping[str, Mapping[int, int]]) -> dict[str, dict[str, int]]:
    """Return offsets as JSON data, in a stable order."""
    return {
        topic: {str(partition): offsets[topic][partition] for partition in sorted(offsets[topic])}
        for topic in sorted(offsets)
    }


def parse_offsets(data: Mapping[str, Mapping[str, int]]) -> Offsets:
    """Rebuild offsets from :func:`offsets_document`."""
    return {topic: {int(p): int(offset) for p, offset in partitions.items()} for topic, partitions in data.items()}


def time_text(value: datetime | None) -> str | None:
    """Return an instant as ISO text in UTC, of fixed length, so that texts compare as instants do.

    :raises ValueError: the time has no zone.
    """
    if value is None:
        return None
    if value.tzinfo is None:
        raise ValueError("a time without a zone names no instant")
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str | None) -> datetime | None:
    """Return the instant of a text written by :func:`time_text`."""
    return None if text is None else datetime.fromisoformat(text)
