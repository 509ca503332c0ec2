"""The task reader: stretches of partitions through librdkafka, without group and without commit."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from airflow_provider_cdc.core.documents import Chunk
from airflow_provider_cdc.core.errors import SourceError, UnavailableError
from airflow_provider_cdc.core.formats.contract import Records

BATCH_BYTES = 8 << 20  # of one partition, decoded at once: much more leaves the processor's cache
HELD_RECORDS, HELD_BYTES = 20_000, 32 << 20  # of all partitions: of many with few records each, more are waited for
_TAKEN = 1_000  # messages of one call
LOOK_BACK = 16  # records before a chunk that tell a grouped format how far the senders were

# fetch.queue.backoff.ms: the default of 1 s idles the consumer each time its queue was full (2.5 to 3 x in wall)
_TUNING = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "fetch.queue.backoff.ms": 5,
    "queued.min.messages": 100_000,
    "queued.max.messages.kbytes": 32_768,
    # each answer is one piece of memory; one of 50 MB, the default, is made of new pages every time
    "fetch.max.bytes": 8 << 20,
    "fetch.message.max.bytes": 8 << 20,
    "fetch.wait.max.ms": 100,
    # a group's name is demanded by the client; nothing joins it and nothing is committed to it
    "group.id": "airflow-cdc-assign-only",
}

# of Records: offsets, timestamps, keys, values, headers
_Columns = tuple[list[Any], list[Any], list[Any], list[Any], list[Any]]


def read_chunks(
    chunks: Sequence[Chunk], config: dict[str, Any], *, stall_seconds: float = 60.0, grouped: bool = False
) -> Iterator[Records]:
    """Yield the committed records of chunks, each partition's in offset order.

    :param chunks: at most one per partition.
    :param config: librdkafka configuration (bootstrap servers, security).
    :param stall_seconds: give up when nothing arrives for so long.
    :param grouped: read headers too, and a few records before each chunk.
    :raises SourceError: offsets are gone or beyond the log's end.
    :raises UnavailableError: the broker does not answer.
    """
    from confluent_kafka import Consumer, TopicPartition

    wanted = [chunk for chunk in chunks if chunk.start < chunk.end]
    if not wanted:
        return
    consumer = Consumer({**config, **_TUNING})
    try:
        if grouped:
            wanted = [_with_context(consumer, chunk, stall_seconds) for chunk in wanted]
        consumer.assign([TopicPartition(chunk.topic, chunk.partition, chunk.start) for chunk in wanted])
        yield from _Reading(consumer, wanted, stall_seconds, grouped).batches()
    finally:
        consumer.close()


def _with_context(consumer: Any, chunk: Chunk, timeout: float) -> Chunk:
    """Let a chunk begin a few records earlier, as far as the log has them."""
    from confluent_kafka import KafkaException, TopicPartition

    try:
        low = consumer.get_watermark_offsets(TopicPartition(chunk.topic, chunk.partition), timeout=timeout)[0]
    except KafkaException as error:
        where = {"topic": chunk.topic, "partition": chunk.partition}
        raise UnavailableError("kafka.unreachable", error.args[0].name(), where=where) from None
    return replace(chunk, start=min(chunk.start, max(low, chunk.start - LOOK_BACK)))


class _Reading:
    """One consumer's way through its chunks."""

    def __init__(self, consumer: Any, chunks: Sequence[Chunk], stall_seconds: float, headers: bool = False) -> None:
        self._consumer = consumer
        self._headers = headers
        self._stall = stall_seconds
        self._open = {(chunk.topic, chunk.partition): chunk for chunk in chunks}
        self._next = {(chunk.topic, chunk.partition): chunk.start for chunk in chunks}
        self._columns: dict[tuple[str, int], _Columns] = {}
        self._sizes: dict[tuple[str, int], int] = {}  # bytes of values

    def batches(self) -> Iterator[Records]:
        """Yield records until every chunk is read."""
        heard = time.monotonic()
        while self._open:
            # never more than is missing: a call that asks for more waits its whole timeout at the end
            missing = sum(chunk.end - self._next[place] for place, chunk in self._open.items())
            messages = self._consumer.consume(min(_TAKEN, max(1, missing)), timeout=0.5)
            self._take(messages)
            if messages:
                heard = time.monotonic()
            elif time.monotonic() - heard > self._stall:
                raise self._stalled()
            for place in self._due():
                del self._sizes[place]
                yield Records(*place, *self._columns.pop(place))

    def _due(self) -> list[tuple[str, int]]:
        """Return the partitions whose records are to be decoded now."""
        held = sum(len(columns[0]) for columns in self._columns.values())
        if held >= HELD_RECORDS or sum(self._sizes.values()) >= HELD_BYTES or not self._open:
            return list(self._columns)
        return [place for place, size in self._sizes.items() if size >= BATCH_BYTES]

    def _take(self, messages: list[Any]) -> None:
        for here, run in _runs(messages):
            chunk = self._open.get(here)
            if chunk is None:
                continue
            events = [message for message in run if message.error() is not None]
            found = [message for message in run if message.error() is None] if events else run
            if found and found[-1].offset() + 1 >= chunk.end:
                found = [message for message in found if message.offset() < chunk.end]
                self._finish(here)
            if found:
                self._next[here] = found[-1].offset() + 1
                self._add(here, found)
            if here in self._open and any(_ended(event.error(), event, chunk) for event in events):
                self._finish(here)

    def _add(self, place: tuple[str, int], messages: list[Any]) -> None:
        values = [message.value() for message in messages]
        stamps = [message.timestamp() for message in messages]
        self._sizes[place] = self._sizes.get(place, 0) + sum(map(len, filter(None, values)))
        found: _Columns = (
            [message.offset() for message in messages],
            [stamp if kind else None for kind, stamp in stamps],
            [message.key() for message in messages],
            values,
            [message.headers() for message in messages] if self._headers else [],
        )
        if place not in self._columns:
            self._columns[place] = found
            return
        for column, more in zip(self._columns[place], found, strict=True):
            column += more

    def _finish(self, place: tuple[str, int]) -> None:
        from confluent_kafka import TopicPartition

        del self._open[place]
        self._consumer.pause([TopicPartition(*place)])

    def _stalled(self) -> UnavailableError:
        chunk = next(iter(self._open.values()))
        return UnavailableError(
            "kafka.stalled",
            f"no record for {self._stall:.0f} s",
            where={"topic": chunk.topic, "partition": chunk.partition, "end": chunk.end},
            hint="check that the brokers can be reached from Spark's workers, then run again",
        )


def _runs(messages: list[Any]) -> Iterator[tuple[tuple[str, int], list[Any]]]:
    """Yield messages of one partition that stand together; mostly, as those of one fetch, all of them do."""
    places = [(message.topic(), message.partition()) for message in messages]
    if places and places.count(places[0]) == len(places):
        yield places[0], messages
        return
    for place, run in groupby(zip(places, messages, strict=True), itemgetter(0)):
        yield place, [message for _, message in run]


def _ended(problem: Any, message: Any, chunk: Chunk) -> bool:
    """Return whether an event says that the chunk is read to its end; raise what makes that impossible."""
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
    refused = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED)
    if problem.fatal() or code in refused:
        raise SourceError(
            "kafka.refused", problem.name(), where=where, hint="check the Kafka connection's credentials and rights"
        )
    return False
