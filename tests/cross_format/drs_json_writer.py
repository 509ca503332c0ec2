# SPDX-License-Identifier: Apache-2.0
"""A history in Huawei DRS's format JSON, hashed by key over partitions (docs/wire/huawei-drs.md 3, 4)."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema
from tests.cross_format.events import Ddl, Event, Image, Message, Row, Value

# the writer's HTML-safe escapes, in JSON texts only ever inside strings
ESCAPES = {character: f"\\u{ord(character):04x}" for character in "<>&='"}
# datetime has a number of DRS's own
SQL_TYPES = {
    **{"tinyint": -6, "smallint": 5, "mediumint": 4, "int": 4, "bigint": -5, "float": 6, "double": 8, "decimal": 3},
    **{"bit": -7, "year": 91, "date": 91, "datetime": 94, "timestamp": 93, "time": 92, "enum": 1, "set": 1},
    **{"char": 1, "varchar": 12, "text": -1, "binary": -2, "varbinary": -3, "blob": 2004, "json": -1},
}


class Writer:
    """Writes one message an event: rows by the hash of their key, DDL and rows without key by that of the table."""

    format = "drs-json"
    options: Mapping[str, str] = {}
    creates = False

    def write(self, event: Event, partitions: int) -> list[Message]:
        """Return the message of one event."""
        what = event.what
        members = self._statement(what) if isinstance(what, Ddl) else self._row(what)
        empty = dict.fromkeys(("mysqlType", "sqlType", "data", "old", "pkNames"))
        source = {"id": event.number, "es": event.time_ms, "ts": event.sent_ms}
        named = {"database": what.database, "table": what.table, "isDdl": False, "sql": ""}
        text = json.dumps({**empty, **source, **named, **members}, ensure_ascii=False, separators=(",", ":"))
        for character, escape in ESCAPES.items():
            text = text.replace(character, escape)
        return [Message(partition(what, partitions), None, text.encode())]

    def _statement(self, what: Ddl) -> dict[str, Any]:
        return {"type": "INIT_DDL" if what.initial else "DDL", "isDdl": True, "sql": what.statement}

    def _row(self, what: Row) -> dict[str, Any]:
        before, after = self._image(what.before, what.schema), self._image(what.after, what.schema)
        columns = list(reversed(what.schema.columns))
        return {
            "type": what.op.upper(),
            **self._images(what.op, before, after),
            "pkNames": [column.name for column in what.schema.key_columns],
            "mysqlType": {column.name: column.type.name for column in columns},
            "sqlType": {column.name: SQL_TYPES[column.type.name] for column in columns},
        }

    def _images(self, op: str, before: Any, after: Any) -> dict[str, Any]:
        return {"data": after, "old": before}

    def _image(self, row: Image | None, schema: TableSchema) -> list[dict[str, str | None]] | None:
        if row is None:
            return None
        columns = [column for column in reversed(schema.columns) if column.name in row]
        return [{column.name: self._text(row[column.name], column.type) for column in columns}]

    def _text(self, value: Value, kind: ColumnType) -> str | None:
        if value is None:
            return None
        if isinstance(value, bytes):
            stored = value.rstrip(b"\0") if kind.name == "binary" else value
            return str([byte - 256 if byte > 127 else byte for byte in stored])
        if isinstance(value, Decimal):
            return f"{value:.{kind.scale or 0}f}"
        if isinstance(value, float):
            return _java_number(value)
        return self._timestamp(str(value)) if kind.name == "timestamp" else str(value)

    def _timestamp(self, text: str) -> str:
        seconds, dot, fraction = text.partition(".")
        return f"{int(datetime.fromisoformat(seconds).replace(tzinfo=UTC).timestamp())}{dot}{fraction}"


def partition(what: Row | Ddl, partitions: int) -> int:
    """Return the partition; which hash DRS uses is not documented."""
    keys = [what.database, what.table]
    if isinstance(what, Row) and what.schema.key:
        row = what.before if what.after is None else what.after
        keys = [str(row[column.name]) for column in what.schema.key_columns] if row is not None else keys
    return zlib.crc32("\0".join(keys).encode()) % partitions


def _java_number(value: float) -> str:
    """Return what Java's toString of a number does."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{len(digits) - 1 + int(exponent)}"
