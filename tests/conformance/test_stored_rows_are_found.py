# SPDX-License-Identifier: Apache-2.0
"""Readers that leave files out by their statistics find each stored row, whatever its types and whoever wrote it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from airflow_provider_cdc.core.documents import Maintenance, TableState
from spark_jobs.sinks.commits import Commit
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.delta.sink import open_sink
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.sinks.delta.task_writer import TaskWriter
from spark_jobs.tasks.maintain_table import maintain_table
from tests.conformance import by_duckdb
from tests.conformance.catalog_tables import differing
from tests.conformance.edge_tables import GROUPS, READERS, WRITERS, by_filters, edge_rows, not_found
from tests.sample import ALL


@pytest.mark.sampled
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("group", GROUPS)
def test_each_stored_row_is_found_by_its_values(writer: str, group: str, tmp_path: Path) -> None:
    rows = edge_rows(group)
    WRITERS[writer](str(tmp_path / "t"), rows)
    missed = {name: not_found(read, tmp_path / "t", rows) for name, read in READERS.items()}
    assert missed == {name: [] for name in READERS}


@pytest.fixture(scope="module", params=GROUPS)
def appended(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, Path]:
    """Return the rows of a group of types, and a table that holds each in a file of its own and is only read."""
    rows, location = edge_rows(request.param), tmp_path_factory.mktemp("appended") / "t"
    WRITERS["appends"](str(location), rows)
    return rows, location


@pytest.mark.parametrize("group", GROUPS if ALL else ["decimals"])  # its files are chosen as those of "dataset"
def test_each_stored_row_is_found_by_filters(group: str, tmp_path: Path) -> None:
    rows = edge_rows(group)
    rows = rows if ALL else rows.take(list(range(0, rows.num_rows, 3)))  # a search for one takes long
    WRITERS["appends"](str(tmp_path / "t"), rows)
    assert not_found(by_filters, tmp_path / "t", rows) == []


def test_duckdb_finds_each_row_and_reads_what_was_stored(appended: tuple[pa.Table, Path]) -> None:
    rows, location = appended
    table = by_duckdb.delta(str(location))
    assert differing(by_duckdb.query(f"SELECT * FROM {table}"), rows) == {}
    for row in rows.to_pylist():
        assert by_duckdb.ids_of(table, row, rows.schema) == [row["id"]], row


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"delta.dataSkippingNumIndexedCols": "0"},
        {"delta.dataSkippingNumIndexedCols": "-1"},
        {"delta.dataSkippingNumIndexedCols": "35"},
        {"delta.dataSkippingStatsColumns": "`n39`,n1"},
    ],
)
@pytest.mark.parametrize("is_checkpointed", [False, True])
@pytest.mark.sampled
def test_a_table_has_bounds_of_the_columns_that_its_properties_choose(
    properties: dict[str, str], is_checkpointed: bool, tmp_path: Path
) -> None:
    """Write 40 columns, of which readers expect bounds of 32 unless a property says otherwise."""
    location = str(tmp_path / "t")
    rows = pa.table({f"n{number}": pa.array([number, None, -number], pa.int32()) for number in range(40)})
    WRITERS["first commit"](location, rows.slice(0, 0))
    table = DeltaTable(location)
    if properties:
        table.alter.set_table_properties(properties)
    for seq in (2, 3):
        action = Action("append", Commit("a", seq, {"app": "a"}), rows.slice(seq - 2, 4 - seq))
        TaskWriter().commit(DeltaLocation(location, {}), action)
    if is_checkpointed:
        DeltaTable(location).create_checkpoint()
    stored = pa.concat_tables([rows.slice(0, 2), rows.slice(1, 1)])
    missed = {name: not_found(read, location, stored) for name, read in READERS.items()}
    assert missed == {name: [] for name in READERS}


def test_bounds_through_doubles_would_be_seen(tmp_path: Path) -> None:
    """Let delta-rs write and state the bounds: what this suite is for."""
    rows = edge_rows("decimals")
    write_deltalake(str(tmp_path / "t"), rows)
    assert all(not_found(READERS[name], tmp_path / "t", rows) for name in ("dataset", "DataFusion", "polars"))


def test_a_table_that_delta_rs_has_to_write_states_no_bound_that_is_too_narrow(tmp_path: Path) -> None:
    """Have a table with a change data feed, whose files are delta-rs' own."""
    location, rows = str(tmp_path / "t"), edge_rows("decimals")
    WRITERS["first commit"](location, rows.slice(0, 0))
    DeltaTable(location).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    none = rows.slice(0, 0).select(["id"])
    for seq, piece in enumerate((rows.slice(0, 6), rows.slice(6)), 2):
        action = Action("merge", Commit("cdc/p/t/0", seq, {"app": "cdc/p/t/0"}), piece, none, ["id"])
        TaskWriter().commit(DeltaLocation(location, {}), action)
    assert {name: not_found(READERS[name], location, rows) for name in ("DataFusion", "polars")} == {
        "DataFusion": [],
        "polars": [],
    }
    report = maintain_table(
        open_sink({}), TableState("t", "shop", "t", "t"), Maintenance(1 << 27, keep_hours=0), str(tmp_path), "p"
    )
    assert (report.error, report.compacted) == (None, 2)
    assert not_found(READERS["DataFusion"], location, rows) == []
