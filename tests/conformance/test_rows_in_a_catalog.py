# SPDX-License-Identifier: Apache-2.0
"""Rows at the edges of every type in Iceberg tables: they come back as they were, and are found by their values."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.expressions import AlwaysTrue, And, EqualTo, IsNaN, IsNull

from spark_jobs.sinks.iceberg.table import IcebergTable
from tests.conformance import by_duckdb
from tests.conformance.catalog_tables import KINDS, WAYS, changed, differing, partitioned, repartitioned, stored
from tests.conformance.edge_tables import GROUPS, edge_rows
from tests.sample import ALL

ROW_READERS: dict[str, Callable[[Any], pa.Table]] = {
    "pyiceberg": lambda table: table.scan().to_arrow(),
    "DuckDB": lambda table: by_duckdb.query(f"SELECT * FROM {by_duckdb.iceberg(table)}"),
}


@pytest.fixture(scope="module", params=GROUPS)
def edges(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, IcebergTable]:
    """Return the rows of a group of types, and a table that holds them and is only read."""
    rows = edge_rows(request.param)
    return rows, stored(rows, tmp_path_factory.mktemp("edges"))


def test_rows_come_back_as_they_were(edges: tuple[pa.Table, IcebergTable]) -> None:
    rows, table = edges
    back = table.rows().sort_by("id")
    assert back.schema.equals(rows.schema)
    assert differing(back, rows) == {}
    assert [name for name, read in ROW_READERS.items() if differing(read(table.table), rows)] == []
    for number in range(rows.num_rows):
        key = rows.slice(number, 1).select(["id"])
        assert table.rows(key).column("id").to_pylist() == [number]


def condition(name: str, value: Any) -> Any:
    if value is None:
        return IsNull(name)
    if isinstance(value, float) and math.isnan(value):
        return IsNaN(name)
    return EqualTo(name, value.isoformat() if isinstance(value, datetime) else value)


def test_pyiceberg_finds_each_row_by_all_of_its_values(edges: tuple[pa.Table, IcebergTable]) -> None:
    rows, table = edges
    assert ids_found(table.table, rows) == ids_of(rows)


def ids_found(table: Any, rows: pa.Table) -> list[list[Any]]:
    """Return what filters by all values of each row give."""
    every_ids = []
    for row in rows.to_pylist():
        every: Any = AlwaysTrue()
        for name, value in row.items():
            # pyiceberg takes an infinite FLOAT for one that no row has, and filters no lists (0.12)
            infinite = pa.types.is_float32(rows.schema.field(name).type) and value in (math.inf, -math.inf)
            if not infinite and not pa.types.is_list(rows.schema.field(name).type):
                every = And(every, condition(name, value))
        every_ids.append(table.scan(row_filter=every, selected_fields=("id",)).to_arrow().column("id").to_pylist())
    return every_ids


def ids_of(rows: pa.Table) -> list[list[Any]]:
    return [[number] for number in rows.column("id").to_pylist()]


def test_duckdb_finds_each_row_by_all_of_its_values(edges: tuple[pa.Table, IcebergTable]) -> None:
    rows, table = edges
    for row in rows.to_pylist():
        assert by_duckdb.ids_of(by_duckdb.iceberg(table.table), row, rows.schema) == [row["id"]], row


@pytest.mark.parametrize("kind", KINDS)
def test_readers_see_one_table_through_all_changes_of_its_columns(kind: str, tmp_path: Path) -> None:
    table, rows = changed(kind, tmp_path)
    assert differing(table.rows(), rows) == {}
    assert [name for name, read in ROW_READERS.items() if differing(read(table.table), rows)] == []


@pytest.mark.every(2)
@pytest.mark.parametrize(("way", "group"), WAYS)
def test_readers_find_each_row_in_its_partition(way: str, group: str, tmp_path: Path) -> None:
    rows = edge_rows(group)
    table = partitioned(rows, way, tmp_path)
    assert differing(table.rows().sort_by("id"), rows) == {}
    assert [name for name, read in ROW_READERS.items() if differing(read(table.table), rows)] == []
    rows = rows if ALL else rows.take(list(range(0, rows.num_rows, 2)))
    assert ids_found(table.table, rows) == ids_of(rows)
    # DuckDB rounds months and days of times before 1970 the other way than the format says (1.5)
    is_wrong = [way in ("month", "day") and pa.types.is_timestamp(field.type) for field in rows.schema]
    asked = pa.schema([field for field, wrong in zip(rows.schema, is_wrong, strict=True) if not wrong])
    for row in rows.to_pylist():
        assert by_duckdb.ids_of(by_duckdb.iceberg(table.table), row, asked) == [row["id"]], row


@pytest.mark.every(2)
@pytest.mark.parametrize("kind", KINDS)
def test_readers_see_one_table_that_is_partitioned_in_several_ways(kind: str, tmp_path: Path) -> None:
    table, rows = repartitioned(kind, tmp_path)
    assert len({file.file.spec_id for file in table.files()}) > 1
    assert differing(table.rows(), rows) == {}
    assert [name for name, read in ROW_READERS.items() if differing(read(table.table), rows)] == []
    rows = rows if ALL else rows.take(list(range(0, rows.num_rows, 3)))  # a search for one takes long
    assert ids_found(table.table, rows) == ids_of(rows)
    for row in rows.to_pylist():
        assert by_duckdb.ids_of(by_duckdb.iceberg(table.table), row, rows.schema) == [row["id"]], row
