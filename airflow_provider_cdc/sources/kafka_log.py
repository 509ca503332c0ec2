# SPDX-License-Identifier: Apache-2.0
"""Read what planner and sensors need of Kafka: topics, ends, offsets for a time, the last records of a partition.

Reads are by assignment: no group is joined and nothing is committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.connections.kafka_config import SECRETS, client_config
from airflow_provider_cdc.connections.lookup import (
    EnvironmentConnection,
    async_find_connection,
    find_connection,
    mask,
)
from airflow_provider_cdc.core.errors import SourceError
from airflow_provider_cdc.core.kafka_errors import UNKNOWN, is_refused
from airflow_provider_cdc.core.model.offsets import Offsets
from airflow_provider_cdc.sources.kafka_client import KafkaClient
from airflow_provider_cdc.sources.kafka_reading import KafkaRecord, TopicPartition, Watermarks, read_windows

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Connection

    from airflow_provider_cdc.core.formats.common.schema_supply import Fetch, SchemaSupply

CONNECTION_TYPES = ("kafka", "cdc_kafka")
_SHOWN_NAMES = 10
# By name, not by its two underscores: Debezium's heartbeat topics begin with them too.
_KAFKAS_OWN = {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"}


class KafkaLog:
    """Read a Kafka cluster without joining a group or committing anything; does not need Airflow.

    :param kafka_conn_id: Airflow connection of type ``kafka``; its extra holds librdkafka keys.
    :param timeout: seconds one request to the cluster may take.
    :param first_contact: seconds that the requests before the cluster's first answer may take; the same if None.
    :param fetch: returns the schemas that the records name by their ids; None where the pipeline names no registry.
    """

    def __init__(
        self,
        kafka_conn_id: str = "kafka_default",
        *,
        timeout: float = 15.0,
        first_contact: float | None = None,
        fetch: Fetch | None = None,
    ) -> None:
        self.kafka_conn_id = kafka_conn_id
        self.timeout = timeout
        self.first_contact = timeout if first_contact is None else first_contact
        self._fetch = fetch
        self.close()

    @cached_property
    def schemas(self) -> SchemaSupply:
        """Teach a format the schemas of the registry."""
        from airflow_provider_cdc.core.formats.common.schema_supply import SchemaSupply
        from airflow_provider_cdc.core.schema_registry.client import ask

        return SchemaSupply(self._fetch or (lambda ids: ask({}, ids)))

    def client_config(self) -> dict[str, str]:
        """Return librdkafka's configuration of the connection; mask its secrets in logs.

        :raises ConfigurationError: the connection is not there, of another type, or has a key that is not allowed.
        """
        return _config_of(find_connection(self.kafka_conn_id, CONNECTION_TYPES))

    def close(self) -> None:
        """Drop the connection to the cluster."""
        self._client = KafkaClient(self.kafka_conn_id, self.client_config, self.timeout, self.first_contact)

    def namespace(self) -> str:
        """Return the brokers as OpenLineage names them."""
        return f"kafka://{self.client_config()['bootstrap.servers'].split(',')[0].strip()}"

    def collect(self, enough: Callable[[KafkaRecord], bool] | None = None) -> None:
        """Do nothing: the tool writes to Kafka by itself."""

    # ---- what is there

    def topics(self) -> dict[str, list[int]]:
        """Return the partitions of every topic, Kafka's own topics left out."""
        client = self._client.admin()
        metadata = self._client.patiently(lambda seconds: client.list_topics(timeout=seconds))
        return {
            name: sorted(topic.partitions)
            for name, topic in sorted(metadata.topics.items())
            if topic.error is None and name not in _KAFKAS_OWN
        }

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the id that Kafka gave each topic at its creation.

        Those of brokers that give no ids (before Kafka 2.8) are missing.

        :raises SourceError: ``kafka.topic_unknown``.
        """
        from confluent_kafka import TopicCollection

        names = sorted(set(topics))
        client = self._client.admin()

        def ask(seconds: float) -> dict[str, str]:
            answer = {}
            described = client.describe_topics(TopicCollection(names), request_timeout=max(5.0, seconds))
            for name, future in described.items():
                topic_id = future.result(timeout=self.timeout).topic_id
                if topic_id.get_most_significant_bits() or topic_id.get_least_significant_bits():
                    answer[name] = str(topic_id)
            return answer

        # A broker may not know yet a topic that another one listed; left out, its id would not be compared.
        return self._client.patiently(ask, passing=UNKNOWN) if names else {}

    def cleanup_policies(self, topics: Iterable[str]) -> dict[str, str]:
        """Return how each topic is cleaned up (``cleanup.policy``); those that the login may not see are missing."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import ConfigResource, ResourceType

        client = self._client.admin()

        def ask(seconds: float) -> dict[str, str]:
            resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in sorted(set(topics))]
            answer = {}
            for resource, future in client.describe_configs(resources, request_timeout=max(5.0, seconds)).items():
                try:
                    answer[resource.name] = str(future.result(timeout=self.timeout)["cleanup.policy"].value)
                except KafkaException as error:
                    if not is_refused(error.args[0].name()):
                        raise
            return answer

        return self._client.patiently(ask) if topics else {}

    def ends(self, topics: Iterable[str]) -> Watermarks:
        """Return the present first and last offsets of the partitions of these topics.

        :raises SourceError: ``kafka.topic_unknown``.
        """
        from confluent_kafka.admin import OffsetSpec

        partitions = self._partitions_of(topics)
        # Lows first: a log truncated in between makes the answer stricter, never an end below its beginning.
        lows = self._offsets(partitions, OffsetSpec.earliest())
        return Watermarks(lows, self._offsets(partitions, OffsetSpec.latest()))

    def offsets_at(self, topics: Iterable[str], timestamp_ms: int) -> Offsets:
        """Return the first offset written at or after a time; partitions that have none are missing.

        :param timestamp_ms: Kafka's record time, milliseconds since 1970.
        """
        from confluent_kafka.admin import OffsetSpec

        partitions = self._partitions_of(topics)
        offsets = self._offsets(partitions, OffsetSpec.for_timestamp(timestamp_ms))
        return {topic: {p: at for p, at in partitions.items() if at >= 0} for topic, partitions in offsets.items()}

    # ---- records

    def tails(
        self,
        topics: Iterable[str],
        count: int,
        deadline: float | None = None,
        *,
        ends: Watermarks | None = None,
    ) -> dict[TopicPartition, list[KafkaRecord]]:
        """Return the last committed records of many partitions with one reader.

        :param count: most records of each; fewer where the last offsets are transaction marks, aborted or compacted.
        :param deadline: seconds; the hook's timeout if None.
        :param ends: ends from an earlier call; the present ones if None.
        """
        names = list(topics)
        marks = ends or self.ends(names)
        try:
            return self._tails(marks, count, deadline)
        except SourceError as error:
            if error.code != "kafka.offset_out_of_range":
                raise
            # Retention deleted the records between the two requests; the ends are later now.
            return self._tails(self.ends(names), count, deadline)

    def _tails(self, marks: Watermarks, count: int, deadline: float | None) -> dict[TopicPartition, list[KafkaRecord]]:
        records_of: dict[TopicPartition, list[KafkaRecord]] = {}
        windows: dict[TopicPartition, tuple[int, int]] = {}
        for topic, highs in marks.highs.items():
            for partition, high in highs.items():
                tp = (topic, partition)
                records_of[tp] = []
                windows[tp] = (max(marks.lows[topic][partition], high - count), high)
        records_of.update(self.read(windows, count, deadline))
        # The last offsets may all be transaction marks or aborted: look further back once.
        empty = {
            tp: (max(marks.lows[tp[0]][tp[1]], start - 10 * count), start)
            for tp, (start, _) in windows.items()
            if not records_of[tp] and start > marks.lows[tp[0]][tp[1]]
        }
        records_of.update({tp: records[-count:] for tp, records in self.read(empty, 10 * count, deadline).items()})
        return records_of

    def read(
        self, windows: Mapping[TopicPartition, tuple[int, int]], count: int, deadline: float | None = None
    ) -> dict[TopicPartition, list[KafkaRecord]]:
        """Return the first committed records of half-open offset windows, at most ``count`` of each, in offset order.

        :raises UnavailableError: the deadline passed before all windows were read.
        """
        busy = {tp: window for tp, window in windows.items() if window[0] < window[1]}
        if not busy or count < 1:
            return {tp: [] for tp in windows}
        with self._client.consumer() as consumer:
            limit = time.monotonic() + (self.timeout if deadline is None else deadline)
            records = read_windows(consumer, busy, count, limit, self._client.problem)
        return {tp: records.get(tp, []) for tp in windows}

    def _partitions_of(self, topics: Iterable[str]) -> list[TopicPartition]:
        existing = self.topics()
        partitions = []
        for topic in sorted(set(topics)):
            if topic not in existing:
                raise self._unknown(f"there is no topic {topic!r}", topic, list(existing))
            partitions += [(topic, partition) for partition in existing[topic]]
        return partitions

    def _offsets(self, partitions: Sequence[TopicPartition], spec: Any) -> Offsets:
        """Ask for one offset of each partition, in as few requests as there are brokers."""
        from confluent_kafka import IsolationLevel
        from confluent_kafka import TopicPartition as KafkaPartition

        client = self._client.admin()

        def ask(seconds: float) -> Offsets:
            request = {KafkaPartition(topic, partition): spec for topic, partition in partitions}
            futures: dict[Any, Future[Any]] = client.list_offsets(
                request, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=max(5.0, seconds)
            )
            answer: Offsets = {topic: {} for topic, _ in partitions}
            for partition, future in futures.items():
                answer[partition.topic][partition.partition] = future.result(timeout=self.timeout).offset
            return answer

        return self._client.patiently(ask) if partitions else {}

    def _unknown(self, text: str, missing: str, existing: list[str]) -> SourceError:
        near = get_close_matches(missing, existing, n=_SHOWN_NAMES, cutoff=0.4) or existing[:_SHOWN_NAMES]
        rest = " …" if len(existing) > len(near) else ""
        hint = f"topics there: {', '.join(near)}{rest}" if existing else "the cluster has no topic"
        return SourceError("kafka.topic_unknown", text, where={"connection": self.kafka_conn_id}, hint=hint)


