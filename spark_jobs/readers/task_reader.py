# SPDX-License-Identifier: Apache-2.0
"""Read offset ranges of partitions in a task through librdkafka, without group and without commit."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from airflow_provider_cdc.core.errors import SourceError, Terminal, UnavailableError
from airflow_provider_cdc.core.formats.common.joined_partitions import BATCH_BYTES, BATCH_RECORDS
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.kafka_errors import RANGE, SILENCE, Complaints
from airflow_provider_cdc.core.kafka_login import client_settings
from airflow_provider_cdc.core.model.offsets import OffsetRange

HELD_RECORDS = BATCH_RECORDS  # of all partitions: of many with few records each, more are waited for
HELD_GROUPED_BYTES = 32 << 20  # of all partitions of a grouped format: each is decoded apart, so more is waited for
ACTIVE_PARTITIONS = 4  # read at once, if they have HELD_RECORDS: of more, each would be decoded in small batches
_TAKEN = 1_000  # messages of one call, fewer if they are large
# of one answer as it is sent: the client unpacks all of it at once, and compressed JSON may be 200 times as large
FETCH_BYTES = 1 << 19
_ANSWER_HEADER = 512  # bytes of an answer that are not records, at most
_SILENT_SECONDS = 5.0  # without a record: from then on it is the brokers that keep a task waiting
LOOK_BACK = 16  # records before a chunk that show a grouped format how far the senders were

# fetch.queue.backoff.ms: the default of 1 s idles the consumer each time its queue was full (2.5 to 3 x in wall)
# fetch.wait.max.ms: a request for partitions at their ends is held by the broker so long, and with it the first request
# for partitions that are resumed meanwhile (with 100 ms a hundred topics took 0.6 of 3.7 s longer to land)
_TUNING = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "fetch.queue.backoff.ms": 5,
    "queued.min.messages": 100_000,
    "queued.max.messages.kbytes": 32_768,
    "fetch.wait.max.ms": 5,
    # a group's name is demanded by the client; nothing joins it and nothing is committed to it
    "group.id": "airflow-cdc-assign-only",
}

# of Records: offsets, timestamps, keys, values, headers
_Columns = tuple[list[Any], list[Any], list[Any], list[Any], list[Any]]


class Deadline:
    """A moment after which a task gives up."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def over(self) -> bool:
        """Return whether the moment has passed."""
        return time.monotonic() > self._end


def read_chunks(
    chunks: Sequence[OffsetRange],
    config: dict[str, Any],
    *,
    deadline_seconds: float = 60.0,
    grouped: bool = False,
    headers: bool = False,
) -> Iterator[Records]:
    """Yield the committed records of chunks, each partition's in offset order.

    :param chunks: at most one per partition.
    :param config: librdkafka configuration (bootstrap servers, security).
    :param deadline_seconds: give up after so long, what the caller does with the records included.
    :param grouped: read headers too, and a few records before each chunk.
    :param headers: read headers too.
    :raises SourceError: offsets are gone or beyond the log's end, or may not be read.
    :raises ConfigurationError: the brokers refuse the login, or the connection's settings do not fit.
    :raises UnavailableError: the brokers do not answer, or not in time.
    """
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    deadline = Deadline(deadline_seconds)
    unread = [chunk for chunk in chunks if chunk.start < chunk.end]
    if not unread:
        return
    complaints = Complaints()
    try:
        consumer = Consumer({**client_settings(config), **_TUNING, **_fetch_bytes(config), **complaints.settings()})
    except KafkaException as error:
        raise complaints.problem(error.args[0]) from None
    try:
        if grouped:
            unread = [_with_context(consumer, chunk, deadline, complaints) for chunk in unread]
        consumer.assign([TopicPartition(chunk.topic, chunk.partition, chunk.start) for chunk in unread])
        yield from _Reading(consumer, unread, deadline, complaints, grouped, headers).batches()
    finally:
        consumer.close()


def _fetch_bytes(config: dict[str, Any]) -> dict[str, Any]:
    """Return the size of one answer.

    The client demands that it fits into ``receive.message.max.bytes`` and is at least ``message.max.bytes``, which
    means nothing to a consumer.
    """
    size = min(FETCH_BYTES, int(config.get("receive.message.max.bytes", 1 << 30)) - _ANSWER_HEADER)
    return {"fetch.max.bytes": size, "fetch.message.max.bytes": size, "message.max.bytes": size}


