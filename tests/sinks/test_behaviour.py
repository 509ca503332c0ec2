# SPDX-License-Identifier: Apache-2.0
"""One behaviour suite over every kind of table and every writer of it: what a commit leaves behind, whoever made it."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from airflow_provider_cdc.core.config.sinks.kinds import SINKS, SinkKind
from airflow_provider_cdc.core.documents import Maintenance, TableMaintenance
from airflow_provider_cdc.core.errors import CdcError, SinkError, UnavailableError
from airflow_provider_cdc.sinks.contract import TableReader
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.commits import ADDED_BYTES, Choice, Commit, Owner, WriterName
from spark_jobs.sinks.contract import Action, Sink, Stored, Writer, WriterRule
from spark_jobs.sinks.delta.spark_writer import SparkWriter
from spark_jobs.sinks.ownership import owns
from tests.sample import ALL
from tests.sinks.actions import APP, columns_of, commit, in_pieces, rows
from tests.sinks.kinds import OPTIONS, options_of, type_of
from tests.sinks.parquet_folder import FolderTable

FOLDER = SinkKind("tests.sinks.parquet_folder", "tests.sinks.parquet_folder", "pyarrow")
DRIVEN = {"iceberg at once", "parquet folder"}  # the driver commits; registered by a test
KINDS = {**{name: SINKS[type_of(name)] for name in OPTIONS if name not in DRIVEN}, "parquet folder": FOLDER}
WITH_SPARK = {"delta"}
SHARED = {"iceberg", "iceberg copy-on-write"}  # tasks may share a merge
# they share what differs by way with another
FEWER = {"delta merge-on-read", "iceberg copy-on-write", "iceberg rest", "parquet folder"}


WAYS = [
    *((kind, "task") for kind in KINDS),
]
OTHER_WAYS = [
    # merges of parts by Spark are in tests/spark/test_auto_writer.py
    *((kind, way) for kind in KINDS if kind in WITH_SPARK for way in ("spark", *["spark in parts"] * ALL)),
    *((kind, way) for kind in KINDS if ALL or kind not in FEWER for way in ("task in pieces", "task in parts")),
    *(
        (kind, way)
        for kind in KINDS
        if kind in SHARED
        for way in ("tasks", "tasks in parts")
        if ALL or way == "tasks" or kind not in FEWER
    ),
]


def tables_of(kind: str, root: Path) -> Tables:
    """Return tables of a kind below a folder."""
    modules, options = KINDS[kind], options_of(kind, root)
    writer, reader = (importlib.import_module(name) for name in (modules.writer, modules.reader))
    return Tables(writer.open_sink(options), root, reader.reader(), options)


@dataclass
class Tables:
    """Tables of one kind, and a way to commit to them.

    :param spark: commits what was staged in a folder, None where tasks commit.
    :param change: changes each action before its commit.
    :ivar first: version that the table was made with.
    """

    sink: Sink[Stored]
    root: Path
    reader: TableReader
    options: dict[str, str]
    spark: Callable[[str], None] | None = None
    change: Callable[[Tables, Action], Action] = lambda tables, action: action
    number: int = 0
    first: int = 0

    @property
    def location(self) -> str:
        return str(self.root / "db" / "t")

    def open(self, version: int | None = None) -> Stored:
        return self.sink.open(self.location, version)

    def writer(self) -> Writer[Stored]:
        """Return the writer of the next commit."""
        name: WriterName = "task" if self.spark is None else "spark"
        rule, storage = WriterRule(Choice(name, "stated"), 1 << 40, 1 << 40), Storage(str(self.root / "stage"))
        return self.sink.writer(rule, storage, f"_cdc/staged/{self.number}")

    def do(self, action: Action, *, target: Stored | None = None) -> None:
        """Carry out an action; on what was opened before, where that is given."""
        self.number += 1
        if action.columns is None:
            action.columns = columns_of(action.rows.schema, *action.key)
        self.writer().commit(target or self.open(), self.change(self, action))
        if self.spark is not None:
            self.spark(f"_cdc/staged/{self.number}")

    def create(self, first: pa.Table) -> None:
        self.do(Action("create", commit(1), first))
        self.first = self.open().version or 0

    def rows(self) -> list[dict[str, Any]]:
        return self.open().rows().sort_by("id").to_pylist()


def _in_pieces(tables: Tables, action: Action) -> Action:
    return in_pieces(action)


def in_parts(tables: Tables, action: Action) -> Action:
    """Return the same action with rows that two other tasks wrote; what is left of the table cannot be in parts."""
    if action.remaining is not None or action.verb == "subtract":
        return action
    half, parts, target, writer = action.rows.num_rows // 2, [], tables.open(), tables.writer()
    for piece in (action.rows.slice(0, half), action.rows.slice(half)):
        files = writer.row_files(target, action.columns or columns_of(piece.schema, *action.key))
        if files is None:
            return action
        files.add(piece)
        parts.append(files.written())
    return replace(action, rows=action.rows.schema.empty_table(), parts=parts)


def here(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Run tasks in this process; what they are sent and answer goes through pickle, as to other processes."""
    return [pickle.loads(pickle.dumps(function(pickle.loads(pickle.dumps(item))))) for item in items]


