# SPDX-License-Identifier: Apache-2.0
"""Values as OMS writes them in its JSON forms, by source type (docs/wire/oceanbase-oms.md 7)."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal

from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema
from tests.cross_format.events import Image, Value


def token(value: Value, kind: ColumnType) -> str:
    """Return the JSON token of a value."""
    if value is None:
        return "null"
    match kind.name:
        case "decimal":
            return format(Decimal(str(value)), "f")
        case "double":
            return format(Decimal(float(value)), "E")  # every digit of the binary number, as the samples have it
        case "float" | "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year":
            return str(value)
        case "bit":
            return _base64(int(value).to_bytes(max(1, -(-int(value).bit_length() // 8)), "big"))
        case "time" | "datetime":
            return json.dumps(_without_zeros(str(value)))
        case "timestamp":
            whole, _, fraction = str(value).partition(".")
            seconds = int(datetime.fromisoformat(whole).replace(tzinfo=UTC).timestamp())
            return json.dumps(_without_zeros(f"{seconds}.{fraction}"))
    return _base64(value) if isinstance(value, bytes) else json.dumps(str(value), ensure_ascii=False)


def image(row: Image, schema: TableSchema) -> str:
    """Return a row, or some columns of it, as a JSON object."""
    members = [
        f"{json.dumps(column.name)}:{token(row[column.name], column.type)}"
        for column in schema.columns
        if column.name in row
    ]
    return "{" + ",".join(members) + "}"


def changed(before: Image, after: Image) -> Mapping[str, Value]:
    """Return the columns of ``after`` that differ."""
    return {name: value for name, value in after.items() if value != before.get(name)}


def partition_of(row: Image, schema: TableSchema, table: str, partitions: int) -> int:
    """Return where a row goes: by its key, without one by its table."""
    text = repr([row[column.name] for column in schema.key_columns] or table)
    return zlib.crc32(text.encode()) % partitions


def _base64(data: bytes) -> str:
    return f'"{base64.b64encode(data).decode()}"'


def _without_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
