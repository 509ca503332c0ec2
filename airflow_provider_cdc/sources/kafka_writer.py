# SPDX-License-Identifier: Apache-2.0
"""Write records to a Kafka topic, and wait until Kafka has all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airflow_provider_cdc.core.errors import SourceError, UnavailableError
from airflow_provider_cdc.core.kafka_login import client_settings

_PARTITION = 0
_REFUSED = {"MSG_SIZE_TOO_LARGE", "TOPIC_AUTHORIZATION_FAILED", "UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"}
_POLL_EACH = 100


class KafkaWriter:
    """Write to partition 0 of one topic: the order of the records stays.

    :param connection: Airflow connection of type ``kafka``.
    :param timeout: seconds within which Kafka has to confirm the records of a call.
    :param hint: what to do where it did not.
    :raises ConfigurationError: the connection cannot be used.
    """

    def __init__(self, topic: str, connection: str, timeout: float, hint: str) -> None:
        from confluent_kafka import Producer

        from airflow_provider_cdc.sources.kafka_log import KafkaLog

        self._where = {"topic": topic, "connection": connection}
        self._topic, self._timeout, self._hint = topic, timeout, hint
        settings = {"acks": "all", "enable.idempotence": True, "delivery.timeout.ms": int(timeout * 1000)}
        self._producer = Producer({**client_settings(KafkaLog(connection).client_config()), **settings, "log_level": 3})

    def write(self, records: Iterable[tuple[bytes | None, bytes]]) -> None:
        """Write records, each a key and a value, and wait until Kafka confirmed all of them.

        :raises SourceError: ``kafka.record_refused``.
        :raises UnavailableError: ``kafka.unavailable``; some of them may be written.
        """
        from confluent_kafka import KafkaException

        problems: list[Any] = []

        def note(problem: Any, record: Any) -> None:
            if problem is not None:
                problems.append(problem)

        try:
            for number, (key, value) in enumerate(records):
                self._producer.produce(self._topic, value, key, partition=_PARTITION, on_delivery=note)
                if number % _POLL_EACH == 0:
                    self._producer.poll(0)
            left = self._producer.flush(self._timeout)
        except KafkaException as error:
            raise self._problem(error.args[0]) from None
        except BufferError:
            raise self._lost("the producer's queue is full") from None
        if problems:
            raise self._problem(problems[0])
        if left:
            raise self._lost(f"{left} records were not confirmed in {self._timeout:g} s")

    def _problem(self, problem: Any) -> SourceError | UnavailableError:
        if problem.name() in _REFUSED:
            return SourceError(
                "kafka.record_refused",
                f"Kafka refuses a record: {problem.name()}",
                where=self._where,
                hint="raise the topic's max.message.bytes and message.max.bytes, or grant Write; nothing of it was "
                "acknowledged",
            )
        return self._lost(f"Kafka did not take a record: {problem.name()}")

    def _lost(self, text: str) -> UnavailableError:
        return UnavailableError("kafka.unavailable", text, where=self._where, hint=self._hint)
