# SPDX-License-Identifier: Apache-2.0
"""Run a pipeline in a whole Airflow."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.ledger import Batch, Ledger
from tests.airflow.shop import Shop, rows
from tests.histories.debezium_records import ddl, row

if TYPE_CHECKING:
    from tests.services.broker import Broker

WINDOWS = int(os.environ.get("CDC_WINDOWS", "4"))
HOUR = timedelta(hours=1)
END = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - 2 * HOUR
START = END - WINDOWS * HOUR


def fill(broker: Broker) -> None:
    """Write one row in the middle of each window."""
    from confluent_kafka import Producer

    for topic in ("src", "src.shop.things"):
        broker.create_topic(topic, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(WINDOWS):
        moment = int((START + number * HOUR + HOUR / 2).timestamp() * 1000)
        record = row("c", "things", 100 * (number + 1), {"id": number}, key=("id",), time=moment)
        producer.produce(record.topic, partition=0, key=record.key, value=record.value, timestamp=moment)
    dropped = ddl("ALTER TABLE things DROP COLUMN note", 50, table="things", time=1)
    producer.produce(dropped.topic, partition=0, key=dropped.key, value=dropped.value)
    producer.flush(30)


def write_pipeline(folder: Path, broker: Broker, name: str, more: Mapping[str, Any] | None = None) -> None:
    """Write the file of a pipeline with lake and ledger of its own."""
    own = folder / name
    own.mkdir()
    shop = Shop(own, {"bootstrap.servers": broker.bootstrap})
    create = "CREATE TABLE shop.things (id int NOT NULL PRIMARY KEY, note int)"
    shop.changes = {
        "name": name,
        "source": {"topics": ["src.shop.things"], "schema_topic": "src", "heartbeat_topic": None},
        "tables": {"shop.things": {"create": create}},
        **(more or {}),
    }
    shop.file().rename(folder / f"{name}.yaml")


def batches(folder: Path, name: str) -> list[Batch]:
    """Return the committed batches that had records."""
    ledger = Ledger(f"sqlite:///{folder / name / 'ledger.db'}")
    return [batch for batch in ledger.batches(name) if batch.committed and batch.records]


def things(folder: Path, name: str) -> list[int]:
    return sorted(thing["id"] for thing in rows(folder / name / "lake", "shop", "things"))
