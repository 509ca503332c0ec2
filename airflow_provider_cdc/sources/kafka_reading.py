# SPDX-License-Identifier: Apache-2.0
"""Read bounded windows of a log by assignment."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.core.errors import CdcError, UnavailableError
from airflow_provider_cdc.core.model.offsets import Offsets

if TYPE_CHECKING:
    from confluent_kafka import Consumer

TopicPartition = tuple[str, int]


@dataclass(frozen=True)
class Watermarks:
    """First and last offsets of partitions, as of one moment.

    :param lows: first offset each still has.
    :param highs: last stable offset of each, exclusive: what a read_committed reader can see.
    """

    lows: Offsets
    highs: Offsets


@dataclass(frozen=True)
class KafkaRecord:
    """One record.

    :param timestamp_ms: milliseconds since 1970, None where the record has none.
    :param headers: name and value pairs, None where it has none.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] | None = None


# Errors that do not concern a reader with assigned partitions.
_NO_CONCERN = {"GROUP_AUTHORIZATION_FAILED", "_ALL_BROKERS_DOWN", "_TRANSPORT", "_RESOLVE"}


def read_windows(
    consumer: Consumer,
    windows: Mapping[TopicPartition, tuple[int, int]],
    count: int,
    limit: float,
    problem: Callable[[Any], CdcError],
) -> dict[TopicPartition, list[KafkaRecord]]:
    """Return the first records of each window, at most ``count`` of each.

    :param windows: half-open offsets by topic and partition; none of them empty.
    :param limit: deadline on the monotonic clock.
    :param problem: converts an error of librdkafka.
    """
    from confluent_kafka import TopicPartition as Assignment

    records: dict[TopicPartition, list[KafkaRecord]] = {tp: [] for tp in windows}
    waiting = set(windows)
    consumer.assign([Assignment(topic, partition, start) for (topic, partition), (start, _) in windows.items()])
    while waiting:
        left = limit - time.monotonic()
        if left <= 0:
            topic, partition = min(waiting)
            where = {"topic": topic, "partition": partition, "partitions_left": len(waiting)}
            raise UnavailableError("kafka.slow", "Kafka did not deliver in time", where=where)
        done = []
        for message in consumer.consume(num_messages=500, timeout=min(left, 0.5)):
            tp = _partition_of(message, problem)
            if tp is not None and tp in waiting and _finished(message, windows[tp], records[tp], count):
                waiting.discard(tp)
                done.append(Assignment(*tp))
        if done and waiting:
            consumer.pause(done)
    return records


def _partition_of(message: Any, problem: Callable[[Any], CdcError]) -> TopicPartition | None:
    error = message.error()
    if error is not None and error.name() != "_PARTITION_EOF":
        if error.name() in _NO_CONCERN and not error.fatal():
            return None
        raise problem(error)
    return message.topic(), message.partition()


def _finished(message: Any, window: tuple[int, int], records: list[KafkaRecord], count: int) -> bool:
    """Take a record if it is in the window; return whether its partition is done."""
    if message.error() is not None:
        return True  # end of the committed records; windows do not reach beyond it for long
    end = window[1]
    if message.offset() < end:
        kind, stamp = message.timestamp()
        records.append(
            KafkaRecord(
                message.topic(),
                message.partition(),
                message.offset(),
                stamp if kind else None,
                message.key(),
                message.value(),
                message.headers(),
            )
        )
    return message.offset() >= end - 1 or len(records) >= count
