# SPDX-License-Identifier: Apache-2.0
"""Merges read and write only files that may hold the keys, whatever the key's type and whoever wrote the files."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from deltalake.transaction import AddAction

from airflow_provider_cdc.core.errors import UnavailableError
from spark_jobs.sinks import row_group_files
from spark_jobs.sinks.commits import Commit
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.delta import by_delta_rs, key_merge
from spark_jobs.sinks.delta.stored_files import files_with
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.sinks.delta.table_commits import TableCommits
from spark_jobs.sinks.delta.task_writer import TaskWriter
from spark_jobs.sinks.key_bounds import KeyBounds
from tests.sinks.actions import columns_of

_DAWN = datetime(1900, 1, 1)


def _texts(chance: random.Random) -> str:
    letters = ["a", "é", "\U0001f600", "\U0010ffff", "\ud7ff", "", "\0", "z"]
    return chance.choice(["", "x" * 31, "\U0010ffff" * 40, "é" * 70]) + "".join(
        chance.choice(letters) for _ in range(chance.randrange(6))
    )


def _moment(chance: random.Random) -> datetime:
    ends = [datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1000, 1, 1, 0, 0, 0, 1)]
    return chance.choice([*ends, _DAWN + timedelta(microseconds=chance.randrange(10**16)), _DAWN, _DAWN])


def _decimal(digits: int, scale: int) -> Callable[[random.Random], Decimal]:
    largest = 10**digits - 1
    return lambda chance: Decimal(
        chance.choice([chance.randint(-largest, largest), chance.randint(-99, 99), largest, -largest])
    ).scaleb(-scale)


_KINDS: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "int8": (pa.int8(), lambda chance: chance.randint(-128, 127)),
    "int64": (pa.int64(), lambda chance: chance.choice([-(2**63), 2**63 - 1, 2**53 + 1, chance.randint(-9, 9)])),
    "unsigned": (pa.decimal128(20, 0), lambda chance: Decimal(chance.choice([0, 2**64 - 1, 2**63, 2**63 - 1, 7]))),
    "small decimal": (pa.decimal128(12, 4), _decimal(12, 4)),
    "decimal of 18": (pa.decimal128(18, 3), _decimal(18, 3)),
    "wide decimal": (pa.decimal128(28, 6), _decimal(28, 6)),
    "text": (pa.string(), lambda chance: _texts(chance).encode("utf-8", "ignore").decode()),
    "day": (pa.date32(), lambda chance: date.fromordinal(chance.choice([1, 3652059, chance.randint(1, 999999)]))),
    "local time": (pa.timestamp("us"), _moment),
    "instant": (pa.timestamp("us", "UTC"), lambda chance: _moment(chance).replace(tzinfo=UTC)),
    "double": (pa.float64(), lambda chance: chance.choice([0.0, -0.0, float("nan"), float("inf"), 5e-324, 1.5])),
    "bytes": (pa.binary(), lambda chance: bytes(chance.randrange(256) for _ in range(chance.randrange(3)))),
    "yes": (pa.bool_(), lambda chance: chance.random() < 0.5),
}


def commit(seq: int) -> Commit:
    return Commit("a", seq, {"app": "a", "seq": seq})


def _by_delta_rs(location: str, rows: pa.Table) -> None:
    write_deltalake(location, rows, mode="append")


def _by_data_files(location: str, rows: pa.Table) -> None:
    target = DeltaLocation(location, {})
    files = target.new_files(rows.schema)
    files.add(rows)
    TableCommits(target).commit_files(rows.schema, files.close(), [], "append", commit(1))


@pytest.mark.sampled
@pytest.mark.parametrize("write", [_by_delta_rs, _by_data_files])
@pytest.mark.parametrize("kind", _KINDS)
def test_each_stored_key_is_looked_for_in_its_file(kind: str, write: Any, tmp_path: Path) -> None:
    data_type, value = _KINDS[kind]
    location, stored = str(tmp_path), {}
    for number in range(12):
        chance = random.Random(number)
        rows = pa.table({"k": pa.array([value(chance) for _ in range(chance.choice([1, 3]))], data_type)})
        before = set(DeltaLocation(location, {}).table.file_uris()) if number else set()
        write(location, rows)
        (path,) = set(DeltaLocation(location, {}).table.file_uris()) - before
        stored[path.rsplit("/", 1)[1]] = rows
    live = DeltaLocation(location, {}).live
    for path, keys in stored.items():
        for single in (keys.slice(n, 1) for n in range(keys.num_rows)):
            assert path in [file.path for file in files_with(live, single)], (path, single.to_pylist())


@pytest.mark.parametrize("kind", ["unsigned", "decimal of 18", "text", "local time", "instant", "double", "int64"])
def test_readers_that_skip_files_by_their_statistics_find_each_row(kind: str, tmp_path: Path) -> None:
    data_type, value = _KINDS[kind]
    chance, location = random.Random(3), str(tmp_path)
    for _ in range(6):
        _by_data_files(location, pa.table({"k": pa.array([value(chance) for _ in range(3)], data_type)}))
    values = pa.table(QueryBuilder().register("t", DeltaTable(location)).execute("SELECT k FROM t").read_all())
    for looked_for in {repr(v): v for v in values.column("k").to_pylist() if v == v}.values():
        one_row = pa.table({"k": pa.array([looked_for], data_type)})
        write_deltalake(f"{location}/looked_for", one_row, mode="overwrite")
        tables = QueryBuilder().register("t", DeltaTable(location)).register("w", DeltaTable(f"{location}/looked_for"))
        literal = tables.execute("SELECT count(*) AS n FROM t JOIN w ON t.k = w.k").read_all()
        assert pa.table(literal).column("n")[0].as_py() >= 1


@pytest.mark.parametrize("verb", ["create", "append", "overwrite"])
def test_large_decimals_are_found_by_readers_that_skip_files(tmp_path: Path, verb: Any) -> None:
    location, largest = str(tmp_path), 2**64 - 1
    rows = pa.table({"n": pa.array([Decimal(1), Decimal(largest)], pa.decimal128(20, 0))})
    if verb != "create":
        TaskWriter().commit(DeltaLocation(location, {}), Action("create", commit(1), rows.slice(0, 1)))
    TaskWriter().commit(DeltaLocation(location, {}), Action(verb, commit(2), rows))
    answer = QueryBuilder().register("t", DeltaTable(location)).execute(f"SELECT n FROM t WHERE n = {largest}")
    assert pa.table(answer.read_all()).column("n").to_pylist() == [Decimal(largest)]


def test_overwriting_in_pieces_may_change_the_columns(tmp_path: Path) -> None:
    location = str(tmp_path)
    TaskWriter().commit(DeltaLocation(location, {}), Action("create", commit(1), _rows(1)))
    rows = pa.table({"v": ["a"], "n": pa.array([Decimal(2**64 - 1)], pa.decimal128(20, 0)), "id": [2]})
    TaskWriter().commit(DeltaLocation(location, {}), Action("overwrite", commit(2), rows))
    target = DeltaLocation(location, {})
    assert target.rows().equals(rows) and target.applied("a") == 2 and target.version == 1


def _filled(location: str, files: int = 4, each: int = 10) -> None:
    for number in range(files):
        ids = range(number * each, (number + 1) * each)
        rows = pa.table({"id": pa.array(ids, pa.int64()), "v": [f"old {i}" for i in ids]})
        TaskWriter().commit(DeltaLocation(location, {}), Action("append" if number else "create", commit(number), rows))


def _rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [f"new {i}" for i in ids]})


def _merge(location: str, rows: pa.Table, *gone: int) -> None:
    deletes = pa.table({"id": pa.array(gone, pa.int64())})
    TaskWriter().commit(DeltaLocation(location, {}), Action("merge", commit(9), rows, deletes, ["id"]))


def _ranges(location: str) -> list[tuple[int, int]]:
    files = pa.table(DeltaLocation(location, {}).table.get_add_actions())
    return sorted((row["min"]["id"], row["max"]["id"]) for row in files.to_pylist())


def test_only_files_that_may_hold_the_keys_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    location = str(tmp_path)
    _filled(location)
    opened, real = [], key_merge.opened

    def counted(storage: Any, file: Any) -> Any:
        opened.append(file.path)
        return real(storage, file)

    monkeypatch.setattr(key_merge, "opened", counted)
    TaskWriter().commit(
        DeltaLocation(location, {}), Action("merge", commit(9), _rows(25), _rows(99).select([0]), ["id"])
    )
    assert len(opened) == 1


def test_files_stay_within_their_ranges_of_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_group_files, "_FULL_BYTES", 1)
    location = str(tmp_path)
    _filled(location)
    _merge(location, _rows(0, 12, 25, 39, 40, 41), 3)
    assert _ranges(location) == [(0, 9), (10, 19), (20, 29), (30, 39), (40, 41)]
    rows = {row["id"]: row["v"] for row in DeltaLocation(location, {}).rows().to_pylist()}
    assert len(rows) == 41 and 3 not in rows
    assert {i for i, v in rows.items() if v == f"new {i}"} == {0, 12, 25, 39, 40, 41}


def test_small_touched_files_are_written_as_one(tmp_path: Path) -> None:
    location = str(tmp_path)
    _filled(location)
    TaskWriter().commit(
        DeltaLocation(location, {}), Action("merge", commit(9), _rows(0, 15, 40), _rows().select([0]), ["id"])
    )
    assert _ranges(location) == [(0, 40), (20, 29), (30, 39)]


def test_a_key_of_several_columns_is_looked_for_by_each(tmp_path: Path) -> None:
    keys = pa.table({"a": pa.array([1, 2], pa.int64()), "b": ["x", "y"]})
    bounds = KeyBounds(keys)
    assert list(bounds.within({"a": (1, 2), "b": ("x", "y")})) == [0, 1]
    assert list(bounds.within({"a": (1, 1), "b": ("y", "z")})) == []
    assert list(bounds.within({"a": (None, 1)})) == [0]
    assert list(bounds.within({"b": ("y", None)})) == [1]
    assert list(bounds.within({})) == [0, 1]


def test_null_in_a_key_column_is_looked_for_in_every_file() -> None:
    bounds = KeyBounds(pa.table({"a": pa.array([1, None], pa.int64())}))
    assert list(bounds.within({"a": (5, 6)})) == [0, 1]


def test_times_that_spark_wrote_are_read_over_all_years(tmp_path: Path) -> None:
    location = str(tmp_path)
    late = datetime(9999, 12, 31, tzinfo=UTC)
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "at": pa.array([late, late], pa.timestamp("us", "UTC"))})
    write_deltalake(location, rows.slice(0, 0))
    pq.write_table(rows, tmp_path / "theirs.parquet", use_deprecated_int96_timestamps=True)
    theirs = AddAction("theirs.parquet", (tmp_path / "theirs.parquet").stat().st_size, {}, 1, True, "{}")
    table = DeltaTable(location)
    table.create_write_transaction([theirs], "append", table.schema())
    action = Action("merge", commit(1), rows.slice(0, 1), rows.slice(0, 0).select(["id"]), ["id"])
    TaskWriter().commit(DeltaLocation(location, {}), action)
    assert DeltaLocation(location, {}).rows().sort_by("id").equals(rows)


def test_rows_of_keys_are_read_from_files_that_may_hold_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from spark_jobs.sinks.delta import table as delta_table

    location = str(tmp_path)
    _filled(location)
    opened, real = [], delta_table.opened
    monkeypatch.setattr(delta_table, "opened", lambda storage, file: opened.append(file.path) or real(storage, file))
    answer = DeltaLocation(location, {}).rows(pa.table({"id": pa.array([12, 35, 77], pa.int64())}))
    assert sorted(answer.column("id").to_pylist()) == [12, 35] and len(opened) == 2


def _evolves(target: DeltaLocation, schema: pa.Schema, *, merges: bool) -> bool:
    return TaskWriter().evolves(target, columns_of(target.schema), columns_of(schema), merges=merges)


def _bytes_of_files(location: str) -> dict[str, int]:
    return {file.name: file.stat().st_size for file in Path(location).glob("*.parquet")}


@pytest.mark.parametrize("verb", ["append", "merge"])
def test_columns_are_added_in_the_commit_of_their_first_rows(tmp_path: Path, verb: Any) -> None:
    location = str(tmp_path)
    _filled(location)
    before = _bytes_of_files(location)
    more = _rows(35, 99).append_column("n", pa.array(["x", None]))
    target = DeltaLocation(location, {})
    assert _evolves(target, more.schema, merges=verb == "merge")
    deletes = pa.table({"id": pa.array([3], pa.int64())})
    TaskWriter().commit(target, Action(verb, commit(9), more, deletes, ["id"]))
    target = DeltaLocation(location, {})
    assert (target.version, target.applied("a")) == (4, 9)
    assert target.rows().schema.names == ["id", "v", "n"]
    rows = [(row["id"], row["n"]) for row in target.rows().to_pylist() if row["v"].startswith("new")]
    assert sorted(rows) == [(35, "x"), (99, None)]
    assert target.rows().num_rows == (40 if verb == "merge" else 42)
    assert set(before) <= set(_bytes_of_files(location))
    stay = {file.rsplit("/", 1)[1] for file in target.table.file_uris()} & set(before)
    assert len(stay) == (2 if verb == "merge" else 4)
    # files without the columns are merged, read and rewritten with NULL in them
    _merge(location, more.slice(0, 1).set_column(0, "id", pa.array([15], pa.int64())))
    rows_of_keys = DeltaLocation(location, {}).rows(pa.table({"id": pa.array([15, 25, 16], pa.int64())}))
    assert {row["id"]: row["n"] for row in rows_of_keys.to_pylist()} == {15: "x", 25: None, 16: None}
    assert DeltaLocation(location, {}).rows(pa.table({"n": ["x"]})).num_rows == 2


def test_adding_a_column_without_rows_writes_no_file(tmp_path: Path) -> None:
    location = str(tmp_path)
    _filled(location)
    before = _bytes_of_files(location)
    none = _rows(1).slice(1).append_column("n", pa.array([], pa.string()))
    TaskWriter().commit(DeltaLocation(location, {}), Action("merge", commit(9), none, none.select([0]), ["id"]))
    target = DeltaLocation(location, {})
    assert _bytes_of_files(location) == before and target.applied("a") == 9
    assert target.rows().column("n").null_count == 40


@pytest.mark.parametrize("verb", ["append", "merge", "overwrite"])
def test_a_column_that_needs_a_feature_of_the_table_comes_with_it_in_one_commit(tmp_path: Path, verb: Any) -> None:
    location, at = str(tmp_path), datetime(2026, 1, 2, 3, 4, 5, 6)
    _filled(location, files=1)
    more = _rows(3, 99).append_column("at", pa.array([at, None], pa.timestamp("us")))
    target = DeltaLocation(location, {})
    assert _evolves(target, more.schema, merges=verb == "merge")
    assert TaskWriter().commit(target, Action(verb, commit(9), more, _rows().select([0]), ["id"])) == 1
    target = DeltaLocation(location, {})
    assert (target.version, target.applied("a"), target.table.protocol().writer_features) == (
        1,
        9,
        ["appendOnly", "invariants", "timestampNtz"],
    )
    assert target.rows(pa.table({"at": pa.array([at], pa.timestamp("us"))})).column("id").to_pylist() == [3]
    assert target.rows().num_rows == {"append": 12, "merge": 11, "overwrite": 2}[verb]


def test_several_columns_are_added_in_their_order(tmp_path: Path) -> None:
    location = str(tmp_path)
    _filled(location)
    none = _rows(1).slice(1)
    for name in ("n", "d", "c"):
        none = none.append_column(name, pa.array([], pa.string()))
    target = DeltaLocation(location, {})
    target.table.alter.set_table_properties({"delta.checkpointInterval": "7"})
    description = target.table.metadata()
    assert _evolves(target, none.schema, merges=True)
    TaskWriter().commit(target, Action("append", commit(9), none))
    target = DeltaLocation(location, {})
    assert target.rows().schema.names == ["id", "v", "n", "d", "c"]
    now = target.table.metadata()
    assert (now.id, now.created_time, now.configuration) == (
        description.id,
        description.created_time,
        {"delta.checkpointInterval": "7"},
    )


def test_columns_that_meet_another_commit_are_a_conflict(tmp_path: Path) -> None:
    location = str(tmp_path)
    _filled(location, files=1)
    target = DeltaLocation(location, {})
    _merge(location, _rows(4))
    with pytest.raises(UnavailableError) as caught:
        none = _rows(1).append_column("n", pa.array(["x"]))
        TaskWriter().commit(target, Action("append", commit(9), none))
    assert caught.value.code == "sink.commit_conflict"
    assert DeltaLocation(location, {}).rows().schema.names == ["id", "v"]


def test_files_that_delta_rs_merged_are_merged_and_read(tmp_path: Path) -> None:
    location = str(tmp_path)
    _filled(location, files=1)
    by_delta_rs.merge(DeltaLocation(location, {}), _rows(3), _rows(1).slice(1).select(["id"]), ["id"], commit(5))
    _merge(location, _rows(4), 5)
    rows = {row["id"]: row["v"] for row in DeltaLocation(location, {}).rows().to_pylist()}
    assert rows == {i: f"new {i}" if i in (3, 4) else f"old {i}" for i in range(10) if i != 5}
    assert DeltaLocation(location, {}).rows(_rows(3).select(["id"])).to_pylist() == [{"id": 3, "v": "new 3"}]
