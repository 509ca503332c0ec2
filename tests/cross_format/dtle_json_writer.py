# SPDX-License-Identifier: Apache-2.0
"""A history as dtle writes it to Kafka (docs/wire/debezium-dtle.md A)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any
from zoneinfo import ZoneInfo

from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema
from tests.cross_format import connect_values as connect
from tests.cross_format.events import Ddl, Event, Image, Message, Row, Value

TOPIC = "one"
JOB, SERVER = "kafka-job", "acd7d195-06cd-11e9-928f-02000aba3e28"
ZONE = "Asia/Shanghai"  # of DATETIME
_EXACT = Context(prec=100)


class Writer:
    """Write rows to the partition of their key's hash, an update keyed by the row before; DDL in a topic of its own.

    As dtle does, statements without a qualified name come without a database.
    """

    format = "dtle-json"
    options: Mapping[str, str] = {"timezone": ZONE, "text_as_base64": "true", "default_database": "shop"}
    creates = False

    def write(self, event: Event, partitions: int) -> list[Message]:
        """Return the records of one event."""
        what = event.what
        if isinstance(what, Ddl):
            return [Message(0, b"null", _ddl(event, what), "schema")]
        keyed_by = what.after if what.before is None else what.before
        assert keyed_by is not None
        key = _key(what, keyed_by)
        partition = _partition(key, partitions)
        messages = [Message(partition, key, _row(event, what))]
        if what.op == "delete":
            messages.append(Message(partition, key, b'{"schema":null,"payload":null}'))
        return messages

    def stored_value(self, value: Value, kind: ColumnType) -> Value:
        """Return what is left of a value: dtle cuts fractions, and makes some negative numbers positive."""
        match value:
            case Decimal():
                unscaled = int.from_bytes(
                    _twos_complement(int(value.scaleb(kind.scale or 0, _EXACT))), "big", signed=True
                )
                return Decimal(unscaled).scaleb(-(kind.scale or 0), _EXACT)
            case str() if kind.name == "datetime" and (kind.length or 0) > 3:
                return value[:23].ljust(20 + (kind.length or 0), "0")
            case str() if kind.name == "timestamp" and kind.length:
                return value[:20] + "0" * kind.length
        return value


def _ddl(event: Event, what: Ddl) -> bytes:
    mark = f"/*dtle_gtid1 {JOB} {SERVER} {event.transaction} dtle_gtid*/"
    position = {
        "ts_sec": event.time_ms // 1000,
        "file": f"mysql-bin.{event.file:06d}",
        "pos": event.pos,
        "gtids": f"{SERVER}:1-{event.transaction - 1}",
    }
    ddl = f"{what.statement} {mark}"
    return connect.compact({"source": {"server": ""}, "position": position, "ddl": ddl, "tableChanges": None}).encode()


def _key(what: Row, image: Image) -> bytes:
    # in the order of the table's columns, not of the key's
    columns = [column for column in what.schema.columns if column.id in what.schema.key]
    fields = {"fields": [_field(column) for column in columns]} if columns else {}
    schema = {"type": "struct", "optional": False, **fields, "name": f"{TOPIC}.{what.database}.{what.table}.Key"}
    payload = {column.name: _value(image[column.name], column.type) for column in columns}
    return connect.compact({"schema": schema, "payload": payload}).encode()


def _row(event: Event, what: Row) -> bytes:
    name = f"{TOPIC}.{what.database}.{what.table}"
    fields = [_field(column) for column in what.schema.columns]
    images = [
        {"type": "struct", "optional": True, "field": image, "fields": fields, "name": f"{name}.Value"}
        for image in ("before", "after")
    ]
    others = [connect.field("op", "string", False), connect.field("ts_ms", "int64", True)]
    schema = {"type": "struct", "optional": False, "fields": [*images, *others], "name": f"{name}.Envelope"}
    payload = {
        "before": _image(what.before, what.schema),
        "after": _image(what.after, what.schema),
        "source": _source(event),
        "op": {"insert": "c", "update": "u", "delete": "d"}[what.op],
        "ts_ms": event.sent_ms,
    }
    return connect.compact({"schema": {**schema, "version": 1}, "payload": payload}).encode()


def _source(event: Event) -> dict[str, Any]:
    return {
        "version": "0.0.1",
        "name": TOPIC,
        "server_id": 1,
        "ts_sec": event.sent_ms // 1000,
        "gtid": f"{SERVER}:{event.transaction}",
        "file": f"mysql-bin.{event.file:06d}",
        "pos": event.pos,
        "query": None,
        "row": 0,
        "snapshot": False,
        "thread": None,
        "db": event.what.database,
        "table": event.what.table,
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
            return connect.labels_field(name, kind, optional, ",".join(map(_unquoted, kind.labels)))
        case "float" | "double":
            return connect.field(name, "float64", optional)
        case "binary" | "varbinary" | "blob":
            return connect.field(name, "bytes", optional)
    logical = {
        "date": ("int32", "io.debezium.time.Date"),
        "time": ("int64", "io.debezium.time.MicroTime"),
        "datetime": ("int64", "io.debezium.time.Timestamp"),
        "timestamp": ("string", "io.debezium.time.ZonedTimestamp"),
        "year": ("int32", "io.debezium.time.Year"),
        "json": ("string", "io.debezium.data.Json"),
    }
    connect_type, name_of_type = logical.get(kind.name, ("string", None))
    return connect.field(name, connect_type, optional, name_of_type)


def _unquoted(label: str) -> str:
    return label.replace("'", "")


def _value(value: Value, kind: ColumnType) -> Any:
    match value:
        case None | float():
            return value
        case bytes():
            return connect.base64_text(value.rstrip(b"\0") if kind.name == "binary" else value)
        case Decimal():
            return connect.base64_text(_twos_complement(int(value.scaleb(kind.scale or 0, _EXACT))))
        case int() if kind.name == "bit":
            return connect.bits(value, kind)
        case int():
            return connect.wrapped(value) if kind.unsigned else value
        case str(text):
            return _text(text, kind)


def _twos_complement(number: int) -> bytes:
    """Return a number's bytes as dtle makes them: a negative one gets no byte for its sign, though it may need one."""
    size = max(1, (abs(number).bit_length() + 7) // 8)
    if number < 0:
        return ((1 << 8 * size) + number).to_bytes(size, "big")
    raw = number.to_bytes(size, "big")
    return b"\0" + raw if raw[0] > 0x7F else raw


def _text(text: str, kind: ColumnType) -> Any:
    match kind.name:
        case "date":
            return connect.days(text)
        case "time":
            seconds, fraction = connect.clock(text)
            amount = seconds * 1_000_000 + int(fraction or 0)  # the digits as they stand
            return -amount if text.startswith("-") else amount
        case "datetime":
            return connect.micros(text, ZoneInfo(ZONE)) // 1000
        case "timestamp":
            return text[:19].replace(" ", "T") + "Z"
        case "text" | "json":
            return connect.base64_text(text.encode())
        case "enum" | "set":
            return _unquoted(text)
    return text


# ---- partitions


def _partition(key: bytes, partitions: int) -> int:
    number = fnv(key)
    # Go's remainder has the sign of the number
    return (number if number < 1 << 31 else (1 << 32) - number) % partitions


def fnv(data: bytes) -> int:
    """Return FNV-1a of 32 bits."""
    number = 2166136261
    for byte in data:
        number = (number ^ byte) * 16777619 & 0xFFFFFFFF
    return number
