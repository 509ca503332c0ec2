# SPDX-License-Identifier: Apache-2.0
"""Run a pipeline over records that are written one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from confluent_kafka import Producer

from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema
from tests.airflow.shop import rows
from tests.cross_format.events import Ddl, Event, Image, Message, Row
from tests.services.broker import Broker
from tests.system.site import Site

INT, TEXT = ColumnType("int"), ColumnType("varchar", 20)
PLAIN = TableSchema((Column(1, "id", INT, False), Column(2, "v", TEXT)), (1,))
PRICED = TableSchema((Column(1, "id", INT, False), Column(2, "v", ColumnType("decimal", 10, 2))), (1,))
START = 1_767_225_600_000  # 2026-01-01


@dataclass
class Story:
    """Record what a source does in one wire format.

    :ivar messages: records in their order, with the Kafka time of each.
    """

    writer: Any
    messages: list[tuple[Message, int]] = field(default_factory=list)
    number: int = 0

    def record(self, what: Row | Ddl) -> list[Message]:
        self.number += 1
        now = START + 1000 * self.number
        messages: list[Message] = self.writer.write(
            Event(self.number, 1, 1000 * self.number, now, now + 500, self.number, what), 1
        )
        self.messages += [(message, now + 500) for message in messages]
        return messages

    def create(
        self, table: str, schema: TableSchema = PLAIN, columns: str = "`id` INT NOT NULL, `v` VARCHAR(20)"
    ) -> None:
        text = f"CREATE TABLE `{table}` ({columns}, PRIMARY KEY (`id`))"
        self.record(Ddl(text, "shop", table, schema))

    def insert(self, table: str, schema: TableSchema = PLAIN, **values: Any) -> None:
        row: Image = values or {"id": 1, "v": "one"}
        self.record(Row("insert", "shop", table, schema, None, row))

    def change_last(self, change: Callable[[bytes], bytes], time: int | None = None) -> None:
        message, sent = self.messages[-1]
        changed = change(message.value or b"")
        assert changed != message.value or time is not None
        self.messages[-1] = replace(message, value=changed), sent if time is None else time


@dataclass
class Ground:
    """A pipeline over topics of its own."""

    site: Site
    broker: Broker
    topic: str

    def send(self, story: Story) -> None:
        for name in ("rows", "schema"):
            self.broker.create_topic(f"{self.topic}.{name}", 1, {"message.timestamp.after.max.ms": str(2**63 - 1)})
        self.append(story)

    def append(self, story: Story) -> None:
        """Send a story's messages to the topics, which are there."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        for message, time in story.messages:
            producer.produce(
                f"{self.topic}.{message.topic}",
                message.value,
                message.key,
                0,
                timestamp=time,
                headers=list(message.headers),
            )
        assert producer.flush(60) == 0

    def committed(self, *tables: str) -> dict[str, Any]:
        return {table: rows(self.site.lake, "shop", table) for table in tables}
