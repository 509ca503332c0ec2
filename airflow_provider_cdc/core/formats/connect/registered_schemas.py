# SPDX-License-Identifier: Apache-2.0
"""Read frames of a schema registry: the id of a schema and Avro behind it (docs/wire/avro-registry.md 1)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from io import BytesIO
from typing import Any

import fastavro
import msgspec
import numpy as np

from airflow_provider_cdc.core.formats.common.record_decoder import UnsupportedRecord
from airflow_provider_cdc.core.formats.connect.avro_types import AvroType, resolve, row_columns

HEAD = 5  # bytes: a zero and the schema's id
MOST_ID = 2**31 - 1  # an id is an int of Java, never negative
_UNKNOWN = "record.schema_unknown"
_encode: Any = msgspec.json.Encoder().encode


def schema_id(frame: bytes | None) -> int | None:
    """Return the id of the schema that a frame begins with, None where it is not a frame."""
    if frame is None or len(frame) < HEAD or frame[0]:
        return None
    return int.from_bytes(frame[1:HEAD], "big")


class AvroSchema:
    """A registered schema, ready to read its frames.

    :param tree: the schema as JSON data.
    :raises ValueError: it is not a schema, or one whose records cannot be read safely.
    """

    def __init__(self, tree: Any) -> None:
        self.type = resolve(tree)
        self.columns = row_columns(self.type)
        self.key_text = _key_text(self.type)
        self._parsed = _parsed(tree)
        self._fixed = _fixes(self.type)

    def json(self, frame: bytes) -> bytes:
        """Return what a frame holds as Connect's JSON converter writes it.

        :raises ValueError: it is none of this schema, or bytes are left over.
        """
        stream = BytesIO(frame)
        stream.seek(HEAD)
        try:
            datum: Any = fastavro.schemaless_reader(stream, self._parsed, None)
        except Exception:  # of bytes that do not fit, fastavro raises whatever it stumbles on
            raise ValueError(f"the bytes are no record of the schema {schema_id(frame)}") from None
        if stream.tell() != len(frame):
            raise ValueError(f"the bytes go on after a record of the schema {schema_id(frame)}")
        text: bytes = _encode(datum if self._fixed is None else self._fixed(datum))
        return text


class RegisteredSchemas:
    """Remember the schemas of a registry by their ids."""

    def __init__(self) -> None:
        self._schemas: dict[int, AvroSchema | UnsupportedRecord] = {}
        self._layouts: dict[tuple[str, ...], tuple[str, ...]] = {}

    def missing(self, frames: Iterable[bytes | None]) -> set[int]:
        """Return the ids in frames that nothing was learned of."""
        ids = map(schema_id, {frame[:HEAD] for frame in frames if frame})
        return {identity for identity in ids if identity is not None and identity <= MOST_ID} - self._schemas.keys()

    def learn(self, schemas: Mapping[int, Mapping[str, Any] | None]) -> None:
        """Take schemas as the registry answers them, None for an id that it does not have."""
        for identity, answer in schemas.items():
            try:
                self._schemas[identity] = self._opened(identity, answer)
            except UnsupportedRecord as refusal:
                self._schemas[identity] = refusal

    def of(self, frame: bytes) -> AvroSchema:
        """Return the schema of a frame.

        :raises UnsupportedRecord: the schema is not known, or cannot be read.
        :raises ValueError: it is not a frame.
        """
        identity = schema_id(frame)
        if identity is None:
            raise ValueError(_no_frame(frame))
        schema = self._schemas.get(identity)
        if schema is None:
            schema = _unknown(identity)
        if isinstance(schema, UnsupportedRecord):
            raise UnsupportedRecord(schema.code, str(schema) + _eight_bytes(frame))
        return schema

    def _opened(self, identity: int, answer: Mapping[str, Any] | None) -> AvroSchema:
        if answer is None:
            raise _unknown(identity)
        kind = answer.get("schemaType") or "AVRO"
        if kind != "AVRO":
            raise _unreadable(identity, f"is of the type {kind}: set value.converter to an Avro converter, or to JSON")
        if answer.get("references"):
            raise _unreadable(identity, "refers to other schemas, which no converter of Kafka Connect writes")
        try:
            schema = AvroSchema(msgspec.json.decode(answer["schema"]))
        except Exception as error:  # a text of anybody's: fastavro raises whatever it stumbles on
            raise _unreadable(identity, f"cannot be read: {str(error)[:200] or type(error).__name__}") from None
        if schema.columns is not None:  # the same object for the same columns: a layout is known by it
            schema.columns = self._layouts.setdefault(schema.columns, schema.columns)
        return schema


def _unknown(identity: int) -> UnsupportedRecord:
    return UnsupportedRecord(
        _UNKNOWN,
        f"the schema registry has no schema {identity}: the record is damaged or has its id in a header, or "
        "source.schema_registry is not the registry that the converter writes to",
    )


def _unreadable(identity: int, why: str) -> UnsupportedRecord:
    return UnsupportedRecord("record.schema_unreadable", f"the registered schema {identity} {why}")


def _eight_bytes(frame: bytes) -> str:
    """Say where a frame may have an id of eight bytes: then the first four are zero."""
    if frame[1:HEAD] != bytes(4):
        return ""
    return (
        "; it looks like Apicurio's frame with ids of 8 bytes: set the converters' apicurio.registry.as-confluent=true "
        "and apicurio.registry.id-handler=io.apicurio.registry.serde.Legacy4ByteIdHandler"
    )


def _no_frame(value: bytes) -> str:
    """Say what a value is that has no frame."""
    if value[:1] == b"{":
        return "JSON, not a frame of a schema registry: take debezium-json"
    if value[:2] in (b"\x03\x00", b"\x03\x05"):
        return (
            "a frame of the AWS Glue registry, which no format reads: let the converter write Avro of Confluent's frame"
        )
    if value[:1] == b"\x01":
        return (
            "a frame with the schema's guid (magic byte 1): let the serializer write ids of 4 bytes "
            "(value.schema.id.serializer=io.confluent.kafka.serializers.schema.id.PrefixSchemaIdSerializer)"
        )
    return (
        "no frame of a schema registry (a zero and an id of 4 bytes): where ids are in the record's headers, set the "
        "converters' apicurio.registry.headers.enabled=false"
    )


def _key_text(kind: AvroType) -> bytes:
    """Return a key of a schema as Connect writes it in JSON, without its values; empty where it names no columns."""
    if kind.kind != "record" or not kind.fields:
        return b""
    schema: bytes = _encode({"type": "struct", "fields": [{"field": name} for name, _ in kind.fields]})
    return b'{"schema":' + schema + b',"payload":null}'


def _parsed(tree: Any) -> Any:
    """Return a schema for fastavro, without logical types: values stay as they are on the wire, invalid ones too."""
    return fastavro.parse_schema(_plain(tree), named_schemas={}, expand=True)


def _plain(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _plain(item) for key, item in tree.items() if key in _OF_AVRO}
    return [_plain(item) for item in tree] if isinstance(tree, list) else tree


_OF_AVRO = frozenset({"type", "name", "namespace", "fields", "symbols", "items", "values", "size"})

Fix = Callable[[Any], Any]


def _fixes(kind: AvroType) -> Fix | None:
    """Return what makes JSON of a value as Connect does where msgspec does it otherwise: numbers with a point.

    NaN and the infinities are texts, and a FLOAT has the fewest digits that distinguish it from others.
    """
    if kind.kind == "double":
        return _double
    if kind.kind == "float":
        return _float
    if kind.kind == "record":
        parts = [(name, fix) for name, part in kind.fields if (fix := _fixes(part)) is not None]
        return _record_fix(parts) if parts else None
    fix = None if kind.item is None else _fixes(kind.item)
    if fix is None:
        return None
    return _list_fix(fix) if kind.kind == "array" else _map_fix(fix)


def _record_fix(parts: Collection[tuple[str, Fix]]) -> Fix:
    def fixed(datum: Any) -> Any:
        if datum is not None:
            for name, fix in parts:
                datum[name] = fix(datum[name])
        return datum

    return fixed


def _list_fix(fix: Fix) -> Fix:
    return lambda items: None if items is None else [fix(item) for item in items]


def _map_fix(fix: Fix) -> Fix:
    return lambda items: None if items is None else {name: fix(item) for name, item in items.items()}


def _double(value: float | None) -> float | str | None:
    if value is None or value - value == 0:
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _float(value: float | None) -> float | str | None:
    if value is None or value - value != 0:
        return _double(value)
    return float(str(np.float32(value)))
