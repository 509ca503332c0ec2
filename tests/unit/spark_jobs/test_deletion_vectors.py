# SPDX-License-Identifier: Apache-2.0
"""Merges that delete rows by their positions: every reader that can read the vectors sees the same rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from airflow_provider_cdc.core.documents import Maintenance, TableMaintenance
from airflow_provider_cdc.core.errors import SinkError
from airflow_provider_cdc.sinks.delta import reader
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.delta.deletion_vectors import file_of, write_vectors, z85
from spark_jobs.sinks.delta.logged_files import logged_files
from spark_jobs.sinks.delta.sink import open_sink
from tests.conformance import by_duckdb
from tests.sinks.actions import APP, commit, rows

ROWS = 1_000
Model = dict[int, str | None]


def by_query(location: str) -> pa.Table:
    table = DeltaTable(location)
    return pa.table(QueryBuilder().register("t", table).execute("SELECT id, v FROM t").read_all())


READERS: dict[str, Callable[[str], pa.Table]] = {
    "the sink": lambda location: open_sink({}).open(location).rows(),
    "the sink in pieces": lambda location: pa.concat_tables(open_sink({}).open(location).pieces("id")),
    "the Airflow side": lambda location: reader().open(location, {"writes": "merge-on-read"}).rows(),
    "its dataset": lambda location: reader().open(location, {}).dataset().to_table(),
    "delta-rs' queries": by_query,
    "polars": lambda location: pl.scan_delta(location).collect().to_arrow(),
    "DuckDB": lambda location: by_duckdb.query(f"SELECT id, v FROM {by_duckdb.delta(location)}"),
}


class Table:
    """A table of several files, and what it should hold."""

    def __init__(self, folder: Path) -> None:
        self.location, self.seq, self.model = str(folder / "t"), 0, Model()
        self.sink = open_sink({"writes": "merge-on-read"})
        for begin in range(0, ROWS, ROWS // 4):
            self.model |= {key: f"v{key}" for key in range(begin, begin + ROWS // 4)}
            piece = rows(*((key, f"v{key}") for key in range(begin, begin + ROWS // 4)))
            self._commit("append" if begin else "create", piece)

    def _commit(self, verb: Any, some: pa.Table, *gone: int) -> None:
        self.seq += 1
        deletes = pa.table({"id": pa.array(gone, pa.int64())})
        action = Action(verb, commit(self.seq), some, deletes, ["id"])
        self.sink.task_writer().commit(self.sink.open(self.location), action)

    def merge(self, changes: Model, *gone: int) -> None:
        self._commit("merge", rows(*changes.items()), *gone)
        self.model = {key: value for key, value in {**self.model, **changes}.items() if key not in gone}

    def random_merge(self, chance: random.Random) -> None:
        keys = chance.sample(range(ROWS + 100), 40)
        self.merge({key: f"{self.seq} {key}" for key in keys[:30]}, *keys[30:])

    @property
    def data_files(self) -> list[str]:
        return sorted(path.name for path in Path(self.location).glob("*.parquet"))

    @property
    def vector_files(self) -> list[str]:
        return sorted(path.name for path in Path(self.location).glob("*.bin"))


def as_model(table: pa.Table) -> Model:
    assert table.num_rows == len(set(table.column("id").to_pylist())), "a row is there twice"
    return {row["id"]: row["v"] for row in table.to_pylist()}


def test_every_reader_sees_the_rows_after_each_of_many_merges(tmp_path: Path) -> None:
    table, chance, versions = Table(tmp_path), random.Random(7), []
    for number in range(14):
        before = table.data_files
        table.random_merge(chance)
        assert set(before) < set(table.data_files), "no file is written again"
        versions.append(dict(table.model))
        for name, read in READERS.items() if number in (0, 1, 12, 13) else ():
            assert as_model(read(table.location)) == table.model, name
    newest = table.sink.open(table.location)
    assert (newest.version, newest.applied(APP)) == (17, 18)
    assert len(table.vector_files) == 14
    for number, content in enumerate(versions):  # versions before and behind a checkpoint
        assert as_model(newest.at_version(4 + number).rows()) == content
    assert reader().open(table.location, {}).count() == len(table.model)
    assert not newest.holds_same(newest.at_version(16))
    keys = pa.table({"id": pa.array([*range(0, ROWS + 100, 13)], pa.int64())})
    of_keys = {row["id"]: row["v"] for row in newest.rows(keys).to_pylist()}
    assert of_keys == {key: value for key, value in table.model.items() if key % 13 == 0}


@pytest.mark.parametrize("reads", ["to_pyarrow_table", "to_pyarrow_dataset", "to_pandas"])
def test_delta_rs_arrow_readers_refuse_what_they_cannot_read(reads: str, tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.merge({1: "x"})
    with pytest.raises(DeltaError):
        getattr(DeltaTable(table.location), reads)()


def test_a_file_most_of_which_is_gone_is_written_again(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.merge({}, *range(50))
    assert len(table.vector_files) == 1
    table.merge({}, *range(50, 120))  # 120 of 250
    opened = table.sink.open(table.location)
    assert (len(table.vector_files), opened.deleted) == (1, {})
    assert as_model(opened.rows()) == table.model
    assert DeltaTable(table.location).get_add_actions().num_rows == 4


def test_maintenance_folds_vectors_in_and_removes_their_files(tmp_path: Path) -> None:
    table, chance = Table(tmp_path), random.Random(3)
    for _ in range(3):
        table.random_merge(chance)
    before, report = table.sink.open(table.location), TableMaintenance("db", "t")
    table.sink.maintain(before, report, Maintenance(1 << 20, keep_hours=0), "id")
    after = table.sink.open(table.location)
    assert (after.deleted, table.vector_files, len(table.data_files), report.compacted) == ({}, [], 1, 7)
    assert as_model(after.rows()) == table.model
    assert before.version is not None
    assert after.last_maintained(before.version) == after.version
    assert after.foreign_commit(before.version) is None
    assert as_model(by_query(table.location)) == table.model
    table.random_merge(chance)
    assert as_model(by_query(table.location)) == table.model


def test_a_merge_that_adds_a_column_deletes_by_position_too(tmp_path: Path) -> None:
    table = Table(tmp_path)
    wider = rows((1, "x")).append_column("at", pa.array([0], pa.timestamp("us")))
    table._commit("merge", wider, 2)
    stored = table.sink.open(table.location).rows().sort_by("id")
    assert stored.slice(0, 2).select(["id", "v"]).to_pylist() == [{"id": 0, "v": "v0"}, {"id": 1, "v": "x"}]
    assert (stored.num_rows, stored.column("at").null_count) == (ROWS - 1, ROWS - 2)
    features = set(DeltaTable(table.location).protocol().reader_features or ())
    assert features == {"deletionVectors", "timestampNtz"}


def test_a_table_that_was_made_with_vectors_is_written_without_new_ones_once_the_option_is_taken_back(
    tmp_path: Path,
) -> None:
    table = Table(tmp_path)
    table.merge({1: "x"}, 2)
    table.sink = open_sink({})
    table.merge({3: "y"}, 4)
    opened = table.sink.open(table.location)
    assert (as_model(opened.rows()), opened.deleted, len(table.vector_files)) == (table.model, {}, 1)
    assert as_model(by_query(table.location)) == table.model


def test_rows_of_a_table_without_key_are_removed_among_deleted_ones(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.merge({}, 1)
    action = Action("subtract", commit(9), rows(), rows((2, "v2"), (1, "v1")))
    missing: list[pa.Table] = []
    action.unmatched = missing.append
    table.sink.task_writer().commit(table.sink.open(table.location), action)
    assert missing[0].to_pylist() == [{"id": 1, "v": "v1"}]
    content = as_model(table.sink.open(table.location).rows())
    assert content == {key: value for key, value in table.model.items() if key != 2}


def test_a_log_that_does_not_state_its_files_in_full_is_refused(tmp_path: Path) -> None:
    table = Table(tmp_path)
    with pytest.raises(SinkError, match="copy-on-write"):
        logged_files(Storage(table.location), 3, ["no such file"])


def test_texts_of_ids_are_those_of_the_protocol(tmp_path: Path) -> None:
    # https://rfc.zeromq.org/spec/32: its test case
    assert z85(bytes.fromhex("864FD26FB559F75B")) == "HelloWorld"
    storage = Storage(str(tmp_path))
    described = write_vectors(storage, {"a": np.array([1, 5]), "b": np.array([0])})
    assert [(one["offset"], one["cardinality"]) for one in described.values()] == [(1, 2), (45, 1)]
    (file,) = tmp_path.glob("*.bin")
    assert {file_of(one) for one in described.values()} == {file.name}
