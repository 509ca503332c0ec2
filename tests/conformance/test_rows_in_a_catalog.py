# SPDX-License-Identifier: Apache-2.0
"""Rows at the edges of every type in Iceberg tables: they come back as they were, and are found by their values."""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.expressions import AlwaysTrue, And, EqualTo, IsNaN, IsNull

from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.iceberg.sink import open_sink
from spark_jobs.sinks.iceberg.table import IcebergTable
from tests.conformance.edge_tables import GROUPS, edge_rows
from tests.sinks.actions import columns_of, commit
from tests.sinks.kinds import options_of


def stored(rows: pa.Table, folder: Path) -> IcebergTable:
    """Return a table with each row in a file of its own, half of them merged over others."""
    sink, location = open_sink(options_of("iceberg", folder)), str(folder / "db" / "t")
    columns, none = columns_of(rows.schema, "id"), rows.slice(0, 0).select(["id"])
    half = rows.num_rows // 2
    for seq in range(rows.num_rows):
        one = rows.slice(seq if seq < half else 0, 1).set_column(0, "id", pa.array([seq], pa.int64()))
        action = Action("append" if seq else "create", commit(seq + 1), one, none, ["id"], columns=columns)
        sink.task_writer().commit(sink.open(location), action)
    action = Action("merge", commit(98), rows.slice(half), none, ["id"], columns=columns)
    sink.task_writer().commit(sink.open(location), action)
    return sink.open(location)


def plain(value: Any) -> Any:
    """Return a value that equals itself, with the sign of a zero."""
    return repr(value) if isinstance(value, (float, list)) else value


@pytest.mark.parametrize("group", GROUPS)
def test_rows_come_back_as_they_were(group: str, tmp_path: Path) -> None:
    rows = edge_rows(group)
    table = stored(rows, tmp_path)
    back = table.rows().sort_by("id")
    assert back.schema.equals(rows.schema)
    for name in rows.column_names:
        pairs = zip(back.column(name).to_pylist(), rows.column(name).to_pylist(), strict=True)
        assert [(mine, theirs) for mine, theirs in pairs if plain(mine) != plain(theirs)] == [], name
    for number in range(rows.num_rows):
        key = rows.slice(number, 1).select(["id"])
        assert table.rows(key).column("id").to_pylist() == [number]


def condition(name: str, value: Any) -> Any:
    if value is None:
        return IsNull(name)
    if isinstance(value, float) and math.isnan(value):
        return IsNaN(name)
    return EqualTo(name, value.isoformat() if isinstance(value, datetime) else value)


@pytest.mark.parametrize("group", GROUPS)
def test_pyiceberg_finds_each_row_by_all_of_its_values(group: str, tmp_path: Path) -> None:
    rows = edge_rows(group)
    table = stored(rows, tmp_path).table
    for row in rows.to_pylist():
        every: Any = AlwaysTrue()
        for name, value in row.items():
            # pyiceberg takes an infinite FLOAT for one that no row has, and filters no lists (0.12)
            infinite = pa.types.is_float32(rows.schema.field(name).type) and value in (math.inf, -math.inf)
            if not infinite and not pa.types.is_list(rows.schema.field(name).type):
                every = And(every, condition(name, value))
        answers = table.scan(row_filter=every, selected_fields=("id",)).to_arrow()
        assert answers.column("id").to_pylist() == [row["id"]], row