def _with_context(consumer: Any, chunk: OffsetRange, deadline: Deadline, complaints: Complaints) -> OffsetRange:
    """Let a chunk begin a few records earlier, as far as the log has them."""
    from confluent_kafka import KafkaException, TopicPartition

    where = {"topic": chunk.topic, "partition": chunk.partition}
    while True:
        try:
            low = consumer.get_watermark_offsets(TopicPartition(*where.values()), timeout=1.0)[0]
            return replace(chunk, start=min(chunk.start, max(low, chunk.start - LOOK_BACK)))
        except KafkaException as error:
            consumer.poll(0)  # hands out what the client reported
            passing = error.args[0].name() in SILENCE and complaints.lasting is None
            if not passing or deadline.over:
                raise complaints.problem(error.args[0], where) from None


class _Reading:
    """One consumer's way through its chunks."""

    def __init__(
        self,
        consumer: Any,
        chunks: Sequence[OffsetRange],
        deadline: Deadline,
        complaints: Complaints,
        grouped: bool = False,
        headers: bool = False,
    ) -> None:
        self._consumer, self._deadline, self._complaints = consumer, deadline, complaints
        self._headers = grouped or headers
        self._held_bytes = HELD_GROUPED_BYTES if grouped else BATCH_BYTES
        self._room = 1  # messages of the next call; the first one shows how large they are
        self._record_bytes = 0  # of one record's value, on average over the last messages
        self._total_offsets = sum(chunk.end - chunk.start for chunk in chunks)
        self._open = {(chunk.topic, chunk.partition): chunk for chunk in chunks}
        self._next = {(chunk.topic, chunk.partition): chunk.start for chunk in chunks}
        self._finished: list[tuple[str, int]] = []  # since the last messages were taken
        self._paused = list(self._open)[::-1]  # partitions that wait for their turn, the next one last
        self._columns: dict[tuple[str, int], _Columns] = {}
        self._sizes: dict[tuple[str, int], int] = {}  # bytes of values

    def batches(self) -> Iterator[Records]:
        """Yield records until every chunk is read."""
        heard = time.monotonic()
        self._consumer.pause(_partitions(self._paused))
        while self._open:
            self._resume()
            messages = self._consumer.consume(self._wished(), timeout=0.5)
            if any(message.error() is None for message in messages):
                heard = time.monotonic()
                self._complaints.clear()
            elif (lasting := self._complaints.lasting) is not None:
                raise lasting
            self._take(messages)
            del messages  # the client's own copy of the values
            if self._open and self._deadline.over:
                raise self._late(time.monotonic() - heard)
            for partition in self._due():
                del self._sizes[partition]
                yield Records(*partition, *self._columns.pop(partition))

    def _wished(self) -> int:
        """Return how many messages the next call asks for.

        Never more than are missing: a call that asks for more waits its whole timeout at the end. Of large ones no more
        than are decoded at once: while a call waits for its number, the client fetches on.
        """
        return max(1, min(self._room, self._missing()))

    def _resume(self) -> None:
        """Let as many partitions be read at once as are decoded together, so that each is decoded in large batches.

        A call that finds fewer records than it asks for waits: a few partitions more are read than that.
        """
        active, missing = len(self._open) - len(self._paused), self._missing()
        begun = []
        while self._paused and (active < ACTIVE_PARTITIONS or missing < self._decoded_together()):
            begun.append(self._paused.pop())
            chunk = self._open[begun[-1]]
            active, missing = active + 1, missing + chunk.end - chunk.start
        if begun:
            self._consumer.resume(_partitions(begun))

    def _decoded_together(self) -> int:
        """Return how many records of all partitions are held before they are decoded, as large as the last ones."""
        return min(HELD_RECORDS, self._held_bytes // self._record_bytes) if self._record_bytes else 0

    def _missing(self) -> int:
        """Return how many offsets are missing of the partitions that are read."""
        paused = set(self._paused)
        return sum(
            chunk.end - self._next[partition] for partition, chunk in self._open.items() if partition not in paused
        )

    def _due(self) -> list[tuple[str, int]]:
        """Return the partitions whose records are to be decoded now: those read to their ends, and large ones."""
        due = [
            partition for partition, size in self._sizes.items() if partition not in self._open or size >= BATCH_BYTES
        ]
        held = sum(len(columns[0]) for columns in self._columns.values())
        if not due and (held >= HELD_RECORDS or sum(self._sizes.values()) >= self._held_bytes):
            return list(self._columns)
        return due

    def _take(self, messages: list[Any]) -> None:
        for here, run in _runs(messages):
            chunk = self._open.get(here)
            if chunk is None:
                continue
            events = [message for message in run if message.error() is not None]
            records = [message for message in run if message.error() is None] if events else run
            if records and records[-1].offset() + 1 >= chunk.end:
                records = [message for message in records if message.offset() < chunk.end]
                self._finish(here)
            if records:
                self._next[here] = records[-1].offset() + 1
                self._add(here, records)
            if here in self._open and any(self._ended(event.error(), event, chunk) for event in events):
                self._finish(here)
        if self._finished:  # together: each call waits for the client's own thread
            self._consumer.pause(_partitions(self._finished))
            self._finished = []

    def _add(self, partition: tuple[str, int], messages: list[Any]) -> None:
        values = [message.value() for message in messages]
        stamps = [message.timestamp() for message in messages]
        size = sum(map(len, filter(None, values)))
        self._sizes[partition] = self._sizes.get(partition, 0) + size
        self._record_bytes = max(1, size // len(values))
        self._room = min(_TAKEN, max(1, BATCH_BYTES // self._record_bytes))
        columns: _Columns = (
            [message.offset() for message in messages],
            [stamp if kind else None for kind, stamp in stamps],
            [message.key() for message in messages],
            values,
            [message.headers() for message in messages] if self._headers else [],
        )
        if partition not in self._columns:
            self._columns[partition] = columns
            return
        for column, more in zip(self._columns[partition], columns, strict=True):
            column += more

    def _finish(self, partition: tuple[str, int]) -> None:
        del self._open[partition]
        if partition in self._paused:  # its records had been fetched before it was paused
            self._paused.remove(partition)
        self._finished.append(partition)

    def _ended(self, problem: Any, message: Any, chunk: OffsetRange) -> bool:
        """Return whether an event says that the chunk is read to its end; raise what makes that impossible."""
        where = {"topic": chunk.topic, "partition": chunk.partition, "start": chunk.start, "end": chunk.end}
        name = problem.name()
        if name == "_PARTITION_EOF":
            # the end of a range may be a control or an aborted record: only this event shows it, not the last offset
            if message.offset() < chunk.end:
                raise SourceError(
                    "kafka.end_beyond_log",
                    f"the log ends at {message.offset()}, before the range",
                    where=where,
                    hint="the topic lost records or was created again: take a new snapshot, or run "
                    "`airflow-cdc sync --accept-loss` once to go on with what is left",
                )
            return True
        if name in RANGE:
            raise SourceError(
                "kafka.offsets_expired",
                "Kafka no longer has the range's offsets",
                where=where,
                hint="the records are lost: take a new snapshot and rebuild the pipeline, or run "
                "`airflow-cdc sync --accept-loss` once to go on with what is left; raise the topic's retention",
            )
        error = self._complaints.problem(problem, where)
        if problem.fatal() or isinstance(error, Terminal):
            raise error
        return False

    def _late(self, silent: float) -> UnavailableError:
        """Return the error of a task whose time is over: nothing came, or too little.

        :param silent: seconds since the last record.
        """
        chunk = next(iter(self._open.values()))
        total = self._total_offsets
        missing = sum(chunk.end - self._next[partition] for partition, chunk in self._open.items())
        where = {"topic": chunk.topic, "partition": chunk.partition, "end": chunk.end}
        reason = self._complaints.reason
        if reason or silent > _SILENT_SECONDS:
            return UnavailableError(
                "kafka.stalled",
                f"no record for {silent:.0f} s{f': {reason}' if reason else ''}",
                where=where,
                hint="check that the brokers can be reached from Spark's workers, then run again",
            )
        return UnavailableError(
            "kafka.slow",
            f"{total - missing} of {total} offsets were read in {self._deadline.seconds:g} s",
            where=where,
            hint="lower policy.chunk_records or raise policy.land_deadline_seconds, then run again",
        )


def _partitions(partitions: Sequence[tuple[str, int]]) -> list[Any]:
    from confluent_kafka import TopicPartition

    return [TopicPartition(*partition) for partition in partitions]


def _runs(messages: list[Any]) -> Iterator[tuple[tuple[str, int], list[Any]]]:
    """Yield messages of one partition that stand together; mostly, as those of one fetch, all of them do."""
    partitions = [(message.topic(), message.partition()) for message in messages]
    if partitions and partitions.count(partitions[0]) == len(partitions):
        yield partitions[0], messages
        return
    for partition, run in groupby(zip(partitions, messages, strict=True), itemgetter(0)):
        yield partition, [message for _, message in run]
