# SPDX-License-Identifier: Apache-2.0
"""Kafka Connect's JSON converter: how it writes values and keys, and the schemas that records carry."""

from __future__ import annotations

import base64
import json
from functools import lru_cache
from typing import Any

import numpy as np

from tests.histories.kinds import BITS, WIDE, Kind, moment_text
from tests.histories.source import Column, Structure


def converted(payload: Any, schema: str | None) -> bytes:
    """Return a record's key or value.

    :param schema: its schema as text; None where records carry none.
    """
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    return (text if schema is None else f'{{"schema":{schema},"payload":{text}}}').encode()


def wired_row(structure: Structure, row: dict[str, Any]) -> dict[str, Any]:
    """Return an image as it stands in the JSON."""
    return {column.name: wired(column.kind, row[column.name]) for column in structure.columns}


def wired(kind: Kind, value: Any) -> Any:
    """Return a value as it stands in the JSON."""
    if value is None:
        return None
    if kind.name == "decimal":
        unscaled = int(value.scaleb(kind.scale or 0, context=WIDE))
        return base64.b64encode(unscaled.to_bytes(_signed_size(unscaled), "big", signed=True)).decode()
    if kind.name == "bigint" and kind.unsigned:
        return value - (1 << 64) if value >= 1 << 63 else value
    if kind.name == "bit":
        return (
            bool(value)
            if kind.length == 1
            else base64.b64encode(value.to_bytes((kind.length + 7) // 8, "little")).decode()
        )
    if kind.name == "blob":
        return base64.b64encode(value).decode()
    if kind.name == "datetime":
        return value if (kind.length or 0) > 3 else value // 1000
    if kind.name == "timestamp":
        return moment_text(value, kind.length or 0, "T") + "Z"
    return float(str(np.float32(value))) if kind.name == "float" else value


def _signed_size(number: int) -> int:
    return (number if number >= 0 else ~number).bit_length() // 8 + 1


def _connect(column: Column) -> dict[str, Any]:
    kind = column.kind
    kinds: dict[str, tuple[str, str | None]] = {
        "double": ("double", None),
        "float": ("float", None),
        "varchar": ("string", None),
        "json": ("string", "io.debezium.data.Json"),
        "blob": ("bytes", None),
        "date": ("int32", "io.debezium.time.Date"),
        "time": ("int64", "io.debezium.time.MicroTime"),
        "timestamp": ("string", "io.debezium.time.ZonedTimestamp"),
        "datetime": ("int64", f"io.debezium.time.{'MicroTimestamp' if (kind.length or 0) > 3 else 'Timestamp'}"),
        "enum": ("string", "io.debezium.data.Enum"),
        "decimal": ("bytes", "org.apache.kafka.connect.data.Decimal"),
        "bit": ("boolean", None) if kind.length == 1 else ("bytes", "io.debezium.data.Bits"),
    }
    if kind.name in BITS:
        signed, unsigned = {
            "tinyint": (16, 16),
            "smallint": (16, 32),
            "mediumint": (32, 32),
            "int": (32, 64),
            "bigint": (64, 64),
        }[kind.name]
        kinds[kind.name] = (f"int{unsigned if kind.unsigned else signed}", None)
    name, logical = kinds[kind.name]
    item: dict[str, Any] = {"type": name, "optional": column.nullable}
    if logical is not None:
        item |= {"name": logical, "version": 1}
    if kind.name == "decimal":
        item["parameters"] = {"scale": str(kind.scale or 0), "connect.decimal.precision": str(kind.length)}
    if kind.labels:
        item["parameters"] = {"allowed": ",".join(kind.labels)}
    if logical == "io.debezium.data.Bits":
        item["parameters"] = {"length": str(kind.length)}
    if column.has_default and column.default is not None:
        item["default"] = wired(kind, column.default)
    return {**item, "field": column.name}


def _struct(fields: list[dict[str, Any]], *, optional: bool, name: str, field: str | None = None) -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": fields,
        "optional": optional,
        "name": name,
        **({"field": field} if field else {}),
    }


@lru_cache(maxsize=500)
def envelope_schema(topic: str, structure: Structure) -> str:
    """Return the schema of a table's row records, as text."""
    fields = [_connect(column) for column in structure.columns]
    source = [
        {"type": kind, "optional": optional, "field": field}
        for field, kind, optional in (
            ("version", "string", False),
            ("connector", "string", False),
            ("name", "string", False),
            ("ts_ms", "int64", False),
            ("snapshot", "string", True),
            ("db", "string", False),
            ("table", "string", True),
            ("file", "string", False),
            ("pos", "int64", False),
            ("row", "int32", False),
        )
    ]
    parts = [
        _struct(fields, optional=True, name=f"{topic}.Value", field="before"),
        _struct(fields, optional=True, name=f"{topic}.Value", field="after"),
        _struct(source, optional=False, name="io.debezium.connector.mariadb.Source", field="source"),
        {"type": "string", "optional": False, "field": "op"},
        {"type": "int64", "optional": True, "field": "ts_ms"},
    ]
    return json.dumps({**_struct(parts, optional=False, name=f"{topic}.Envelope"), "version": 2}, separators=(",", ":"))


@lru_cache(maxsize=500)
def key_schema(topic: str, structure: Structure) -> str:
    """Return the schema of a table's record keys, as text."""
    fields = [_connect(structure.named(part)) for part in structure.key]
    return json.dumps(_struct(fields, optional=False, name=f"{topic}.Key"), separators=(",", ":"))


SCHEMA_KEY = json.dumps(
    _struct(
        [{"type": "string", "optional": False, "field": "databaseName"}],
        optional=False,
        name="io.debezium.connector.mariadb.SchemaChangeKey",
    )
)
SCHEMA_CHANGE = json.dumps(
    _struct(
        [
            {"type": "string", "optional": True, "field": "databaseName"},
            {"type": "string", "optional": True, "field": "ddl"},
        ],
        optional=False,
        name="io.debezium.connector.mariadb.SchemaChangeValue",
    )
)
