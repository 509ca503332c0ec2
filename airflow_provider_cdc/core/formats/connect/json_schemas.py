# SPDX-License-Identifier: Apache-2.0
"""Read JSON behind the id of a JSON Schema: Confluent's JsonSchemaConverter (docs/wire/avro-registry.md 7).

The JSON is that of Connect's JSON converter without its schema, and the JSON Schema says what the embedded one would.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic

import msgspec

from airflow_provider_cdc.core.formats.common.record_decoder import UnsupportedRecord
from airflow_provider_cdc.core.formats.connect.columns import MemberNames, row_columns
from airflow_provider_cdc.core.formats.connect.envelope import Origin
from airflow_provider_cdc.core.formats.connect.frames import HEAD, M, key_text

# JSON Schema's type and the member connect.type -> Connect's type in the JSON converter's schemas
_TYPES: Mapping[tuple[str, str | None], str] = {
    **{("integer", name): name for name in ("int8", "int16", "int32", "int64")},
    ("number", "float32"): "float",
    ("number", "float64"): "double",
    ("number", "bytes"): "bytes",  # a Decimal: a number only with decimal.format=NUMERIC
    ("string", "bytes"): "bytes",
    ("string", None): "string",
    ("boolean", None): "boolean",
    ("object", None): "struct",
    ("object", "map"): "map",
    ("array", None): "array",
}
_MEMBERS = {"title": "name", "connect.version": "version", "connect.parameters": "parameters", "default": "default"}
_ABSENT = (msgspec.Raw(b"null"), msgspec.Raw())
_encode: Any = msgspec.json.Encoder().encode
_decode: Any = msgspec.json.Decoder().decode


class _Images(msgspec.Struct, gc=False):
    before: msgspec.Raw = msgspec.Raw()
    after: msgspec.Raw = msgspec.Raw()


_images = msgspec.json.Decoder(_Images).decode
_origin = msgspec.json.Decoder(Origin).decode


class JsonSchema(Generic[M]):
    """A registered JSON Schema, ready to read its frames.

    :param tree: the schema as JSON data.
    :param message: what frames are read into.
    :raises ValueError: it is none of Kafka Connect's converter.
    """

    def __init__(self, tree: Any, message: type[M]) -> None:
        schema = connect_schema(tree)
        text: bytes = _encode(schema)
        self.columns = row_columns(text) if schema["type"] == "struct" else None
        self.key_text = key_text([part["field"] for part in schema.get("fields", ())])
        self._envelope = b'{"schema":' + text + b',"payload":'
        self._decode = msgspec.json.Decoder(message).decode
        self._row = _Layout([_decode(column)["field"] for column in self.columns or ()])
        self._whole = _Layout([part["field"] for part in schema.get("fields", ())])

    def read(self, frame: bytes) -> M:
        """Return the message that a frame holds.

        :raises ValueError: it is none.
        :raises UnsupportedRecord: a row has other columns than the schema, which then is not the writer's.
        """
        message = self._decode(memoryview(frame)[HEAD:])
        self._demand_columns(message)
        return message

    def read_together(self, frames: Sequence[bytes]) -> list[M]:
        """Return the messages that frames hold.

        :raises ValueError: as :meth:`read`.
        """
        return list(map(self.read, frames))

    def op(self, frame: bytes) -> Any:
        """Return what was done with a row.

        :raises ValueError: as :meth:`read`.
        """
        return self.origin(frame).op

    def origin(self, frame: bytes) -> Origin:
        """Return the members that name a message's table.

        :raises ValueError: as :meth:`read`, or they have other types.
        """
        return _origin(memoryview(frame)[HEAD:])

    def json(self, frame: bytes) -> bytes:
        """Return what a frame holds."""
        return frame[HEAD:]

    def enveloped(self, frame: bytes) -> bytes:
        """Return what a frame holds as the JSON converter writes it with embedded schemas.

        :raises ValueError: as :meth:`read`.
        :raises UnsupportedRecord: as :meth:`read`; of the whole, for it may be a row without its envelope.
        """
        text = self.json(frame)
        self._whole.demand(text)
        if self.columns is not None:
            self._demand_columns(_images(text))
        return self._envelope + text + b"}"

    def _demand_columns(self, message: M | _Images) -> None:
        for image in (message.before, message.after):
            if image not in _ABSENT:
                self._row.demand(bytes(image))


class _Layout:
    """Demand objects of certain members."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names, self._members = tuple(sorted(names)), MemberNames()

    def demand(self, text: bytes) -> None:
        """Demand an object to have these members.

        :raises UnsupportedRecord: it has others.
        """
        if self._members.names(text) != self._names:
            raise UnsupportedRecord(
                "record.malformed",
                "a row with other columns than its registered schema: let the converter register the schemas that it "
                "writes with (auto.register.schemas=true, use.latest.version=false)",
            )


def connect_schema(tree: Any) -> dict[str, Any]:
    """Return what the JSON converter embeds for a JSON Schema.

    :raises ValueError: Kafka Connect's converter writes no such schema.
    """
    if not isinstance(tree, dict):
        raise ValueError("a type that is not an object")
    if "oneOf" in tree:
        rest = [branch for branch in tree["oneOf"] if branch != {"type": "null"}]
        if len(rest) != 1 or len(tree["oneOf"]) != 2:
            raise ValueError("oneOf of other types than null and one type")
        return {**connect_schema(rest[0]), "optional": True}
    kind = _TYPES.get((str(tree.get("type")), tree.get("connect.type")))
    if kind is None:
        raise ValueError(f"type {tree.get('type')} with connect.type {tree.get('connect.type')}")
    schema: dict[str, Any] = {"type": kind, "optional": False}
    schema |= {member: tree[name] for name, member in _MEMBERS.items() if name in tree}
    if kind == "struct":
        parts = sorted(tree.get("properties", {}).items(), key=lambda part: int(part[1]["connect.index"]))
        schema["fields"] = [{**connect_schema(part), "field": name} for name, part in parts]
    elif kind == "array":
        schema["items"] = connect_schema(tree.get("items"))
    elif kind == "map":
        values = connect_schema(tree.get("additionalProperties"))
        schema |= {"keys": {"type": "string", "optional": False}, "values": values}
    return schema
