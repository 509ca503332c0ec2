# SPDX-License-Identifier: Apache-2.0
"""Recorded flat JSON of Canal 1.1.7, folded by key in plain Python, gives what the database holds."""

from __future__ import annotations

import json
import lzma
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.schema import TableName, TableSchema
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import SchemaChange
from airflow_provider_cdc.core.values.images import Field, type_images
from airflow_provider_cdc.core.values.types import arrow_type
from airflow_provider_cdc.demo.truth import comparable_value, expected
from tests.services.capture import read

DATA = Path(__file__).parents[4] / "captures" / "data"
CAPTURES = ["canal-my8-f", "canal-mdb-f"]
TOTAL_ORDER, HASHED = "f1", "fh"

# Columns that Canal damages or spells otherwise (docs/wire/canal.md 10.4), with how many final rows differ.
CHARSET = "Canal reads the bytes of every text column as UTF-8"
SPELLING = "MySQL's JSON: numbers as Java prints them, dates as date-times"
SIGN = "MySQL answers a query with 0 where its binlog has -0"
DAMAGED = {
    "canal-my8-f": {
        ("t_str", "vg"): (CHARSET, 6),
        ("t_str", "vl"): (CHARSET, 6),
        ("t_str", "vk"): (CHARSET, 18),
        ("t_str", "tg"): (CHARSET, 6),
        ("t_json", "j"): (SPELLING, 2),
        ("t_json", "k"): (SPELLING, 1),
        ("t_num", "f"): (SIGN, 1),
        ("t_num", "f53"): (SIGN, 1),
        ("t_num", "db"): (SIGN, 1),
    },
    "canal-mdb-f": {
        ("t_str", "vg"): (CHARSET, 6),
        ("t_str", "vl"): (CHARSET, 6),
        ("t_str", "vk"): (CHARSET, 18),
        ("t_str", "tg"): (CHARSET, 6),
    },
}
# CHAR CHARACTER SET binary is read as text, too: what was not UTF-8 shows it, and its row fails
FAILING = {("t_bin", "cb", "text_invalid"): 3}
# What cannot be equal by its rows: changed by statements, by a foreign key, by XA ROLLBACK, by partial images
UNEQUAL = {"odd_stmt", "odd_child", "odd_par", "img", "part"}

# A failed send to a topic just created repeated its batch (canal_warnings.txt next to the records)
ROW = ("insert", "shop", "ra", None, '{"id":"4","v":"ra2"}')
REPEATED = {"canal-my8-f": {ROW: 1}, "canal-mdb-f": {}}

Change = dict[str, Any]


@cache
def changes(capture: str) -> dict[str, list[Change]]:
    """Return the decoded changes by layout: one partition, three, and a topic a table."""
    partitions = defaultdict(list)
    for record in read(DATA / capture):
        partitions[record.topic, record.partition].append(record)
    wire, layouts = open_format("canal-json"), defaultdict(list)
    for (topic, partition), group in sorted(partitions.items()):
        values = [record.value for record in group]
        times = [record.timestamp for record in group]
        offsets = [record.offset for record in group]
        batch = wire.decode(Records(topic, partition, offsets, times, [None] * len(group), values))
        layouts[topic if topic in (TOTAL_ORDER, HASHED) else "d"] += batch.to_pylist()
    return layouts


@cache
def source(capture: str) -> dict[TableName, dict[str, Any]]:
    with lzma.open(DATA / capture / "source_final.jsonl.xz", "rt") as lines:
        tables = map(json.loads, lines)
        return {TableName(table["database"], table["table"]): table for table in tables}


@pytest.mark.parametrize("capture", CAPTURES)
def test_canal_begins_rows_with_their_images_and_names_columns_in_the_tables_order(capture: str) -> None:
    rows = [(r.value, message) for r in read(DATA / capture) if r.value and (message := json.loads(r.value))["data"]]
    assert rows
    for value, message in rows:
        assert value.startswith(b'{"data":[')
        assert [list(image) for image in message["data"]] == [list(message["mysqlType"])] * len(message["data"])


def schemas(capture: str) -> dict[TableName, TableSchema]:
    """Return the tables whose structure, name and rows no DDL changed."""
    reported = [change for change in changes(capture)[TOTAL_ORDER] if change["kind"] == "schema"]
    timeline = build_timeline(
        SchemaChange(f"{c['offset']:08d}", 0, c["default_database"], c["statement"]) for c in reported
    )
    once = {name: spans[0][1] for name, spans in timeline.names.items() if len(spans) == 1}
    tables = {name: timeline.tables[i] for name, i in once.items() if i is not None and name.table not in UNEQUAL}
    return {name: table.schema for name, table in tables.items() if len(table.versions) == 1 and not table.clears}


def folded(capture: str, name: TableName, schema: TableSchema) -> list[Change]:
    """Return the change that made each row a table has in the end."""
    mine = [c for c in changes(capture)[TOTAL_ORDER] if c["kind"] == "row" and (c["database"], c["table"]) == name]
    key = [column.name for column in schema.key_columns]
    if not key:
        return _counted(mine)
    rows: dict[tuple[str, ...], Change] = {}
    for change in mine:
        if change["before"] is not None:
            del rows[_key(_row_before(change), key)]
        if change["after"] is not None:
            rows[_key(change["after"], key)] = change
    return list(rows.values())


def _row_before(change: Change) -> str:
    """Return the row before a change, of which an update names only the columns that it changed."""
    unchanged = {} if change["after"] is None else json.loads(change["after"])
    return json.dumps({**unchanged, **json.loads(change["before"])})


def _key(image: str, key: list[str]) -> tuple[str, ...]:
    members = json.loads(image)
    return tuple(members.get(name, members.get(name.replace("`", "``"))) for name in key)


