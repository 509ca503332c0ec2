# SPDX-License-Identifier: Apache-2.0
"""Store the packets of a Canal destination outside of a pipeline: in a Kafka topic, or in files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.core.errors import SourceError, UnavailableError
from airflow_provider_cdc.core.lake.segments import Packet, SegmentLog
from airflow_provider_cdc.hooks.canal_frames import batch_of

if TYPE_CHECKING:
    from airflow_provider_cdc.hooks.canal_drain import Store

RECORD_BYTES = 900_000
"""Bytes above which a packet becomes several records: brokers take 1 MiB by default."""

_PARTITION = 0  # one partition: the order of the source
_REFUSED = {"MSG_SIZE_TOO_LARGE", "TOPIC_AUTHORIZATION_FAILED", "UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"}


@dataclass(frozen=True)
class KafkaTarget:
    """A Kafka topic that packets are written to, as Canal itself writes them; all to partition 0.

    :param topic: name of the topic; it exists.
    :param connection: Airflow connection of type ``kafka``.
    :param timeout: seconds within which Kafka has to confirm a segment.
    """

    topic: str
    connection: str = "kafka_default"
    timeout: float = 60.0

    def open(self, destination: str) -> Store:
        """Return what makes packets durable in the topic.

        :raises ConfigurationError: the connection cannot be used.
        """
        from confluent_kafka import Producer

        from airflow_provider_cdc.hooks.kafka_log import KafkaLog

        config = KafkaLog(self.connection).client_config()
        settings = {"acks": "all", "enable.idempotence": True, "delivery.timeout.ms": int(self.timeout * 1000)}
        producer = Producer({**config, **settings, "log_level": 3})

        def store(packets: Sequence[Packet]) -> None:
            self._write(producer, packets)

        return store

    def _write(self, producer: Any, packets: Sequence[Packet]) -> None:
        """Write packets and wait until Kafka confirmed all of them."""
        from confluent_kafka import KafkaException

        problems: list[Any] = []

        def note(problem: Any, record: Any) -> None:
            if problem is not None:
                problems.append(problem)

        try:
            for packet in packets:
                for record in records_of(packet.data):
                    producer.produce(self.topic, record, partition=_PARTITION, on_delivery=note)
                producer.poll(0)
            left = producer.flush(self.timeout)
        except KafkaException as error:
            raise self._problem(error.args[0]) from None
        except BufferError:
            raise self._lost("the producer's queue is full") from None
        if problems:
            raise self._problem(problems[0])
        if left:
            raise self._lost(f"{left} records were not confirmed in {self.timeout:g} s")

    def _problem(self, problem: Any) -> SourceError | UnavailableError:
        if problem.name() in _REFUSED:
            return SourceError(
                "kafka.record_refused",
                f"Kafka refuses a record: {problem.name()}",
                where={"topic": self.topic, "connection": self.connection},
                hint="raise the topic's max.message.bytes and message.max.bytes, or grant Write; nothing of it was "
                "acknowledged",
            )
        return self._lost(f"Kafka did not take a record: {problem.name()}")

    def _lost(self, text: str) -> UnavailableError:
        where = {"topic": self.topic, "connection": self.connection}
        hint = "check the brokers, then run again; the Canal server sends what was not acknowledged"
        return UnavailableError("kafka.unavailable", text, where=where, hint=hint)


@dataclass(frozen=True)
class LandingFolder:
    """A folder, or a prefix of S3, that packets are written to as segments, below the destination's name.

    :param root: absolute path or URL.
    :param storage_connection: Airflow connection of type ``aws``, where the root is on S3.
    """

    root: str
    storage_connection: str | None = None

    def open(self, destination: str) -> Store:
        """Return what makes packets durable in the folder.

        :raises ConfigurationError: the connection cannot be used.
        """
        from airflow_provider_cdc.hooks.connections import storage_options

        return SegmentLog(self.root, destination, storage_options(self.storage_connection)).append


def records_of(packet: bytes) -> Iterator[bytes]:
    """Yield a packet as records for Kafka: itself, or its entries in several packets where it is large."""
    if len(packet) <= RECORD_BYTES:
        yield packet
        return
    from airflow_provider_cdc.core.formats.generated.canal_packet_pb2 import MESSAGES, Messages
    from airflow_provider_cdc.core.formats.generated.canal_packet_pb2 import Packet as PacketMessage

    read = batch_of(PacketMessage.FromString(packet).body)
    assert read is not None, "a session checked it"
    batch_id, entries = read
    part: list[bytes] = []
    size = 0
    for entry in [*entries, None]:
        if part and (entry is None or size + len(entry) > RECORD_BYTES):
            body = Messages(batch_id=batch_id, messages=part).SerializeToString()
            yield PacketMessage(type=MESSAGES, body=body).SerializeToString()
            part, size = [], 0
        if entry is not None:
            part.append(entry)
            size += len(entry) + 8
