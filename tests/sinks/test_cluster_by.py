# SPDX-License-Identifier: Apache-2.0
"""Files whose rows are in the order that a rule states: the same rows by key, and narrow ranges after maintenance."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_cdc.core.config.table_layout import TableLayout
from spark_jobs.sinks import sorted_rows
from spark_jobs.sinks.iceberg.table import IcebergTable
from tests.sinks.laid_out import LaidOutTable

KINDS = ("delta", "delta merge-on-read", "iceberg", "iceberg copy-on-write")
BY_PLACE = TableLayout(cluster_by=("place", "v"))


def _rows(*keys: int, seed: int = 0) -> pa.Table:
    """Return rows of some keys whose other columns have no order in common with them."""
    rnd = random.Random(f"{seed} {keys}")
    letters = [rnd.choice([*"abcdefgh", None]) for _ in keys]
    values = [rnd.randint(0, 99) for _ in keys]
    return pa.table({"id": pa.array(keys, pa.int64()), "place": pa.array(letters, pa.string()), "v": values})


def _files(table: LaidOutTable) -> list[pa.Table]:
    """Return the table's data files as they are stored."""
    stored = table.open()
    if isinstance(stored, IcebergTable):
        return [pq.read_table(file.path.removeprefix("file://")) for file in stored.files()]
    return [pq.read_table(unquote(uri.removeprefix("file://"))) for uri in stored.table.file_uris()]


def _is_in_order(rows: pa.Table) -> bool:
    some = rows.select(["place", "v"]).to_pylist()
    return some == sorted(some, key=lambda row: (row["place"] is None, row["place"] or "", row["v"]))


@pytest.mark.parametrize("kind", KINDS)
def test_merges_of_random_keys_find_their_rows_in_files_of_another_order(kind: str, tmp_path: Path) -> None:
    table, rnd = LaidOutTable(kind, tmp_path), random.Random(kind)
    first = _rows(*range(1000))
    table.do("create", first, BY_PLACE)
    rows: dict[int, dict[str, Any]] = {row["id"]: row for row in first.to_pylist()}
    (file,) = _files(table)
    assert _is_in_order(file)
    for seed in range(1, 9):
        put = _rows(*sorted(rnd.sample(range(1200), rnd.choice((1, 20, 400)))), seed=seed)
        gone = sorted(set(rnd.sample(range(1200), 30)) - set(put.column("id").to_pylist()))
        table.do("merge", put, BY_PLACE if seed != 4 else TableLayout(), *gone)
        rows = {**rows, **{row["id"]: row for row in put.to_pylist()}}
        rows = {key: row for key, row in rows.items() if key not in gone}
        assert table.rows() == sorted(rows.values(), key=lambda row: row["id"])
    assert all(_is_in_order(file) for file in _files(table)[-1:])


@pytest.mark.parametrize("kind", KINDS)
def test_maintenance_makes_ranges_of_the_columns_narrow(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let each batch have all names: files of one order hold each place once."""
    table = LaidOutTable(kind, tmp_path)
    table.do("create", _rows(*range(500)), TableLayout())
    for seed in range(1, 6):
        table.do("append", _rows(*range(seed * 500, seed * 500 + 500), seed=seed), TableLayout())
    before = table.rows()
    monkeypatch.setattr(sorted_rows, "PIECE_BYTES", 9_000)
    report = table.maintain(BY_PLACE)
    assert (report.compacted, report.written) == (6, 1)
    (file,) = _files(table)
    assert _is_in_order(file)
    assert table.rows() == before
    assert table.maintain(BY_PLACE).compacted == 0
    assert table.maintain(TableLayout()).compacted == 0


@pytest.mark.parametrize("kind", KINDS[:3:2])
def test_a_column_that_a_table_lacks_leaves_the_order_of_the_key(kind: str, tmp_path: Path) -> None:
    table, layout = LaidOutTable(kind, tmp_path), TableLayout(cluster_by=("place", "gone"))
    rows = _rows(*range(50))
    table.do("create", rows, layout)
    (file,) = _files(table)
    assert file.column("id").to_pylist() == list(range(50))
    assert layout.unclustered(rows.column_names) == (
        "cluster_by: the table has no column gone, so rows are written in the order of its key"
    )
    assert table.maintain(layout).compacted == 0


def test_rows_are_sorted_with_a_part_of_them_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sorted_rows, "PIECE_BYTES", 600)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pieces = [_rows(*range(start, start + 37), seed=start) for start in range(0, 370, 37)]
    schema = pieces[0].schema
    made = list(sorted_rows.in_order(pieces, schema, ["place", "v"]))
    assert len(made) > 5
    rows = pa.concat_tables(made)
    assert _is_in_order(rows)
    assert rows.sort_by("id").equals(pa.concat_tables(pieces))
    assert list(sorted_rows.in_order([], schema, ["v"])) == []
    assert list(tmp_path.iterdir()) == []
