# SPDX-License-Identifier: Apache-2.0
"""Values and schemas that Debezium and dtle write alike (docs/wire/debezium-dtle.md A3, B2, B3)."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime, tzinfo
from typing import Any

from airflow_provider_cdc.core.model.schema import ColumnType

_INTEGERS = {"tinyint": "int16", "smallint": "int16", "mediumint": "int32", "int": "int32", "bigint": "int64"}
_WIDER = {"smallint": "int32", "int": "int64"}  # unsigned


def compact(data: object) -> str:
    """Return JSON without blanks."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def integer_type(kind: ColumnType) -> str | None:
    """Return the Connect type of an integer, None for another type."""
    name = _INTEGERS.get(kind.name)
    return _WIDER.get(kind.name, name) if kind.unsigned else name


def field(name: str, kind: str, optional: bool, logical: str | None = None, **more: Any) -> dict[str, Any]:
    """Return one field of a Connect schema."""
    named = {} if logical is None else {"name": logical, "version": 1}
    return {"type": kind, "optional": optional, **named, **more, "field": name}


def decimal_field(name: str, kind: ColumnType, optional: bool) -> dict[str, Any]:
    """Return the field of a DECIMAL."""
    parameters = {"scale": str(kind.scale or 0), "connect.decimal.precision": str(kind.length or 10)}
    return field(name, "bytes", optional, "org.apache.kafka.connect.data.Decimal", parameters=parameters)


def bits_field(name: str, kind: ColumnType, optional: bool) -> dict[str, Any]:
    """Return the field of a BIT."""
    if (kind.length or 1) == 1:
        return field(name, "boolean", optional)
    return field(name, "bytes", optional, "io.debezium.data.Bits", parameters={"length": str(kind.length)})


def labels_field(name: str, kind: ColumnType, optional: bool, allowed: str) -> dict[str, Any]:
    """Return the field of an ENUM or SET."""
    logical = "io.debezium.data.Enum" if kind.name == "enum" else "io.debezium.data.EnumSet"
    return field(name, "string", optional, logical, parameters={"allowed": allowed})


def base64_text(raw: bytes) -> str:
    """Return base64."""
    return base64.b64encode(raw).decode()


def bits(value: int, kind: ColumnType) -> bool | str:
    """Return a BIT: a boolean, or little-endian bytes."""
    length = kind.length or 1
    return bool(value) if length == 1 else base64_text(value.to_bytes((length + 7) // 8, "little"))


def wrapped(value: int) -> int:
    """Return an unsigned 64-bit number as a signed one."""
    return value - (1 << 64) if value >> 63 else value


def days(text: str) -> int:
    """Return a DATE as days since 1970."""
    return (date.fromisoformat(text) - date(1970, 1, 1)).days


def micros(text: str, zone: tzinfo = UTC) -> int:
    """Return a local time of a zone as microseconds since 1970."""
    delta = datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def clock(text: str) -> tuple[int, str]:
    """Return a TIME as seconds without sign and the digits of its fraction."""
    whole, _, fraction = text.removeprefix("-").partition(".")
    hours, minutes, seconds = map(int, whole.split(":"))
    return (hours * 60 + minutes) * 60 + seconds, fraction
