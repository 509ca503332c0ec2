# SPDX-License-Identifier: Apache-2.0
"""Iceberg tables with partitions: a row may change its partition, and a table the way in which it is partitioned."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.expressions import EqualTo

from airflow_provider_cdc.core.errors import SinkError
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.iceberg.live_files import LiveFile
from spark_jobs.sinks.iceberg.table import IcebergTable
from tests.sample import amount
from tests.sinks.actions import columns_of, commit
from tests.sinks.laid_out import LaidOutTable
from tests.sinks.partitioned import COLUMNS, KINDS, by, demand_sound, some_rows

WAYS = (
    ["name"],
    ["day"],
    ["price", "paid"],
    ["at"],
    ["raw"],
    ["year(at)", "bucket(3, name)"],
    ["month(at)"],
    ["month(day)"],
    ["day(zoned)", "paid"],
    ["hour(at)"],
    ["bucket(4, id)"],
    ["bucket(2, raw)", "bucket(2, price)", "bucket(2, day)", "bucket(3, at)"],
    ["truncate(1, name)", "truncate(10, n)"],
    ["truncate(2, raw)", "price"],
)


@pytest.mark.sampled
@pytest.mark.parametrize("way", WAYS, ids=map(" ".join, WAYS))
@pytest.mark.parametrize("kind", KINDS[:2])
def test_rows_change_their_partitions_as_they_like(kind: str, way: list[str], tmp_path: Path) -> None:
    table, rnd = LaidOutTable(kind, tmp_path), random.Random(str(way))
    first = some_rows(list(range(60)), rnd)
    table.do("create", first, by(*way))
    rows = {row["id"]: row for row in first.to_pylist()}
    for _ in range(amount(1, 3)):
        put = some_rows(sorted(rnd.sample(range(80), rnd.choice((2, 30)))), rnd)
        gone = sorted(set(rnd.sample(range(80), 6)) - set(put.column("id").to_pylist()))
        table.do("merge", put, by(*way), *gone)
        rows = {**rows, **{row["id"]: row for row in put.to_pylist()}}
        rows = {key: row for key, row in rows.items() if key not in gone}
    assert not table.iceberg().table.spec().is_unpartitioned()
    demand_sound(table, rows)
    table.maintain(by(*way))
    demand_sound(table, rows)
    partitions = [(file.file.spec_id, file.file.partition) for file in table.iceberg().files()]
    assert len(partitions) == len(set(partitions))
    assert table.maintain(by(*way)).compacted == 0


@pytest.mark.every(2)
@pytest.mark.parametrize("kind", KINDS)
def test_a_running_table_is_partitioned_in_another_way(kind: str, tmp_path: Path) -> None:
    """Let files of several ways stand side by side, with deletes on each."""
    table, rnd = LaidOutTable(kind, tmp_path), random.Random(kind)
    ways = [(), ("name",), ("month(at)", "bucket(2, id)"), ("name",), ("truncate(5, n)",), ()]
    first = some_rows(list(range(40)), rnd)
    table.do("create", first, by(*ways[0]))
    rows = {row["id"]: row for row in first.to_pylist()}
    for way in ways:
        files = {file.path for file in table.iceberg().files()}
        put = some_rows([*rnd.sample(range(40), 3), *range(len(rows), len(rows) + 9)], rnd)
        table.do("merge", put, by(*way))
        rows = {**rows, **{row["id"]: row for row in put.to_pylist()}}
        stayed = files & {file.path for file in table.iceberg().files()}
        assert stayed or kind == "iceberg copy-on-write"
        demand_sound(table, rows)
    every = table.iceberg().table.metadata.partition_specs
    assert [len(spec.fields) for spec in every] == [0, 1, 2, 1]
    table.do("overwrite", some_rows([1, 2], rnd), by("day(zoned)"))
    assert table.iceberg().table.spec().fields[0].name == "zoned_day_p1004"
    assert len(table.rows()) == 2


def test_many_partitions_keep_few_files_open(tmp_path: Path) -> None:
    table = LaidOutTable("iceberg", tmp_path)
    rows = pa.table({"id": pa.array(range(600), pa.int64()), "v": pa.array([str(n % 150) for n in range(600)])})
    table.do("create", rows, by("v"))
    assert len(table.iceberg().files()) == 150
    assert table.open().rows().sort_by("id").equals(rows)
    matching = table.iceberg().table.scan(row_filter=EqualTo("v", "7"))
    assert len(list(matching.plan_files())) == 1
    assert matching.to_arrow().num_rows == 4


HASHES = {  # of the specification's appendix on 32-bit hashes
    "n": (pa.array([34], pa.int32()), 2017239379),
    "wide": (pa.array([34], pa.int64()), 2017239379),
    "price": (pa.array([Decimal("14.20")], pa.decimal128(9, 2)), -500754589),
    "day": (pa.array([date(2017, 11, 16)]), -653330422),
    "at": (pa.array([datetime(2017, 11, 16, 22, 31, 8)], pa.timestamp("us")), -2047944441),
    "zoned": (pa.array([datetime(2017, 11, 16, 22, 31, 8, tzinfo=UTC)]), -2047944441),
    "name": (pa.array(["iceberg"]), 1210000089),
    "raw": (pa.array([b"\0\1\2\3"]), -188683207),
}


def test_buckets_are_those_of_the_specification(tmp_path: Path) -> None:
    table, most = LaidOutTable("iceberg", tmp_path), (1 << 31) - 1
    rows = pa.table({"id": pa.array([1], pa.int64()), **{name: column for name, (column, _) in HASHES.items()}})
    table.do("create", rows, by(*(f"bucket({most}, {name})" for name in HASHES)))
    (file,) = table.iceberg().files()
    stored = [file.file.partition[ordinal] for ordinal in range(len(HASHES))]
    assert stored == [(number & most) % most for _, number in HASHES.values()]


def test_times_that_python_does_not_have_are_partitioned(tmp_path: Path) -> None:
    table, day = LaidOutTable("iceberg", tmp_path), -719_528  # 0000-01-01
    at = pa.array([day * 86_400_000_000 - 1, -1], pa.int64()).cast(pa.timestamp("us"))
    days = pa.array([day - 1, -1], pa.int32()).cast(pa.date32())
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "at": at, "at2": at, "at3": at, "day": days, "day2": days})
    table.do("create", rows, by("year(at)", "month(at2)", "hour(at3)", "year(day)", "day(day2)"))
    parts = sorted(tuple(file.file.partition[n] for n in range(5)) for file in table.iceberg().files())
    assert parts == [(-1971, -1971 * 12 + 11, day * 24 - 1, -1971, day - 1), (-1, -1, -1, -1, -1)]
    assert table.open().rows().sort_by("id").equals(rows)


def test_a_value_that_becomes_too_small_for_its_type_is_refused(tmp_path: Path) -> None:
    table, least = LaidOutTable("iceberg", tmp_path), -(1 << 31)
    rows = pa.table({"id": pa.array([1], pa.int64()), "n": pa.array([least], pa.int32())})
    with pytest.raises(SinkError, match=r"sink\.partition.*column n too small for int"):
        table.do("create", rows, by("truncate(10, n)"))
    table.do("create", rows, by("truncate(2, n)"))
    assert table.rows() == [{"id": 1, "n": least}]


@pytest.mark.parametrize("kind", KINDS[:2])
def test_a_merge_reads_the_partitions_of_its_keys_alone(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, read = LaidOutTable(kind, tmp_path), list[str]()
    rows = pa.table({"id": pa.array(range(400), pa.int64()), "v": [str(n) for n in range(400)]})
    table.do("create", rows, by("bucket(8, id)"))
    columns_read = IcebergTable.columns_of

    def watched(self: IcebergTable, file: LiveFile, fields: Any) -> pa.Table:
        read.append(file.path)
        return columns_read(self, file, fields)

    monkeypatch.setattr(IcebergTable, "columns_of", watched)
    table.do("merge", rows.slice(7, 1), by("bucket(8, id)"))
    assert len(read) == 1
    table.do("merge", rows.slice(7, 1), by(), 8, 999)
    assert len({*read}) <= 5
    assert len(table.rows()) == 399


def test_rows_whose_key_is_their_partition_leave_no_ghost(tmp_path: Path) -> None:
    """Let keys of several columns move between partitions, with NULL, zero and empty text among their values."""
    table, rnd, model = LaidOutTable("iceberg", tmp_path), random.Random(3), dict[Any, Any]()
    schema = pa.schema({"id": pa.int32(), "name": pa.string(), "v": pa.int64()})
    columns, names = columns_of(schema, "id", "name"), ["", "a", "ab", "é", "a\0"]
    for seq in range(1, amount(6, 9)):
        layout = by(("bucket(3, id)", "truncate(1, name)", "name", "truncate(4, id)")[seq % 4], "bucket(2, name)")
        keys = rnd.sample([(n, name) for n in range(-6, 6) for name in names], 24)
        rows = pa.Table.from_pylist([{"id": n, "name": name, "v": seq} for n, name in keys[:16]], schema)
        gone = pa.Table.from_pylist([{"id": n, "name": name} for n, name in keys[16:]], schema.remove(2))
        model = {key: value for key, value in model.items() if key not in keys} | dict.fromkeys(keys[:16], seq)
        verb: Any = "create" if seq == 1 else "merge"
        action = Action(verb, commit(seq), rows, gone, ["id", "name"], columns=replace(columns, layout=layout))
        table.sink.task_writer().commit(table.open(), action)
        assert {(row["id"], row["name"]): row["v"] for row in table.open().rows().to_pylist()} == model
        assert table.open().rows().num_rows == len(model)
        some = table.open().rows(rows.select(["id", "name"])).to_pylist()
        assert set(keys[:16]) <= {(row["id"], row["name"]) for row in some}


def test_rows_without_key_are_taken_out_of_all_partitions(tmp_path: Path) -> None:
    table, layout = LaidOutTable("iceberg", tmp_path), by("name", "month(at)")
    rnd = random.Random(8)
    rows = some_rows(list(range(30)), rnd)
    table.do("create", rows, layout)
    table.do("append", rows, by("bucket(2, n)"))
    left, columns = list[pa.Table](), replace(columns_of(COLUMNS), layout=layout)
    action = Action("subtract", commit(9), rows.slice(0, 0), rows.slice(5), columns=columns, unmatched=left.append)
    table.sink.task_writer().commit(table.open(), action)
    assert sum(some.num_rows for some in left) == 0
    assert [row["id"] for row in table.rows()] == sorted([*range(30), *range(5)])
