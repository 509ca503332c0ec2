# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL's own content (``source_at``) and what a table in the lake must hold to equal it.

Values are compared by what they mean, whatever type the lake has: the source's text is read as that type.
"""

from __future__ import annotations

import base64
import json
import lzma
import math
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_jobs.sinks.delta.table import DeltaLocation
from tests.histories.scripted import Script
from tests.locations import table_location

# what a page of the format says of a table that is parked (docs/formats/debezium-postgres.md)
REASONS = (
    "on_unseen_ddl is ask",
    "on_failover is ask",
    "record.value_missing",
    "record.key_made_up",
    "format.interval_inexact",
    "reason=dimensions_lost",
    "reason=out_of_range",
    "apply.key_unproven",
    "apply.contradicted",
    "apply.row_not_found",
    "apply.schema_missing",
    "rows arrived but no CREATE TABLE",
)

LOST = "lost by the connector"


@dataclass(frozen=True)
class SourceTable:
    """One table as SQL showed it: names and types of its columns, key, rows as texts."""

    schema: str
    table: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    key: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]

    @property
    def name(self) -> str:
        """Schema and table."""
        return f"{self.schema}.{self.table}"


def load(path: Path) -> list[SourceTable]:
    """Read a ``source_at`` file."""
    with lzma.open(path, "rt") as lines:
        next(lines)  # the place
        return [_table(json.loads(line)) for line in lines]


def _table(data: dict[str, Any]) -> SourceTable:
    columns = tuple(column["name"] for column in data["columns"])
    types = tuple(column["data_type"] for column in data["columns"])
    rows = tuple(tuple(row) for row in data["rows"])
    return SourceTable(data["schema"], data["table"], columns, types, tuple(data["primary_key"] or ()), rows)


def differing(source: SourceTable, lake: pa.Table) -> list[str]:
    """Return what differs between a source table and its copy, in words; empty when they are equal."""
    if sorted(lake.column_names) != sorted(source.columns):
        return [f"columns {lake.column_names} instead of {list(source.columns)}"]
    copy = list(zip(*(lake.column(name).to_pylist() for name in source.columns), strict=True))
    if not source.key:
        return _as_multisets(source, copy)
    indexes = [source.columns.index(name) for name in source.key]
    mine = {tuple(str(row[i]) for i in indexes): row for row in copy}
    theirs = {tuple(_plain_key(row[i]) for i in indexes): row for row in source.rows}
    problems = [f"missing {key}" for key in theirs.keys() - mine.keys()]
    problems += [f"too much {key}" for key in mine.keys() - theirs.keys()]
    if len(copy) != len(mine):
        problems.append("doubled keys")
    for key in sorted(mine.keys() & theirs.keys()):
        for name, kind, value, text in zip(source.columns, source.types, mine[key], theirs[key], strict=True):
            if not is_equal(value, text, kind):
                problems.append(f"{name} of {key}: {value!r:.80} instead of {text!r:.80}")
    return problems


def _plain_key(text: str | None) -> str:
    return str(text)


def _as_multisets(source: SourceTable, copy: list[tuple[Any, ...]]) -> list[str]:
    left = list(copy)
    problems = []
    for row in source.rows:
        match = next((mine for mine in left if _rows_equal(mine, row, source.types)), None)
        if match is None:
            problems.append(f"missing {row!r:.120}")
        else:
            left.remove(match)
    return problems + [f"too much {row!r:.120}" for row in left]


def _rows_equal(mine: tuple[Any, ...], row: tuple[str | None, ...], kinds: tuple[str, ...]) -> bool:
    return all(is_equal(value, text, kind) for value, text, kind in zip(mine, row, kinds, strict=True))


def is_equal(value: Any, text: str | None, kind: str) -> bool:
    """Return whether a value of the lake is the source's."""
    if value is None or text is None:
        return value is None and text is None
    if isinstance(value, bool):
        return text in (("t", "true", "1") if value else ("f", "false", "0"))
    if isinstance(value, int | Decimal):
        return _number(text, kind) == value
    if isinstance(value, float):
        return _float(text, kind, value)
    if isinstance(value, bytes):
        return _bytes(value, text, kind)
    if isinstance(value, datetime):
        moment = _moment(text)
        return moment is not None and moment == (value.replace(tzinfo=UTC) if value.tzinfo else value)
    if isinstance(value, date):
        return value.isoformat() == text
    return _texts(str(value), text, kind)


def _number(text: str, kind: str) -> Decimal | None:
    if kind in ("bit", "varbit"):
        return Decimal(int(text or "0", 2))
    try:
        return Decimal(text.replace("$", "").replace(",", ""))
    except InvalidOperation:
        return None


def _float(text: str, kind: str, value: float) -> bool:
    expected = float(text)
    if math.isnan(expected):
        return math.isnan(value)
    if kind == "float4":
        expected = struct.unpack("f", struct.pack("f", expected))[0]
    return value == expected


def _bytes(value: bytes, text: str, kind: str) -> bool:
    if kind == "bytea":
        return value.hex() == text.lower().removeprefix("\\x")
    if kind == "point":
        x, y = struct.unpack("<dd", value[5:21])
        return [x, y] == [float(part) for part in text.strip("()").split(",")]
    if kind in ("bit", "varbit"):
        return int.from_bytes(value, "little") == int(text or "0", 2)
    # types that the connector does not know come as the bytes of their text, floats in another writing
    return value.decode().replace(".0", "") == text.replace(".0", "")


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _texts(value: str, text: str, kind: str) -> bool:
    if value == text:
        return True
    if kind == "bpchar":
        return value.rstrip(" ") == text
    if kind == "inet":
        return value == text.removesuffix("/32").removesuffix("/128")
    if kind == "numeric":
        return _number(value, kind) == _number(text, kind)
    if kind in ("time", "timetz"):
        return _time(value) == _time(text)
    if kind.startswith("_"):
        return _same_items(json.loads(value, parse_float=str, parse_int=str), array_of(text), kind[1:])
    if kind == "hstore":
        return json.loads(value) == _hstore(text)
    return False


