# SPDX-License-Identifier: Apache-2.0
"""Spark finds each row that the task writer stored; other readers find what Spark wrote, merged and maintained."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.commits import Commit
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.delta.sink import open_sink
from spark_jobs.sinks.delta.spark_writer import SparkWriter, StageWriter
from spark_jobs.sinks.delta.table import DeltaLocation
from tests.conformance.catalog_tables import KINDS, WAYS, changed, differing, partitioned, repartitioned, stored
from tests.conformance.edge_tables import READERS, WRITERS, edge_rows, not_found
from tests.sample import ALL

# as few tables as have all types, none with more columns than a Delta table has bounds of: each table takes seconds
TABLES = (("numbers", "decimals"), ("others",))
MAINTAINED = TABLES if ALL else TABLES[1:]  # the code that writes their files is that of other tests
AT_ONCE = 8  # columns in a query: the time that Spark takes to plan one grows faster than the query
# transforms that types of several groups take
ONCE = {"identity": "decimals", "bucket[3]": "numbers", "truncate[2]": "others"}


def _literal(value: Any, kind: pa.DataType) -> str:
    types = pa.types
    if types.is_binary(kind) or types.is_string(kind):
        content = value.encode() if isinstance(value, str) else value
        return f"CAST(X'{content.hex()}' AS {'STRING' if types.is_string(kind) else 'BINARY'})"
    if types.is_boolean(kind):
        return str(value).lower()
    if types.is_date32(kind):
        return f"DATE'{value.isoformat()}'"
    if types.is_timestamp(kind):
        name = "TIMESTAMP_NTZ" if kind.tz is None else "TIMESTAMP"
        return f"CAST('{value.isoformat()}' AS {name})"
    if types.is_decimal(kind):
        return f"CAST('{value:f}' AS DECIMAL({kind.precision}, {kind.scale}))"
    named = {pa.float32(): "FLOAT", pa.float64(): "DOUBLE"}.get(kind, "BIGINT")
    return f"CAST('{str(value).replace('inf', 'Infinity')}' AS {named})"


def _in_gap(value: Any) -> bool:
    """Return whether a day is none of the calendar with which Spark 4.1 compares days in Parquet files."""
    return isinstance(value, date) and "1582-10-05" <= value.isoformat()[:10] < "1582-10-15"


def _is(name: str, value: Any, kind: pa.DataType) -> str:
    return f"`{name}` IS NULL" if value is None else f"`{name}` = {_literal(value, kind)}"


def rows_not_found(session: Any, location: Path | str, rows: pa.Table, kind: str = "delta") -> set[int]:
    """Look for each row by its columns, some at a time; return the ids of those that Spark does not find.

    A file with one row is left out only if its row's own condition, and all others, contradict its bounds.
    """
    fields = [field for field in rows.schema if not pa.types.is_list(field.type)]
    table, ids = session.read.format(kind).load(str(location)), {*rows.column("id").to_pylist()}
    missed = set[int]()
    for first in range(0, len(fields), AT_ONCE):
        some = [rows.schema.field("id"), *fields[first : first + AT_ONCE]]
        conditions = [
            " AND ".join(_is(field.name, row[field.name], field.type) for field in some if not _in_gap(row[field.name]))
            for row in rows.to_pylist()
        ]
        answers = table.where(" OR ".join(f"({condition})" for condition in conditions)).select("id").collect()
        missed |= ids - {row.id for row in answers}
    return missed


@pytest.fixture
def own(session: Any) -> Any:
    """Return a session that reads times as UTC, writes them as others read them, and compiles nothing for few rows."""
    own = session.newSession()
    for name, value in {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }.items():
        own.conf.set(name, value)
    return own


@pytest.mark.every(2)
@pytest.mark.parametrize(
    ("writer", "groups"),
    [*(("appends", groups) for groups in TABLES), *(("maintained", groups) for groups in MAINTAINED)],
)
def test_spark_finds_each_row_that_was_stored(own: Any, writer: str, groups: tuple[str, ...], tmp_path: Path) -> None:
    rows = edge_rows(*groups)
    WRITERS[writer](str(tmp_path / "t"), rows)
    assert rows_not_found(own, tmp_path / "t", rows) == set()


def _by_spark(session: Any, folder: Path, rows: pa.Table) -> None:
    """Make a table and merge half of its rows into it, both by the Spark writer."""
    storage, none = Storage(str(folder / "stage")), rows.slice(0, 0).select(["id"])
    for seq, (verb, piece) in enumerate((("create", rows.slice(0, 9)), ("merge", rows.slice(9))), 1):
        staged, commit = f"_cdc/staged/{seq}", Commit("cdc/p/t/0", seq, {"app": "cdc/p/t/0", "seq": seq})
        target = DeltaLocation(str(folder / "t"), {})
        StageWriter(storage, staged).commit(target, Action(verb, commit, piece, none, ["id"]))  # type: ignore[arg-type]
        SparkWriter(session, storage).commit_staged(staged)


def _without_bounds(location: Path) -> set[str]:
    """Return the columns of which Spark states no bounds in some file: booleans, texts that have no upper bound."""
    actions = pa.table(DeltaTable(str(location)).get_add_actions())
    names = set()
    for side in ("min", "max"):
        bounds = actions.column(side).combine_chunks()
        names |= {field.name for number, field in enumerate(bounds.type) if bounds.field(number).null_count}
    return names


def _missed(location: Path, rows: pa.Table) -> dict[str, list[str]]:
    """Return what each reader misses; delta-rs' dataset takes a column without bounds for one that equals nothing."""
    missed = {name: not_found(read, location, rows) for name, read in READERS.items()}
    unbounded = _without_bounds(location)
    missed["dataset"] = [text for text in missed["dataset"] if text.split(" = ")[0] not in unbounded]
    return missed


