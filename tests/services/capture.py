# SPDX-License-Identifier: Apache-2.0
"""Recorded Kafka traffic (`records.jsonl.xz`), read and replayed into a broker as it was."""

from __future__ import annotations

import base64
import json
import lzma
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

from tests.services.broker import Broker


@dataclass(frozen=True, slots=True)
class Record:
    """One recorded Kafka message; timestamp in milliseconds since 1970, UTC."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class ReplayError(RuntimeError):
    """The broker did not take the records as they were recorded."""


def read(capture: Path) -> Iterator[Record]:
    """Read a capture's records in the file's order.

    capture: the file, or the folder that holds `records.jsonl.xz`.
    """
    file = capture / "records.jsonl.xz" if capture.is_dir() else capture
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            yield Record(
                topic=entry["topic"],
                partition=entry["partition"],
                offset=entry["offset"],
                timestamp=entry["timestamp"],
                key=_bytes(entry["key"]),
                value=_bytes(entry["value"]),
                headers=tuple((name, _bytes(value)) for name, value in entry.get("headers") or ()),
            )


def partitions_of(capture: Path) -> dict[str, int]:
    """Partitions by topic: from the capture's `meta.json` where it says so, else as far as its records reach."""
    counts: dict[str, int] = defaultdict(int)
    meta = capture / "meta.json"
    if meta.is_file():
        known = json.loads(meta.read_text(encoding="utf-8"))
        stated = known.get("partitions", known.get("topics"))
        if isinstance(stated, dict):
            counts.update({topic: count for topic, count in stated.items() if isinstance(count, int)})
    for record in read(capture):
        counts[record.topic] = max(counts[record.topic], record.partition + 1)
    return dict(counts)


def replay(
    broker: Broker,
    records: Iterable[Record],
    partitions: Mapping[str, int] | None = None,
    timestamp: Callable[[Record], int] | None = None,
    same_offsets: bool = True,
) -> int:
    """Produce records to their partitions in offset order, creating the topics the broker lacks; returns how many.

    A slice of a capture keeps its offsets if the slices before it were replayed first.

    records: what to replay, in any order.
    partitions: partitions by topic; as far as the records reach if None.
    timestamp: gives a record's new timestamp in milliseconds; the recorded one if None.
    same_offsets: whether a record that comes to stand at another offset is an error.
    """
    ordered = sorted(records, key=lambda record: (record.topic, record.partition, record.offset))
    _create_missing(broker, ordered, partitions or {})
    moved: list[str] = []
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 5,
            "message.max.bytes": 20_000_000,
            "queue.buffering.max.messages": 100_000,
        }
    )

    def report(record: Record) -> Callable[[KafkaError | None, Message], None]:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                moved.append(f"{record.topic}[{record.partition}]@{record.offset}: {error}")
            elif same_offsets and message.offset() != record.offset:
                moved.append(f"{record.topic}[{record.partition}]@{record.offset} is at offset {message.offset()}")

        return delivered

    for record in ordered:
        while True:
            try:
                producer.produce(
                    record.topic,
                    partition=record.partition,
                    key=record.key,
                    value=record.value,
                    headers=list(record.headers) or None,
                    timestamp=timestamp(record) if timestamp else record.timestamp,
                    on_delivery=report(record),
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    if left := producer.flush(60):
        raise ReplayError(f"{left} of {len(ordered)} records were not taken within 60 s")
    if moved:
        raise ReplayError(f"{len(moved)} of {len(ordered)} records are not as recorded, first: {moved[0]}")
    return len(ordered)


def _create_missing(broker: Broker, records: list[Record], stated: Mapping[str, int]) -> None:
    counts: dict[str, int] = dict(stated)
    for record in records:
        counts[record.topic] = max(counts.get(record.topic, 0), record.partition + 1)
    present = broker.admin.list_topics(timeout=30).topics
    broker.create_topics({topic: count for topic, count in counts.items() if topic not in present})


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
