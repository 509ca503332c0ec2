# SPDX-License-Identifier: Apache-2.0
"""One table of every kind: its versions, what prevents a commit to it, its maintenance, and who reads it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from airflow_provider_cdc.core.documents import Maintenance, TableMaintenance
from airflow_provider_cdc.core.errors import CdcError, SinkError, UnavailableError
from spark_jobs.sinks.contract import Action
from tests.sinks.actions import APP, columns_of, commit, rows
from tests.sinks.tables import Tables


def test_what_is_not_there_has_no_version_and_no_columns(kind_of_tables: Tables) -> None:
    tables = kind_of_tables
    missing = tables.open()
    assert (missing.exists, missing.version, missing.applied(APP)) == (False, None, None)
    with pytest.raises(SinkError, match=r"sink\.missing"):
        _ = missing.schema


def test_a_commit_onto_an_older_version_fails_and_leaves_nothing(kind_of_tables: Tables) -> None:
    tables = kind_of_tables
    tables.create(rows((1, "a")))
    before = tables.open()
    tables.do(Action("append", commit(2), rows((2, "b"))))
    with pytest.raises(UnavailableError, match=r"sink\.commit_conflict"):
        tables.sink.task_writer().commit(before, Action("append", commit(3), rows((3, "c"))))
    assert (tables.rows(), tables.open().applied(APP)) == ([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}], 2)


def test_rows_that_do_not_fit_prevent_the_commit(kind_of_tables: Tables) -> None:
    tables = kind_of_tables

    def refuse(count: int) -> None:
        raise SinkError("apply.quarantine_exceeded", f"{count} rows do not fit", where={}, hint="none")

    tables.create(rows((1, "a")))
    with pytest.raises(SinkError, match="1 rows do not fit"):
        tables.sink.task_writer().commit(tables.open(), Action("append", commit(2), rows((2, "b")), typed=refuse))
    assert (tables.rows(), tables.open().applied(APP)) == ([{"id": 1, "v": "a"}], 1)


def test_an_older_version_has_its_own_rows(kind_of_tables: Tables) -> None:
    tables = kind_of_tables
    tables.create(rows((1, "a")))
    first = tables.open().version
    assert first is not None
    tables.do(Action("overwrite", commit(2), rows((2, "b"))))
    assert tables.open(first).rows().to_pylist() == [{"id": 1, "v": "a"}]
    assert tables.open().at_version(first).rows().to_pylist() == [{"id": 1, "v": "a"}]
    assert not tables.open().holds_same(tables.open(first))
    with pytest.raises(CdcError):
        tables.open(99)


def test_removing_rows_without_a_key_takes_one_each_and_hands_back_the_others(kind_of_tables: Tables) -> None:
    tables = kind_of_tables
    unmatched: list[pa.Table] = []
    tables.create(rows((1, "a"), (1, "a"), (2, "b")))
    if not tables.writer().subtracts(tables.open()):
        return  # such a table is overwritten
    gone = rows((1, "a"), (3, "c"))
    tables.do(Action("subtract", commit(2), rows((4, "d")), gone, unmatched=unmatched.append))
    assert tables.rows() == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}, {"id": 4, "v": "d"}]
    assert [row for table in unmatched for row in table.to_pylist()] == [{"id": 3, "v": "c"}]


@pytest.mark.parametrize("index", [1, 2])
def test_a_column_that_stored_rows_lack_is_null_in_them(kind_of_tables: Tables, index: int) -> None:
    tables = kind_of_tables
    wider = rows((2, "b")).add_column(index, "w", pa.array([7], pa.int64()))
    tables.create(rows((1, "a")))
    old = columns_of(rows().schema)
    ids = list(old.ids)
    ids.insert(index, max(ids) + 1)
    new = TargetSchema(tuple(ids), wider.schema)
    if not tables.writer().evolves(tables.open(), old, new, merges=False):
        return  # such a table is overwritten
    tables.do(Action("append", commit(2), wider, columns=new))
    assert tables.rows() == [{"id": 1, "v": "a", "w": None}, {"id": 2, "v": "b", "w": 7}]
    assert tables.open().schema.names == wider.schema.names


@pytest.mark.parametrize("purge", ["", "db.t"])
def test_maintenance_keeps_rows_and_marks_and_is_nobodys_change(kind_of_tables: Tables, purge: str) -> None:
    tables = kind_of_tables
    tables.create(rows((1, "a")))
    for seq in range(2, 14):
        tables.sink.task_writer().commit(tables.open(), Action("append", commit(seq), rows((seq, "b"))))
    before, content, report = tables.open(), tables.rows(), TableMaintenance("db", "t")
    tables.sink.maintain(before, report, Maintenance(1 << 20, keep_hours=0, purge=purge), "id")
    after = tables.open()
    assert (tables.rows(), after.applied(APP), report.version) == (content, 13, after.version)
    assert (after.facts(APP) or {})["seq"] == 13
    assert before.version is not None
    assert after.foreign_commit(before.version) is None
    assert after.last_maintained(before.version) == after.version
    target = tables.open()
    target.is_checked = True  # as the guard of a batch says, which knows the version
    tables.sink.task_writer().commit(target, Action("append", commit(14), rows((14, "c"))))
    assert tables.open().last_maintained(before.version) == after.version


def test_rows_of_parts_that_nobody_commits_can_be_removed(kind_of_tables: Tables, tmp_path: Path) -> None:
    tables = kind_of_tables
    tables.create(rows((1, "a")))
    there = set((tmp_path / "db").rglob("*.parquet"))
    files = tables.sink.task_writer().row_files(tables.open(), columns_of(rows().schema, "id"))
    assert files is not None
    files.add(rows((2, "b")))
    written = files.written()
    assert set((tmp_path / "db").rglob("*.parquet")) > there
    tables.sink.discard(tables.location, [written])
    assert set((tmp_path / "db").rglob("*.parquet")) == there


def test_the_airflow_side_reads_what_was_committed(kind_of_tables: Tables) -> None:
    tables = kind_of_tables
    assert not tables.reader.is_table(tables.location, tables.options)
    tables.create(rows((1, "a")))
    tables.do(Action("append", commit(2), rows((2, "b"))))
    assert tables.reader.is_table(tables.location, tables.options)
    newest = tables.reader.open(tables.location, tables.options)
    first = tables.reader.open(tables.location, tables.options, tables.first)
    assert (newest.version, newest.count(), first.count()) == (tables.open().version, 2, 1)
    assert newest.rows(["id"]).sort_by("id").to_pylist() == [{"id": 1}, {"id": 2}]
    assert newest.dataset().to_table().num_rows == 2
    assert newest.has_all_files()
