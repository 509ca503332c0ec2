# SPDX-License-Identifier: Apache-2.0
"""Read Avro records without a schema of their own by a stated one: to their last byte, or not at all.

Logical types are not left to fastavro: it rounds a decimal that has more digits than its schema says.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from io import BytesIO
from typing import Any

import fastavro
import msgspec
from fastavro.schema import fingerprint, to_parsing_canonical_form

# what may stand before the record: nothing; C3 01 and the schema's fingerprint; 00 and the number of a schema registry
FRAMINGS = ("bare", "single-object", "confluent")
_NAMED = frozenset({"record", "error", "enum", "fixed"})
_LOGICAL = "logical"  # our name for ``logicalType``, which fastavro does not know


class SchemaMismatch(ValueError):
    """Raise for bytes that are not a record of the stated schema."""


@dataclass(frozen=True)
class AvroType:
    """A type of a schema, names resolved.

    :param kind: Avro's name of it: ``long``, ``record``, ``union``.
    :param name: full name of a record, an enum or a fixed.
    :param parts: branches of a union, or the one type of an array's items or a map's values.
    """

    kind: str
    name: str = ""
    logical: str = ""
    scale: int = 0
    fields: Mapping[str, AvroType] = field(default_factory=dict)
    parts: tuple[AvroType, ...] = ()
    symbols: tuple[str, ...] = ()

    @property
    def branches(self) -> tuple[AvroType, ...]:
        """Return the types that a value can have except null."""
        return tuple(part for part in (self.parts if self.kind == "union" else (self,)) if part.kind != "null")


class AvroReader:
    """Read records.

    :param text: the schema, JSON as in an ``.avsc`` file.
    :param framing: one of :data:`FRAMINGS`.
    :param repeated: a field that mostly says what it said not long before; only where its bytes are others is it read.
    :raises ValueError: the text is not a schema, or one whose records cannot be read safely; the message says why.
    """

    def __init__(self, text: str, framing: str, repeated: str | None = None) -> None:
        schema, self.root, self._mark = _parsed(text)
        if self.root.kind != "record":
            raise ValueError(f"describes a {self.root.kind}, not a record")
        self._framing = framing
        fields = schema["fields"]
        index = next((index for index, item in enumerate(fields) if item["name"] == repeated), len(fields))
        parts = fields[:index], fields[index : index + 1], fields[index + 1 :]
        # each part keeps fastavro's mark of a schema that is parsed already
        self._first, self._repeated, self._last = ({**schema, "fields": part} for part in parts)
        # bytes and value of the repeated field, for some tables in turn
        self._known = deque[tuple[bytes, dict[str, Any]]](maxlen=32)

    def read(self, value: bytes) -> Any:
        """Return a record; what a union holds of a named type is a pair of the type's name and the value.

        :raises SchemaMismatch: the bytes are no such record, or more than one.
        """
        stream = BytesIO(value)
        stream.seek(self._begin(value))
        try:
            datum = _record(stream, self._first)
            if self._repeated["fields"]:
                datum.update(self._again(stream, value))
                datum.update(_record(stream, self._last))
        except Exception:  # of bytes that do not fit, fastavro raises whatever it stumbles on
            raise SchemaMismatch(f"the bytes are no record of the stated schema{_hint(value)}") from None
        if stream.tell() != len(value):
            raise SchemaMismatch(f"the bytes go on after a record of the stated schema{_hint(value)}")
        return datum

    def _again(self, stream: BytesIO, value: bytes) -> dict[str, Any]:
        begin = stream.tell()
        for raw, known in self._known:
            if value.startswith(raw, begin):
                stream.seek(begin + len(raw))
                return known
        record: dict[str, Any] = _record(stream, self._repeated)
        self._known.appendleft((value[begin : stream.tell()], record))
        return record

    def _begin(self, value: bytes) -> int:
        if self._framing == "single-object":
            if not value.startswith(self._mark):
                raise SchemaMismatch("the record does not begin with the fingerprint of the stated schema")
            return len(self._mark)
        if self._framing == "confluent":
            if value[:1] != b"\0":
                raise SchemaMismatch("the record does not begin with the number of a registered schema")
            return 5
        return 0


@lru_cache(maxsize=8)  # each task of a batch makes readers of the same few
def _parsed(text: str) -> tuple[Any, AvroType, bytes]:
    """Return a schema as fastavro has it, as a type, and what begins a record of it in the single-object encoding."""
    try:
        tree = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None
    try:
        # expanded, because fastavro looks a name up after everything else that it may be
        schema: Any = fastavro.parse_schema(_renamed(tree), named_schemas={}, expand=True)
        mark = b"\xc3\x01" + bytes.fromhex(fingerprint(to_parsing_canonical_form(tree), "CRC-64-AVRO"))
    except RecursionError:
        raise ValueError("is nested too deep") from None
    except Exception as error:  # fastavro raises whatever it stumbles on
        raise ValueError(f"is not an Avro schema: {str(error)[:200] or type(error).__name__}") from None
    return schema, _resolved(schema, {}, ()), mark


def _record(stream: BytesIO, schema: Any) -> Any:
    return fastavro.schemaless_reader(stream, schema, None, return_named_type=True)


def _hint(value: bytes) -> str:
    """Say what else the beginning of a record may be."""
    if value.startswith(b"Obj\x01"):
        return "; they begin as an Avro container file, which is not read"
    if value.startswith(b"\xc3\x01"):
        return "; they begin as a single-object encoding (source.options.framing)"
    if value.startswith(b"\0"):
        return "; they may begin with the number of a registered schema (source.options.framing)"
    return ""


def _renamed(tree: Any) -> Any:
    if isinstance(tree, str):
        return sys.intern(tree)  # what is the same object is found equal without a look at its characters
    if isinstance(tree, dict):
        return {_LOGICAL if key == "logicalType" else key: _renamed(item) for key, item in tree.items()}
    return [_renamed(item) for item in tree] if isinstance(tree, list) else tree


def _resolved(schema: Any, named: dict[str, AvroType], inside: tuple[str, ...]) -> AvroType:
    """Return a parsed schema as a tree.

    :param named: named types met so far.
    :param inside: names of the records around this one.
    """
    if isinstance(schema, list):
        return AvroType("union", parts=tuple(_resolved(branch, named, inside) for branch in schema))
    if isinstance(schema, str):
        if schema in inside:
            # fastavro's C code follows nested bytes as deep as they say
            raise ValueError(f"holds the record {schema} inside itself")
        return named.get(schema) or AvroType(schema)
    kind, logical = schema["type"], str(schema.get(_LOGICAL, ""))
    if kind in _NAMED:
        return named.get(schema["name"]) or _of_name(schema, named, inside)
    if kind in ("array", "map"):
        part = _resolved(schema["items" if kind == "array" else "values"], named, inside)
        if kind == "array" and _is_empty(part):
            raise ValueError("has an array whose items take no bytes: a few bytes would make a list without end")
        return AvroType(kind, logical=logical, parts=(part,))
    if not isinstance(kind, str) or kind in named:
        return _resolved(kind, named, inside)
    return AvroType(kind, logical=logical, scale=int(schema.get("scale", 0)))


def _of_name(schema: Any, named: dict[str, AvroType], inside: tuple[str, ...]) -> AvroType:
    name, kind = schema["name"], schema["type"]
    fields: dict[str, AvroType] = {}
    if kind in ("record", "error"):
        for item in schema["fields"]:
            fields[item["name"]] = _resolved(item["type"], named, (*inside, name))
        kind = "record"
    if kind == "fixed" and not schema["size"]:
        raise ValueError(f"has a fixed type {name} of no bytes")
    named[name] = AvroType(
        kind,
        name,
        str(schema.get(_LOGICAL, "")),
        int(schema.get("scale", 0)),
        fields,
        symbols=tuple(schema.get("symbols", ())),
    )
    return named[name]


def _is_empty(kind: AvroType) -> bool:
    return kind.kind == "null" or (kind.kind == "record" and all(map(_is_empty, kind.fields.values())))
