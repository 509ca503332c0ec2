"""The task reader: one partition's stretch of offsets through librdkafka, without group and without commit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from airflow_provider_cdc.core.documents import Chunk
from airflow_provider_cdc.core.errors import SourceError, UnavailableError
from airflow_provider_cdc.core.formats.contract import Records

BATCH_RECORDS = 20_000
BATCH_BYTES = 64 << 20

# fetch.queue.backoff.ms: the default of 1 s idles the consumer each time its queue was full (measured 2.5 to 3 x in wall)
_TUNING = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "fetch.queue.backoff.ms": 5,
    "queued.min.messages": 100_000,
    "queued.max.messages.kbytes": 131_072,
    "fetch.message.max.bytes": 8 << 20,
    "fetch.wait.max.ms": 100,
    # a group's name is demanded by the client; nothing joins it and nothing is committed to it
    "group.id": "airflow-cdc-assign-only",
}


def read_chunk(chunk: Chunk, config: dict[str, Any], *, stall_seconds: float = 60.0) -> Iterator[Records]:
    """Yield the committed records of a chunk in offset order.

    :param config: librdkafka configuration (bootstrap servers, security).
    :param stall_seconds: give up when nothing arrives for so long.
    :raises SourceError: offsets are gone or beyond the log's end.
    :raises UnavailableError: the broker does not answer.
    """
    from confluent_kafka import Consumer, TopicPartition

    if chunk.start >= chunk.end:
        return
    consumer = Consumer({**config, **_TUNING})
    try:
        consumer.assign([TopicPartition(chunk.topic, chunk.partition, chunk.start)])
        yield from _until(consumer, chunk, stall_seconds)
    finally:
        consumer.close()


def _until(consumer: Any, chunk: Chunk, stall_seconds: float) -> Iterator[Records]:
    end, heard = chunk.end, time.monotonic()
    records, size = _empty(chunk), 0
    while True:
        messages = consumer.consume(BATCH_RECORDS, timeout=0.2)
        done = False
        for message in messages:
            problem = message.error()
            if problem is not None:
                done = _at_end(problem, message, chunk)
                if done:
                    break
                continue
            offset = message.offset()
            if offset >= end:
                done = True
                break
            value = message.value()
            records.offsets.append(offset)  # type: ignore[attr-defined]
            records.timestamps.append(_timestamp(message.timestamp()))  # type: ignore[attr-defined]
            records.keys.append(message.key())  # type: ignore[attr-defined]
            records.values.append(value)  # type: ignore[attr-defined]
            size += len(value or b"")
            if offset + 1 == end:
                done = True
                break
        if messages:
            heard = time.monotonic()
        if len(records) and (done or len(records) >= BATCH_RECORDS or size >= BATCH_BYTES):
            yield records
            records, size = _empty(chunk), 0
        if done:
            return
        if time.monotonic() - heard > stall_seconds:
            raise UnavailableError(
                "kafka.stalled",
                f"no record for {stall_seconds:.0f} s",
                where={"topic": chunk.topic, "partition": chunk.partition, "end": end},
                hint="check that the brokers can be reached from Spark's workers, then run again",
            )


def _empty(chunk: Chunk) -> Records:
    return Records(chunk.topic, chunk.partition, [], [], [], [])


def _timestamp(pair: tuple[int, int]) -> int | None:
    return pair[1] if pair[0] else None  # kind 0: the record has none


def _at_end(problem: Any, message: Any, chunk: Chunk) -> bool:
    from confluent_kafka import KafkaError

    where = {"topic": chunk.topic, "partition": chunk.partition, "start": chunk.start, "end": chunk.end}
    code = problem.code()
    if code == KafkaError._PARTITION_EOF:
        # the end of a range may be a control or an aborted record, so having seen the last offset is no sign; this is
        if message.offset() < chunk.end:
            raise SourceError(
                "kafka.end_beyond_log",
                f"the log ends at {message.offset()}, before the range",
                where=where,
                hint="the topic lost records or was created anew: rebuild the pipeline's tables",
            )
        return True
    if code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
        raise SourceError(
            "kafka.offsets_expired",
            "Kafka no longer has the range's offsets",
            where=where,
            hint="raise the topic's retention; the records are lost, so rebuild the pipeline's tables",
        )
    if code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION):
        raise SourceError("kafka.topic_unknown", "the topic or partition does not exist", where=where)
    if problem.fatal() or code in (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED):
        raise SourceError("kafka.refused", problem.name(), where=where, hint="check the Kafka connection's credentials and rights")
    return False
