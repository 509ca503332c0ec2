# SPDX-License-Identifier: Apache-2.0
"""Recorded rows that ExtractNewRecordState flattened, in frames: what they hold is what the JSON of the capture does.

No such rows were recorded with a registry. The rows are those of the capture in JSON, their columns' schemas those that
Apicurio's converter registered for the same tables, and fastavro writes the frames.
"""

from __future__ import annotations

import base64
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.captures.flattened_shop import FLAT, LOST, OPTIONS, reasons
from tests.captures.in_memory import CUTS, DATA, checkpoints, pipeline, rising, some_checkpoints, wrong_tables
from tests.cross_format.connect_avro import AvroConverter
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script
from tests.services.registered_schemas import ServedSchemas, schemas_of

REGISTERED = "public-shop-avro-my8"
ADDED = {
    "__deleted": ["null", "string"],
    "__op": ["null", "string"],
    "__db": "string",
    "__table": ["null", "string"],
    "__source_ts_ms": "long",
    "__source_file": "string",
    "__source_pos": "long",
    "__source_row": "int",
    "__source_gtid": ["null", "string"],
    "__source_snapshot": [{"type": "string", "connect.default": "false"}, "null"],
    "__ts_ms": ["null", "long"],
}  # fmt: skip
Layouts = Mapping[tuple[str, tuple[str, ...]], list[list[dict[str, Any]]]]


def layouts() -> Layouts:
    """Return the registered columns of rows by table and names."""
    result = defaultdict(list)
    for answer in schemas_of(DATA / REGISTERED).values():
        schema = json.loads(answer["schema"])
        if schema.get("name") == "Envelope":
            fields = next(part["type"][1]["fields"] for part in schema["fields"] if part["name"] == "before")
            table = schema["namespace"].partition(".")[2]
            result[table, tuple(field["name"] for field in fields)].append(fields)
    return result


class Framed:
    """Write records of the capture in frames."""

    def __init__(self) -> None:
        self.converter, self._layouts = AvroConverter(), layouts()

    def record(self, record: Record) -> Record:
        """Return a record in frames."""
        value = None if record.value is None else json.loads(record.value)
        framed = None if value is None else self._row(value) if "__deleted" in value else self._message(value)
        return replace(record, key=None if record.key is None else self._message(json.loads(record.key)), value=framed)

    def _message(self, value: dict[str, Any]) -> bytes | None:
        text = json.dumps({"schema": {"fields": []}, "payload": value})
        return self.converter.framed(text.encode(), "Message")

    def _row(self, row: dict[str, Any]) -> bytes:
        cells = {name: cell for name, cell in row.items() if name not in ADDED}
        row = {**row, "__source_snapshot": row["__source_snapshot"] or "false"}  # the converter writes the default
        added = [{"name": name, "type": kind} for name, kind in ADDED.items()]
        for fields in self._layouts[f"{row['__db']}.{row['__table']}", tuple(cells)]:
            written = [_written(field, cells[field["name"]]) for field in fields]
            schema = {"type": "record", "name": "Value", "namespace": row["__table"], "fields": [*written, *added]}
            datum = {field["name"]: _datum(field["type"], row[field["name"]]) for field in schema["fields"]}
            with suppress(ValueError, TypeError):  # of another type: a later layout
                return self.converter.frame(schema, datum)
        raise AssertionError(f"no layout for {row}")


def _written(field: dict[str, Any], cell: Any) -> dict[str, Any]:
    """Return a column's field; decimals are texts in this capture."""
    kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
    decimal = any(isinstance(kind, dict) and kind.get("logicalType") == "decimal" for kind in kinds)
    if decimal and (cell is None or isinstance(cell, str)):
        return {"name": field["name"], "type": ["null", "string"]}
    return {name: part for name, part in field.items() if name != "default"}


def _datum(kind: Any, cell: Any) -> Any:
    if isinstance(kind, list):
        return None if cell is None else _datum(next(branch for branch in kind if branch != "null"), cell)
    name = kind["type"] if isinstance(kind, dict) else kind
    if name == "bytes":
        return base64.b64decode(cell)
    if name == "record":
        return {field["name"]: _datum(field["type"], cell[field["name"]]) for field in kind["fields"]}
    return float(cell) if name in ("float", "double") else cell


@pytest.fixture(scope="module")
def framed() -> Framed:
    return Framed()


@pytest.fixture
def script(framed: Framed, log: Log, tmp_path: Path) -> Iterator[Script]:
    options = {name: value for name, value in OPTIONS.items() if not name.startswith("decimal")}
    script = pipeline(FLAT, log, tmp_path, prefix="shpyf", options=options)
    for records in log.partitions.values():
        records[:] = [framed.record(record) for record in records]
    server = ServedSchemas(framed.converter.schemas)
    script.format, script.registry = "debezium-avro", {"url": server.url, "timeout": "5"}
    yield script
    server.stop()
    assert set(server.asked.values()) == {1}, "each schema is asked for once"


def test_each_recorded_point(script: Script) -> None:
    for truth, ends in some_checkpoints(FLAT):
        script.sync(ends)
        excused = frozenset(f"shop.{table}" for table in reasons(script))
        assert excused <= LOST
        assert wrong_tables(script, truth, excused, null_as_default=True) == []


@pytest.mark.parametrize("cuts", CUTS)
def test_any_cut_ends_alike(cuts: int, script: Script) -> None:
    chance = random.Random(cuts)
    whole = {where: len(partition) for where, partition in script.log.partitions.items()}
    for number in range(1, cuts + 1):
        ends = {where: chance.randint(0, end) for where, end in whole.items()}
        script.sync(whole if number == cuts else rising(ends, script.ends))
    *_, (final, _) = checkpoints(FLAT)
    assert wrong_tables(script, final, LOST, null_as_default=True) == []
    assert reasons(script) == {"web_views": "image_missing", "returns_uk": "apply.key_unproven"}
