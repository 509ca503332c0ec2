# SPDX-License-Identifier: Apache-2.0
"""Columns of partitions that change, are missing or cannot be transformed, and partitions of somebody else."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.errors import SinkError
from spark_jobs.sinks.iceberg.table import IcebergTable
from tests.histories.debezium_records import snapshot_ddl
from tests.histories.log import Log
from tests.histories.numbered_rows import COLUMNS as NUMBERS
from tests.histories.numbered_rows import KEY, expected, insert
from tests.histories.scripted import Script
from tests.sinks.actions import columns_of
from tests.sinks.kinds import options_of, sink_of
from tests.sinks.laid_out import LaidOutTable
from tests.sinks.partitioned import KINDS, by, columns_with, demand_sound, some_rows


@pytest.mark.parametrize("kind", KINDS[::2])
def test_columns_of_partitions_are_widened_renamed_and_dropped(kind: str, tmp_path: Path) -> None:
    table = LaidOutTable(kind, tmp_path)
    narrow = pa.table({"id": pa.array([1, 2], pa.int64()), "n": pa.array([10, 20], pa.int32()), "c": ["x", "y"]})
    table.do("create", narrow, by("n", "truncate(1, c)"), columns=columns_of(narrow.schema, "id"))
    wide = pa.table({"id": pa.array([2, 3], pa.int64()), "n": pa.array([1 << 40, None], pa.int64()), "c": ["yy", "z"]})
    table.do("merge", wide, by("n", "truncate(1, c)"), columns=columns_with(id=1, n=2, c=3))
    rows = {1: {"id": 1, "n": 10, "c": "x"}, **{row["id"]: row for row in wide.to_pylist()}}
    demand_sound(table, rows)
    with pytest.raises(SinkError, match=r"sink\.partition.*the table has no column c"):
        table.do("merge", wide.rename_columns(["id", "n", "d"]), by("c"), columns=columns_with(id=1, n=2, d=3))
    demand_sound(table, rows)
    table.do(
        "merge", wide.slice(1).rename_columns(["id", "n", "d"]), by("n", "d"), columns=columns_with(id=1, n=2, d=3)
    )
    rows = {key: {"id": key, "n": row["n"], "d": row["c"]} for key, row in rows.items()}
    demand_sound(table, rows)
    # a column takes the usual name of a partition, and later that of a column that is gone
    again = wide.slice(1).rename_columns(["id", "n", "d"]).append_column("d_trunc_1", pa.array(["q"]))
    columns = columns_with(id=1, n=2, d=3, d_trunc_1=4)
    table.do("merge", again, by("truncate(1, d)"), columns=columns)
    rows = {key: {**row, "d_trunc_1": "q" if key == 3 else None} for key, row in rows.items()}
    demand_sound(table, rows)
    old, new = columns, columns_with(id=1, n=2, d=5)
    writer = table.sink.task_writer()
    assert not writer.evolves(table.open(), old, new, merges=True)
    assert writer.evolves(table.open(), old, columns_with(id=1, n=2, d=3), merges=True)
    table.do("overwrite", again.select(["id", "n", "d"]), by("d"), columns=new)
    demand_sound(table, {3: {"id": 3, "n": None, "d": "z"}})
    table.do("merge", again.select(["id", "n", "d"]), by(), 4, columns=new)
    demand_sound(table, {3: {"id": 3, "n": None, "d": "z"}})


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("price, more", "of the columns of type decimal only one"),
        ("month(name)", "month does not take column name, whose type is string"),
        ("hour(day)", "hour does not take column day, whose type is date"),
        ("bucket(2, paid)", r"bucket\[2\] does not take column paid"),
        ("gone", "the table has no column gone"),
        ("truncate(10, price)", r"readers do not agree on truncate\[10\] of column price"),
        ("ratio", "column ratio has type double, which no partition has"),
        ("bucket(2, vector)", "does not take column vector"),
    ],
)
def test_what_columns_cannot_do_is_said_before_anything_is_written(entry: str, problem: str, tmp_path: Path) -> None:
    table = LaidOutTable("iceberg", tmp_path)
    rows = some_rows([1], random.Random(1)).append_column("ratio", pa.array([0.5]))
    rows = rows.append_column("vector", pa.array([[0.5]], pa.list_(pa.float32())))
    rows = rows.append_column("more", pa.array([Decimal("1.0")]))
    entries = entry.split(", ") if entry.startswith("price") else [entry]
    with pytest.raises(SinkError, match=rf"sink\.partition.*{problem}"):
        table.do("create", rows, by(*entries))
    assert not table.open().exists
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize("kind", KINDS[::2])
def test_a_rule_goes_on_under_the_old_name_of_a_column(kind: str, tmp_path: Path) -> None:
    table = LaidOutTable(kind, tmp_path)
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "n": pa.array([10, 20], pa.int64()), "c": ["x", "y"]})
    layout = by("bucket(2, n)", "c")
    table.do("create", rows, layout, columns=columns_with(id=1, n=2, c=3))
    renamed = rows.slice(1).rename_columns(["id", "n", "d"])
    table.do("merge", renamed, layout, columns=columns_with(id=1, n=2, d=3))
    table.do("merge", renamed, layout, columns=columns_with(id=1, n=2, d=3))
    assert len(table.iceberg().table.metadata.partition_specs) == 1
    demand_sound(table, {1: {"id": 1, "n": 10, "d": "x"}, 2: {"id": 2, "n": 20, "d": "y"}})
    # columns take each other's names: the rule means the one that has the name
    again = renamed.append_column("c", pa.array(["new"]))
    table.do("merge", again, layout, columns=columns_with(id=1, n=2, d=3, c=4))
    assert [field.source_id for field in table.iceberg().table.spec().fields] == [2, 4]
    swapped = again.rename_columns(["id", "n", "c", "d"])
    table.do("merge", swapped, layout, columns=columns_with(id=1, n=2, c=3, d=4))
    demand_sound(table, {1: {"id": 1, "n": 10, "c": "x", "d": None}, 2: {"id": 2, "n": 20, "c": "y", "d": "new"}})
    with pytest.raises(SinkError, match=r"sink\.partition.*identity of column c is there twice"):
        table.do("merge", renamed.rename_columns(["id", "n", "c"]), by("c", "c"), columns=columns_with(id=1, n=2, c=3))
    with pytest.raises(SinkError, match=r"sink\.partition.*the table has no column n"):
        table.do("merge", again.select(["id", "c"]), layout, columns=columns_with(id=1, c=4))


def test_an_older_version_is_read_when_a_column_of_its_partitions_is_gone(tmp_path: Path) -> None:
    table = LaidOutTable("iceberg", tmp_path)
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "c": ["x", "y"], "e": ["", ""]})
    table.do("create", rows.drop_columns(["e"]), by("c"), columns=columns_with(id=1, c=2))
    table.do("merge", rows.slice(1), by("c"), columns=columns_with(id=1, c=2, e=3))
    version = table.open().version
    table.do("overwrite", rows.select(["id", "e"]), by("e"), columns=columns_with(id=1, e=3))
    older = table.sink.open(table.location, version)
    assert older.rows().sort_by("id").to_pylist() == [{"id": 1, "c": "x", "e": None}, {"id": 2, "c": "y", "e": ""}]
    assert older.rows(rows.select(["id"]).slice(1)).to_pylist() == [{"id": 2, "c": "y", "e": ""}]


def test_partitions_of_somebody_else_are_refused(tmp_path: Path) -> None:
    table = LaidOutTable("iceberg", tmp_path)
    rows = some_rows([1, 2], random.Random(1))
    table.do("create", rows, by("name"))
    with table.iceberg().table.update_spec() as update:
        update.add_field("day", "month", "their_month")
    with pytest.raises(SinkError, match=r"sink\.unreadable.*partitions that others made.*db\.t"):
        table.do("merge", rows, by("name"))
    assert {file.name.partition("-")[0] for file in tmp_path.rglob("*.parquet")} == {"00000"}


def test_a_table_that_lacks_the_column_is_parked_until_it_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log()
    log.install(monkeypatch)
    script = Script(log, tmp_path, sink_type="iceberg", sink_options=options_of("iceberg", tmp_path))
    script.tables = {"shop.*": {"partition_by": ["truncate(10, w)"]}}
    script.send(*snapshot_ddl(100, {"t": (NUMBERS, KEY)}), insert("t", 7, 110), insert("t", 8, 120))
    script.sync()
    (state,) = script.states.values()
    assert (state.state, state.code) == ("parked", "sink.partition")
    assert "the table has no column w" in state.reason
    script.tables = {"shop.*": {"partition_by": ["truncate(10, v)"]}}
    script.send(insert("t", 19, 130))
    script.sync()
    (state,) = script.states.values()
    assert state.state == "ok"
    stored = sink_of("iceberg", tmp_path).open(str(tmp_path / "shop" / "t"))
    assert isinstance(stored, IcebergTable)
    assert Counter(zip(*stored.rows().to_pydict().values(), strict=True)) == expected(7, 8, 19)
    assert sorted(file.file.partition[0] for file in stored.files()) == [0, 10]
