# SPDX-License-Identifier: Apache-2.0
"""A history as Debezium 3 writes it with embedded schemas (docs/wire/debezium-dtle.md B1 to B4 and B9)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any

from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema
from tests.cross_format import connect_values as connect
from tests.cross_format.events import Ddl, Event, Image, Message, Row, Value

SERVER = "one"
_EXACT = Context(prec=100)
_SOURCE_FIELDS = [connect.field("version", "string", False), connect.field("db", "string", False)]


class Writer:
    """Write rows to the partition of their key's hash, a moved key as delete and insert; DDL in a topic of its own."""

    format = "debezium-json"
    options: Mapping[str, str] = {}
    creates = False

    def write(self, event: Event, partitions: int) -> list[Message]:
        """Return the records of one event."""
        what = event.what
        if isinstance(what, Ddl):
            return [Message(0, _key_of_ddl(what), _ddl(event, what), "schema")]
        keys = what.schema.key_columns
        if what.before is not None and what.after is not None and _moved(what):
            old, new = _key(what, what.before), _key(what, what.after)
            gone, born = _header("newkey", what, what.after), _header("oldkey", what, what.before)
            return [
                Message(
                    _partition(old, event, partitions), old, _row(event, what, "d", what.before, None), "rows", gone
                ),
                Message(_partition(old, event, partitions), old, None, "rows", gone),
                Message(
                    _partition(new, event, partitions), new, _row(event, what, "c", None, what.after), "rows", born
                ),
            ]
        image = what.before if what.after is None else what.after
        assert image is not None
        key = _key(what, image) if keys else None
        partition = _partition(key, event, partitions)
        op = {"insert": "c", "update": "u", "delete": "d"}[what.op]
        messages = [Message(partition, key, _row(event, what, op, what.before, what.after))]
        return [*messages, Message(partition, key, None)] if op == "d" else messages


def _moved(what: Row) -> bool:
    assert what.before is not None and what.after is not None
    return any(what.before[column.name] != what.after[column.name] for column in what.schema.key_columns)


def _header(name: str, what: Row, image: Image) -> tuple[tuple[str, bytes], ...]:
    key = {column.name: _value(image[column.name], column.type) for column in what.schema.key_columns}
    return ((f"__debezium.{name}", connect.compact({"payload": key}).encode()),)


def _key(what: Row, image: Image) -> bytes:
    fields = [_field(column) for column in what.schema.key_columns]
    schema = {"type": "struct", "fields": fields, "optional": False, "name": f"{_prefix(what)}.Key"}
    payload = {column.name: _value(image[column.name], column.type) for column in what.schema.key_columns}
    return connect.compact({"schema": schema, "payload": payload}).encode()


def _prefix(what: Row) -> str:
    return f"{SERVER}.{what.database}.{what.table}"


def _row(event: Event, what: Row, op: str, before: Image | None, after: Image | None) -> bytes:
    payload = {
        "before": _image(before, what.schema),
        "after": _image(after, what.schema),
        "source": _source(event),
        "transaction": None,
        "op": op,
        "ts_ms": event.sent_ms,
        "ts_us": event.sent_ms * 1000,
        "ts_ns": event.sent_ms * 1_000_000,
    }
    fields = [_field(column) for column in what.schema.columns]
    images = [
        {"type": "struct", "fields": fields, "optional": True, "name": f"{_prefix(what)}.Value", "field": image}
        for image in ("before", "after")
    ]
    source = {"type": "struct", "fields": _SOURCE_FIELDS, "optional": False, "field": "source"}
    schema = {"type": "struct", "fields": [*images, source], "optional": False, "name": f"{_prefix(what)}.Envelope"}
    return connect.compact({"schema": {**schema, "version": 2}, "payload": payload}).encode()


def _source(event: Event) -> dict[str, Any]:
    times = {"ts_ms": event.time_ms, "ts_us": event.time_ms * 1000, "ts_ns": event.time_ms * 1_000_000}
    return {
        "version": "3.5.0.Final",
        "connector": "mysql",
        "name": SERVER,
        "snapshot": "false",
        "db": event.what.database,
        "sequence": None,
        **times,
        "table": event.what.table,
        "server_id": 1,
        "gtid": f"24bc7850-2c16-11e6-a073-0242ac110002:{event.transaction}",
        "file": f"mysql-bin.{event.file:06d}",
        "pos": event.pos,
        "row": 0,
        "thread": 7,
        "query": None,
    }


# ---- values


def _image(image: Image | None, schema: TableSchema) -> dict[str, Any] | None:
    return None if image is None else {c.name: _value(image[c.name], c.type) for c in schema.columns}


