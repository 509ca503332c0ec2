"""Connections to a Kafka cluster: one admin client per process, short-lived readers, and what their errors mean."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.hooks.kafka_errors import FATAL, explained

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError
    from confluent_kafka.admin import AdminClient

# Answers a broker gives while it changes leaders or has just made a topic.
_PASSING = {"NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE", "BROKER_NOT_AVAILABLE", "_LEADER_UNKNOWN", "_NO_LEADER"}
_PASSING |= {"REPLICA_NOT_AVAILABLE", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE"}
_SILENCE = {"_TRANSPORT", "_TIMED_OUT", "_ALL_BROKERS_DOWN", "_RESOLVE"}

T = TypeVar("T")


class KafkaClient:
    """Clients of one connection.

    :param conn_id: the connection's id, for messages.
    :param settings: returns librdkafka's configuration; asked when a client is made.
    :param timeout: seconds one call may take.
    """

    def __init__(self, conn_id: str, settings: Callable[[], dict[str, str]], timeout: float) -> None:
        self.conn_id = conn_id
        self.timeout = timeout
        self._settings = settings
        self._noted: list[tuple[str, str]] = []
        self._kept: tuple[int, AdminClient] | None = None

    def admin(self) -> AdminClient:
        """Return this process's admin client."""
        # A client does not survive a fork: one per process.
        if self._kept is None or self._kept[0] != os.getpid():
            from confluent_kafka import KafkaException
            from confluent_kafka.admin import AdminClient

            try:
                self._kept = os.getpid(), AdminClient({**self._settings(), **self._watching()})
            except KafkaException as error:
                raise self.problem(error.args[0]) from None
        return self._kept[1]

    @contextmanager
    def consumer(self) -> Iterator[Consumer]:
        """Open a reader that joins no group, commits nothing and sees committed records only."""
        from confluent_kafka import Consumer, KafkaException

        settings: dict[str, Any] = {
            **self._settings(),
            **self._watching(),
            # The client insists on a name; with assignment and no commits it is never sent to a coordinator's group.
            "group.id": "airflow-provider-cdc-unused",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
        try:
            consumer = Consumer(settings)
        except KafkaException as error:
            raise self.problem(error.args[0]) from None
        try:
            yield consumer
        finally:
            consumer.close()

    def _watching(self) -> dict[str, Any]:
        """Settings that keep librdkafka's complaints for our messages instead of the worker's stderr."""
        self._noted.clear()
        return {"error_cb": self._note, "log_level": 0}

    def _note(self, error: KafkaError) -> None:
        self._noted.append((error.name(), error.str()))
        del self._noted[:-20]

    def patiently(self, ask: Callable[[float], T], passing: Collection[str] = ()) -> T:
        """Ask until the deadline; a broker that starts is waited for, a wrong password is not.

        :param passing: names of further errors that may pass.
        """
        from confluent_kafka import KafkaException

        limit = time.monotonic() + self.timeout
        while True:
            try:
                answer = ask(max(0.1, min(1.0, limit - time.monotonic())))
                self._noted.clear()
                return answer
            except TimeoutError:
                text = f"no answer within {self.timeout:g} s"
                raise explained("_TIMED_OUT", text, self.conn_id) from None
            except KafkaException as error:
                self._poll()
                problem = error.args[0]
                waits = problem.name() in {*_PASSING, *_SILENCE, *passing}
                if not waits or time.monotonic() >= limit or any(name in FATAL for name, _ in self._noted):
                    raise self.problem(problem) from None
                time.sleep(0.1)

    def _poll(self) -> None:
        if self._kept is not None:
            self._kept[1].poll(0)

    def problem(self, error: KafkaError) -> CdcError:
        """Return our error for one of librdkafka's."""
        # The call says only that nobody answered; what was noted before says why.
        told = next((note for note in self._noted if note[0] in FATAL), None)
        if told is None and error.name() in _SILENCE:
            told = next((note for note in reversed(self._noted) if note[0] != "_ALL_BROKERS_DOWN"), None)
        name, text = told or (error.name(), error.str())
        return explained(name, text, self.conn_id)
