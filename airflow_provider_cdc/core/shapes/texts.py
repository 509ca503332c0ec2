# SPDX-License-Identifier: Apache-2.0
"""Write values as texts that stay the same where their type becomes wider: what hashes are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.timeline.barriers import keeps_values
from airflow_provider_cdc.core.values.alter.type_families import family


def has_text(kind: pa.DataType) -> bool:
    """Return whether the values of a type have such a text."""
    return _writer(kind) is not None


def texts(values: pa.Array) -> Iterator[bytes | None]:
    """Yield the text of each value in UTF-8; the bytes themselves of a binary value."""
    write = _writer(values.type)
    assert write is not None  # the caller asked has_text
    return (None if value is None else write(value) for value in values.to_pylist())


def keeps_text(old: ColumnType, new: ColumnType) -> bool:
    """Return whether the texts of all values stay the same where their column gets another type."""
    return old == new or (family(old) in _LASTING and keeps_values(old, new))


def _writer(kind: pa.DataType) -> Callable[[Any], bytes] | None:
    if pa.types.is_float32(kind):
        return None  # as DOUBLE, which it may become, it has another text
    return next((write for is_kind, write in _WRITERS if is_kind(kind)), None)


def _decimal(value: Decimal) -> bytes:
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return b"0" if text in ("-0", "") else text.encode()


def _time(value: datetime) -> bytes:
    moment = value.astimezone(UTC) if value.tzinfo is not None else value
    text = moment.strftime("%H:%M:%S.%f").rstrip("0").rstrip(".")
    return f"{_date(moment.date()).decode()} {text}".encode()


def _date(value: date) -> bytes:
    return value.isoformat().encode()


_LASTING = ("integer", "decimal", "datetime", "timestamp", "enum", "set", "text")  # families of types
_WRITERS: list[tuple[Callable[[pa.DataType], bool], Callable[[Any], bytes]]] = [
    (pa.types.is_string, lambda value: value.encode()),
    (pa.types.is_binary, bytes),
    (pa.types.is_boolean, lambda value: b"1" if value else b"0"),
    (pa.types.is_integer, lambda value: str(value).encode()),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_floating, lambda value: repr(value).encode()),
    (pa.types.is_timestamp, _time),
    (pa.types.is_date, _date),
]
