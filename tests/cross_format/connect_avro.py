# SPDX-License-Identifier: Apache-2.0
"""Connect's records as Apicurio's and Confluent's Avro converters frame them (docs/wire/avro-registry.md 1 to 3)."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping
from typing import Any

import fastavro

_KINDS = {"int8": "int", "int16": "int", "int32": "int", "int64": "long", "float32": "float", "float64": "double"}
_CONNECTS_OWN = ("int8", "int16")  # types that Avro lacks
_LOGICAL = {"org.apache.kafka.connect.data.Decimal": "decimal"}


class AvroConverter:
    """Frames records that the JSON converter wrote with embedded schemas.

    :ivar schemas: what the registry has, by id.
    """

    def __init__(self) -> None:
        self.schemas: dict[int, dict[str, Any]] = {}
        self._ids: dict[str, int] = {}
        self._parsed: dict[int, Any] = {}

    def framed(self, record: bytes | None, subject: str) -> bytes | None:
        """Return a record in a frame.

        :param subject: names the record in the schema.
        """
        if record is None:
            return None
        message = json.loads(record)
        return self.frame(*_record(subject, message["schema"]["fields"], message["payload"]))

    def frame(self, schema: Any, datum: Any) -> bytes:
        """Return a value of a schema in a frame."""
        text = json.dumps(schema)
        identity = self._ids.setdefault(text, 7_000 + len(self._ids))
        if identity not in self.schemas:
            self.schemas[identity] = {"schema": text}
            self._parsed[identity] = fastavro.parse_schema(_without_logical(schema))
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, self._parsed[identity], datum)
        return b"\0" + identity.to_bytes(4, "big") + stream.getvalue()


def _record(name: str, fields: list[dict[str, Any]], payload: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """Return schema and value of a message; members that its schema does not describe, or in part, by their values."""
    described = {field["field"]: field for field in fields}
    parts, datum, named = [], {}, dict[str, Any]()
    for member, value in payload.items():
        field = described.get(member)
        if member in ("before", "after") and field is not None and "fields" in field:
            kind = named.setdefault("Value", _row(field))
            parts.append({"name": member, "type": ["null", kind if member == "before" else "Value"], "default": None})
            datum[member] = None if value is None else _cells(field, value)
        elif field is not None and field["type"] != "struct":
            parts.append(_member(field))
            datum[member] = _cell(field, value)
        else:
            parts.append({"name": member, "type": _inferred(f"{name}_{member}", [value])})
            datum[member] = value
    return {"type": "record", "name": name, "namespace": "one", "fields": parts}, datum


def _row(field: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "Value", "fields": [_member(column) for column in field["fields"]]}


def _member(field: Mapping[str, Any]) -> dict[str, Any]:
    kind: dict[str, Any] = {"type": _KINDS.get(field["type"], field["type"])}
    if field["type"] in _CONNECTS_OWN:
        kind["connect.type"] = field["type"]
    for name in ("name", "version", "parameters"):
        if name in field:
            kind[f"connect.{name}"] = field[name]
    if field.get("name") in _LOGICAL:
        scale, precision = (int(field["parameters"].get(n, 64)) for n in ("scale", "connect.decimal.precision"))
        kind |= {"logicalType": _LOGICAL[field["name"]], "scale": scale, "precision": precision}
    plain = kind["type"] if len(kind) == 1 else kind
    if not field.get("optional", True):
        return {"name": field["field"], "type": plain}
    return {"name": field["field"], "type": ["null", plain], "default": None}


def _cells(field: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    return {column["field"]: _cell(column, row[column["field"]]) for column in field["fields"]}


def _cell(field: Mapping[str, Any], value: Any) -> Any:
    return base64.b64decode(value) if field["type"] == "bytes" and value is not None else value


def _inferred(name: str, values: list[Any]) -> list[Any]:
    """Return a type for values of which a schema says nothing: null or what they are."""
    rest = [value for value in values if value is not None]
    if not rest:
        return ["null", "string"]
    match rest[0]:
        case bool():
            return ["null", "boolean"]
        case int():
            return ["null", "long"]
        case str():
            return ["null", "string"]
        case list():
            items = _inferred(f"{name}_item", [item for value in rest for item in value])
            return ["null", {"type": "array", "items": items}]
    members = dict.fromkeys(member for value in rest for member in value)
    fields = [
        {"name": member, "type": _inferred(f"{name}_{member}", [value.get(member) for value in rest])}
        for member in members
    ]
    return ["null", {"type": "record", "name": name, "fields": fields}]


def _without_logical(tree: Any) -> Any:
    """Return a schema by which bytes of a decimal are written as they are."""
    if isinstance(tree, dict):
        return {key: _without_logical(value) for key, value in tree.items() if key != "logicalType"}
    return [_without_logical(item) for item in tree] if isinstance(tree, list) else tree
