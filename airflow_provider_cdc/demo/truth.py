# SPDX-License-Identifier: Apache-2.0
"""The database's own content (``source_at``, ``source_final``) and what a table in the lake must hold to equal it."""

from __future__ import annotations

import json
import lzma
import struct
from collections import Counter
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.core.values.types import GEOMETRIES

if TYPE_CHECKING:
    import pyarrow as pa

BINARY = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}


@dataclass(frozen=True)
class SourceTable:
    """One table as SQL showed it: column names and types, key, rows as texts."""

    database: str
    table: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    key: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    defaults: tuple[str | None, ...] = ()


def load(path: Path) -> list[SourceTable]:
    """Read a ``source_at`` or ``source_final`` file."""
    tables = []
    with lzma.open(path, "rt") as lines:
        next(lines)  # the position
        for line in lines:
            data = json.loads(line)
            columns = tuple(c["name"] for c in data["columns"])
            types = tuple(c["data_type"] for c in data["columns"])
            rows = tuple(tuple(row) for row in data["rows"])
            defaults = tuple(_default(c["default"]) for c in data["columns"])
            tables.append(
                SourceTable(data["db"], data["table"], columns, types, tuple(data["primary_key"] or ()), rows, defaults)
            )
    return tables


def _default(text: str | None) -> str | None:
    if text is None or text == "NULL":
        return None
    if text.startswith("b'"):
        return f"{int(text[2:-1], 2):x}"
    return text[1:-1] if text[0] == text[-1] == "'" else text


def expected(value: str | None, kind: str) -> Any:
    """Return a source text as the value that compares equal to :func:`found` of the lake's value."""
    if value is None:
        return None
    if kind in ("tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year"):
        return Decimal(value)
    if kind in ("float", "double"):
        return float(value)
    if kind == "bit":
        return Decimal(int(value, 16))
    if kind in GEOMETRIES:
        return value[8:].lower()  # four bytes of SRID stand before the WKB
    if kind in BINARY:
        return value.lower()
    if kind in ("date", "datetime", "timestamp"):
        return None if "-00" in value[:10] else _moment(value)  # zero dates, and dates with a zero month or day
    if kind == "time":
        return _time(value)
    return value


def comparable_value(value: Any, kind: str) -> Any:
    """Return a value read from the lake in the form that :func:`expected` gives."""
    if value is None:
        return None
    if kind == "bit":
        return Decimal(int(value))
    if kind in ("float", "double"):
        return struct.unpack("f", struct.pack("f", value))[0] if kind == "float" else value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if kind == "decimal" and isinstance(value, str):
        return Decimal(value)
    if kind == "time":
        return _time(value)
    return Decimal(value) if isinstance(value, (int, Decimal)) else value


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(
        text.replace(" ", "T") if "." not in text else text.replace(" ", "T").ljust(26, "0")[:26]
    )


def _time(text: str) -> str:
    head, _, fraction = text.partition(".")
    return f"{head}.{fraction.rstrip('0')}" if fraction.rstrip("0") else head


def differing(
    source: SourceTable,
    lake: pa.Table,
    excused: AbstractSet[tuple[str, str]] = frozenset(),
    *,
    null_as_default: bool = False,
) -> list[str]:
    """Return what differs between a source table and its copy, in words; empty when they are equal.

    :param excused: (column, key as JSON) of cells that messages carry differently, from ``differences.jsonl``.
    :param null_as_default: the capture's converter wrote NULL as the column's default (its option was left on), which
        ``differences.jsonl`` lists only for keyed tables under the names columns had then.
    """
    if tuple(lake.column_names) != source.columns:
        return [f"columns {lake.column_names} instead of {list(source.columns)}"]
    columns = [[comparable_value(v, kind) for v in lake.column(i).to_pylist()] for i, kind in enumerate(source.types)]
    copy = list(zip(*columns, strict=True)) if columns else []
    truth = [tuple(expected(v, kind) for v, kind in zip(row, source.types, strict=True)) for row in source.rows]
    if null_as_default and not source.key:
        truth, copy = (_defaults_as_null(source, rows) for rows in (truth, copy))
    if not source.key:
        more, less = (
            Counter(map(repr, copy)) - Counter(map(repr, truth)),
            Counter(map(repr, truth)) - Counter(map(repr, copy)),
        )
        return [*(f"+{n} {row[:300]}" for row, n in more.items()), *(f"-{n} {row[:300]}" for row, n in less.items())]
    indexes = [source.columns.index(name) for name in source.key]
    mine, theirs = ({tuple(repr(row[p]) for p in indexes): row for row in rows} for rows in (copy, truth))
    problems = [f"missing {key}" for key in theirs.keys() - mine.keys()] + [
        f"too much {key}" for key in mine.keys() - theirs.keys()
    ]
    if len(copy) != len(mine):
        problems.append("doubled keys")
    texts = {tuple(repr(expected(row[p], source.types[p])) for p in indexes): row for row in source.rows}
    for key in mine.keys() & theirs.keys():
        key_text = json.dumps(
            {name: texts[key][index] for name, index in zip(source.key, indexes, strict=True)}, sort_keys=True
        )
        for name, a, b in zip(source.columns, mine[key], theirs[key], strict=True):
            if (
                repr(a) != repr(b)
                and (name, key_text) not in excused
                and not (null_as_default and _is_default(source, name, a, b))
            ):
                problems.append(f"{name} of {key_text}: {a!r} instead of {b!r}")
    return problems


def _is_default(source: SourceTable, name: str, copy: Any, truth: Any) -> bool:
    index = source.columns.index(name)
    default = source.defaults[index]
    return truth is None and default is not None and repr(copy) == repr(expected(default, source.types[index]))


def _defaults_as_null(source: SourceTable, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    defaults = [
        None if d is None else repr(expected(d, kind)) for d, kind in zip(source.defaults, source.types, strict=True)
    ]
    return [tuple(None if repr(v) == d else v for v, d in zip(row, defaults, strict=True)) for row in rows]
