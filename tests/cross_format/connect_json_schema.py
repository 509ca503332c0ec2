# SPDX-License-Identifier: Apache-2.0
"""Connect's records as Confluent's JsonSchemaConverter frames them, by what its code does (avro-registry.md 7)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_NUMBERS = {"int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64"}
_POINTS = {"float": "float32", "double": "float64"}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_MEMBERS = {"name": "title", "version": "connect.version", "parameters": "connect.parameters", "default": "default"}


class JsonSchemaConverter:
    """Frames records that the JSON converter wrote with embedded schemas: the payload stays as it is.

    :ivar schemas: what the registry has, by id.
    """

    def __init__(self) -> None:
        self.schemas: dict[int, dict[str, Any]] = {}
        self._ids: dict[str, int] = {}

    def framed(self, record: bytes | None) -> bytes | None:
        """Return a record in a frame."""
        if record is None:
            return None
        schema, payload = record[len(b'{"schema":') : -1].split(b',"payload":', 1)
        text = json.dumps(json_schema(json.loads(schema)))
        identity = self._ids.setdefault(text, 9_000 + len(self._ids))
        self.schemas[identity] = {"schemaType": "JSON", "schema": text}
        return b"\0" + identity.to_bytes(4, "big") + payload


def json_schema(schema: Mapping[str, Any], index: int | None = None) -> dict[str, Any]:
    """Return the JSON Schema of an embedded one."""
    kind = schema["type"]
    result: dict[str, Any] = {"type": "string"}
    if kind in _NUMBERS:
        result = {"type": "integer", "connect.type": _NUMBERS[kind]}
    elif kind in _POINTS:
        result = {"type": "number", "connect.type": _POINTS[kind]}
    elif kind == "bytes":
        result = {"type": "number" if schema.get("name") == _DECIMAL else "string", "connect.type": "bytes"}
    elif kind == "boolean":
        result = {"type": "boolean"}
    elif kind == "array":
        result = {"type": "array", "items": json_schema(schema["items"])}
    elif kind == "map":
        result = {"type": "object", "connect.type": "map", "additionalProperties": json_schema(schema["values"])}
    elif kind == "struct":
        fields = list(enumerate(schema["fields"]))[::-1]  # in a JSON object their order says nothing
        result = {"type": "object", "properties": {part["field"]: json_schema(part, n) for n, part in fields}}
    result |= {member: schema[name] for name, member in _MEMBERS.items() if name in schema}
    if schema.get("optional"):
        result = {"oneOf": [{"type": "null"}, result]}
    return result if index is None else {**result, "connect.index": index}
