# SPDX-License-Identifier: Apache-2.0
"""Recorded shops in Avro with a schema registry, replayed from memory, give the database's own content."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from pathlib import Path

import fastavro
import pytest

from airflow_provider_cdc.core.documents import Rebuild
from airflow_provider_cdc.core.errors import ConfigurationError, UnavailableError
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.demo.truth import differing, load
from spark_jobs.sinks.delta.table import DeltaLocation
from tests.captures.in_memory import CUTS, DATA, SEEDS, Ends, records, rising, some_checkpoints, written_otherwise
from tests.histories.log import Crash, CrashError, Log
from tests.histories.records import Record as LogRecord
from tests.histories.scripted import Script
from tests.locations import table_location
from tests.services.registered_schemas import ServedSchemas, schemas_of

MYSQL, MARIADB, ROUTED = "public-shop-avro-my8", "public-shop-avro-mdb11", "public-shop-routed-avro-my8"
NUMBERED_JSON = "public-shop-jsonschema-my8"
CAPTURES = [MYSQL, MARIADB, ROUTED]


@cache
def settings(name: str) -> dict[str, str]:
    known: dict[str, str] = json.loads((DATA / name / "meta.json").read_text())["connector"]
    return known


@pytest.fixture(params=CAPTURES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def registry(name: str) -> Iterator[ServedSchemas]:
    server = ServedSchemas(schemas_of(DATA / name))
    yield server
    server.stop()


def shop(name: str, log: Log, root: Path, registry: ServedSchemas) -> Script:
    """Return a pipeline over a capture."""
    for record in records(name):
        partition = log.partitions.setdefault((record.topic, record.partition), [])
        assert record.offset == len(partition)
        partition.append(LogRecord(record.topic, record.partition, record.timestamp, record.key, record.value))
    return Script(
        log,
        root,
        "debezium-json" if name == NUMBERED_JSON else "debezium-avro",
        settings(name)["topic.prefix"],
        {"explicit_defaults_for_timestamp": "true"},
        registry={"url": registry.url, "timeout": "5"},
    )


def wrong_tables(name: str, script: Script, truth: Path) -> list[str]:
    """Return what differs from the source, but for NULLs that the converter wrote as the column's default."""
    wrong = []
    for table in load(truth):
        states = [state for state in script.states_of(table.database, table.table) if state != "dropped"]
        if states != ["ok"]:
            wrong.append(f"{table.database}.{table.table} is {states}")
            continue
        rows = DeltaLocation(table_location(str(script.root), table.database, table.table), {}).rows()
        problems = differing(table, rows, set(), null_as_default=True)
        wrong += [f"{table.database}.{table.table}: {text}" for text in problems if not written_otherwise(text)]
    return wrong


def unlisted(name: str, ends: Ends) -> Ends:
    """Return the ends of the snapshot in topics that a point does not list: they were made while it was taken."""
    listed, known, result = {topic for topic, _ in ends}, schemas_of(DATA / name), dict[tuple[str, int], int]()
    for record in records(name):
        if record.topic not in listed and record.value is not None:
            schema = json.loads(known[int.from_bytes(record.value[1:5], "big")]["schema"])
            stream = BytesIO(record.value[5:])
            message = schema["name"] == "Envelope" and fastavro.schemaless_reader(stream, schema, None)
            if message and message["op"] == "r":
                result[record.topic, record.partition] = record.offset + 1
    return result


