# SPDX-License-Identifier: Apache-2.0
"""Topics of a tool that writes schema changes into one of its own, for tests of what awaits a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.histories.debezium_records import ddl, row

if TYPE_CHECKING:
    from tests.services.broker import Broker

DDL_TOPICS = "operators", "operators.shop.things"


def send_ddl(broker: Broker) -> None:
    """Write statements of a tool with a topic for them: of a snapshot first, which are no news."""
    from confluent_kafka import Producer

    texts = [
        "ALTER TABLE things ADD COLUMN note varchar(20)",
        "ALTER TABLE things MODIFY note int",
        "ALTER TABLE things DROP COLUMN note",
        "FROBNICATE things",
    ]
    create, columns = "CREATE TABLE things (id int NOT NULL PRIMARY KEY)", {"id": "int"}
    records = [
        ddl("DROP TABLE IF EXISTS `shop`.`things`", 1, mark="true", table="things"),
        ddl(create, 1, mark="true", table="things", columns=columns, key=("id",)),
        row("c", "things", 10, {"id": 1}, key=("id",), time=1),
        *(ddl(text, 100 * number, table="things", time=1) for number, text in enumerate(texts, 1)),
    ]
    broker.create_topics(dict.fromkeys(DDL_TOPICS, 1))
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for record in records:
        topic = record.topic.replace("src", DDL_TOPICS[0], 1)
        producer.produce(topic, partition=0, key=record.key, value=record.value)
    producer.flush(30)