def _time(text: str) -> str:
    text = text.removesuffix("Z").removesuffix("+00")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _same_items(mine: Any, theirs: Any, kind: str) -> bool:
    if isinstance(mine, list) and isinstance(theirs, list):
        return len(mine) == len(theirs) and all(map(lambda a, b: _same_items(a, b, kind), mine, theirs))
    if mine is None or theirs is None or isinstance(theirs, list):
        return mine is None and theirs is None
    if isinstance(mine, bool):
        return theirs == ("t" if mine else "f")
    if kind == "bytea":
        return base64.b64decode(mine).hex() == theirs.removeprefix("\\x")
    if kind in ("numeric", "float8", "float4"):
        return Decimal(mine) == Decimal(theirs)
    if kind in ("timestamp", "timestamptz"):
        return _moment(mine) == _moment(theirs)
    if kind == "mail":  # an array of a domain comes as bytes
        return base64.b64decode(mine).decode() == str(theirs)
    if kind == "hstore":
        return bool(json.loads(mine) == _hstore(theirs))
    return bool(mine == theirs)


def array_of(text: str) -> list[Any]:
    """Read an array as PostgreSQL writes it."""
    items, _ = _array(text, 1)
    return items


def _array(text: str, at: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    while text[at] != "}":
        if text[at] == ",":
            at += 1
        elif text[at] == "{":
            inner, at = _array(text, at + 1)
            items.append(inner)
        elif text[at] == '"':
            item, at = _quoted(text, at + 1)
            items.append(item)
        else:
            end = min(end for end in (text.find(",", at), text.find("}", at)) if end >= 0)
            items.append(None if text[at:end] == "NULL" else text[at:end])
            at = end
    return items, at + 1


def _quoted(text: str, at: int) -> tuple[str, int]:
    result = ""
    while text[at] != '"':
        at += text[at] == "\\"
        result += text[at]
        at += 1
    return result, at + 1


def _hstore(text: str) -> dict[str, str | None]:
    return dict(_pairs(text))


def _pairs(text: str) -> Iterator[tuple[str, str | None]]:
    at = 0
    while at < len(text):
        key, at = _quoted(text, at + 1)
        at += 2
        if text.startswith("NULL", at):
            value, at = None, at + 4
        else:
            value, at = _quoted(text, at + 1)
        yield key, value
        at += 2


def counted(problems: list[str]) -> Counter[str]:
    """Return problems by their first words."""
    return Counter(problem.split(" of ")[0] for problem in problems)


_PLAIN = {
    "int2": "SMALLINT",
    "int4": "INT",
    "int8": "BIGINT",
    "oid": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "bool": "BIT(1)",
    "bytea": "LONGBLOB",
    "date": "DATE",
    "timestamp": "DATETIME(6)",
    "timestamptz": "TIMESTAMP(6)",
    "time": "TIME(6)",
    "json": "JSON",
    "jsonb": "JSON",
    "hstore": "JSON",
    "point": "POINT",
    "money": "DECIMAL(38,2)",
}
# types whose text comes as bytes
_UNKNOWN = frozenset(
    {"line", "lseg", "box", "path", "polygon", "circle", "int4multirange", "tsquery", "pg_lsn", "jsonpath", "regclass"}
    | {"pair"}
)


def create_table(path: Path, name: str) -> str:
    """Return a CREATE TABLE, as a pipeline states it, of a table as a ``source_at`` file describes it."""
    with lzma.open(path, "rt") as lines:
        next(lines)
        data = next(one for one in map(json.loads, lines) if f"{one['schema']}.{one['table']}" == name)
    columns = [f"`{column['name']}` {_type(column)}" for column in data["columns"]]
    if data["primary_key"]:
        columns.append(f"PRIMARY KEY ({', '.join(f'`{column}`' for column in data['primary_key'])})")
    return f"CREATE TABLE `{data['table']}` ({', '.join(columns)})"


def _type(column: dict[str, Any]) -> str:
    kind, declared = column["data_type"], column["column_type"]
    digits = declared.partition("(")[2].partition(")")[0]
    if kind in ("timestamp", "time") and digits and int(digits) <= 3:
        return f"{'DATETIME' if kind == 'timestamp' else 'TIME'}(3)"
    if kind in ("bit", "varbit"):
        return f"BIT({digits or 1})" if kind == "bit" or digits else "LONGBLOB"
    if kind in _UNKNOWN:
        return "LONGBLOB"
    return "JSON" if kind.startswith("_") else _PLAIN.get(kind, "LONGTEXT")


def verdict(script: Script, table: SourceTable) -> str:
    """Return ``equal``, ``parked``, or what is wrong."""
    states = [state for state in script.states.values() if (state.database, state.table) == (table.schema, table.table)]
    if not states:
        return "equal" if not table.rows else "absent"
    if states[-1].state != "ok":
        assert any(reason in str(states[-1].reason) for reason in REASONS), states[-1].reason
        return "parked"
    location = DeltaLocation(table_location(str(script.root), table.schema, table.table), {})
    problems = differing(table, location.rows())
    return "; ".join(problems[:5]) or "equal"