def _field(column: Column) -> dict[str, Any]:
    name, kind, optional = column.name, column.type, column.nullable
    integer = connect.integer_type(kind)
    if integer is not None:
        return connect.field(name, integer, optional)
    match kind.name:
        case "decimal":
            return connect.decimal_field(name, kind, optional)
        case "bit":
            return connect.bits_field(name, kind, optional)
        case "enum" | "set":
            return connect.labels_field(name, kind, optional, ",".join(map(_escaped, kind.labels)))
        case "float" | "double":
            return connect.field(name, kind.name, optional)
        case "binary" | "varbinary" | "blob":
            return connect.field(name, "bytes", optional)
    logical = {
        "date": ("int32", "io.debezium.time.Date"),
        "time": ("int64", "io.debezium.time.MicroTime"),
        "datetime": ("int64", f"io.debezium.time.{'Micro' if (kind.length or 0) > 3 else ''}Timestamp"),
        "timestamp": ("string", "io.debezium.time.ZonedTimestamp"),
        "year": ("int32", "io.debezium.time.Year"),
        "json": ("string", "io.debezium.data.Json"),
    }
    connect_type, name_of_type = logical.get(kind.name, ("string", None))
    return connect.field(name, connect_type, optional, name_of_type)


def _escaped(label: str) -> str:
    return label.replace(",", "\\,")


def _value(value: Value, kind: ColumnType) -> Any:
    match value:
        case None | float():
            return value
        case bytes():
            return connect.base64_text(value.ljust(kind.length or 0, b"\0") if kind.name == "binary" else value)
        case Decimal():
            unscaled = int(value.scaleb(kind.scale or 0, _EXACT))
            return connect.base64_text(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True))
        case int() if kind.name == "bit":
            return connect.bits(value, kind)
        case int():
            return connect.wrapped(value) if kind.unsigned else value
        case str(text):
            return _text(text, kind)


def _text(text: str, kind: ColumnType) -> Any:
    match kind.name:
        case "date":
            return connect.days(text)
        case "time":
            seconds, fraction = connect.clock(text)
            amount = seconds * 1_000_000 + int(fraction.ljust(6, "0"))
            return -amount if text.startswith("-") else amount
        case "datetime":
            return connect.micros(text) // (1 if (kind.length or 0) > 3 else 1000)
        case "timestamp":
            return text.replace(" ", "T") + "Z"
        case "enum":
            return _escaped(text)
    return text


# ---- DDL


def _key_of_ddl(what: Ddl) -> bytes:
    schema = {"type": "struct", "fields": [connect.field("databaseName", "string", False)], "optional": False}
    return connect.compact({"schema": schema, "payload": {"databaseName": what.database}}).encode()


def _ddl(event: Event, what: Ddl) -> bytes:
    kind = what.statement.split()[0].upper()
    change = {
        "type": kind if kind in ("CREATE", "DROP") else "ALTER",
        "id": f'"{what.database}"."{what.table}"',
        "table": None if what.schema is None else _structure(what.schema),
    }
    payload = {
        "source": _source(event),
        "ts_ms": event.sent_ms,
        "databaseName": what.database,
        "schemaName": None,
        "ddl": what.statement,
        "tableChanges": [change],
    }
    schema = {"type": "struct", "fields": [connect.field("ddl", "string", True)], "optional": False}
    return connect.compact({"schema": schema, "payload": payload}).encode()


def _structure(schema: TableSchema) -> dict[str, Any]:
    columns = [_described(number, column) for number, column in enumerate(schema.columns, 1)]
    keys = [column.name for column in schema.key_columns]
    return {"defaultCharsetName": "utf8mb4", "primaryKeyColumnNames": keys, "columns": columns, "comment": None}


def _described(number: int, column: Column) -> dict[str, Any]:
    kind = column.type
    labels = ["'" + label.replace("'", "''") + "'" for label in kind.labels] or None
    return {
        "name": column.name,
        "jdbcType": 4,
        "nativeType": None,
        "typeName": kind.name.upper() + (" UNSIGNED" if kind.unsigned else ""),
        "typeExpression": kind.name.upper(),
        "charsetName": None,
        "length": kind.length if labels is None else 1,
        "scale": kind.scale,
        "position": number,
        "optional": column.nullable,
        "autoIncremented": column.auto_increment,
        "generated": column.generated,
        "comment": None,
        "defaultValueExpression": None if column.default is None else column.default.text,
        "enumValues": labels,
    }


# ---- partitions


def _partition(key: bytes | None, event: Event, partitions: int) -> int:
    return event.number % partitions if key is None else (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """Return the hash by which Kafka's own client chooses a partition."""
    mask, mix = 0xFFFFFFFF, 0x5BD1E995
    number = (0x9747B28C ^ len(data)) & mask
    whole = len(data) // 4 * 4
    for offset in range(0, whole, 4):
        part = int.from_bytes(data[offset : offset + 4], "little") * mix & mask
        part = (part ^ part >> 24) * mix & mask
        number = (number * mix & mask) ^ part
    if data[whole:]:
        number = (number ^ int.from_bytes(data[whole:], "little")) * mix & mask
    number = (number ^ number >> 13) * mix & mask
    return number ^ number >> 15
