# SPDX-License-Identifier: Apache-2.0
"""One behaviour suite over every writer: what a commit leaves behind, whoever made it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from airflow_provider_cdc.core.apply.merge_plan import LaterRows
from airflow_provider_cdc.core.errors import UnavailableError
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.commits import Commit
from spark_jobs.sinks.contract import Action, Writer
from spark_jobs.sinks.delta.spark_writer import SparkWriter, StageWriter
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.sinks.delta.task_writer import TaskWriter

Do = Callable[[str, Action], None]
APP = "cdc/tests/t1/0"


class SparkDoing:
    """Both halves of the Spark writer, one after the other."""

    def __init__(self, session: Any, root: Path) -> None:
        self._storage, self._session, self._number = Storage(str(root)), session, 0

    def commit(self, location: str, action: Action) -> None:
        self._number += 1
        folder = f"_cdc/staged/{self._number}"
        StageWriter(self._storage, folder).commit(DeltaLocation(location, {}), action)
        SparkWriter(self._session, self._storage).commit_staged(folder)


def in_pieces(action: Action) -> Action:
    """Return the same action with rows that are typed one by one while they are written."""
    rows = action.rows
    later = LaterRows(rows.num_rows, lambda: (rows.slice(n, 1) for n in range(rows.num_rows)))
    return replace(action, rows=rows.schema.empty_table(), later=later)


def in_parts(writer: Writer, location: str, action: Action) -> Action:
    """Return the same action with rows that two other tasks wrote; what is left of the table cannot be in parts."""
    if action.remaining is not None or action.verb == "subtract":
        return action
    half, parts, target = action.rows.num_rows // 2, [], DeltaLocation(location, {})
    for rows in (action.rows.slice(0, half), action.rows.slice(half)):
        files = writer.row_files(target, rows.schema, action.key)
        if files is None:
            return action
        files.add(rows)
        parts.append(files.written())
    return replace(action, rows=action.rows.schema.empty_table(), parts=parts)


@pytest.fixture(params=["task", "task in pieces", "task in parts", "spark", "spark in parts"])
def do(request: pytest.FixtureRequest, tmp_path: Path) -> Do:
    if request.param.startswith("task"):
        doing: Do = lambda location, action: TaskWriter().commit(DeltaLocation(location, {}), action)  # noqa: E731
    else:
        doing = SparkDoing(request.getfixturevalue("session"), tmp_path / "stage").commit
    if "pieces" in request.param:
        return lambda location, action: doing(location, in_pieces(action))
    if "parts" in request.param:
        spark = StageWriter(Storage(str(tmp_path / "stage")), "_cdc/staged/parts")
        writer: Writer = TaskWriter() if request.param.startswith("task") else spark
        return lambda location, action: doing(location, in_parts(writer, location, action))
    return doing


def commit(seq: int) -> Commit:
    return Commit(APP, seq, {"app": APP, "seq": seq})


def rows(*pairs: tuple[int, str | None]) -> pa.Table:
    return pa.table(
        {"id": pa.array([p[0] for p in pairs], pa.int64()), "v": pa.array([p[1] for p in pairs], pa.string())}
    )


def content(location: str) -> list[dict[str, Any]]:
    return DeltaLocation(location, {}).rows().sort_by("id").to_pylist()


def created(do: Do, tmp_path: Path, first: pa.Table) -> str:
    location = str(tmp_path / "db" / "t")
    do(location, Action("create", commit(1), first))
    return location


def test_creating_makes_a_table_with_its_rows_and_the_batch_number_in_one_commit(do: Do, tmp_path: Path) -> None:
    location = created(do, tmp_path, rows((1, "a"), (2, None)))
    table = DeltaLocation(location, {})
    assert content(location) == [{"id": 1, "v": "a"}, {"id": 2, "v": None}]
    assert (table.version, table.applied(APP)) == (0, 1)
    assert (table.facts(APP) or {})["seq"] == 1
    assert table.is_ours("cdc/tests/")


def test_merging_replaces_adds_and_removes_by_key_in_one_commit(do: Do, tmp_path: Path) -> None:
    location = created(do, tmp_path, rows((1, "a"), (2, "b"), (3, "c")))
    gone = pa.table({"id": pa.array([2, 9], pa.int64())})
    do(location, Action("merge", commit(2), rows((3, "C"), (4, "d")), gone, ["id"]))
    assert content(location) == [{"id": 1, "v": "a"}, {"id": 3, "v": "C"}, {"id": 4, "v": "d"}]
    table = DeltaLocation(location, {})
    assert (table.version, table.applied(APP)) == (1, 2)
    assert table.foreign_commit(0) is None


def test_merging_only_deletes_or_only_upserts_works(do: Do, tmp_path: Path) -> None:
    location = created(do, tmp_path, rows((1, "a"), (2, "b")))
    do(location, Action("merge", commit(2), rows(), pa.table({"id": pa.array([1], pa.int64())}), ["id"]))
    assert content(location) == [{"id": 2, "v": "b"}]
    do(location, Action("merge", commit(3), rows((2, "B")), pa.table({"id": pa.array([], pa.int64())}), ["id"]))
    assert content(location) == [{"id": 2, "v": "B"}]


def test_appending_adds_rows(do: Do, tmp_path: Path) -> None:
    location = created(do, tmp_path, rows((1, "a")))
    do(location, Action("append", commit(2), rows((1, "a"), (2, "b"))))
    assert content(location) == [{"id": 1, "v": "a"}, {"id": 1, "v": "a"}, {"id": 2, "v": "b"}]
    assert DeltaLocation(location, {}).applied(APP) == 2


def test_overwriting_with_rows_that_are_read_while_it_writes_has_both(do: Do, tmp_path: Path) -> None:
    location = created(do, tmp_path, rows((1, "a"), (2, "b"), (3, "c")))
    renamed = (piece.rename_columns(["id", "w"]) for piece in DeltaLocation(location, {}).pieces("id"))
    remaining = (piece.filter(pc.field("id") < 3) for piece in renamed)
    do(location, Action("overwrite", commit(2), rows((3, "C")).rename_columns(["id", "w"]), remaining=remaining))
    assert content(location) == [{"id": 1, "w": "a"}, {"id": 2, "w": "b"}, {"id": 3, "w": "C"}]
    assert (DeltaLocation(location, {}).version, DeltaLocation(location, {}).applied(APP)) == (1, 2)


def test_overwriting_replaces_rows_and_columns_in_one_commit(do: Do, tmp_path: Path) -> None:
    location = created(do, tmp_path, rows((1, "a")))
    other = pa.table({"at": pa.array([datetime(2026, 1, 1)], pa.timestamp("us")), "id": pa.array([7], pa.int32())})
    do(location, Action("overwrite", commit(2), other))
    assert content(location) == [{"at": datetime(2026, 1, 1), "id": 7}]
    assert DeltaLocation(location, {}).applied(APP) == 2


def test_every_type_comes_back_as_it_was(do: Do, tmp_path: Path) -> None:
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
    location = created(do, tmp_path, first)
    do(location, Action("merge", commit(2), first.slice(0, 1), pa.table({"id": pa.array([], pa.int64())}), ["id"]))
    assert DeltaLocation(location, {}).rows().sort_by("id").equals(first)


def test_both_zeros_are_one_key(do: Do, tmp_path: Path) -> None:
    """Change the zero's sign in a key, remove by the other one: MySQL takes them for one value."""

    def keyed(*pairs: tuple[float, str]) -> pa.Table:
        return pa.table(
            {"k": pa.array([key for key, _ in pairs], pa.float64()), "v": pa.array([v for _, v in pairs], pa.string())}
        )

    location = created(do, tmp_path, keyed((-0.0, "a"), (1.5, "b")))
    do(location, Action("merge", commit(2), keyed((0.0, "c")), keyed((-0.0, "")).select(["k"]), ["k"]))
    assert sorted(row["v"] for row in DeltaLocation(location, {}).rows().to_pylist()) == ["b", "c"]
    do(location, Action("merge", commit(3), keyed(), keyed((-0.0, ""), (0.0, "")).select(["k"]), ["k"]))
    assert [row["v"] for row in DeltaLocation(location, {}).rows().to_pylist()] == ["b"]


