# SPDX-License-Identifier: Apache-2.0
"""Changes that drs-avro makes of records in Avro, for tests."""

from __future__ import annotations

import json
from typing import Any

import fastavro

from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.registry import open_format
from tests.cross_format.avro_schema import OPTIONS, encoded, value

FIELDS = [{"name": "id", "dataTypeNumber": 3}, {"name": "v", "dataTypeNumber": 253}]


def changes(*values: bytes | None, options: Any = OPTIONS) -> list[dict[str, Any]]:
    count = len(values)
    records = Records("drs", 1, list(range(count)), [1000] * count, [None] * count, values)
    return open_format("drs-avro", options).decode(records).to_pylist()


def image(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def integer(number: int) -> Any:
    return value("Integer", precision=4, value=str(number))


def characters(text: str, charset: str = "utf8mb4", codec: str = "utf-8") -> Any:
    return value("Character", charset=charset, value=text.encode(codec))


def instant(seconds: int, millis: int) -> Any:
    return value("Timestamp", timestamp=seconds, millis=millis)


def local_time(*parts: int | None) -> Any:
    names = ("year", "month", "day", "hour", "minute", "second", "millis")
    return value("DateTime", **dict(zip(names, parts, strict=True)))


A, B = [integer(103), characters("größe 😀")], [integer(104), None]
IMAGE_A, IMAGE_B = {"id": "103", "v": "größe 😀"}, {"id": "104", "v": None}


# ---- records of schemas of our own


PLAIN = {
    "field.operation": "type", "field.position": "id", "field.time": "es", "field.database": "head.db",
    "field.table": "head.tables.one", "field.before": "old", "field.after": "data",
}  # fmt: skip


def schema_of(columns: Any, kind: Any = None) -> dict[str, Any]:
    """Return a schema of our own: nested names, nullable fields, images of a given type."""
    if kind is None:
        fields = [{"name": name, "type": of} for name, of in columns.items()]
        kind = {"type": "record", "name": "Columns", "fields": fields}
    head = {"type": "record", "name": "Head", "fields": [
        {"name": "db", "type": "string"}, {"name": "tables", "type": {"type": "map", "values": "string"}},
    ]}  # fmt: skip
    return {"type": "record", "name": "Event", "namespace": "x.y", "fields": [
        {"name": "type", "type": ["null", "string"]}, {"name": "id", "type": "string"}, {"name": "es", "type": "long"},
        {"name": "head", "type": ["null", head]},
        {"name": "old", "type": ["null", kind]}, {"name": "data", "type": ["null", _again(kind)]},
    ]}  # fmt: skip


def _again(kind: dict[str, Any]) -> Any:
    """Return a type as its second use names it."""
    if kind["type"] == "array" and "name" in kind["items"]:
        return {**kind, "items": kind["items"]["name"]}
    return kind.get("name", kind)


def event(**more: Any) -> dict[str, Any]:
    head = {"db": "d", "tables": {"one": "t "}}
    return {"type": "INSERT", "id": "9", "es": 1624614713000, "head": head, "old": None, "data": None, **more}


def decoded(kind: Any, *events: dict[str, Any], columns: Any = None) -> list[dict[str, Any]]:
    tree = schema_of(columns, kind)
    return changes(
        *[encoded(fastavro.parse_schema(tree), e) for e in events], options={**PLAIN, "schema": json.dumps(tree)}
    )


VALUE = ["null", "boolean", "int", "long", "double", "string", "bytes"]
