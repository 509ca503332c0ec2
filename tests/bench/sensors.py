# SPDX-License-Identifier: Apache-2.0
"""Measure what sensors of dead brokers cost a sensor of a good one in the same triggerer.

`python -m tests.bench.sensors` starts a broker and waits with 50 triggers, 25 of them on brokers that never answer. It
prints how long the good ones took to answer, and the longest time for which the event loop was blocked.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.services.broker import Broker, OwnBroker

INTERVAL = 5.0
SENSORS = 50
DEAD_ADDRESSES = 5


@contextmanager
def silent_servers(count: int) -> Iterator[list[str]]:
    """Yield addresses that accept connections and never answer."""
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        yield [f"127.0.0.1:{server.getsockname()[1]}" for server in servers]
    finally:
        for server in servers:
            server.close()


def pipeline(connection: str, topic: str) -> dict[str, Any]:
    """Return a pipeline that reads one topic."""
    source = {"connection": connection, "topics": [topic], "format": "canal-json"}
    return {"name": f"{connection}_{topic}", "source": source, "sink": {"type": "delta", "root": "/nowhere"}}


def produce(broker: Broker, topics: list[str]) -> None:
    """Write one change to each topic, later than the requested time."""
    from confluent_kafka import Producer

    change = {"type": "INSERT", "database": "d", "table": "t", "es": 1_900_000_000_000, "ts": 1_900_000_000_000,
              "id": 1, "isDdl": False, "data": [{"id": "1"}], "mysqlType": {"id": "int"}, "sqlType": {"id": 4},
              "pkNames": ["id"], "old": None, "sql": ""}  # fmt: skip
    broker.create_topics(dict.fromkeys(topics, 1))
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for topic in topics:
        producer.produce(topic, json.dumps(change))
    producer.flush()


def define(conn_id: str, bootstrap: str) -> None:
    """Define a Kafka connection in the environment."""
    document = {"conn_type": "kafka", "extra": {"bootstrap.servers": bootstrap}}
    os.environ[f"AIRFLOW_CONN_{conn_id.upper()}"] = json.dumps(document)


async def measure(triggers: list[tuple[bool, Any]]) -> dict[str, Any]:
    """Run all triggers until the good ones have answered."""
    blocked = 0.0

    async def beat() -> None:
        nonlocal blocked
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.005)
            blocked = max(blocked, time.monotonic() - before - 0.005)

    async def timed(trigger: Any) -> float:
        started = time.monotonic()
        event = await anext(aiter(trigger.run()))
        assert event.payload["status"] == "reached", event.payload
        return time.monotonic() - started

    from airflow.providers.common.compat.sdk import BaseHook

    await BaseHook.aget_connection("good")  # loads what a triggerer has loaded
    beating = asyncio.create_task(beat())
    tasks = [(good, asyncio.create_task(timed(trigger))) for good, trigger in triggers]
    waits = await asyncio.gather(*(task for good, task in tasks if good))
    await asyncio.sleep(4 * INTERVAL)  # the dead ones go on
    beating.cancel()
    still = [task for good, task in tasks if not good]
    assert not any(task.done() for task in still)
    for task in still:
        task.cancel()
    return {
        "good": len(waits),
        "dead": len(still),
        "slowest_good_s": round(max(waits), 2),
        "loop_blocked_s": round(blocked, 3),
    }


def main() -> None:
    """Print the figures of one run as JSON."""
    from airflow_provider_cdc.triggers.condition import CdcConditionTrigger

    with OwnBroker() as broker, silent_servers(DEAD_ADDRESSES) as silent:
        define("good", broker.bootstrap)
        topics = [f"topic{number}" for number in range(10)]
        produce(broker, topics)
        triggers = []
        for number in range(SENSORS):
            dead = number % 2 == 0
            conn_id = f"dead{number}" if dead else "good"
            if dead:
                define(conn_id, silent[number // 2 % DEAD_ADDRESSES])
            arguments = (pipeline(conn_id, topics[number % len(topics)]), INTERVAL, time.time() + 3600)
            triggers.append((not dead, CdcConditionTrigger("received", *arguments, until="2026-01-01T00:00:00+00:00")))
        print(json.dumps(asyncio.run(measure(triggers))))


if __name__ == "__main__":
    main()
