# SPDX-License-Identifier: Apache-2.0
"""Sends the bench's records to the broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.bench.data import Record


def produce(bootstrap: str, records: Iterator[Record]) -> tuple[int, int]:
    """Send records in their order of each partition; returns their number and the bytes of their values."""
    from confluent_kafka import Producer

    failed: list[str] = []

    def reported(error: Any, _: Any) -> None:
        if error is not None:
            failed.append(str(error))

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 50,
            "batch.size": 1 << 20,
            "queue.buffering.max.messages": 200_000,
            "queue.buffering.max.kbytes": 256 << 10,
            "enable.idempotence": True,
            "delivery.report.only.error": True,
            "log_level": 3,
        }
    )
    count = size = 0
    for topic, partition, key, value, headers in records:
        while True:
            try:
                producer.produce(topic, value, key, partition, on_delivery=reported, headers=list(headers))
                break
            except BufferError:
                producer.poll(0.1)
        count += 1
        size += len(value or b"")
        if not count & 1023:
            producer.poll(0)
    left = producer.flush(120)
    if left or failed:
        raise RuntimeError(f"{left + len(failed)} records were not taken by the broker: {failed[:1]}")
    return count, size
