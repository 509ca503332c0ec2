# SPDX-License-Identifier: Apache-2.0
"""A registry with many schemas: each is asked for once, kept in the lake, and later costs only who names it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.lake.storage import Storage
from tests.cross_format.debezium_avro_writer import Writer
from tests.cross_format.events import Ddl, Event, Row
from tests.cross_format.history import DATABASE, START_MS, structure
from tests.histories.log import Crash, CrashError, Log
from tests.histories.records import Record
from tests.histories.scripted import Script
from tests.services.registered_schemas import ServedSchemas

MANY = 300
CREATE = "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20))"
HEAD = 5  # bytes of a frame before its content


def records() -> tuple[list[Record], dict[int, dict[str, Any]]]:
    """Return a CREATE TABLE and a row for each of many schemas of one table, and one more; and the registry's content.

    The schemas differ in a text that no row shows.
    """
    writer, schema = Writer(), structure([CREATE], "t")
    assert schema is not None
    events = [Event(1, 1, 4, START_MS, START_MS, 1, Ddl(CREATE, DATABASE, "t", schema))]
    for number in range(2, MANY + 3):
        row = Row("insert", DATABASE, "t", schema, None, {"id": number, "v": f"text {number}"})
        events.append(Event(number, 1, 200 * number, START_MS, START_MS + number, number, row))
    sent = [message for event in events for message in writer.write(event, 1)]
    registered, result = dict(writer.schemas), []
    for number, message in enumerate(sent):
        value = message.value
        if message.topic == "rows" and value is not None:
            own = int.from_bytes(value[1:HEAD], "big")
            registered.pop(own, None)
            tree = json.loads(writer.schemas[own]["schema"])
            registered[20_000 + number] = {"schema": json.dumps({**tree, "doc": f"layout {number}"})}
            value = b"\0" + (20_000 + number).to_bytes(4, "big") + value[HEAD:]
        result.append(Record(message.topic, 0, START_MS, message.key, value))
    return result, registered


@pytest.fixture
def documents(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return how often a document of a schema is read and written in the lake."""
    counts = Counter[str]()
    read, write = Storage.read_json, Storage.write_json

    def counted_read(storage: Storage, file: str) -> Any:
        counts["read"] += "/schemas/" in file
        return read(storage, file)

    def counted_write(storage: Storage, file: str, data: Any, *, durable: bool = True) -> None:
        counts["written"] += "/schemas/" in file
        write(storage, file, data, durable=durable)

    monkeypatch.setattr(Storage, "read_json", counted_read)
    monkeypatch.setattr(Storage, "write_json", counted_write)
    return counts


@pytest.fixture
def registry() -> Iterator[ServedSchemas]:
    server = ServedSchemas(records()[1])
    yield server
    server.stop()


def test_many_schemas_cost_a_batch_once(
    log: Log, registry: ServedSchemas, documents: Counter[str], tmp_path: Path
) -> None:
    sent, registered = records()
    script = Script(log, tmp_path, "debezium-avro", "schema", registry={"url": registry.url, "timeout": "5"})
    script.send(*sent[:-1])
    log.arm(Crash("manifest"))
    with pytest.raises(CrashError):
        script.sync()
    used = len(registered) - 1
    assert len(registry.asked) == used > MANY
    assert set(registry.asked.values()) == {1}
    assert documents == {"read": used, "written": used}

    registry.status = 503  # the batch is repeated without it
    log.arm(None)
    script.sync()
    assert documents == {"read": 2 * used, "written": used}
    assert script.rows(DATABASE, "t") == Counter((number, f"text {number}") for number in range(2, MANY + 2))

    registry.status = 0
    documents.clear()
    script.send(sent[-1])
    script.sync()
    assert documents == {"read": 2, "written": 1}, "of its key and of its row, which alone is new"
    assert len(registry.asked) == used + 1
    assert set(registry.asked.values()) == {1}
    assert script.rows(DATABASE, "t") == Counter((number, f"text {number}") for number in range(2, MANY + 3))
