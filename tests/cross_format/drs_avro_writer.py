# SPDX-License-Identifier: Apache-2.0
"""A history as Avro records of a stated schema: that of :mod:`tests.cross_format.avro_schema`, read as ``drs-avro``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema
from tests.cross_format import avro_schema
from tests.cross_format.avro_schema import value, wire
from tests.cross_format.drs_json_writer import partition
from tests.cross_format.events import Ddl, Event, Image, Message, Value

PARTS = ("year", "month", "day", "hour", "minute", "second", "millis")
MOMENT = re.compile(r"(?:(\d{4})-(\d\d)-(\d\d))? ?(?:(\d{2,3}):(\d\d):(\d\d)(?:\.(\d{3}))?)?")
TEXTS = frozenset({"enum", "set", "json"})


class Writer:
    """Writes one record an event; values are those of the wire's types, as text where such a type is too narrow."""

    format = "drs-avro"
    options: Mapping[str, str] = avro_schema.OPTIONS
    creates = False

    def write(self, event: Event, partitions: int) -> list[Message]:
        """Return the record of one event."""
        what = event.what
        if isinstance(what, Ddl):
            operation, images = "DDL", {"afterImages": what.statement}
        else:
            columns = [{"name": column.name, "dataTypeNumber": 0} for column in what.schema.columns]
            sides = {"beforeImages": _image(what.before, what.schema), "afterImages": _image(what.after, what.schema)}
            operation, images = what.op.upper(), {"fields": columns, **sides}
        source = {"id": event.number, "sourceTimestamp": event.time_ms // 1000, "sourceTxid": str(event.transaction)}
        record = wire(operation, objectName=f"{what.database}.{what.table}", **source, **images)
        return [Message(partition(what, partitions), None, record)]


def _image(row: Image | None, schema: TableSchema) -> list[Any] | None:
    return None if row is None else [_value(row[column.name], column.type) for column in schema.columns]


def _value(cell: Value, kind: ColumnType) -> Any:
    if cell is None:
        return None
    if isinstance(cell, bytes):
        return value("BinaryObject", type=kind.name, value=cell)
    if isinstance(cell, Decimal):
        text = f"{cell:.{kind.scale or 0}f}"
        return value("Decimal", value=text, precision=kind.length or 10, scale=kind.scale or 0)
    if isinstance(cell, float):
        return value("Float", value=cell, precision=0, scale=0)
    if kind.name == "year":
        return value("DateTime", **{**dict.fromkeys(PARTS), "year": cell})
    if isinstance(cell, int):
        return value("Integer", precision=20, value=str(cell))
    return _text(cell, kind)


def _text(text: str, kind: ColumnType) -> Any:
    if kind.name == "timestamp":
        moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
        return value("Timestamp", timestamp=int(moment.timestamp()), millis=moment.microsecond // 1000)
    result = MOMENT.fullmatch(text) if kind.name in ("date", "datetime", "time") else None
    if result:
        numbers = [None if part is None else int(part) for part in result.groups()]
        return value("DateTime", **dict(zip(PARTS, numbers, strict=True)))
    if kind.name in TEXTS or kind.name in ("datetime", "time"):
        return value("TextObject", type=kind.name, value=text)
    return value("Character", charset="utf8mb4", value=text.encode())
