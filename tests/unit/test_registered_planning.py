# SPDX-License-Identifier: Apache-2.0
"""Planner, sensors and previews of records that name schemas of a registry."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_cdc.batch.coming_ddl import coming_ddl
from airflow_provider_cdc.batch.planner import marks_of
from airflow_provider_cdc.batch.source_log import SourceLog, open_log, resolve_source
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import ConfigurationError, UnavailableError
from airflow_provider_cdc.core.formats.common.schema_supply import SchemaSupply
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.schema_registry.client import ask
from airflow_provider_cdc.sources.kafka_reading import KafkaRecord
from spark_jobs.lake.schemas import LakeSchemas
from spark_jobs.lake.storage import Storage
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


# ---- a registry that is gone after the first batches


@pytest.fixture
def pipeline(registry: ServedSchemas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CdcPipeline:
    """Return a pipeline whose batches kept the schemas in its lake, and whose registry is gone."""
    monkeypatch.setenv("AIRFLOW_CONN_REGISTRY", json.dumps({"conn_type": "http", "host": registry.url}))
    monkeypatch.setenv(
        "AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": "k:1"}})
    )
    LakeSchemas("p", Storage(str(tmp_path)), {"url": registry.url})(schemas_of(CAPTURE))
    registry.stop()
    return CdcPipeline.from_dict({"name": "p", "source": SOURCE, "sink": {"root": str(tmp_path)}})


def opened_log(pipeline: CdcPipeline) -> SourceLog:
    return open_log(pipeline)


def resolved_log(pipeline: CdcPipeline) -> SourceLog:
    return asyncio.run(resolve_source(pipeline, "a test", 1.0)).open()


@pytest.mark.parametrize("opened", [opened_log, resolved_log])
def test_planner_and_sensors_need_no_registry_for_schemas_of_the_lake(
    opened: Callable[[CdcPipeline], SourceLog], pipeline: CdcPipeline
) -> None:
    mark_of = marks_of(pipeline, opened(pipeline))
    assert len([mark for mark in map(mark_of, recorded()) if mark is not None]) == 18 + 56 + 49


@pytest.mark.parametrize("opened", [opened_log, resolved_log])
def test_a_schema_that_the_lake_lacks_is_asked_for(
    opened: Callable[[CdcPipeline], SourceLog], pipeline: CdcPipeline, tmp_path: Path
) -> None:
    gone, damaged, *_ = sorted(tmp_path.glob("_cdc/p/schemas/*/*.json"))
    gone.unlink()
    damaged.write_text("{")
    log = opened(pipeline)
    for file in (gone, damaged):
        frame = b"\0" + int(file.stem).to_bytes(4, "big") + b"x"
        with pytest.raises(UnavailableError, match=r"registry\.unreachable"):
            log.schemas.provide(open_format("debezium-avro"), [frame])


def test_each_lake_has_a_client_of_its_own(pipeline: CdcPipeline, tmp_path: Path) -> None:
    first, second = (
        asyncio.run(
            resolve_source(CdcPipeline.from_dict({"name": name, "source": source, "sink": {"root": root}}), "", 1)
        )
        for name, source, root in (("a", SOURCE, "/a"), ("b", SOURCE, "/b"))
    )
    assert first.name != second.name
    plain = {"topics": "x", "format": "debezium-json"}
    shared = {
        asyncio.run(
            resolve_source(CdcPipeline.from_dict({"name": name, "source": plain, "sink": {"root": "/x"}}), "", 1)
        ).name
        for name in ("a", "b")
    }
    assert len(shared) == 1


def test_coming_statements_are_read(registry: ServedSchemas) -> None:
    log = log_of({"url": registry.url})
    ends = {"shpyr": {0: 49}}
    statements = coming_ddl(PIPELINE, log, {"shpyr": {0: 0}}, ends)
    assert statements is not None and len(statements) > 10
    assert any(statement["text"].startswith("ALTER TABLE") for statement in statements)
