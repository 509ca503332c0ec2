"""What Debezium says of columns: embedded Connect schemas, keys, ``tableChanges``, the connector's handling modes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from airflow_provider_cdc.core.ddl.type_text import parse_type
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.formats.contract import Description
from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import Column, ColumnType, Default, TableSchema
from airflow_provider_cdc.core.values.types import BINARIES, GEOMETRIES

# option -> (default of the connector, values); names are those of the connector's own configuration.
# They matter where a message does not show them: without embedded schema.
MODES: dict[str, tuple[str, tuple[str, ...]]] = {
    "time.precision.mode": (
        "adaptive_time_microseconds",
        ("adaptive_time_microseconds", "adaptive", "connect", "isostring", "microseconds", "nanoseconds"),
    ),
    "decimal.handling.mode": ("precise", ("precise", "double", "string")),
    "bigint.unsigned.handling.mode": ("long", ("long", "precise")),
    "binary.handling.mode": ("bytes", ("bytes", "base64", "base64-url-safe", "hex")),
}
OPTIONS: dict[str, str] = {
    name: f"{' | '.join(values)} (default {default})" for name, (default, values) in MODES.items()
}

_LOGICAL: dict[str, Encoding] = {
    "io.debezium.time.Date": Encoding.EPOCH_DAYS,
    "org.apache.kafka.connect.data.Date": Encoding.EPOCH_DAYS,
    "io.debezium.time.Timestamp": Encoding.EPOCH_MILLIS,
    "org.apache.kafka.connect.data.Timestamp": Encoding.EPOCH_MILLIS,
    "io.debezium.time.MicroTimestamp": Encoding.EPOCH_MICROS,
    "io.debezium.time.NanoTimestamp": Encoding.EPOCH_NANOS,
    "io.debezium.time.Time": Encoding.TIME_MILLIS,
    "org.apache.kafka.connect.data.Time": Encoding.TIME_MILLIS,
    "io.debezium.time.MicroTime": Encoding.TIME_MICROS,
    "io.debezium.time.NanoTime": Encoding.TIME_NANOS,
    "io.debezium.time.ZonedTimestamp": Encoding.ZONED_TEXT,
    "io.debezium.time.IsoDate": Encoding.ISO_TEXT,
    "io.debezium.time.IsoTimestamp": Encoding.ISO_TEXT,
    "io.debezium.time.IsoTime": Encoding.ISO_TEXT,
    "io.debezium.time.Year": Encoding.NUMBER,
    "io.debezium.data.Bits": Encoding.BITS_LE,
    "org.apache.kafka.connect.data.Decimal": Encoding.DECIMAL_BASE64,
}
_NUMBER_TYPES = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "float", "double", "year"})
_BINARY_MODES = {
    "bytes": Encoding.BASE64,
    "base64": Encoding.BASE64,
    "base64-url-safe": Encoding.BASE64_URL,
    "hex": Encoding.HEX,
}


class _ColumnSchema(msgspec.Struct):
    """What must hold of a column in an embedded schema for it to be used."""

    field: str
    type: str = ""
    optional: bool = True
    name: str | None = None
    parameters: dict[str, str] | None = None


class _Member(msgspec.Struct):
    field: str | None = None
    fields: list[msgspec.Raw] | None = None


class _Envelope(msgspec.Struct):
    fields: list[_Member] | None = None


_decoder = msgspec.json.Decoder()
_envelope_decoder = msgspec.json.Decoder(_Envelope)
_column_decoder = msgspec.json.Decoder(_ColumnSchema)
_key_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])


def option_problems(options: Mapping[str, str]) -> list[str]:
    """Return one sentence for each option whose value the connector does not know."""
    return [
        f"source.options.{name}: {value!r} is not one of {', '.join(MODES[name][1])}"
        for name, value in options.items()
        if name in MODES and value not in MODES[name][1]
    ]


def value_fields(schema: bytes) -> tuple[str, ...] | None:
    """Return the row columns of an embedded envelope schema as JSON texts (hashable), None when it is no row's.

    :raises msgspec.MsgspecError: a column is not described as Connect does.
    """
    for member in _envelope_decoder.decode(schema).fields or ():
        if member.field == "after" and member.fields is not None:
            for item in member.fields:
                _column_decoder.decode(item)
            return tuple(bytes(item).decode() for item in member.fields)
    return None


def key_names(key: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Return the names of a key's columns, in key order, behind the bytes that every key of these names begins with.

    The bytes are empty where only the whole key tells the names.
    """
    members = _key_decoder.decode(key)
    if set(members) != {"schema", "payload"}:
        return b"", tuple(members)
    payload = bytes(members["payload"])
    names = tuple(_key_decoder.decode(payload))
    head = key[: len(key) - len(payload) - 1]
    return (head if key[len(head) : -1] == payload and head.endswith(b":") else b""), names