@pytest.mark.sampled
@pytest.mark.parametrize("cuts", [1, 3, 12])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_capture_cut_anywhere_gives_the_final_content(
    name: str, seed: int, cuts: int, log: Log, registry: ServedSchemas, tmp_path: Path
) -> None:
    script = shop(name, log, tmp_path, registry)
    chance = random.Random(f"{seed} {cuts}")
    for number in range(1, cuts):
        ends = {where: chance.randint(0, len(all_) * number // cuts + 3) for where, all_ in log.partitions.items()}
        script.sync(rising({where: min(end, len(log.partitions[where])) for where, end in ends.items()}, script.ends))
    script.sync()
    assert wrong_tables(name, script, DATA / name / "source_final.jsonl.xz") == []
    assert set(registry.asked.values()) == {1}, "each schema is asked for once"


@pytest.mark.every(2)
def test_a_capture_stopped_at_recorded_points_gives_the_content_of_that_moment(
    name: str, log: Log, registry: ServedSchemas, tmp_path: Path
) -> None:
    script = shop(name, log, tmp_path, registry)
    for truth, ends in some_checkpoints(name):
        script.sync({**unlisted(name, ends), **ends})
        assert wrong_tables(name, script, truth) == [], truth.name


@pytest.mark.parametrize("name", [NUMBERED_JSON])
@pytest.mark.parametrize("cuts", CUTS)
def test_json_with_the_number_of_a_schema_is_read_without_the_registry(
    name: str, cuts: int, log: Log, registry: ServedSchemas, tmp_path: Path
) -> None:
    script = shop(name, log, tmp_path, registry)
    for number in range(1, cuts + 1):
        script.sync({where: len(all_) * number // cuts for where, all_ in log.partitions.items()})
    assert wrong_tables(name, script, DATA / name / "source_final.jsonl.xz") == []
    assert not registry.asked


def test_a_key_with_the_number_of_its_schema_has_its_columns() -> None:
    wire, keys = open_format("debezium-json"), set[tuple[str, ...] | None]()
    for record in records(NUMBERED_JSON):
        if record.topic.endswith(("shop.orders", "shop.inventory")):
            one = Records(record.topic, 0, [0], [0], [record.key], [record.value])
            keys |= {wire.describe(c).key for c in wire.decode(one).column("columns").to_pylist() if c is not None}
    assert keys == {("id",), ("product_id", "warehouse")}


# ---- the registry


@pytest.mark.parametrize("name", [ROUTED])
def test_a_replay_needs_no_registry(name: str, log: Log, registry: ServedSchemas, tmp_path: Path) -> None:
    script = shop(name, log, tmp_path, registry)
    with pytest.raises(CrashError):
        log.arm(Crash("manifest"))
        script.sync()
    registry.stop()
    log.arm(None)
    script.sync()
    assert wrong_tables(name, script, DATA / name / "source_final.jsonl.xz") == []


@pytest.mark.parametrize("name", [ROUTED])
def test_a_registry_that_is_gone_is_needed_for_new_schemas_only(
    name: str, log: Log, registry: ServedSchemas, tmp_path: Path
) -> None:
    """Batches with known schemas and rebuilds go on; the others wait."""
    script = shop(name, log, tmp_path, registry)
    whole = {where: len(all_) for where, all_ in log.partitions.items()}
    heads = {head for all_ in log.partitions.values() for head in heads_of(all_)}
    half = {where: end // 2 for where, end in whole.items()}
    script.sync(half)
    registry.stop()
    new = heads - {head for where, end in half.items() for head in heads_of(log.partitions[where][:end])}
    assert new, "the second half names schemas that the first does not"
    known = {where: end + before(log.partitions[where][end:], new) for where, end in half.items()}
    assert known != half
    script.sync(known)
    with pytest.raises(UnavailableError, match="registry"):
        script.sync(whole)
    script.refused = {}
    tables = [f"{state.database}.{state.table}" for state in script.states.values() if state.state == "ok"]
    rows = {table: script.rows(*table.split(".")) for table in tables}
    script.sync(rebuild=Rebuild(tables))
    assert {table: script.rows(*table.split(".")) for table in tables} == rows


def heads_of(records: list[LogRecord]) -> set[bytes]:
    """Return how frames of records begin."""
    return {frame[:5] for one in records for frame in (one.key, one.value) if frame}


def before(records: list[LogRecord], new: set[bytes]) -> int:
    """Return how many records stand before the first that names a new schema."""
    return next((number for number, one in enumerate(records) if heads_of([one]) & new), len(records))


@pytest.mark.parametrize("name", [ROUTED])
def test_a_registry_that_fails_for_a_while_loses_nothing(
    name: str, log: Log, registry: ServedSchemas, tmp_path: Path
) -> None:
    script = shop(name, log, tmp_path, registry)
    for status in (500, 500, 503, 429):
        registry.status = status
        with pytest.raises(UnavailableError) as caught:
            script.sync()
        assert caught.value.code == "registry.unreachable"
        assert f"status {status}" in caught.value.message
    registry.status = 0
    script.sync()
    assert wrong_tables(name, script, DATA / name / "source_final.jsonl.xz") == []


@pytest.mark.parametrize("name", [ROUTED])
def test_a_registry_that_is_away_or_slow_is_waited_for(
    name: str, log: Log, registry: ServedSchemas, tmp_path: Path
) -> None:
    script = shop(name, log, tmp_path, registry)
    script.registry["timeout"] = "0.2"
    registry.pause = 0.6
    with pytest.raises(UnavailableError, match="registry"):
        script.sync()
    registry.stop()
    with pytest.raises(UnavailableError, match="registry"):
        script.sync()


@pytest.mark.parametrize("name", [ROUTED])
@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b"", "refuses the login"),
        (403, b"", "refuses the login"),
        (302, b"", "check the URL"),
        (200, b"<html>", "check the URL"),
        (404, b"<html>", "check the URL"),
        (404, b'{"error":"no such path"}', "check the URL"),
    ],
)
def test_a_registry_that_refuses_is_a_matter_of_configuration(
    name: str, status: int, body: bytes, said: str, log: Log, registry: ServedSchemas, tmp_path: Path
) -> None:
    script = shop(name, log, tmp_path, registry)
    registry.status, registry.body = status, body
    with pytest.raises(ConfigurationError, match=said):
        script.sync()


@pytest.mark.parametrize("name", [ROUTED])
def test_without_a_registry_nothing_is_read(name: str, log: Log, registry: ServedSchemas, tmp_path: Path) -> None:
    script = shop(name, log, tmp_path, registry)
    script.registry = {}
    with pytest.raises(ConfigurationError, match=r"source\.schema_registry: is missing"):
        script.sync()