def _counted(mine: list[Change]) -> list[Change]:
    rows: dict[str, list[Change]] = defaultdict(list)
    for change in mine:
        if change["before"] is not None:
            rows[_members(_row_before(change))].pop()
        if change["after"] is not None:
            rows[_members(change["after"])].append(change)
    return [change for same in rows.values() for change in same]


def _members(image: str) -> str:
    return json.dumps(json.loads(image))


def typed(rows: list[Change], schema: TableSchema) -> tuple[list[tuple[Any, ...]], Counter[tuple[str, str]]]:
    """Return rows as values, and how many values of which column failed and why."""
    wire, lines, failures = open_format("canal-json"), [], Counter()
    for columns in {change["columns"] for change in rows}:
        description = wire.describe(columns)
        assert set(description.names) == {column.name for column in schema.columns}
        fields = [
            Field(wire.encoding_of(c.name, c.type, description), c.type, arrow_type(c.type)) for c in schema.columns
        ]
        images = pa.array([change["after"] for change in rows if change["columns"] == columns])
        result = type_images(images, fields)
        names = {field.encoded.name: column.name for field, column in zip(fields, schema.columns, strict=True)}
        failures.update((names[failure.column], failure.reason) for failure in result.failures)
        bad = {failure.row for failure in result.failures}
        values = zip(*(column.to_pylist() for column in result.columns), strict=True)
        lines += [row for index, row in enumerate(values) if index not in bad]
    return lines, failures


def truth(value: str | None, kind: str) -> Any:
    """Return a source text in the form that :func:`found` gives."""
    if value is None:
        return None
    if kind in ("enum", "set"):
        return value.split(":", 1)[1]
    if kind == "geomcollection":
        return expected(value, "geometrycollection")
    if kind in ("date", "datetime", "timestamp") and "-00" in value:
        return None  # dates that no calendar has are counted as lost (TypeOptions.zero_dates)
    return expected(f"{int(value):x}" if kind == "bit" else value, kind)


def compared(capture: str, name: TableName, schema: TableSchema) -> tuple[Counter[str], Counter[tuple[str, str]]]:
    """Return how many values of which columns differ from the database's, and how many failed."""
    table = source(capture)[name]
    kinds = [column["data_type"] for column in table["columns"]]
    rows, failures = typed(folded(capture, name, schema), schema)
    mine = [tuple(map(comparable_value, row, kinds)) for row in rows]
    theirs = [tuple(map(truth, row, kinds)) for row in table["rows"]]
    assert [column.name for column in schema.columns] == [column["name"] for column in table["columns"]]
    if not schema.key:
        assert Counter(map(repr, mine)) == Counter(map(repr, theirs)), name
        return Counter(), failures
    indexes = [schema.columns.index(column) for column in schema.key_columns]
    by_key = [{tuple(repr(row[index]) for index in indexes): row for row in lines} for lines in (mine, theirs)]
    assert by_key[0].keys() <= by_key[1].keys(), name
    assert len(by_key[0]) + sum(failures.values()) == len(by_key[1]), name
    pairs = [(row, by_key[1][key]) for key, row in by_key[0].items()]
    return Counter(
        column.name
        for row, other in pairs
        for column, a, b in zip(schema.columns, row, other, strict=True)
        if repr(a) != repr(b)
    ), failures


@pytest.mark.parametrize("capture", CAPTURES)
def test_every_value_is_the_databases_but_for_what_canal_damages(capture: str) -> None:
    damaged: dict[tuple[str, str], int] = {}
    failing: Counter[tuple[str, str, str]] = Counter()
    checked = schemas(capture)
    assert {"t_int", "t_num", "t_time", "t_str", "t_bin", "t_json", "t_geo", "t_nokey", "we ird.na-me"} <= {
        name.table for name in checked
    }
    for name, schema in checked.items():
        different, failures = compared(capture, name, schema)
        damaged.update({(name.table, column): count for column, count in different.items()})
        failing.update({(name.table, *failure): count for failure, count in failures.items()})
    assert damaged == {cell: count for cell, (_, count) in DAMAGED[capture].items()}
    assert failing == FAILING


@pytest.mark.parametrize("capture", CAPTURES)
def test_only_what_cannot_be_applied_is_an_error(capture: str) -> None:
    for layout in changes(capture).values():
        codes = Counter(change["error_code"] for change in layout if change["kind"] == "error")
        assert codes == {"record.statement_format": 4, "record.partial_image": 2, "record.xa_rollback": 1}


@pytest.mark.parametrize("capture", CAPTURES)
def test_rows_that_are_spread_over_partitions_are_the_same_rows(capture: str) -> None:
    def rows(layout: str) -> Counter[tuple[Any, ...]]:
        names = ("op", "database", "table", "before", "after")
        return Counter(tuple(c[name] for name in names) for c in changes(capture)[layout] if c["kind"] == "row")

    assert rows(HASHED) == rows(TOTAL_ORDER)
    without = Counter({row: n for row, n in rows(TOTAL_ORDER).items() if row[2] not in ("we ird.na-me", "订单")})
    assert rows("d") - without == REPEATED[capture]
    assert not without - rows("d")


@pytest.mark.parametrize("capture", CAPTURES)
def test_labels_that_records_state_are_those_of_the_statements(capture: str) -> None:
    wire, checked = open_format("canal-json"), 0
    for name, schema in schemas(capture).items():
        texts = {c["columns"] for c in changes(capture)[TOTAL_ORDER] if (c["database"], c["table"]) == name}
        for column in schema.columns:
            for text in texts - {None} if column.type.labels else ():
                labels = wire.encoding_of(column.name, column.type, wire.describe(text)).labels
                assert labels == column.type.labels
                checked += 1
    assert checked >= 3