def columns_text(fields: tuple[str, ...], key: tuple[str, ...] | None, typed: bool) -> str:
    """Return the ``columns`` text.

    :param fields: columns as JSON texts where ``typed``, else bare names.
    """
    items = [msgspec.Raw(item.encode()) if typed else {"field": item} for item in fields]
    return msgspec.json.encode({"columns": items, "key": key or ()}).decode()


def describe(columns: str) -> Description:
    """Read what :func:`columns_text` wrote."""
    data = _decoder.decode(columns)
    details = {item["field"]: item for item in data["columns"]}
    typed = all("type" in item for item in details.values())
    return Description(tuple(details), tuple(data["key"]), details if typed else None)


def described_encoding(name: str, column: ColumnType, detail: Mapping[str, Any], modes: Mapping[str, str]) -> Encoded:
    """Return the encoding that an embedded schema states for a column."""
    logical, kind = detail.get("name") or "", detail.get("type")
    if logical in _LOGICAL:
        scale = (
            int((detail.get("parameters") or {}).get("scale", 0))
            if _LOGICAL[logical] is Encoding.DECIMAL_BASE64
            else None
        )
        return Encoded(name, _LOGICAL[logical], scale)
    if logical.startswith("io.debezium.data.geometry."):
        return Encoded(name, Encoding.GEOMETRY)
    if kind == "boolean":
        return Encoded(name, Encoding.BOOLEAN)
    if kind == "bytes":
        return Encoded(name, Encoding.BASE64)
    if kind == "string":
        # without a logical name only the source's type tells text from binary text
        return Encoded(name, _binary_text(modes) if column.name in BINARIES else Encoding.TEXT)
    if kind == "int64" and column.name == "bigint" and column.unsigned:
        return Encoded(name, Encoding.WRAPPED_UNSIGNED)
    return Encoded(name, Encoding.NUMBER)


def _binary_text(modes: Mapping[str, str]) -> Encoding:
    return _BINARY_MODES[modes["binary.handling.mode"]]


def assumed_encoding(name: str, column: ColumnType, modes: Mapping[str, str]) -> Encoded:
    """Return the encoding of a column whose messages carry no schema, by the connector's handling modes."""
    kind = column.name
    if kind == "decimal":
        mode = modes["decimal.handling.mode"]
        if mode == "precise":
            return Encoded(name, Encoding.DECIMAL_BASE64, column.scale or 0)
        return Encoded(name, Encoding.TEXT if mode == "string" else Encoding.NUMBER)
    if kind == "bigint" and column.unsigned:
        precise = modes["bigint.unsigned.handling.mode"] == "precise"
        return Encoded(name, Encoding.DECIMAL_BASE64, 0) if precise else Encoded(name, Encoding.WRAPPED_UNSIGNED)
    if kind in _NUMBER_TYPES:
        return Encoded(name, Encoding.NUMBER)
    if kind == "bit":
        return Encoded(name, Encoding.BOOLEAN if column.length == 1 else Encoding.BITS_LE)
    if kind in BINARIES:
        return Encoded(name, _binary_text(modes))
    if kind in GEOMETRIES:
        return Encoded(name, Encoding.GEOMETRY)
    if kind in ("date", "datetime", "time"):
        return Encoded(name, _temporal(column, modes["time.precision.mode"]))
    return Encoded(name, Encoding.ZONED_TEXT if kind == "timestamp" else Encoding.TEXT)


def _temporal(column: ColumnType, mode: str) -> Encoding:
    """Return the encoding of DATE, DATETIME and TIME under a ``time.precision.mode``."""
    if mode == "isostring":
        return Encoding.ISO_TEXT
    if column.name == "date":
        return Encoding.EPOCH_DAYS
    digits = column.length or 0
    if column.name == "datetime":
        if mode == "connect":
            return Encoding.EPOCH_MILLIS
        if mode == "nanoseconds":
            return Encoding.EPOCH_NANOS
        return Encoding.EPOCH_MICROS if mode == "microseconds" or digits > 3 else Encoding.EPOCH_MILLIS
    if mode == "connect" or (mode == "adaptive" and digits <= 3):
        return Encoding.TIME_MILLIS
    return Encoding.TIME_NANOS if mode == "nanoseconds" else Encoding.TIME_MICROS


def structures(table_changes: str) -> list[tuple[str, str, TableSchema | None]]:
    """Read ``tableChanges``: (database, table, structure, or None when dropped) in order; column ids count from 1."""
    result = []
    for change in _decoder.decode(table_changes):
        names = re.findall(r'"((?:[^"]|"")*)"', change["id"])
        if len(names) < 2:
            raise ValueError("a table change whose id names no table")
        # of a rename the id holds old and new name one after the other: the new one stands last
        database, table = (part.replace('""', '"') for part in names[-2:])
        result.append((database, table, _table_schema(change["table"]) if change.get("table") else None))
    return result


