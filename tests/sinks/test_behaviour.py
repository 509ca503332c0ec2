# SPDX-License-Identifier: Apache-2.0
"""One behaviour suite over every kind of table and every writer of it: what a commit leaves behind, whoever made it."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from airflow_provider_cdc.core.errors import SinkError, UnavailableError
from spark_jobs.sinks.commits import ADDED_BYTES, Commit, Owner
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.ownership import owns
from tests.sinks.actions import APP, commit, rows
from tests.sinks.parquet_folder import FolderTable
from tests.sinks.tables import Tables


def test_creating_makes_a_table_with_its_rows_and_the_batch_number_in_one_commit(tables: Tables) -> None:
    tables.create(rows((1, "a"), (2, None)))
    table = tables.open()
    assert tables.rows() == [{"id": 1, "v": "a"}, {"id": 2, "v": None}]
    assert (table.version, table.applied(APP)) == (tables.first, 1)
    assert (table.facts(APP) or {})["seq"] == 1
    assert owns(Owner("cdc/tests/"), table)


def test_merging_replaces_adds_and_removes_by_key_in_one_commit(tables: Tables) -> None:
    tables.create(rows((1, "a"), (2, "b"), (3, "c")))
    gone = pa.table({"id": pa.array([2, 9], pa.int64())})
    tables.do(Action("merge", commit(2), rows((3, "C"), (4, "d")), gone, ["id"]))
    assert tables.rows() == [{"id": 1, "v": "a"}, {"id": 3, "v": "C"}, {"id": 4, "v": "d"}]
    table = tables.open()
    assert (table.version, table.applied(APP)) == (tables.first + 1, 2)
    assert table.foreign_commit(tables.first) is None


def test_a_table_says_how_many_rows_and_bytes_it_has(tables: Tables) -> None:
    assert tables.open().size() == (0, 0)
    tables.create(rows((1, "a"), (2, "b"), (3, "c")))
    first = tables.open().size()
    gone = pa.table({"id": pa.array([2, 9], pa.int64())})
    tables.do(Action("merge", commit(2), rows((3, "C")), gone, ["id"]))
    size = tables.open().size()
    assert (first.rows, size.rows) == (3, 2)
    assert (first.size or 0) > 0
    assert (size.size or 0) > 0


def test_a_commit_says_how_many_bytes_its_files_have(tables: Tables) -> None:
    tables.create(rows((1, "a"), (2, "b")))
    made, size = tables.open(), tables.open().size().size or 0
    assert made.added_bytes() == size > 0
    added = Action("append", commit(2), rows((3, "c" * 5000), (4, "d")))
    tables.do(added)
    table = tables.open()
    grown = (table.size().size or 0) - (0 if isinstance(table, FolderTable) else size)  # it writes all rows again
    assert table.added_bytes() == grown > 0
    if tables.spark is None:
        assert added.commit.facts[ADDED_BYTES] == (table.facts(APP) or {})[ADDED_BYTES] == grown


def test_merging_only_deletes_or_only_upserts_works(tables: Tables) -> None:
    tables.create(rows((1, "a"), (2, "b")))
    tables.do(Action("merge", commit(2), rows(), pa.table({"id": pa.array([1], pa.int64())}), ["id"]))
    assert tables.rows() == [{"id": 2, "v": "b"}]
    tables.do(Action("merge", commit(3), rows((2, "B")), pa.table({"id": pa.array([], pa.int64())}), ["id"]))
    assert tables.rows() == [{"id": 2, "v": "B"}]


def test_appending_adds_rows(tables: Tables) -> None:
    tables.create(rows((1, "a")))
    tables.do(Action("append", commit(2), rows((1, "a"), (2, "b"))))
    assert tables.rows() == [{"id": 1, "v": "a"}, {"id": 1, "v": "a"}, {"id": 2, "v": "b"}]
    assert tables.open().applied(APP) == 2


def test_overwriting_with_rows_that_are_read_while_it_writes_has_both(tables: Tables) -> None:
    tables.create(rows((1, "a"), (2, "b"), (3, "c")))
    renamed = (piece.rename_columns(["id", "w"]) for piece in tables.open().pieces("id"))
    remaining = (piece.filter(pc.field("id") < 3) for piece in renamed)
    tables.do(Action("overwrite", commit(2), rows((3, "C")).rename_columns(["id", "w"]), remaining=remaining))
    assert tables.rows() == [{"id": 1, "w": "a"}, {"id": 2, "w": "b"}, {"id": 3, "w": "C"}]
    assert (tables.open().version, tables.open().applied(APP)) == (tables.first + 1, 2)


def test_overwriting_replaces_rows_and_columns_in_one_commit(tables: Tables) -> None:
    tables.create(rows((1, "a")))
    other = pa.table({"at": pa.array([datetime(2026, 1, 1)], pa.timestamp("us")), "id": pa.array([7], pa.int32())})
    tables.do(Action("overwrite", commit(2), other))
    assert tables.rows() == [{"at": datetime(2026, 1, 1), "id": 7}]
    assert tables.open().applied(APP) == 2


def test_every_type_comes_back_as_it_was(tables: Tables) -> None:
    first = pa.table(
        {
            "id": pa.array([1, 2], pa.int64()),
            "tiny": pa.array([-128, None], pa.int8()),
            "small": pa.array([32767, None], pa.int16()),
            "real": pa.array([1.5, None], pa.float32()),
            "double": pa.array([5e-324, None], pa.float64()),
            "yes": pa.array([True, None], pa.bool_()),
            "money": pa.array([Decimal("99999999999999999999999999.999999999999"), None], pa.decimal128(38, 12)),
            "unsigned": pa.array([Decimal(18446744073709551615), None], pa.decimal128(20, 0)),
            "day": pa.array([date(9999, 12, 31), None], pa.date32()),
            "local_time": pa.array([datetime(1000, 1, 1, 0, 0, 0, 1), None], pa.timestamp("us")),
            "instant": pa.array([datetime(2038, 1, 19, 3, 14, 7), None], pa.timestamp("us", "UTC")),
            "bytes": pa.array([b"\x00\xff", None], pa.binary()),
            "text": pa.array(["\U0001f600'\"`\\\x00", None], pa.string()),
        }
    )
    tables.create(first)
    tables.do(Action("merge", commit(2), first.slice(0, 1), pa.table({"id": pa.array([], pa.int64())}), ["id"]))
    assert tables.open().rows().sort_by("id").equals(first)


def test_both_zeros_are_one_key(tables: Tables) -> None:
    """Change the zero's sign in a key, remove by the other one: MySQL takes them for one value."""

    def keyed(*pairs: tuple[float, str]) -> pa.Table:
        return pa.table(
            {"k": pa.array([key for key, _ in pairs], pa.float64()), "v": pa.array([v for _, v in pairs], pa.string())}
        )

    tables.create(keyed((-0.0, "a"), (1.5, "b")))
    tables.do(Action("merge", commit(2), keyed((0.0, "c")), keyed((-0.0, "")).select(["k"]), ["k"]))
    assert sorted(row["v"] for row in tables.open().rows().to_pylist()) == ["b", "c"]
    tables.do(Action("merge", commit(3), keyed(), keyed((-0.0, ""), (0.0, "")).select(["k"]), ["k"]))
    assert [row["v"] for row in tables.open().rows().to_pylist()] == ["b"]


