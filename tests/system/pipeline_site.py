# SPDX-License-Identifier: Apache-2.0
"""A pipeline over topics of its own, and what can happen to them."""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import Producer, TopicPartition

from tests.services.broker import Broker
from tests.system import processes
from tests.system.site import Site, feed


@dataclass
class PipelineSite:
    """One test's pipeline, over topics of its own name in the common broker."""

    site: Site
    broker: Broker
    prefix: str

    def feed(self, phase: int, *, same_offsets: bool = True) -> None:
        """Bring a phase of the shop's log into this test's topics."""
        feed(self.broker, phase, phase, self.prefix, same_offsets=same_offsets)

    def topic(self, table: str) -> str:
        """Return the topic of a table."""
        return f"{self.prefix}.shop.{table}"

    def produce(self, topic: str, *values: bytes, partition: int = 0) -> None:
        """Write records as they are."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "message.max.bytes": 20_000_000})
        for value in values:
            producer.produce(topic, value=value, partition=partition)
        assert producer.flush(60) == 0

    def expire(self, topic: str, partition: int, offset: int) -> None:
        """Delete a partition's records below an offset, as retention does."""
        below = TopicPartition(topic, partition, offset)
        for done in self.broker.admin.delete_records([below]).values():
            done.result(30)

    def recreate(self, topic: str) -> None:
        """Delete a topic and create it again, empty."""
        for done in self.broker.admin.delete_topics([topic], operation_timeout=30).values():
            done.result(30)
        self.broker.create_topic(topic, 2)

    def leave_planned(self) -> None:
        """Plan a batch whose engine dies before it has read anything."""
        running = self.site.launch()
        assert running.until(lambda run: bool(_engines(run.watch())))
        for pid in _engines(running.watch()):
            processes.kill(pid)
        assert running.answer().code == 5
        assert self.site.batches()[-1]["status"] == "planned"


def _engines(present: dict[int, str]) -> list[int]:
    return [pid for pid, line in present.items() if "launch/run.py" in line]
