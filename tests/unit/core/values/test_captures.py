# SPDX-License-Identifier: Apache-2.0
"""Test real Debezium traffic: the newest image of every key, typed, is the final row of the database."""

from __future__ import annotations

import base64
import json
import lzma
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from airflow_provider_cdc.core.formats.connect.debezium_columns import MODES, described_encoding
from airflow_provider_cdc.core.formats.connect.debezium_table_changes import structures
from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema
from airflow_provider_cdc.core.values.images import Field, type_images
from airflow_provider_cdc.core.values.types import BINARIES, GEOMETRIES, arrow_type

ROOT = Path(__file__).parents[4]
CAPTURE_ROOTS = [ROOT / "tests" / "fixtures" / "debezium", ROOT.parent / "shared" / "fixtures" / "debezium"]
FOLDERS = {"public-a": {}, "public-c": {"binary.handling.mode": "base64"}}


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with lzma.open(path, "rt") as file:
        yield from map(json.loads, file)


@dataclass
class Table:
    """Hold the records' description of one table that no DDL changed after its first rows."""

    schema: TableSchema
    details: dict[str, dict[str, Any]] = field(default_factory=dict)
    images: dict[tuple[str, ...], tuple[Any, bytes | None]] = field(default_factory=dict)


def raw_row(value: bytes) -> tuple[dict[str, Any], bytes | None]:
    """Return the record, and its after image with its tokens as they are."""
    payload = msgspec.json.decode(value, type=dict[str, msgspec.Raw])["payload"]
    members = msgspec.json.decode(payload, type=dict[str, msgspec.Raw])
    after = bytes(members["after"])
    return json.loads(value), None if after == b"null" else after


def replay(folder: Path) -> dict[tuple[str, str], Table]:
    tables: dict[tuple[str, str], Table] = {}
    changed: Counter[tuple[str, str]] = Counter()
    rows = []
    for record in lines(folder / "records.jsonl.xz"):
        if not record["value"]:
            continue
        value = base64.b64decode(record["value"])
        payload = json.loads(value)["payload"]
        if "tableChanges" in payload:
            for database, table, schema in structures(json.dumps(payload["tableChanges"])):
                changed[database, table] += schema is not None
                if schema is not None:
                    tables[database, table] = Table(schema)
        elif "source" in payload:
            rows.append(value)
    tables = {name: table for name, table in tables.items() if changed[name] == 1}
    for value in rows:
        data, after = raw_row(value)
        source = data["payload"]["source"]
        table = tables.get((source["db"], source["table"]))
        if table is None or data["payload"]["op"] == "t":
            tables.pop((source["db"], source["table"]), None)
            continue
        envelope = {item["field"]: item for item in data["schema"]["fields"]}
        table.details.update({item["field"]: item for item in envelope["after"]["fields"]})
        key_names = [column.name for column in table.schema.key_columns]
        if not key_names:
            continue
        position = (source["file"], source["pos"], source["row"], data["payload"]["op"] != "d")
        image = data["payload"]["after"] or data["payload"]["before"]
        key = tuple(json.dumps(image[name]) for name in key_names)
        if key not in table.images or table.images[key][0] < position:
            table.images[key] = (position, after)
    return {name: table for name, table in tables.items() if table.images}


def expected(text: str | None, column: ColumnType, target: pa.DataType) -> Any:
    """Return the source's text as Python's value of the target."""
    if text is None:
        return None
    if column.name == "bit":
        return bool(int(text, 16)) if pa.types.is_boolean(target) else int(text, 16)
    if column.name in GEOMETRIES:
        return bytes.fromhex(text)[4:]
    if column.name in BINARIES:
        return bytes.fromhex(text)
    if pa.types.is_integer(target):
        return int(text)
    if pa.types.is_decimal(target):
        return Decimal(text)
    if pa.types.is_float32(target):
        return float(np.float32(float(text)))
    return float(text) if pa.types.is_float64(target) else text


def actual(column: pa.Array) -> list[Any]:
    if pa.types.is_date32(column.type) or pa.types.is_timestamp(column.type):
        # text, since Python has no year 0
        texts = column.cast(pa.timestamp("us")).cast(pa.string()).to_pylist()
        return [text and (text[:10] if pa.types.is_date32(column.type) else text) for text in texts]
    values: list[Any] = column.to_pylist()
    return values


def same(left: Any, right: Any, column: ColumnType) -> bool:
    if column.name in ("datetime", "timestamp") and left and right:
        return bool(left.ljust(20, ".").ljust(26, "0") == right.ljust(20, ".").ljust(26, "0"))
    if column.name == "float" and left is not None and right is not None:
        return bool(abs(left - right) <= abs(right) * 1e-5)  # a snapshot has six digits only
    return bool(left == right)


@pytest.mark.parametrize("name", FOLDERS)
def test_newest_images_are_the_final_rows(name: str) -> None:
    folder = next((root / name for root in CAPTURE_ROOTS if (root / name).is_dir()), None)
    if folder is None:
        pytest.skip(f"the capture {name} is not here")
    modes = {option: default for option, (default, _) in MODES.items()} | FOLDERS[name]
    known = {
        (item["db"], item["table"], item["column"], tuple(item["key"].values()))
        for item in lines(folder / "differences.jsonl.xz")
    }
    final = {(item["db"], item["table"]): item for item in lines(folder / "source_final.jsonl.xz") if "db" in item}
    cells: Counter[str] = Counter()
    wrong = []
    for (database, table), state in replay(folder).items():
        truth = final.get((database, table))
        if truth is None or database == "opaque":
            continue
        columns = state.schema.columns
        fields = [
            Field(described_encoding(c.name, c.type, state.details[c.name], modes), c.type, arrow_type(c.type))
            for c in columns
        ]
        images = [image for _, image in state.images.values() if image is not None]
        typed = type_images(pa.array([image.decode() for image in images], pa.string()), fields)
        assert typed.failures == []
        assert typed.absent == [None] * len(fields)
        values = [actual(column) for column in typed.columns]
        key_at = [[c.name for c in columns].index(c.name) for c in state.schema.key_columns]
        types = [(c.type, f.target) for c, f in zip(columns, fields, strict=True)]
        rows = {key_of([v[row] for v in values], types, key_at): [v[row] for v in values] for row in range(len(images))}
        names = [item["name"] for item in truth["columns"]]
        order = [names.index(c.name) for c in columns]
        assert len(rows) == len(truth["rows"]), (database, table)
        for source in truth["rows"]:
            final_rows = [expected(source[at], *pair) for at, pair in zip(order, types, strict=True)]
            got = rows[key_of(final_rows, types, key_at)]
            key = tuple(source[names.index(c)] for c in truth["primary_key"])
            for left, right, c, f in zip(got, final_rows, columns, fields, strict=True):
                cells[f"{f.encoded.encoding}/{c.type.name}"] += 1
                if not same(left, right, c.type) and (database, table, c.name, key) not in known:
                    wrong.append((database, table, c.name, key, left, right))
    assert wrong == []
    assert len(cells) > 30, cells
    assert sum(cells.values()) > 1000


def key_of(row: list[Any], types: list[tuple[ColumnType, pa.DataType]], key_at: list[int]) -> tuple[str, ...]:
    parts = []
    for at in key_at:
        text = str(row[at])
        temporal = types[at][0].name in ("datetime", "timestamp")
        parts.append(text.ljust(20, ".").ljust(26, "0") if temporal else text)
    return tuple(parts)