def test_names_from_outside_are_quoted(do: Do, tmp_path: Path) -> None:
    names = ["id", "select", "back`tick", 'quo"te', "it's", "Ünï", "a.b", "semi-colon"]
    first = pa.table({name: pa.array([1, 2], pa.int64()) for name in names})
    location = created(do, tmp_path, first)
    changed = pa.table({name: pa.array([1], pa.int64()) for name in names}).set_column(
        1, "select", pa.array([7], pa.int64())
    )
    gone = pa.table({name: pa.array([2], pa.int64()) for name in ("id", "a.b", 'quo"te', "back`tick")})
    do(location, Action("merge", commit(2), changed, gone, ["id", "a.b", 'quo"te', "back`tick"]))
    assert DeltaLocation(location, {}).rows().to_pylist() == changed.to_pylist()


def test_a_table_that_is_there_already_is_not_created_over(do: Do, tmp_path: Path) -> None:
    location = created(do, tmp_path, rows((1, "a")))
    with pytest.raises(UnavailableError):
        do(location, Action("create", commit(2), rows((2, "b"))))
    assert content(location) == [{"id": 1, "v": "a"}]


def test_a_commit_of_somebody_else_is_distinguished_and_maintenance_is_not(do: Do, tmp_path: Path) -> None:
    from deltalake import DeltaTable, write_deltalake

    location = created(do, tmp_path, rows((1, "a")))
    DeltaTable(location).optimize.compact()
    assert DeltaLocation(location, {}).foreign_commit(0) is None
    write_deltalake(location, rows((5, "x")), mode="append")
    assert DeltaLocation(location, {}).foreign_commit(0) == "WRITE"


def test_the_spark_writer_reads_no_file_without_keys_of_the_batch(session: Any, tmp_path: Path) -> None:
    location, doing = str(tmp_path / "t"), SparkDoing(session, tmp_path / "stage")
    key = ["id", "it's `x`"]

    def keyed(*names: str) -> pa.Table:
        ids = pa.array([ord(name[0]) for name in names], pa.int64())
        return pa.table({"id": ids, "it's `x`": list(names), "v": [name + "!" for name in names]})

    TaskWriter().commit(DeltaLocation(location, {}), Action("create", commit(1), keyed("a'", "b\\")))
    TaskWriter().commit(DeltaLocation(location, {}), Action("append", commit(2), keyed("x'", "y")))
    for file in DeltaLocation(location, {}).table.file_uris():
        if pq.read_table(file.removeprefix("file://")).column("id")[0].as_py() == ord("x"):
            Path(file.removeprefix("file://")).write_bytes(b"not to be read")
    doing.commit(location, Action("merge", commit(3), keyed("a'", "c"), keyed("b\\").select(key), key))
    files = {file.removeprefix("file://") for file in DeltaLocation(location, {}).table.file_uris()}
    tables = [pq.read_table(file) for file in files if Path(file).read_bytes() != b"not to be read"]
    assert sorted(pa.concat_tables(tables).column("it's `x`").to_pylist()) == ["a'", "c"]
