# SPDX-License-Identifier: Apache-2.0
"""Resolve Avro schemas as Kafka Connect's converters register them, and describe rows as Connect's JSON converter does.

The members ``connect.*`` say what Avro does not (docs/wire/avro-registry.md 3).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from airflow_provider_cdc.core.formats.connect.adjusted_names import is_adjusted

_PRIMITIVES = {
    "null": "null",
    "boolean": "boolean",
    "int": "int32",
    "long": "int64",
    "float": "float",
    "double": "double",
    "bytes": "bytes",
    "string": "string",
    "fixed": "bytes",
    "enum": "string",
    "record": "struct",
    "array": "array",
    "map": "map",
}
_SOURCE_NAME = "__debezium.source.column.name"  # parameter of a column, with column.propagate.source.type
_NAMED = frozenset({"record", "enum", "fixed"})
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class AvroType:
    """A type of a schema, names resolved.

    :param kind: Avro's name of it: ``long``, ``record``; of a union of null and one type that type's.
    :param null: number of null's branch in the union, None where it is none.
    :param attributes: members ``connect.*`` of the type, without the prefix.
    :param fields: members of a record, in order.
    :param defaults: their defaults as the schema has them.
    :param item: the type of an array's items or a map's values.
    :param symbols: of an enum.
    :param size: bytes of a fixed.
    """

    kind: str
    null: int | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    fields: tuple[tuple[str, AvroType], ...] = ()
    item: AvroType | None = None
    symbols: tuple[str, ...] = ()
    size: int = 0

    def member(self, name: str) -> AvroType | None:
        """Return the type of a record's member, None where there is none of this name."""
        return dict(self.fields).get(name)

    def below(self) -> Iterator[AvroType]:
        """Yield this type and all types inside it."""
        yield self
        for _, part in self.fields:
            yield from part.below()
        if self.item is not None:
            yield from self.item.below()


def resolve(tree: Any) -> AvroType:
    """Return a schema with its names resolved.

    :param tree: the schema as JSON data.
    :raises ValueError: it is none, or one whose records cannot be read safely; the message says why.
    """
    return _Resolver().type_of(tree, "", ())


class _Resolver:
    """Resolve the names of one schema."""

    def __init__(self) -> None:
        self._named: dict[str, AvroType] = {}

    def type_of(self, tree: Any, space: str, inside: tuple[str, ...]) -> AvroType:
        """Return a type.

        :param space: namespace around it.
        :param inside: full names of the records around it.
        """
        if isinstance(tree, list):
            return self._union(tree, space, inside)
        if isinstance(tree, str):
            return self._by_name(tree, space, inside)
        if not isinstance(tree, dict):
            raise ValueError("a type that is neither a name, a union nor an object")
        kind = tree.get("type")
        attributes = {key[8:]: value for key, value in tree.items() if key.startswith("connect.")}
        if not isinstance(kind, str):
            return self.type_of(kind, space, inside)
        if kind in _NAMED:
            return self._define(tree, kind, attributes, space, inside)
        if kind in ("array", "map"):
            item = self.type_of(tree.get("items" if kind == "array" else "values"), space, inside)
            if kind == "array" and _is_empty(item):
                raise ValueError("an array whose items take no bytes: a few bytes would make a list without end")
            return AvroType(kind, attributes=attributes, item=item)
        if kind in _PRIMITIVES:
            return AvroType(kind, attributes=attributes)
        return self._by_name(kind, space, inside)

    def _union(self, branches: list[Any], space: str, inside: tuple[str, ...]) -> AvroType:
        rest = [branch for branch in branches if branch != "null"]
        if len(rest) != 1 or len(branches) > 2:
            raise ValueError("a union of other types than null and one type")
        kind = self.type_of(rest[0], space, inside)
        null = branches.index("null") if len(branches) == 2 else None
        return AvroType(kind.kind, null, kind.attributes, kind.fields, kind.item, kind.symbols, kind.size)

    def _by_name(self, name: str, space: str, inside: tuple[str, ...]) -> AvroType:
        if name in _PRIMITIVES and name not in _NAMED and name not in ("array", "map"):
            return AvroType(name)
        full = name if "." in name or not space else f"{space}.{name}"
        if full in inside:
            raise ValueError(f"the record {full} is inside itself")
        if full not in self._named:
            raise ValueError(f"the type {full} is not defined")
        return self._named[full]

    def _define(
        self, tree: dict[str, Any], kind: str, attributes: dict[str, Any], space: str, inside: tuple[str, ...]
    ) -> AvroType:
        name = tree.get("name")
        if not isinstance(name, str) or not name:
            raise ValueError(f"a {kind} without a name")
        space = name.rpartition(".")[0] if "." in name else str(tree.get("namespace", space) or "")
        full = name if "." in name or not space else f"{space}.{name}"
        fields: list[tuple[str, AvroType]] = []
        if kind == "record":
            for item in tree.get("fields") or ():
                part = self.type_of(item["type"], space, (*inside, full))
                if "default" in item and "default" not in part.attributes:
                    part = _with_default(part, item["default"])
                fields.append((str(item["name"]), part))
            fields = _by_source_names(fields)
        symbols, size = tuple(map(str, tree.get("symbols") or ())), int(tree.get("size") or 0)
        if kind == "fixed" and size <= 0:
            raise ValueError(f"the fixed type {full} has no bytes")
        known = self._named[full] = AvroType(kind, None, attributes, tuple(fields), None, symbols, size)
        return known


