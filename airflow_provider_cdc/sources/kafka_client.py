# SPDX-License-Identifier: Apache-2.0
"""Connect to a Kafka cluster: one admin client per process, short-lived readers, and their errors explained."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.core.kafka_errors import SILENCE, Complaints, explained
from airflow_provider_cdc.core.kafka_login import client_settings

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError
    from confluent_kafka.admin import AdminClient

# Errors of a broker that changes leaders or has just created a topic.
_PASSING = {"NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE", "BROKER_NOT_AVAILABLE", "_LEADER_UNKNOWN", "_NO_LEADER"}
_PASSING |= {"REPLICA_NOT_AVAILABLE", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE"}

T = TypeVar("T")


class KafkaClient:
    """Clients of one connection.

    :param conn_id: the connection's id, for messages.
    :param settings: returns librdkafka's configuration; asked when a client is made.
    :param timeout: seconds one call may take.
    :param first_contact: seconds the first call may take.
    """

    def __init__(
        self, conn_id: str, settings: Callable[[], dict[str, str]], timeout: float, first_contact: float
    ) -> None:
        self.conn_id = conn_id
        self.timeout = timeout
        self.first_contact = first_contact
        self._answered = False
        self._settings = settings
        self._complaints = Complaints(conn_id)
        self._admin: tuple[int, AdminClient] | None = None

    def admin(self) -> AdminClient:
        """Return this process's admin client."""
        # A client does not survive a fork: one per process.
        if self._admin is None or self._admin[0] != os.getpid():
            from confluent_kafka import KafkaException
            from confluent_kafka.admin import AdminClient

            try:
                self._admin = (
                    os.getpid(),
                    AdminClient({**client_settings(self._settings()), **self._complaints.settings()}),
                )
            except KafkaException as error:
                raise self.problem(error.args[0]) from None
        return self._admin[1]

    @contextmanager
    def consumer(self) -> Iterator[Consumer]:
        """Open a reader that joins no group, commits nothing and sees committed records only."""
        from confluent_kafka import Consumer, KafkaException

        settings: dict[str, Any] = {
            **client_settings(self._settings()),
            **self._complaints.settings(),
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

    def patiently(self, ask: Callable[[float], T], passing: Collection[str] = ()) -> T:
        """Retry a request until the deadline: wait for a broker that starts, but not after a wrong password.

        :param passing: names of further errors that are retried.
        """
        from confluent_kafka import KafkaException

        limit = time.monotonic() + (self.timeout if self._answered else self.first_contact)
        while True:
            try:
                answer = ask(max(0.1, min(1.0, limit - time.monotonic())))
                self._complaints.clear()
                self._answered = True
                return answer
            except TimeoutError:
                text = f"no answer within {self.timeout:g} s"
                raise explained("_TIMED_OUT", text, self.conn_id) from None
            except KafkaException as error:
                self._poll()
                problem = error.args[0]
                waits = problem.name() in {*_PASSING, *SILENCE, *passing}
                if not waits or time.monotonic() >= limit or self._complaints.lasting is not None:
                    raise self.problem(problem) from None
                time.sleep(0.1)

    def _poll(self) -> None:
        if self._admin is not None:
            self._admin[1].poll(0)

    def problem(self, error: KafkaError) -> CdcError:
        """Return the CdcError for an error of librdkafka."""
        return self._complaints.problem(error)