@pytest.mark.every(2)
@pytest.mark.parametrize("groups", TABLES, ids="-".join)
def test_readers_find_each_row_that_spark_wrote(
    session: Any, own: Any, groups: tuple[str, ...], tmp_path: Path
) -> None:
    rows = edge_rows(*groups)
    _by_spark(session, tmp_path, rows)
    assert rows_not_found(own, tmp_path / "t", rows) == set()
    assert _missed(tmp_path / "t", rows) == {name: [] for name in READERS}


@pytest.mark.skipif(not ALL, reason="CDC_SEEDS=2 runs it; the files are as those of the merges by Spark above")
@pytest.mark.parametrize("groups", TABLES, ids="-".join)
def test_readers_find_each_row_after_spark_maintained_the_table(
    own: Any, groups: tuple[str, ...], tmp_path: Path
) -> None:
    rows, location = edge_rows(*groups), tmp_path / "t"
    WRITERS["appends"](str(location), rows)
    own.sql(f"OPTIMIZE delta.`{location}`").collect()
    own.sql(f"VACUUM delta.`{location}` RETAIN 0 HOURS").collect()
    assert len(DeltaTable(str(location)).file_uris()) == len(list(location.glob("*.parquet"))) == 1
    assert rows_not_found(own, location, rows) == set()
    assert _missed(location, rows) == {name: [] for name in READERS}


def test_spark_reads_rows_that_others_deleted_by_position(own: Any, tmp_path: Path) -> None:
    sink, location = open_sink({"writes": "merge-on-read"}), str(tmp_path / "t")
    stored = pa.table({"id": pa.array(range(1_000), pa.int64()), "v": [f"v{key}" for key in range(1_000)]})
    changed = pa.table({"id": pa.array(range(100, 150), pa.int64()), "v": ["new"] * 50})
    gone = pa.table({"id": pa.array(range(200, 240), pa.int64())})
    for seq, action in enumerate((("create", stored, None), ("merge", changed, gone)), 1):
        verb, rows, deletes = action
        commit = Commit("cdc/p/t/0", seq, {"app": "cdc/p/t/0", "seq": seq})
        sink.task_writer().commit(sink.open(location), Action(verb, commit, rows, deletes, ["id"]))  # type: ignore[arg-type]
    assert list((tmp_path / "t").glob("deletion_vector_*.bin"))
    table = own.read.format("delta").load(location)
    assert (table.count(), table.where("v = 'new'").count(), table.where("id >= 200 AND id < 240").count()) == (
        960,
        50,
        0,
    )
    own.sql(f"DELETE FROM delta.`{location}` WHERE id = 7").collect()  # Spark's vector, which ours reads
    own.sql(f"OPTIMIZE delta.`{location}`").collect()
    assert sink.open(location).rows().num_rows == 959


def _of_catalog(session: Any, table: Any) -> pa.Table:
    """Return the rows of an Iceberg table as Spark reads them; times without zone keep their digits."""
    frame = session.read.format("iceberg").load(table.metadata_location)
    return pa.table(frame.toArrow())


@pytest.mark.every(2)
@pytest.mark.parametrize("groups", TABLES, ids="-".join)
def test_spark_reads_and_finds_each_row_of_an_iceberg_table(own: Any, groups: tuple[str, ...], tmp_path: Path) -> None:
    rows = edge_rows(*groups)
    table = stored(rows, tmp_path).table
    assert differing(_of_catalog(own, table), rows) == {}
    assert rows_not_found(own, table.metadata_location, rows, "iceberg") == set()


@pytest.mark.parametrize("kind", KINDS if ALL else KINDS[:1])
def test_spark_reads_an_iceberg_table_through_all_changes_of_its_columns(own: Any, kind: str, tmp_path: Path) -> None:
    table, rows = changed(kind, tmp_path)
    assert differing(_of_catalog(own, table.table), rows) == {}


@pytest.mark.every(2)
@pytest.mark.parametrize(
    ("way", "groups"), [(way, (group,)) for way, group in WAYS if ALL or ONCE.get(way, group) == group]
)
def test_spark_finds_each_row_in_its_partition(own: Any, way: str, groups: tuple[str, ...], tmp_path: Path) -> None:
    rows = edge_rows(*groups)
    table = partitioned(rows, way, tmp_path).table
    assert differing(_of_catalog(own, table), rows) == {}
    assert rows_not_found(own, table.metadata_location, rows, "iceberg") == set()


@pytest.mark.parametrize("kind", KINDS if ALL else KINDS[:1])
def test_spark_reads_an_iceberg_table_that_is_partitioned_in_several_ways(own: Any, kind: str, tmp_path: Path) -> None:
    table, rows = repartitioned(kind, tmp_path)
    assert differing(_of_catalog(own, table.table), rows) == {}
    assert rows_not_found(own, table.table.metadata_location, rows, "iceberg") == set()