def _by_source_names(fields: list[tuple[str, AvroType]]) -> list[tuple[str, AvroType]]:
    """Return a record's members by the names that their columns have at the source, as far as the types state them."""
    named = [(_source_name(part, name), part) for name, part in fields]
    return named if len({name for name, _ in named}) == len(fields) else fields


def _source_name(kind: AvroType, written: str) -> str:
    parameters = kind.attributes.get("parameters")
    name = parameters.get(_SOURCE_NAME) if isinstance(parameters, dict) else None
    return name if isinstance(name, str) and is_adjusted(name, written) else written


def _with_default(kind: AvroType, default: Any) -> AvroType:
    if default is None:
        return kind
    more = {**kind.attributes, "default": default}
    return AvroType(kind.kind, kind.null, more, kind.fields, kind.item, kind.symbols, kind.size)


def _is_empty(kind: AvroType) -> bool:
    if kind.null is not None:
        return False
    return kind.kind == "null" or (kind.kind == "record" and all(_is_empty(part) for _, part in kind.fields))


def row_columns(envelope: AvroType) -> tuple[str, ...] | None:
    """Return the columns of an envelope's rows as Connect's JSON schema has them, as texts; None where it has none."""
    row = envelope.member("after")
    if row is None or row.kind != "record":
        return None
    return tuple(_encode({**_json_schema(part), "field": name}).decode() for name, part in row.fields)


def connect_schema(kind: AvroType) -> bytes:
    """Return a type as Connect's JSON converter writes it next to values."""
    return _encode(_json_schema(kind))


def _json_schema(kind: AvroType) -> dict[str, Any]:
    """Return a type as Connect's JSON converter writes it next to values."""
    attributes = kind.attributes
    schema: dict[str, Any] = {"type": attributes.get("type") or _PRIMITIVES[kind.kind]}
    if kind.kind == "record":
        schema["fields"] = [{**_json_schema(part), "field": name} for name, part in kind.fields]
    elif kind.kind == "array" and kind.item is not None:
        schema["items"] = _json_schema(kind.item)
    elif kind.kind == "map" and kind.item is not None:
        schema |= {"keys": {"type": "string", "optional": False}, "values": _json_schema(kind.item)}
    schema["optional"] = kind.null is not None
    schema |= {name: attributes[name] for name in ("name", "version", "parameters") if name in attributes}
    if "default" in attributes:
        schema["default"] = _json_default(kind, attributes["default"])
    return schema


def _json_default(kind: AvroType, default: Any) -> Any:
    """Return a default in JSON: of bytes Avro has the characters U+0000 to U+00FF."""
    if kind.kind == "bytes" and isinstance(default, str):
        return base64.b64encode(default.encode("latin-1", "replace")).decode()
    return default
