# SPDX-License-Identifier: Apache-2.0
"""Planner, sensors and previews of records that name schemas of a registry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_cdc.batch.coming_ddl import coming_ddl
from airflow_provider_cdc.batch.planner import marks_of
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import ConfigurationError, UnavailableError
from airflow_provider_cdc.core.formats.common.schema_supply import SchemaSupply
from airflow_provider_cdc.core.schema_registry.client import ask
from airflow_provider_cdc.sources.kafka_reading import KafkaRecord
from tests.services.capture import read
from tests.services.registered_schemas import ServedSchemas, schemas_of

CAPTURE = Path(__file__).parents[1] / "captures" / "data" / "public-shop-routed-avro-my8"
SOURCE = {"topics": "shpyr\\..*", "format": "debezium-avro", "schema_topic": "shpyr", "schema_registry": "registry"}
PIPELINE = CdcPipeline.from_dict({"name": "p", "source": SOURCE, "sink": {"root": "/lake"}})


@pytest.fixture
def registry() -> Iterator[ServedSchemas]:
    server = ServedSchemas(schemas_of(CAPTURE))
    yield server
    server.stop()


def log_of(settings: dict[str, str]) -> Any:
    def records(windows: Any, count: int) -> dict[tuple[str, int], list[KafkaRecord]]:
        return {where: [r for r in recorded() if (r.topic, r.partition) == where] for where in windows}

    return SimpleNamespace(schemas=SchemaSupply(lambda ids: ask(settings, ids)), read=records)


def recorded() -> list[KafkaRecord]:
    return [
        KafkaRecord(r.topic, r.partition, r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in read(CAPTURE)
    ]


def test_rows_and_heartbeats_state_times_and_each_schema_is_asked_for_once(registry: ServedSchemas) -> None:
    mark_of = marks_of(PIPELINE, log_of({"url": registry.url}))
    marks = [mark for mark in map(mark_of, recorded()) if mark is not None]
    assert sum(mark.heartbeat for mark in marks) == 18
    assert len(marks) == 18 + 56 + 49
    assert all(mark.source_time_ms <= (mark.kafka_time_ms or 0) + 1000 for mark in marks)
    assert set(registry.asked.values()) == {1}


def test_a_registry_that_is_away_is_no_record_without_a_time(registry: ServedSchemas) -> None:
    registry.status = 503
    mark_of = marks_of(PIPELINE, log_of({"url": registry.url}))
    record = next(record for record in recorded() if record.value is not None)
    with pytest.raises(UnavailableError, match=r"registry\.unreachable"):
        mark_of(record)
    with pytest.raises(ConfigurationError, match=r"source\.schema_registry: is missing"):
        marks_of(PIPELINE, log_of({}))(record)


def test_coming_statements_are_read(registry: ServedSchemas) -> None:
    log = log_of({"url": registry.url})
    ends = {"shpyr": {0: 49}}
    statements = coming_ddl(PIPELINE, log, {"shpyr": {0: 0}}, ends)
    assert statements is not None and len(statements) > 10
    assert any(statement["text"].startswith("ALTER TABLE") for statement in statements)
