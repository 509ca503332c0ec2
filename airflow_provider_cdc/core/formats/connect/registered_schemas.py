# SPDX-License-Identifier: Apache-2.0
"""Read frames of a schema registry: the id of a schema and Avro behind it (docs/wire/avro-registry.md 1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from itertools import repeat
from typing import Any, Generic, Literal

import msgspec
import pyarrow as pa

from airflow_provider_cdc.core.formats.common.record_decoder import UnsupportedRecord
from airflow_provider_cdc.core.formats.connect.avro_code import Needed, Read, compiled
from airflow_provider_cdc.core.formats.connect.avro_columns import members_of, read_together
from airflow_provider_cdc.core.formats.connect.avro_types import connect_schema, resolve, row_columns
from airflow_provider_cdc.core.formats.connect.envelope import Origin, origin_of
from airflow_provider_cdc.core.formats.connect.frames import HEAD, MOST_ID, M, RegisteredSchema, key_text, schema_id
from airflow_provider_cdc.core.formats.connect.json_schemas import JsonSchema

_MANY = 256  # frames of one schema that are read together: each member of the schema costs some calls of Arrow
_AT_ONCE, _BYTES_AT_ONCE = 10_000, 8 << 20
_UNKNOWN = "record.schema_unknown"
_encode: Any = msgspec.json.Encoder().encode
_Members = Literal["needed", "op", "all"]


class AvroSchema(Generic[M]):
    """A registered schema, ready to read its frames.

    :param tree: the schema as JSON data.
    :param message: what frames are read into: only members that it has are read.
    :raises ValueError: it is not a schema, or one whose records cannot be read safely.
    """

    def __init__(self, tree: Any, message: type[M]) -> None:
        self.type = resolve(tree)
        self.columns = row_columns(self.type)
        self.key_text = key_text([name for name, _ in self.type.fields])
        self._message = message
        self._readers: dict[_Members, Read] = {}

    def read(self, frame: bytes) -> M:
        """Return the message that a frame holds.

        :raises ValueError: it is none of this schema, or bytes are left over.
        """
        return msgspec.convert(self._datum(frame), self._message)

    def read_together(self, frames: Sequence[bytes]) -> list[M]:
        """Return the messages that frames hold, for a third of the cost where they are thousands.

        :raises ValueError: one of them is none of this schema; :meth:`read` says which.
        """
        return read_together(self.type, frames, HEAD, self._message)

    def origin(self, frame: bytes) -> Origin:
        """Return the members that name a message's table.

        :raises ValueError: as :meth:`read`, or they have other types.
        """
        return origin_of(self.json(frame))

    def op(self, frame: bytes) -> Any:
        """Return what was done with a row.

        :raises ValueError: as :meth:`read`.
        """
        return self._datum(frame, "op").get("op")

    def json(self, frame: bytes) -> bytes:
        """Return all that a frame holds as Connect's JSON converter writes it.

        :raises ValueError: as :meth:`read`.
        """
        try:
            text: bytes = _encode(self._datum(frame, "all"))
        except OverflowError:
            raise ValueError(f"a number of more than 64 bits in a record of the schema {schema_id(frame)}") from None
        return text

    def enveloped(self, frame: bytes) -> bytes:
        """Return all that a frame holds as Connect's JSON converter writes it with embedded schemas.

        :raises ValueError: as :meth:`read`.
        """
        return self._envelope + self.json(frame) + b"}"

    @cached_property
    def _envelope(self) -> bytes:
        return b'{"schema":' + connect_schema(self.type) + b',"payload":'

    def _reader(self, members: _Members) -> Read:
        """Return what reads some members; a key's schema needs none."""
        read = self._readers.get(members)
        if read is None:
            read = compiled(self.type, *self._paths(members))
            self._readers[members] = read
        return read

    def _paths(self, members: _Members) -> tuple[Needed | None, frozenset[str]]:
        """Return the members to read, None for all, and which of them are left in JSON."""
        if members == "needed":
            return _members(self._message)
        return ({"op": None} if members == "op" else None), frozenset()

    def _datum(self, frame: bytes, members: _Members = "needed") -> Any:
        try:
            read = self._reader(members)
        except Exception as error:  # a text of anybody's, such as one of a hundred records in each other
            raise _unreadable(schema_id(frame), f"cannot be read: {str(error)[:200] or type(error).__name__}") from None
        try:
            datum, end = read(frame, HEAD)
        except Exception:  # what reading bytes that do not fit stumbles on
            raise ValueError(f"the bytes are no record of the schema {schema_id(frame)}") from None
        if end != len(frame):
            raise ValueError(
                f"the bytes {'go on after' if end < len(frame) else 'end inside'} a record of the schema "
                f"{schema_id(frame)}"
            )
        return datum