class ResolvedKafkaLog(KafkaLog):
    """A ``KafkaLog`` whose connection was resolved before.

    :param config: librdkafka's configuration.
    """

    def __init__(
        self,
        kafka_conn_id: str,
        config: dict[str, str],
        *,
        timeout: float = 15.0,
        first_contact: float | None = None,
        fetch: Fetch | None = None,
    ) -> None:
        self._config = config
        super().__init__(kafka_conn_id, timeout=timeout, first_contact=first_contact, fetch=fetch)

    def client_config(self) -> dict[str, str]:
        """Return librdkafka's configuration."""
        return self._config


async def async_client_config(conn_id: str) -> dict[str, str]:
    """Return librdkafka's configuration of a connection, without blocking the event loop.

    :raises ConfigurationError: as :meth:`KafkaLog.client_config`.
    """
    return _config_of(await async_find_connection(conn_id, CONNECTION_TYPES))


def _config_of(conn: Connection | EnvironmentConnection) -> dict[str, str]:
    config = client_config(
        conn.conn_id, conn.extra_dejson, host=conn.host, port=conn.port, login=conn.login, password=conn.password
    )
    for key in SECRETS:
        mask(config.get(key))
    return config


__all__ = ["KafkaLog", "KafkaRecord", "TopicPartition", "Watermarks"]
