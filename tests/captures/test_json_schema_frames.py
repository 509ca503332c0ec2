# SPDX-License-Identifier: Apache-2.0
"""Recorded JSON with embedded schemas, in frames with the same schemas as JSON Schema: the tables are the database's.

Confluent's converter could not be had: the frames are as its code writes them, the payloads those of the captures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.captures import postgres_pipelines as postgres
from tests.captures.in_memory import DATA, pipeline, some_checkpoints, wrong_tables
from tests.cross_format.connect_json_schema import JsonSchemaConverter
from tests.histories.log import Log
from tests.histories.scripted import Script
from tests.services.registered_schemas import ServedSchemas

SHOP = "public-shop-mdb11"


class Registry:
    """Put the records of a log into frames, and answer for their schemas."""

    def __init__(self, log: Log) -> None:
        converter = JsonSchemaConverter()
        for records in log.partitions.values():
            records[:] = [
                replace(record, key=converter.framed(record.key), value=converter.framed(record.value))
                for record in records
            ]
        self.server = ServedSchemas(converter.schemas)

    def read_by(self, script: Script) -> None:
        """Let a pipeline read frames."""
        script.format, script.registry = "debezium-avro", {"url": self.server.url, "timeout": "5"}


@pytest.fixture
def served() -> Iterator[list[ServedSchemas]]:
    servers: list[ServedSchemas] = []
    yield servers
    for server in servers:
        server.stop()
        assert set(server.asked.values()) == {1}, "each schema is asked for once"


def framed(script: Script, served: list[ServedSchemas]) -> Script:
    registry = Registry(script.log)
    registry.read_by(script)
    served.append(registry.server)
    return script


def test_each_recorded_point_of_the_shop(log: Log, served: list[ServedSchemas], tmp_path: Path) -> None:
    script = framed(
        pipeline(SHOP, log, tmp_path, prefix="shpda", options={"explicit_defaults_for_timestamp": "true"}), served
    )
    for truth, ends in some_checkpoints(SHOP):
        script.sync(ends)
        assert wrong_tables(script, truth) == []


def test_all_types_of_postgresql(log: Log, served: list[ServedSchemas], tmp_path: Path) -> None:
    script = framed(postgres.pipeline(postgres.MAIN, log, tmp_path), served)
    whole = {where: len(records) for where, records in log.partitions.items()}
    for number in (1, 2, 3):
        postgres.sync(script, {where: end * number // 3 for where, end in whole.items()})
    outcomes = postgres.verdicts(postgres.MAIN, script, DATA / postgres.MAIN / "source_final.jsonl.xz")
    assert {table for table, outcome in outcomes.items() if outcome == "equal"} >= postgres.EQUAL[postgres.MAIN]