@cache
def _members(message: type[msgspec.Struct]) -> tuple[Needed, frozenset[str]]:
    """Return the members of a struct with those inside them, and which of them are left in JSON, by their paths."""
    needed: dict[str, Needed | None] = {}
    raw: set[str] = set()
    for name, member in members_of(message).items():
        needed[name], below = (None, frozenset[str]()) if member.struct is None else _members(member.struct)
        raw |= {f"{name}.{path}" for path in below}
        raw |= {name} if member.type is msgspec.Raw else set()
    return needed, frozenset(raw)


class RegisteredSchemas(Generic[M]):
    """Remember the schemas of a registry by their ids.

    :param message: what frames are read into.
    """

    def __init__(self, message: type[M]) -> None:
        self._message = message
        self._schemas: dict[int, RegisteredSchema[M] | UnsupportedRecord] = {}
        self._by_head: dict[bytes, RegisteredSchema[M]] = {}  # by the first bytes of their frames
        self.key_texts: dict[bytes, bytes] = {}  # by the same bytes
        self._layouts: dict[tuple[str, ...], tuple[str, ...]] = {}

    def missing(self, frames: Iterable[bytes | None]) -> set[int]:
        """Return the ids in frames that nothing was learned of."""
        ids = map(schema_id, {frame[:HEAD] for frame in frames if frame})
        return {identity for identity in ids if identity is not None and identity <= MOST_ID} - self._schemas.keys()

    def learn(self, schemas: Mapping[int, Mapping[str, Any] | None]) -> None:
        """Take schemas as the registry answers them, None for an id that it does not have."""
        for identity, answer in schemas.items():
            try:
                schema = self._schemas[identity] = self._opened(identity, answer)
                head = b"\0" + identity.to_bytes(HEAD - 1, "big")
                self._by_head[head], self.key_texts[head] = schema, schema.key_text
            except UnsupportedRecord as refusal:
                self._schemas[identity] = refusal

    def of(self, frame: bytes) -> RegisteredSchema[M]:
        """Return the schema of a frame.

        :raises UnsupportedRecord: the schema is not known, or cannot be read.
        :raises ValueError: it is not a frame.
        """
        known = self._by_head.get(frame[:HEAD])
        if known is not None:
            return known
        identity = schema_id(frame)
        if identity is None:
            raise ValueError(_no_frame(frame))
        schema = self._schemas.get(identity)
        if schema is None:
            schema = _unknown(identity)
        if isinstance(schema, UnsupportedRecord):
            raise UnsupportedRecord(schema.code, str(schema) + _eight_bytes(frame))
        return schema

    def together(self, frames: Iterable[bytes | None]) -> dict[int, tuple[tuple[str, ...] | None, M]]:
        """Return what frames hold by their ``id()``: of those of which many have one schema and none is damaged."""
        by_head: dict[bytes, list[bytes]] = {}
        for frame in frames:
            if frame is not None:
                by_head.setdefault(frame[:HEAD], []).append(frame)
        read: dict[int, tuple[tuple[str, ...] | None, M]] = {}
        for head, some in by_head.items():
            schema = self._by_head.get(head)
            if schema is None or len(some) < _MANY:
                continue
            parts = 1 + max(len(some) // _AT_ONCE, sum(map(len, some)) // _BYTES_AT_ONCE)
            size = -(-len(some) // parts)
            for first in range(0, len(some), size):
                part = some[first : first + size]
                with suppress(ValueError, RecursionError, pa.ArrowException):
                    messages = schema.read_together(part)
                    read.update(zip(map(id, part), zip(repeat(schema.columns), messages), strict=True))
        return read

    def _opened(self, identity: int, answer: Mapping[str, Any] | None) -> RegisteredSchema[M]:
        if answer is None:
            raise _unknown(identity)
        kind = answer.get("schemaType") or "AVRO"
        if kind not in _KINDS:
            raise _unreadable(identity, f"is of the type {kind}: set value.converter to an Avro converter, or to JSON")
        if answer.get("references"):
            raise _unreadable(identity, "refers to other schemas, which no converter of Kafka Connect writes")
        try:
            schema: RegisteredSchema[M] = _KINDS[kind](msgspec.json.decode(answer["schema"]), self._message)
        except Exception as error:  # a text of anybody's
            raise _unreadable(identity, f"cannot be read: {str(error)[:200] or type(error).__name__}") from None
        if schema.columns is not None:  # the same object for the same columns: a layout is known by it
            schema.columns = self._layouts.setdefault(schema.columns, schema.columns)
        return schema


_KINDS: Mapping[str, Any] = {"AVRO": AvroSchema, "JSON": JsonSchema}


def _unknown(identity: int) -> UnsupportedRecord:
    return UnsupportedRecord(
        _UNKNOWN,
        f"the schema registry has no schema {identity}: the record is damaged or has its id in a header, or "
        "source.schema_registry is not the registry that the converter writes to",
    )


def _unreadable(identity: int | None, why: str) -> UnsupportedRecord:
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
