# SPDX-License-Identifier: Apache-2.0
"""Store the packets of a Canal destination outside of a pipeline: in a Kafka topic, or in files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_cdc.core.lake.segments import Packet, SegmentLog
from airflow_provider_cdc.sources.canal_frames import batch_of

if TYPE_CHECKING:
    from airflow_provider_cdc.sources.canal_drain import Store

RECORD_BYTES = 900_000
"""Bytes above which a packet becomes several records: brokers take 1 MiB by default."""


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
        from airflow_provider_cdc.sources.kafka_writer import KafkaWriter

        hint = "check the brokers, then run again; the Canal server sends what was not acknowledged"
        writer = KafkaWriter(self.topic, self.connection, self.timeout, hint)

        def store(packets: Sequence[Packet]) -> None:
            writer.write((None, record) for packet in packets for record in records_of(packet.data))

        return store


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
        from airflow_provider_cdc.connections.lookup import storage_options

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
