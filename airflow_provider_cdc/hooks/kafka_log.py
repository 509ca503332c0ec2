"""Kafka as the planner and the sensors see it: topics, ends, offsets for a time, the last records of a partition.

It reads by assignment: it joins no group and commits nothing.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from difflib import get_close_matches
from typing import Any

from airflow_provider_cdc.core.errors import SourceError
from airflow_provider_cdc.core.kafka_errors import UNKNOWN
from airflow_provider_cdc.hooks.connections import find_connection, mask
from airflow_provider_cdc.hooks.kafka_client import KafkaClient
from airflow_provider_cdc.hooks.kafka_config import SECRETS, client_config
from airflow_provider_cdc.hooks.kafka_reading import KafkaRecord, Offsets, Place, Watermarks, read_windows

_SHOWN_NAMES = 10
# By name, not by its two underscores: Debezium's heartbeat topics begin with them too.
_KAFKAS_OWN = {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"}


class KafkaLog:
    """Looks at a Kafka cluster without leaving a trace in it, also where Airflow is not loaded.

    :param kafka_conn_id: Airflow connection of type ``kafka``; its extra holds librdkafka keys.
    :param timeout: seconds one request to the cluster may take.
    """

    def __init__(self, kafka_conn_id: str = "kafka_default", *, timeout: float = 15.0) -> None:
        self.kafka_conn_id = kafka_conn_id
        self.timeout = timeout
        self._client = KafkaClient(kafka_conn_id, self.client_config, timeout)

    def client_config(self) -> dict[str, str]:
        """Return librdkafka's configuration of the connection; its secrets are masked in logs from here on.

        :raises ConfigurationError: the connection is not there, of another type, or has a key that is not allowed.
        """
        conn = find_connection(self.kafka_conn_id, ("kafka",))
        config = client_config(
            self.kafka_conn_id,
            conn.extra_dejson,
            host=conn.host,
            port=conn.port,
            login=conn.login,
            password=conn.password,
        )
        for key in SECRETS:
            mask(config.get(key))
        return config

    def close(self) -> None:
        """Drop the connection to the cluster."""
        self._client = KafkaClient(self.kafka_conn_id, self.client_config, self.timeout)

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
        """Return the id that Kafka gave each topic when it was made.

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
                found = future.result(timeout=self.timeout).topic_id
                if found.get_most_significant_bits() or found.get_least_significant_bits():
                    answer[name] = str(found)
            return answer

        # A broker may not know yet a topic that another one told of; left out, its id would not be compared.
        return self._client.patiently(ask, passing=UNKNOWN) if names else {}

    def match(self, topics: str | Iterable[str]) -> list[str]:
        """Return, sorted, the topics a regular expression matches as a whole, or the listed ones.

        :raises SourceError: ``kafka.topic_unknown``: a listed topic is not there, or nothing matches.
        """
        existing = list(self.topics())
        if isinstance(topics, str):
            found = [name for name in existing if re.fullmatch(topics, name)]
            if not found:
                raise self._unknown(f"no topic matches {topics!r}", topics, existing)
            return found
        wanted = sorted(set(topics))
        missing = [name for name in wanted if name not in existing]
        if missing:
            raise self._unknown(f"there is no topic {', '.join(map(repr, missing))}", missing[0], existing)
        return wanted

    def ends(self, topics: Iterable[str]) -> Watermarks:
        """Return where the partitions of these topics begin and end now.

        :raises SourceError: ``kafka.topic_unknown``.
        """
        from confluent_kafka.admin import OffsetSpec

        places = self._places(topics)
        # Lows first: a log cut in between makes the answer stricter, never an end below its beginning.
        lows = self._offsets(places, OffsetSpec.earliest())
        return Watermarks(lows, self._offsets(places, OffsetSpec.latest()))

    def offsets_at(self, topics: Iterable[str], timestamp_ms: int) -> Offsets:
        """Return the first offset written at or after a time; partitions that have none are missing.

        :param timestamp_ms: Kafka's record time, milliseconds since the epoch.
        """
        from confluent_kafka.admin import OffsetSpec

        places = self._places(topics)
        found = self._offsets(places, OffsetSpec.for_timestamp(timestamp_ms))
        return {topic: {p: at for p, at in partitions.items() if at >= 0} for topic, partitions in found.items()}

    # ---- records

    def tail(self, topic: str, partition: int, count: int, deadline: float | None = None) -> list[KafkaRecord]:
        """Return the last committed records of a partition, oldest first.

        :param count: most records; fewer when the last offsets are transaction marks, aborted or compacted away.
        :param deadline: seconds; the hook's timeout if None.
        """
        return self.tails([topic], count, deadline, partitions={(topic, partition)})[topic, partition]

    def tails(
        self,
        topics: Iterable[str],
        count: int,
        deadline: float | None = None,
        *,
        partitions: set[Place] | None = None,
        ends: Watermarks | None = None,
    ) -> dict[Place, list[KafkaRecord]]:
        """Return the last committed records of many partitions with one reader.

        :param partitions: only these; all of the topics if None.
        :param ends: ends read before; the present ones if None.
        """
        names = list(topics)
        marks = ends or self.ends(names)
        try:
            return self._tails(marks, count, deadline, partitions)
        except SourceError as error:
            if error.code != "kafka.offset_out_of_range":
                raise
            # Retention took the records between the two questions; the ends are later now.
            return self._tails(self.ends(names), count, deadline, partitions)

    def _tails(
        self, marks: Watermarks, count: int, deadline: float | None, partitions: set[Place] | None
    ) -> dict[Place, list[KafkaRecord]]:
        found: dict[Place, list[KafkaRecord]] = {}
        windows: dict[Place, tuple[int, int]] = {}
        for topic, highs in marks.highs.items():
            for partition, high in highs.items():
                place = (topic, partition)
                if partitions is not None and place not in partitions:
                    continue
                found[place] = []
                windows[place] = (max(marks.lows[topic][partition], high - count), high)
        if partitions and (missing := sorted(partitions - set(found))):
            topic, partition = missing[0]
            text = f"topic {topic!r} has no partition {partition}"
            raise SourceError("kafka.partition_unknown", text, where={"topic": topic, "partition": partition})
        found.update(self.read(windows, count, deadline))
        # The last offsets may all be transaction marks or aborted: look further back once.
        empty = {
            place: (max(marks.lows[place[0]][place[1]], start - 10 * count), start)
            for place, (start, _) in windows.items()
            if not found[place] and start > marks.lows[place[0]][place[1]]
        }
        found.update({place: records[-count:] for place, records in self.read(empty, 10 * count, deadline).items()})
        return found

    def read(
        self, windows: Mapping[Place, tuple[int, int]], count: int, deadline: float | None = None
    ) -> dict[Place, list[KafkaRecord]]:
        """Return the first committed records of half-open offset windows, at most ``count`` of each, in offset order.

        :raises UnavailableError: the deadline passed before all windows were read.
        """
        wanted = {place: window for place, window in windows.items() if window[0] < window[1]}
        if not wanted or count < 1:
            return {place: [] for place in windows}
        with self._client.consumer() as consumer:
            limit = time.monotonic() + (self.timeout if deadline is None else deadline)
            found = read_windows(consumer, wanted, count, limit, self._client.problem)
        return {place: found.get(place, []) for place in windows}

    def _places(self, topics: Iterable[str]) -> list[Place]:
        existing = self.topics()
        places = []
        for topic in sorted(set(topics)):
            if topic not in existing:
                raise self._unknown(f"there is no topic {topic!r}", topic, list(existing))
            places += [(topic, partition) for partition in existing[topic]]
        return places

    def _offsets(self, places: Sequence[Place], spec: Any) -> Offsets:
        """Ask for one offset of each partition, in as few requests as there are brokers."""
        from confluent_kafka import IsolationLevel, TopicPartition

        client = self._client.admin()

        def ask(seconds: float) -> Offsets:
            request = {TopicPartition(topic, partition): spec for topic, partition in places}
            futures: dict[Any, Future[Any]] = client.list_offsets(
                request, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=max(5.0, seconds)
            )
            answer: Offsets = {topic: {} for topic, _ in places}
            for place, future in futures.items():
                answer[place.topic][place.partition] = future.result(timeout=self.timeout).offset
            return answer

        return self._client.patiently(ask) if places else {}

    def _unknown(self, text: str, wanted: str, existing: list[str]) -> SourceError:
        near = get_close_matches(wanted, existing, n=_SHOWN_NAMES, cutoff=0.4) or existing[:_SHOWN_NAMES]
        rest = " …" if len(existing) > len(near) else ""
        hint = f"topics there: {', '.join(near)}{rest}" if existing else "the cluster has no topic"
        return SourceError("kafka.topic_unknown", text, where={"connection": self.kafka_conn_id}, hint=hint)


__all__ = ["KafkaLog", "KafkaRecord", "Offsets", "Place", "Watermarks"]