def commit_shared(tables: Tables, root: Path, folder: str) -> None:
    """Commit what a task staged, in as many parts as there are files."""
    committer = tables.sink.committer(None, Storage(str(root / "stage")), here)
    assert committer is not None
    (problem,) = committer.commit([folder], 100)
    if problem is not None:
        raise problem


@pytest.fixture(params=KINDS)
def kind_of_tables(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    """Return tables that tasks write."""
    return tables_of(request.param, tmp_path)


@pytest.fixture(
    params=[*WAYS, *(pytest.param(way, marks=pytest.mark.every(3)) for way in OTHER_WAYS)],
    ids=[f"{kind} by {way}" for kind, way in (*WAYS, *OTHER_WAYS)],
)
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    """Return tables that are written in each way."""
    kind, way = request.param
    tables = tables_of(kind, tmp_path)
    if way.startswith("spark"):
        storage = Storage(str(tmp_path / "stage"))
        committer = tables.sink.committer(request.getfixturevalue("session"), storage, here)
        assert isinstance(committer, SparkWriter)
        tables.spark = committer.commit_staged
    if way.startswith("tasks"):
        tables.spark = partial(commit_shared, tables, tmp_path)
    tables.change = _in_pieces if "pieces" in way else in_parts if "parts" in way else tables.change
    return tables


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


@dataclass
class _Met:
    """Takes the rows that a merge lets go."""

    whole: bool
    refuses: bool = False
    rows: list[dict[str, Any]] = field(default_factory=list)
    ended: int = 0

    def meet(self, rows: pa.Table) -> None:
        self.rows += rows.to_pylist()

    def demand_agreement(self) -> None:
        self.ended += 1
        if self.refuses:
            raise SinkError("apply.contradicted", "it is", where={}, hint="none")


@pytest.mark.parametrize("whole", [True, False])
def test_a_merge_shows_each_stored_row_that_goes_once(tables: Tables, whole: bool) -> None:
    if tables.spark is not None:
        pytest.skip("a merge beyond one task does not say which rows it found")
    tables.create(rows(*((n, f"v{n}") for n in range(10))))
    tables.do(
        Action(
            "merge", commit(2), rows((3, "C"), (20, "d")), pa.table({"id": pa.array([2, 9, 99], pa.int64())}), ["id"]
        )
    )
    met, gone = _Met(whole), pa.table({"id": pa.array([2, 3, 5], pa.int64())})
    tables.do(Action("merge", commit(3), rows((7, "G"), (30, "e")), gone, ["id"], met=met))
    assert sorted(row["id"] for row in met.rows) == [3, 5, 7]
    assert met.ended == 1
    shown = {row["id"]: row["v"] for row in met.rows if "v" in row}
    assert not whole or shown == {3: "C", 5: "v5", 7: "v7"}
    assert not shown or shown == {3: "C", 5: "v5", 7: "v7"}


def test_rows_that_contradict_prevent_the_commit(kind_of_tables: Tables) -> None:
    tables, met = kind_of_tables, _Met(whole=False, refuses=True)
    tables.create(rows((1, "a")))
    action = Action("merge", commit(2), rows((1, "b")), pa.table({"id": pa.array([], pa.int64())}), ["id"], met=met)
    action.columns = columns_of(action.rows.schema, "id")
    with pytest.raises(SinkError, match=r"apply\.contradicted"):
        tables.sink.task_writer().commit(tables.open(), action)
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


def test_commits_of_others_are_not_ours(tables: Tables) -> None:
    tables.create(rows((1, "a")))
    target = tables.open()
    target.is_checked = True  # or the writer refuses it
    other = Commit("cdc/other/t1/0", 5, {"app": "cdc/other/t1/0", "seq": 5})
    tables.sink.task_writer().commit(target, Action("append", other, rows((2, "b"))))
    table = tables.open()
    assert table.foreign_commit(tables.first, Owner("cdc/tests/")) is not None
    assert (table.foreign_commit(tables.first, Owner("cdc/other/")), table.foreign_commit(tables.first)) == (None, None)
    assert (table.newest_app(), table.is_written_by(APP), table.is_only_maintained(tables.first)) == (
        other.app,
        False,
        False,
    )
    assert (owns(Owner("cdc/tests/"), table), owns(Owner("cdc/other/", {"t1"}), table)) == (False, True)
    with pytest.raises(SinkError, match=r"sink\.not_ours"):
        tables.do(Action("append", commit(2), rows((3, "c"))))
    assert tables.rows() == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]


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
    assert after.is_only_maintained(before.version)


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