def test_names_from_outside_are_quoted(tables: Tables) -> None:
    names = ["id", "select", "back`tick", 'quo"te', "it's", "Ünï", "a.b", "semi-colon"]
    first = pa.table({name: pa.array([1, 2], pa.int64()) for name in names})
    tables.create(first)
    changed = pa.table({name: pa.array([1], pa.int64()) for name in names}).set_column(
        1, "select", pa.array([7], pa.int64())
    )
    gone = pa.table({name: pa.array([2], pa.int64()) for name in ("id", "a.b", 'quo"te', "back`tick")})
    tables.do(Action("merge", commit(2), changed, gone, ["id", "a.b", 'quo"te', "back`tick"]))
    assert tables.open().rows().to_pylist() == changed.to_pylist()


def test_a_table_that_is_there_already_is_not_created_over(tables: Tables) -> None:
    tables.create(rows((1, "a")))
    with pytest.raises(UnavailableError):
        tables.do(Action("create", commit(2), rows((2, "b"))))
    assert tables.rows() == [{"id": 1, "v": "a"}]


def test_commits_of_others_are_not_ours(tables: Tables) -> None:
    tables.create(rows((1, "a")))
    target = tables.open()
    target.is_checked = True  # or the writer refuses it
    other = Commit("cdc/other/t1/0", 5, {"app": "cdc/other/t1/0", "seq": 5})
    tables.sink.task_writer().commit(target, Action("append", other, rows((2, "b"))))
    table = tables.open()
    assert table.foreign_commit(tables.first, Owner("cdc/tests/")) is not None
    assert (table.foreign_commit(tables.first, Owner("cdc/other/")), table.foreign_commit(tables.first)) == (None, None)
    assert (table.newest_app(), table.is_written_by(APP), table.last_maintained(tables.first)) == (
        other.app,
        False,
        tables.first,
    )
    assert (owns(Owner("cdc/tests/"), table), owns(Owner("cdc/other/", {"t1"}), table)) == (False, True)
    with pytest.raises(SinkError, match=r"sink\.not_ours"):
        tables.do(Action("append", commit(2), rows((3, "c"))))
    assert tables.rows() == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]