def _table_schema(table: Mapping[str, Any]) -> TableSchema:
    columns = tuple(_column(i, item) for i, item in enumerate(sorted(table["columns"], key=lambda c: c["position"]), 1))
    by_name = {column.name: column.id for column in columns}
    return TableSchema(columns, tuple(by_name[name] for name in table.get("primaryKeyColumnNames") or ()))


def _column(number: int, item: Mapping[str, Any]) -> Column:
    text = item.get("defaultValueExpression")
    return Column(
        number,
        item["name"],
        _column_type(item),
        nullable=bool(item.get("optional", True)),
        default=None if text is None else Default("constant", text),
        generated=bool(item.get("generated")),
        auto_increment=bool(item.get("autoIncremented")),
    )


def _column_type(item: Mapping[str, Any]) -> ColumnType:
    """Return the type of a ``tableChanges`` column by writing it as SQL and reading that."""
    spelling = item["typeName"].split()
    place = next(
        (i for i, word in enumerate(spelling) if word.lower() in ("unsigned", "zerofill", "signed")), len(spelling)
    )
    arguments = [str(item[part]) for part in ("length", "scale") if item.get(part) is not None]
    labels = item.get("enumValues")
    if labels:
        arguments = ["'" + _label(text).replace("\\", "\\\\").replace("'", "''") + "'" for text in labels]
    name, more = " ".join(spelling[:place]), spelling[place:]
    try:
        kind = parse_type(
            " ".join([name + (f"({','.join(arguments)})" if arguments else ""), *more]), item.get("charsetName")
        )
    except DataError:  # a length beside a type that takes none
        kind = parse_type(" ".join([name, *more]), item.get("charsetName"))
    return replace(kind, charset=item.get("charsetName"))


def _label(text: str) -> str:
    return text[1:-1].replace("''", "'") if len(text) > 1 and text[0] == text[-1] == "'" else text


_INFERRED = {
    "int8": ColumnType("tinyint"),
    "int16": ColumnType("smallint"),
    "int32": ColumnType("int"),
    "int64": ColumnType("bigint"),
    "float32": ColumnType("float"),
    "float": ColumnType("float"),
    "float64": ColumnType("double"),
    "double": ColumnType("double"),
    "boolean": ColumnType("bit", 1),
    "string": ColumnType("longtext"),
    "bytes": ColumnType("longblob"),
}
_INFERRED_LOGICAL = {
    "io.debezium.time.Date": ColumnType("date"),
    "org.apache.kafka.connect.data.Date": ColumnType("date"),
    "io.debezium.time.Timestamp": ColumnType("datetime", 3),
    "org.apache.kafka.connect.data.Timestamp": ColumnType("datetime", 3),
    "io.debezium.time.MicroTimestamp": ColumnType("datetime", 6),
    "io.debezium.time.NanoTimestamp": ColumnType("datetime", 6),
    "io.debezium.time.Time": ColumnType("time", 3),
    "org.apache.kafka.connect.data.Time": ColumnType("time", 3),
    "io.debezium.time.MicroTime": ColumnType("time", 6),
    "io.debezium.time.NanoTime": ColumnType("time", 6),
    "io.debezium.time.ZonedTimestamp": ColumnType("timestamp", 6),
    "io.debezium.time.Year": ColumnType("year"),
    "io.debezium.data.Json": ColumnType("json"),
}


def inferred_schema(description: Description) -> TableSchema | None:
    """Return a schema made from the Connect types of a record; None without types."""
    if description.details is None:
        return None
    columns = []
    for number, name in enumerate(description.names, 1):
        detail = description.details[name]
        columns.append(Column(number, name, _inferred_type(detail), nullable=bool(detail.get("optional", True))))
    by_name = {column.name: column.id for column in columns}
    return TableSchema(tuple(columns), tuple(by_name[name] for name in description.key or () if name in by_name))


def _inferred_type(detail: Mapping[str, Any]) -> ColumnType:
    logical, parameters = detail.get("name") or "", detail.get("parameters") or {}
    if logical in _INFERRED_LOGICAL:
        return _INFERRED_LOGICAL[logical]
    if logical == "org.apache.kafka.connect.data.Decimal":
        return ColumnType(
            "decimal", int(parameters.get("connect.decimal.precision", 38)), int(parameters.get("scale", 0))
        )
    if logical == "io.debezium.data.Bits":
        return ColumnType("bit", int(parameters.get("length", 64)))
    if logical.startswith("io.debezium.data.geometry."):
        return ColumnType("geometry")
    return _INFERRED.get(detail.get("type", ""), ColumnType("longtext"))
