# SPDX-License-Identifier: Apache-2.0
"""State what a table in the lake must hold to equal the rows of a history."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema
from tests.cross_format.events import Image, Value


def in_lake(value: Value, kind: ColumnType) -> Any:
    """Return the Python value that Arrow gives for a source value, by docs/reference/types.md."""
    if value is None:
        return None
    match kind.name:
        case "bigint" if kind.unsigned:
            return Decimal(int(value))
        case "float":
            return struct.unpack("f", struct.pack("f", value))[0]
        case "bit" if (kind.length or 1) == 1:
            return bool(value)
        case "bit" if kind.length == 64:
            return Decimal(int(value))
        case "date":
            return date.fromisoformat(str(value))
        case "datetime":
            return datetime.fromisoformat(str(value))
        case "timestamp":
            return datetime.fromisoformat(str(value)).replace(tzinfo=UTC)
        case _:
            return value


def _plain(value: Any) -> Any:
    """Return an instant as its text: Arrow's UTC and Python's are two objects."""
    return value.isoformat() if isinstance(value, datetime) and value.tzinfo is not None else value


def problems(rows: pa.Table, schema: TableSchema, content: Sequence[Image]) -> list[str]:
    """Return what differs between a table and its source, in words."""
    names = [column.name for column in schema.columns]
    if rows.column_names != names:
        return [f"columns {rows.column_names} instead of {names}"]
    mine = Counter(repr(tuple(_plain(row[name]) for name in names)) for row in rows.to_pylist())
    theirs = Counter(repr(tuple(_plain(in_lake(row[c.name], c.type)) for c in schema.columns)) for row in content)
    return [f"+{row}" for row in (mine - theirs).elements()] + [f"-{row}" for row in (theirs - mine).elements()]
