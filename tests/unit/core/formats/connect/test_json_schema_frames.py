# SPDX-License-Identifier: Apache-2.0
"""JSON behind the id of a JSON Schema: what its schema says of columns, and what is refused by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_cdc.core.formats.connect.json_schemas import connect_schema
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.registry import open_format
from tests.cross_format.connect_avro import AvroConverter
from tests.cross_format.connect_json_schema import JsonSchemaConverter, json_schema
from tests.unit.core.formats.connect.flattened_rows import ADDED, OPTIONS, flat

COLUMNS = [
    {"type": "int64", "optional": False, "default": 0, "field": "id"},
    {"type": "bytes", "optional": True, "name": "org.apache.kafka.connect.data.Decimal", "version": 1,
     "parameters": {"scale": "2"}, "field": "d"},
    {"type": "array", "items": {"type": "string", "optional": True}, "optional": True, "field": "l"},
    {"type": "map", "keys": {"type": "string", "optional": False}, "values": {"type": "float", "optional": True},
     "optional": True, "field": "m"},
]  # fmt: skip
SOURCE = {"connector": "mysql", "name": "s", "db": "shop", "table": "t", "file": "b.000001", "pos": 4, "row": 0}
ROW = {"id": 1, "d": "AMg=", "l": ["x", None], "m": {"k": 1.5}}
KEY = {"schema": {"type": "struct", "fields": [COLUMNS[0]]}, "payload": {"id": 1}}


def envelope(payload: dict[str, Any]) -> bytes:
    row = {"type": "struct", "fields": COLUMNS, "optional": True, "name": "s.shop.t.Value"}
    fields = [{**row, "field": "before"}, {**row, "field": "after"}, {"type": "string", "field": "op"}]
    return written({"schema": {"type": "struct", "fields": fields, "name": "s.shop.t.Envelope"}, "payload": payload})


def written(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def decoded(
    schemas: dict[int, dict[str, Any]], value: bytes, key: bytes | None = None, options: dict[str, str] | None = None
) -> dict[str, Any]:
    fmt: Any = open_format("debezium-avro", options)
    fmt.learn(schemas)
    (change,) = fmt.decode(Records("s.shop.t", 0, [0], [1000], [key], [value])).to_pylist()
    return dict(change)


def test_a_row_has_the_columns_that_the_json_schema_states() -> None:
    converter = JsonSchemaConverter()
    value = converter.framed(envelope({"before": None, "after": ROW, "source": SOURCE, "op": "c"})) or b""
    change = decoded(converter.schemas, value, converter.framed(written(KEY)))
    assert (change["kind"], change["op"], json.loads(change["after"])) == ("row", "insert", ROW)
    assert json.loads(change["columns"]) == {"columns": COLUMNS, "key": ["id"]}


@pytest.mark.parametrize("row", [{**ROW, "more": 1}, {name: cell for name, cell in ROW.items() if name != "d"}])
def test_a_row_that_its_schema_does_not_describe_is_refused(row: dict[str, Any]) -> None:
    converter = JsonSchemaConverter()
    value = converter.framed(envelope({"before": None, "after": row, "source": SOURCE, "op": "c"})) or b""
    change = decoded(converter.schemas, value)
    assert (change["kind"], change["error_code"]) == ("error", "record.malformed")
    assert "use.latest.version=false" in change["error"]


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ({"type": "integer"}, "type integer with connect.type None"),
        ({"$ref": "#/definitions/x"}, "type None with connect.type None"),
        ({"oneOf": [{"type": "string"}, {"type": "boolean"}]}, "oneOf of other types"),
        ({"type": "array", "connect.type": "map", "items": {}}, "type array with connect.type map"),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, "connect.index"),
        ({"type": ["string", "null"]}, "with connect.type None"),
        ("string", "not an object"),
    ],
)
def test_what_connect_does_not_register_is_no_schema(tree: Any, said: str) -> None:
    change = decoded({7: {"schemaType": "JSON", "schema": json.dumps(tree)}}, b"\0\0\0\0\7{}")
    assert change["error_code"] == "record.schema_unreadable"
    assert said in change["error"]


def test_protobuf_is_refused_by_name() -> None:
    proto = {"schemaType": "PROTOBUF", "schema": 'syntax = "proto3"; message Envelope { string op = 1; }'}
    change = decoded({7: proto}, b"\0\0\0\0\7\0\x0a\1c")
    assert change["error_code"] == "record.schema_unreadable"
    assert "schema 7 is of the type PROTOBUF: set value.converter to an Avro converter" in change["error"]


def test_every_type_is_what_was_embedded() -> None:
    schema = {"type": "struct", "optional": False, "fields": COLUMNS}
    assert connect_schema(json_schema(schema)) == schema


@pytest.mark.parametrize("converter", [AvroConverter(), JsonSchemaConverter()])
def test_a_row_without_envelope_is_no_heartbeat(converter: Any) -> None:
    fields = [{"type": "int64", "field": "ts_ms"}, {"type": "string", "field": "v"}]
    message = written({"schema": {"type": "struct", "fields": fields}, "payload": {"ts_ms": 5, "v": "x"}})
    more = ["Value"] if isinstance(converter, AvroConverter) else []
    change = decoded(converter.schemas, converter.framed(message, *more))
    assert (change["kind"], change["error_code"]) == ("error", "record.malformed")
    heartbeat = written({"schema": {"type": "struct", "fields": fields[:1]}, "payload": {"ts_ms": 5}})
    value = converter.framed(heartbeat, *more)
    assert decoded(converter.schemas, value)["kind"] == "progress"


@pytest.mark.parametrize(("more", "kind"), [({}, "row"), ({"w": 1}, "error")])
def test_flattened_rows_are_read_as_their_schema_says(more: dict[str, Any], kind: str) -> None:
    flattened = {**flat({"id": 1, "v": "a"}), **more}
    names = {"id": "int64", **{name: "int64" if isinstance(cell, int) else "string" for name, cell in ADDED.items()}}
    fields = [{"type": names.get(name, "string"), "field": name, "optional": True} for name in {"id", "v", *ADDED}]
    converter = JsonSchemaConverter()
    value = converter.framed(written({"schema": {"type": "struct", "fields": fields}, "payload": flattened})) or b""
    change = decoded(converter.schemas, value, options=OPTIONS)
    assert change["kind"] == kind
    if kind == "row":
        assert json.loads(change["after"]) == {"id": 1, "v": "a"}
        assert {column["field"] for column in json.loads(change["columns"])["columns"]} == {"id", "v"}
