# SPDX-License-Identifier: Apache-2.0
"""Show topics in files as a log: what is in the files is what Kafka would have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from airflow_provider_cdc.core.config import FilesSource
from airflow_provider_cdc.core.errors import SourceError
from airflow_provider_cdc.core.file_log.topic_files import TopicFiles
from airflow_provider_cdc.core.model.offsets import Offsets
from airflow_provider_cdc.sources.kafka_reading import KafkaRecord, TopicPartition, Watermarks

if TYPE_CHECKING:
    from airflow_provider_cdc.core.formats.common.schema_supply import Fetch, SchemaSupply


class FileLog:
    """The topics of a source of type ``files``.

    :param options: of the object store, in delta-rs' names, secrets included.
    :param fetch: returns the schemas of a registry that records name.
    """

    def __init__(self, source: FilesSource, options: Mapping[str, str], fetch: Fetch) -> None:
        self._source, self._options, self._fetch = source, dict(options), fetch
        self._files = TopicFiles(source.folder, source.lines, gaps=source.gaps == "accept", options=options)

    @property
    def schemas(self) -> SchemaSupply:
        """Teach a format the schemas that records name."""
        from airflow_provider_cdc.core.formats.common.schema_supply import SchemaSupply

        return SchemaSupply(self._fetch)

    def client_config(self) -> dict[str, str]:
        """Return what tasks need to read the files, secrets included."""
        source = self._source
        return {"folder": source.folder, "lines": source.lines, "gaps": source.gaps, **self._options}

    def namespace(self) -> str:
        """Return the store as OpenLineage names it."""
        root = self._files.root
        return "file" if root.startswith("/") else "/".join(root.split("/")[:3])

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def collect(self, enough: Callable[[KafkaRecord], bool] | None = None) -> None:
        """Do nothing: others write the files."""

    # ---- what is there

    def topics(self) -> dict[str, list[int]]:
        """Return the partitions of every topic that the source names."""
        existing = self._files.topics()
        read = {*self._source.data_topics(existing), self._source.schema_topic, self._source.heartbeat_topic}
        # what lies next to the topics is not looked into
        return {topic: self._files.partitions(topic) if topic in read else [] for topic in existing}

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return none: files have no ids."""
        return {}

    def ends(self, topics: Iterable[str]) -> Watermarks:
        """Return the present first and last offsets of the partitions of topics.

        :raises SourceError: ``kafka.topic_unknown``, or names or lines of files are not as they have to be.
        """
        lows: Offsets = {}
        highs: Offsets = {}
        for topic in topics:
            lows[topic], highs[topic] = {}, {}
            for partition in self._partitions(topic):
                lows[topic][partition], highs[topic][partition] = self._files.ends(topic, partition)
        return Watermarks(lows, highs)

    def offsets_at(self, topics: Iterable[str], timestamp_ms: int) -> Offsets:
        """Return the first offset written at or after a time; partitions that have none are missing.

        :param timestamp_ms: Kafka's record time, milliseconds since 1970.
        """
        offsets: Offsets = {}
        for topic in topics:
            offsets[topic] = {}
            for partition in self._partitions(topic) if self._files.has_times else ():
                at = self._files.offset_at(topic, partition, timestamp_ms)
                if at is not None:
                    offsets[topic][partition] = at
        return offsets

    # ---- records

    def read(
        self, windows: Mapping[TopicPartition, tuple[int, int]], count: int
    ) -> dict[TopicPartition, list[KafkaRecord]]:
        """Return the first records of windows of offsets, at most ``count`` of each."""
        records: dict[TopicPartition, list[KafkaRecord]] = {}
        for (topic, partition), (start, end) in windows.items():
            window = records[topic, partition] = []
            for record in self._files.read(topic, partition, start, end) if count > 0 else ():
                window.append(
                    KafkaRecord(
                        topic, partition, record.offset, record.timestamp, record.key, record.value, record.headers
                    )
                )
                if len(window) == count:
                    break
        return records

    def tails(self, topics: Iterable[str], count: int, *, ends: Watermarks) -> dict[TopicPartition, list[KafkaRecord]]:
        """Return the last records below the given ends, fewer where offsets are missing."""
        windows = {
            (topic, partition): (max(ends.lows[topic][partition], high - count), high)
            for topic in topics
            for partition, high in ends.highs[topic].items()
        }
        return self.read(windows, count)

    def _partitions(self, topic: str) -> list[int]:
        partitions = self._files.partitions(topic)
        if not partitions:
            text = f"there is no topic {topic!r}"
            raise SourceError("kafka.topic_unknown", text, where=self._source.where, hint=f"see {self._source.folder}")
        return partitions
