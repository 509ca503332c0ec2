# SPDX-License-Identifier: Apache-2.0
"""Bring the hours of the shop's log into a broker."""

from __future__ import annotations

from airflow_provider_cdc.demo.shop_log import Phase, ShopLog
from airflow_provider_cdc.sources.kafka_reading import KafkaRecord
from tests.services.broker import Broker
from tests.services.capture import Record, replay


def feed(broker: Broker, log: ShopLog, phase: Phase) -> int:
    """Bring a phase into the broker, with the offsets that its records have; return how many."""
    partitions = {topic: count for topic, count in log.partitions.items() if topic in phase.ends}
    return replay(broker, map(_recorded, log.hour(phase)), partitions)


def _recorded(record: KafkaRecord) -> Record:
    assert record.timestamp_ms is not None
    headers = tuple(record.headers or ())
    return Record(record.topic, record.partition, record.offset, record.timestamp_ms, record.key, record.value, headers)
