# SPDX-License-Identifier: Apache-2.0
"""Show a Canal destination as a log: what was taken from the server, as a topic of one partition.

Offsets are the numbers of packets in the lake's segments (``core/lake/segments.py``). Only :meth:`CanalLog.collect`
speaks with the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING

from airflow_provider_cdc.connections.canal_address import CanalAddress
from airflow_provider_cdc.core.config import CanalSource
from airflow_provider_cdc.core.errors import BusyError
from airflow_provider_cdc.core.lake.segments import SegmentLog
from airflow_provider_cdc.core.model.offsets import Offsets
from airflow_provider_cdc.sources.canal_drain import Limits, drain
from airflow_provider_cdc.sources.canal_session import CanalSession
from airflow_provider_cdc.sources.kafka_reading import KafkaRecord, TopicPartition, Watermarks

if TYPE_CHECKING:
    from airflow_provider_cdc.core.formats.common.schema_supply import SchemaSupply

PARTITION = 0
"""The only partition of a destination."""


Right = Callable[[], AbstractContextManager[Callable[[], None]]]
"""Gives the right to move the server's cursor, with a function that raises once it is lost.

:raises BusyError: somebody else has it.
"""


class CanalLog:
    """The packets of one destination that are in the lake.

    :param address: returns where the server is, and who logs in.
    :param segments: the packets in the lake.
    :param right: of :meth:`collect`; None where this log is only looked at.
    :param timeout: seconds that the server may take to answer.
    """

    def __init__(
        self,
        source: CanalSource,
        address: Callable[[], CanalAddress],
        segments: SegmentLog,
        right: Right | None = None,
        *,
        timeout: float = 15.0,
    ) -> None:
        self._source, self._address, self._segments, self._right = source, address, segments, right
        self._timeout = timeout

    @property
    def schemas(self) -> SchemaSupply:
        """Teach a format nothing: packets of Canal name no schemas."""
        from airflow_provider_cdc.core.formats.common.schema_supply import SchemaSupply

        return SchemaSupply(lambda ids: {})

    def client_config(self) -> dict[str, str]:
        """Return what tasks need to read the log in addition to the lake: nothing."""
        return {}

    def namespace(self) -> str:
        """Return the server as OpenLineage would name it."""
        address = self._address()
        return f"canal://{address.host}:{address.port}"

    def close(self) -> None:
        """Do nothing: no connection outlives a call."""

    def collect(self, enough: Callable[[KafkaRecord], bool] | None = None) -> None:
        """Take what the server has into the lake; nothing happens where somebody else is doing that.

        :param enough: whether a record is beyond what is needed: then this ends there, or where the server has no
            more; otherwise at the limits of the source too.
        """
        if self._right is None:
            return
        source, end = self._source, self._segments.end()
        if enough is not None and any(map(enough, self.read({self._partition: (end - 1, end)}, 1)[self._partition])):
            return
        limits = Limits(source.max_entries, source.max_seconds, source.idle_seconds)
        if enough is not None:
            limits = Limits(idle_seconds=source.idle_seconds)

        def last(packet: bytes) -> bool:
            return enough is not None and bool(packet) and enough(self._record(0, 0, packet))

        with ExitStack() as stack:
            try:
                check = stack.enter_context(self._right())
            except BusyError:
                return
            session = stack.enter_context(CanalSession(self._address(), source.destination, timeout=self._timeout))
            session.subscribe()
            drain(session, self._segments.append, limits, check=check, enough=last)

    # ---- what is there

    def topics(self) -> dict[str, list[int]]:
        """Return the destination with its partition."""
        return {self._source.destination: [PARTITION]}

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the id that the destination's log got with its first segment."""
        log_id = self._segments.log_id()
        return {topic: log_id for topic in topics if log_id and topic == self._source.destination}

    def ends(self, topics: Iterable[str]) -> Watermarks:
        """Return the numbers of the first packet and of the next one."""
        names = list(topics)
        highs = {name: {PARTITION: self._segments.end()} for name in names}
        return Watermarks({name: {PARTITION: 0} for name in names}, highs)

    def offsets_at(self, topics: Iterable[str], timestamp_ms: int) -> Offsets:
        """Return the number of the first packet that was received at or after a time."""
        number = self._segments.number_at(timestamp_ms)
        return {name: {} if number is None else {PARTITION: number} for name in topics}

    # ---- records

    def read(
        self, windows: Mapping[TopicPartition, tuple[int, int]], count: int
    ) -> dict[TopicPartition, list[KafkaRecord]]:
        """Return the first packets of windows of numbers, at most ``count`` of each."""
        records: dict[TopicPartition, list[KafkaRecord]] = {}
        for partition, (start, end) in windows.items():
            start, end = max(0, start), min(end, start + count)
            records[partition] = [
                self._record(number, packet.received_ms, packet.data)
                for number, packet in self._segments.read(start, end)
            ]
        return records

    def tails(self, topics: Iterable[str], count: int, *, ends: Watermarks) -> dict[TopicPartition, list[KafkaRecord]]:
        """Return the last packets below the ends."""
        windows = {(name, PARTITION): ends.highs[name][PARTITION] for name in topics}
        return self.read({partition: (max(0, end - count), end) for partition, end in windows.items()}, count)

    @property
    def _partition(self) -> TopicPartition:
        return self._source.destination, PARTITION

    def _record(self, number: int, received_ms: int, data: bytes) -> KafkaRecord:
        return KafkaRecord(self._source.destination, PARTITION, number, received_ms, None, data)
