# SPDX-License-Identifier: Apache-2.0
"""Read Kafka Connect's JSON envelope: the payload alone, or ``{"schema": ..., "payload": ...}``.

Apicurio's ``{"schemaId": ..., "payload": ...}`` is an envelope without a schema (docs/wire/avro-registry.md 6).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from airflow_provider_cdc.core.formats.common.row_images import members_of
from airflow_provider_cdc.core.formats.connect.columns import row_columns
from airflow_provider_cdc.core.formats.contract import Headers
from airflow_provider_cdc.core.formats.near_misses import near_miss

NO_VALUE = b'{"schema":null,"payload":null}'
"""A null value as JSON converters before Kafka 2.3 wrote it (KAFKA-3832), the tombstone of a delete; dtle does."""

_text = msgspec.json.Decoder(str | None).decode
_NULL = b"null"
_END = ord("}")
_PAYLOAD = b'"payload":'
_ENVELOPES = ({"payload"}, {"schema", "payload"}, {"schemaId", "payload"})
_MARK = 128  # bytes at the end of an embedded schema that distinguish it from most others: its name is there
_SCHEMA_BYTES = 64 << 20  # of embedded schemas that are remembered: those of about 15,000 tables of 12 columns


class Message(msgspec.Struct, gc=False):
    """Members of the envelope; a format's payload adds its own, so that one pass reads either form.

    In a payload they are empty.
    """

    schema: msgspec.Raw = msgspec.Raw()
    payload: msgspec.Raw = msgspec.Raw()


class Origin(msgspec.Struct, gc=False):
    """Members that name the table of a message, whatever else in it cannot be read."""

    source: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict)
    op: str | None = None

    def named(self, database: str, table: str) -> tuple[str | None, str | None]:
        """Return the members of ``source`` with these names.

        :raises msgspec.MsgspecError: they are no texts.
        """
        return _text(self.source.get(database, _NULL)), _text(self.source.get(table, _NULL))


class _Enveloped(Origin, gc=False):
    payload: Origin | None = None


_enveloped = msgspec.json.Decoder(_Enveloped)


def origin_of(value: bytes) -> Origin:
    """Return the members that name a message's table, with or without an envelope.

    :raises msgspec.MsgspecError: it is not JSON, or has other types.
    """
    message = _enveloped.decode(value)
    return message.payload or message


def payload_members(value: bytes) -> dict[str, msgspec.Raw]:
    """Return the members of a message, with or without an envelope: ``schema`` or Apicurio's ``schemaId``, ``payload``.

    :raises msgspec.MsgspecError: it is not a JSON object.
    """
    members: dict[str, msgspec.Raw] = members_of(value)
    return members_of(members["payload"]) if members.keys() in _ENVELOPES else members


_DELETE, _OP = re.compile(rb'"op"\s*:\s*"d"'), re.compile(rb'"op"\s*:\s*"')


def may_delete(value: bytes) -> bool:
    """Return whether a message is a row's delete, or has no op at all; quotes inside of its texts are escaped."""
    return _DELETE.search(value) is not None or _OP.search(value) is None


M = TypeVar("M", bound=Message)


class EnvelopeReader(Generic[M]):
    """Read messages; an embedded schema is parsed once, later messages that begin with the same bytes share it.

    :param message: what to read payloads into.
    :param limit: bytes of schemas to remember.
    :param decode: reads a payload, and an envelope with its two members; by the types of ``message`` if None.
    :param columns: returns the columns that a schema gives a row; those of an envelope's ``after`` if None.
    """

    def __init__(
        self,
        message: type[M],
        limit: int = _SCHEMA_BYTES,
        *,
        decode: Callable[[Any], M] | None = None,
        columns: Callable[[bytes], tuple[str, ...] | None] | None = None,
    ) -> None:
        self._decode = decode or msgspec.json.Decoder(message).decode
        self._columns_of = columns
        self._limit, self._held = limit, 0  # bytes
        self._prefixes: dict[bytes, tuple[bytes, tuple[str, ...] | None]] = {}  # by their marks
        self._prefix, self._size = b"", 0
        self._least = 0  # where the payload's name stands in the smallest prefix, and to look for it in another
        self._columns: tuple[str, ...] | None = None

    def read(self, value: bytes, headers: Headers = None) -> tuple[tuple[str, ...] | None, M]:
        """Return a message's payload behind the columns that its embedded schema gives a row (as JSON texts).

        The columns are None without a schema, or where it is none of a row; equal schemas give the same object.

        :raises msgspec.MsgspecError: it is not a message, or the schema is not one of Connect.
        """
        begun = self._prefixes and (value.startswith(self._prefix) or self._begins_otherwise(value))
        if begun and value[-1] == _END:
            try:
                return self._columns, self._decode(memoryview(value)[self._size : -1])
            except msgspec.DecodeError:
                pass  # what was read before changes nothing of the result, nor of the error
        message = self._decode(value)
        return self._opened(value, message) if message.payload else (None, message)

    def key(self, key: bytes | None) -> bytes | None:
        """Return a record's key as it is."""
        return key

    def near_miss(self, key: bytes | None, value: bytes) -> str | None:
        """Return what a record is that is not a message, in words for people; None where it is nothing known."""
        return near_miss(key, value)

    def origin(self, value: bytes) -> Origin:
        """Return the members that name a message's table.

        :raises msgspec.MsgspecError: it is not JSON, or has other types.
        """
        return origin_of(value)

    def _begins_otherwise(self, value: bytes) -> bool:
        """Return whether a message begins with another prefix that is remembered; it is the newest then."""
        known = self._prefixes.get(_mark(value, self._least))
        if known is None or not value.startswith(known[0]):
            return False
        self._prefix, self._columns = known
        self._size = len(self._prefix)
        return True

    def _opened(self, value: bytes, enveloped: M) -> tuple[tuple[str, ...] | None, M]:
        """Take a message out of its envelope and remember what stands before it."""
        message = self._decode(enveloped.payload)
        if bytes(enveloped.schema) in (b"", _NULL):
            return None, message
        columns = (self._columns_of or row_columns)(bytes(enveloped.schema))
        size = len(value) - len(enveloped.payload) - 1
        prefix = value[:size]
        if value[size:-1] == bytes(enveloped.payload) and prefix.rstrip().endswith(b":"):
            self._remember(_mark(value), prefix, columns)
            self._prefix, self._size, self._columns = prefix, size, columns
        return columns, message

    def _remember(self, mark: bytes, prefix: bytes, columns: tuple[str, ...] | None) -> None:
        """Note what stands before the payloads of a schema, as long as there is room.

        None makes way for another: of tables that change by turns each would be forgotten before it comes again.
        """
        before, _ = self._prefixes.get(mark, (b"", None))
        held = self._held + len(prefix) - len(before)
        if held > self._limit:
            return
        self._held, self._prefixes[mark] = held, (prefix, columns)
        named = max(0, prefix.rfind(_PAYLOAD))
        self._least = min(self._least or named, named)


def _mark(value: bytes, least: int = 0) -> bytes:
    """Return the bytes before the payload: where to look for a schema that a message may begin with.

    :param least: as much stands before the payload's name.
    """
    end = value.find(_PAYLOAD, least)
    return value[max(0, end - _MARK) : end] if end > 0 else b""
