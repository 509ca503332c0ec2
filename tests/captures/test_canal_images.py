# SPDX-License-Identifier: Apache-2.0
"""Fold by key what Canal's recorded packets say of rows: the database's content; flat JSON says the same."""

from __future__ import annotations

import json
import lzma
import struct
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.formats.contract import Description, Format, Records
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.encoding import Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from tests.services.capture import read

DATA = Path(__file__).parent / "data"
SOURCES = ("my8", "mdb")

NUMBERS = {"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "year"}
BYTES = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
SHAPES = {"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"}
SHAPES |= {"geometrycollection", "geomcollection"}

# What Canal damages or does not say (docs/wire/canal.md 4.2, 4.4, 10): cells by table and column, whole tables
DAMAGED = {
    ("t_str", "vg"): "text in gbk is read as UTF-8",
    ("t_str", "vk"): "text in gbk is read as UTF-8",
    ("t_str", "vl"): "text in latin1 is read as UTF-8",
    ("t_str", "tg"): "text in gbk is read as UTF-8",
    ("t_bin", "cb"): "CHAR CHARACTER SET binary is read as text",
    ("t_json", "j"): "numbers and dates inside JSON as Java prints them",
    ("t_json", "k"): "numbers and dates inside JSON as Java prints them",
}
UNTOLD = {
    "img": "row image MINIMAL: inserts leave out columns that have defaults",
    "odd_stmt": "changed by statements",
    "odd_xa": "an XA transaction was rolled back after its rows were sent",
    "odd_child": "a foreign key deleted rows",
}


def changes(name: str, wire: Format, topic: str) -> list[dict[str, Any]]:
    records = [record for record in read(DATA / name) if record.topic == topic]
    offsets, times = [record.offset for record in records], [record.timestamp for record in records]
    keys, values = [record.key for record in records], [record.value for record in records]
    return wire.decode(Records(topic, 0, offsets, times, keys, values)).to_pylist()


@cache
def packets(source: str) -> list[dict[str, Any]]:
    """Everything of the topic with one partition."""
    return changes(f"canal-{source}-b", open_format("canal-protobuf"), "b1")


@cache
def content(source: str) -> dict[tuple[str, str], dict[str, Any]]:
    with lzma.open(DATA / f"canal-{source}-b" / "source_final.jsonl.xz", "rt") as lines:
        tables = [json.loads(line) for line in lines]
    return {(table["database"], table["table"]): table for table in tables}


def image(text: str | None) -> dict[str, Any] | None:
    return None if text is None else json.loads(text)


@pytest.mark.parametrize("source", SOURCES)
def test_only_what_cannot_be_applied_is_an_error(source: str) -> None:
    actual = Counter(change["error_code"] for change in packets(source) if change["kind"] == "error")
    # the capture's README counts one INSERT, two UPDATE and one DELETE without rows, and one XAROLLBACK
    assert actual == {"record.statement_format": 4, "record.xa_rollback": 1}


@pytest.mark.parametrize("source", SOURCES)
def test_flat_json_of_the_same_workload_has_the_same_rows(source: str) -> None:
    reported = ("row", "schema", "error")
    mine = [c for c in packets(source) if c["kind"] in reported]
    flat = changes(f"canal-{source}-f", open_format("canal-json"), "f1")
    theirs = [c for c in flat if c["kind"] in reported]
    assert len(mine) == len(theirs) > 2000
    for one, other in zip(mine, theirs, strict=True):
        if other["error_code"] == "record.partial_image":
            assert one["table"] == "img"  # flat JSON lacks the key of such an update
            continue
        for name in ("kind", "op", "database", "table", "statement", "error_code"):
            assert one[name] == other[name]
        if one["table"] == "img":
            continue  # flat JSON overlays what it has of both images
        for name in ("before", "after"):
            left, right = image(one[name]), image(other[name])
            assert (left is None) == (right is None)
            if name == "before" and right is not None:  # flat JSON names the columns that changed
                right = {**(image(other["after"]) or {}), **right}
            for column in left or ():
                if (one["table"], column) not in {("ev", "ts"), ("t_time", "ts6")}:  # the clock's
                    assert left[column] == right[column], (one["table"], column)


def altered(source: str) -> set[tuple[str, str]]:
    """Tables that something but rows changed once they had rows."""
    filled, result = set(), set()
    for change in packets(source):
        table = (change["database"], change["table"])
        if change["kind"] == "row":
            filled.add(table)
        elif change["kind"] == "schema" and (table in filled or "RENAME" in change["statement"]):
            result |= {table, *((d, t) for d, t in filled if t in change["statement"])}
    return result


def folded(source: str, table: tuple[str, str]) -> dict[tuple[Any, ...], tuple[dict[str, Any], Description]]:
    """Return the rows that are left, by key, with what their changes say of the columns."""
    wire = open_format("canal-protobuf")
    rows: dict[tuple[Any, ...], tuple[dict[str, Any], Description]] = {}
    for change in packets(source):
        if change["kind"] == "row" and (change["database"], change["table"]) == table:
            said = wire.describe(change["columns"])
            before, after = image(change["before"]), image(change["after"])
            members = [wire.encoding_of(name, ColumnType("int"), said).name for name in sorted(said.key or ())]
            if before is not None:
                del rows[tuple(before[member] for member in members)]
            if after is not None:
                rows[tuple(after[member] for member in members)] = after, said
    return rows


def _number(text: str, kind: str) -> float | Decimal:
    if kind == "float":
        return float(struct.unpack("f", struct.pack("f", float(text)))[0])
    return float(text) if kind == "double" else Decimal(text)


def of_source(value: str | None, kind: str) -> Any:
    """Return a value that SQL showed in the form of :func:`of_canal`."""
    if value is None:
        return None
    if kind in NUMBERS:
        return _number(value, kind)
    if kind in ("enum", "set", "bit"):
        return int(value.partition(":")[0])
    if kind in BYTES | SHAPES:
        return bytes.fromhex(value).rstrip(b"\0") if kind == "binary" else bytes.fromhex(value)
    return value


def of_canal(value: str | None, kind: str, encoding: Encoding) -> Any:
    if value is None:
        return None
    if kind in NUMBERS:
        return _number(value, kind)
    if encoding is Encoding.LATIN1_BYTES:
        data = value.encode("latin-1")
        return data if kind in BYTES | SHAPES else data.decode()
    if encoding in (Encoding.ENUM_INDEX, Encoding.SET_BITMASK) or kind == "bit":
        return int(value)
    return value


def differing(source: str) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield table, column and both values of what differs."""
    wire = open_format("canal-protobuf")
    for name, table in content(source).items():
        if name in altered(source) or not table["primary_key"] or name[1] in UNTOLD:
            continue
        kinds = {column["name"]: column["data_type"] for column in table["columns"]}
        names = list(kinds)
        key = [names.index(column) for column in sorted(table["primary_key"])]
        mine = folded(source, name)
        theirs = {tuple(row[index] for index in key): dict(zip(names, row, strict=True)) for row in table["rows"]}
        if mine.keys() != theirs.keys():
            yield name[1], "", sorted(mine.keys() - theirs.keys()), sorted(theirs.keys() - mine.keys())
        for index in mine.keys() & theirs.keys():
            row, said = mine[index]
            for column, kind in kinds.items():
                written = wire.encoding_of(column, ColumnType(kind), said)
                got = of_canal(row[written.name], kind, written.encoding)
                expected = of_source(theirs[index][column], kind)
                if got != expected:
                    yield name[1], column, got, expected


@pytest.mark.parametrize("source", SOURCES)
def test_rows_folded_by_key_are_the_databases_content(source: str) -> None:
    assert not [one for one in differing(source) if one[:2] not in DAMAGED]
