# SPDX-License-Identifier: Apache-2.0
"""Files of the change log: row groups of one table or several small ones, none longer than is good to hold."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_cdc.core.apply.ordered_changes import has
from airflow_provider_cdc.core.errors import SinkError
from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA
from spark_jobs.lake import change_log, row_groups
from spark_jobs.lake.change_log import LogWriter
from spark_jobs.lake.manifest import RowGroup
from spark_jobs.lake.row_groups import StoredImages, read_groups, read_without_images
from spark_jobs.lake.storage import Storage


def batch(tables: list[str], first: int = 0) -> pa.RecordBatch:
    rows: list[dict[str, Any]] = [
        {
            "topic": "t",
            "partition": 0,
            "offset": first + number,
            "kind": "row",
            "op": "insert",
            "database": "shop",
            "table": table,
            "position": f"{first + number:08d}",
            "after": "x" * 1000,
            "columns": f"columns of {table}",
        }
        for number, table in enumerate(tables)
    ]
    return pa.RecordBatch.from_pylist(rows, CHANGE_SCHEMA)


def written(root: Path, *batches: pa.RecordBatch) -> tuple[Storage, LogWriter, list[RowGroup]]:
    storage = Storage(str(root), {})
    writer = LogWriter(storage, "log", describe=True)
    for one in batches:
        writer.add(one)
    return storage, writer, writer.close()


def offsets(storage: Storage, groups: list[RowGroup]) -> list[int]:
    result: list[int] = read_groups(storage, groups, ["offset"]).column("offset").to_pylist()
    return result


@pytest.mark.parametrize("tables", [["a"], ["a", "b", "c"]], ids=["one table", "three tables"])
def test_long_tables_are_several_row_groups_with_their_own_spans(
    tables: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_log, "_ROW_GROUP_BYTES", 40_000)
    monkeypatch.setattr(change_log, "_SORTED_TOGETHER", 50)
    batches = [batch((tables * 30)[:30], 30 * number) for number in range(10)]
    storage, writer, groups = written(tmp_path, *batches)
    assert (writer.rows, sum(group.rows for group in groups)) == (300, 300)
    assert len({group.file for group in groups}) == 1
    for table in tables:
        mine = [group for group in groups if group.table == table]
        sent = [30 * n + i for n in range(10) for i, name in enumerate((tables * 30)[:30]) if name == table]
        assert len(mine) > 1
        assert offsets(storage, mine) == sent
        for group in mine:
            actual = offsets(storage, [group])
            assert (group.min_position, group.max_position) == (f"{actual[0]:08d}", f"{actual[-1]:08d}")
    reported = {
        (d["table"], d["columns"]): d["position"]
        for d in sorted(writer.descriptions, key=lambda d: d["position"], reverse=True)
    }
    assert reported == {(table, f"columns of {table}"): f"{number:08d}" for number, table in enumerate(tables)}


def parts(groups: list[RowGroup]) -> list[tuple[str, int, int, int]]:
    return [(group.table, group.row_group, group.start, group.rows) for group in groups]


def test_short_tables_share_a_row_group(tmp_path: Path) -> None:
    storage, _, groups = written(tmp_path, batch(["b", "a", "b"]), batch(["a"], 3))
    assert parts(groups) == [("a", 0, 0, 2), ("b", 0, 2, 2)]
    assert [offsets(storage, [group]) for group in groups] == [[1, 3], [0, 2]]
    assert [(group.min_position, group.max_position) for group in groups] == [
        ("00000001", "00000003"),
        ("00000000", "00000002"),
    ]
    assert [group.image_bytes // 1000 for group in groups] == [2, 2]


def test_tables_share_a_row_group_up_to_a_number_of_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_log, "_SHARED_BYTES", 4_000)
    storage, _, groups = written(tmp_path, batch(["a", "b", "c", "c", "c", "c", "c", "d"]))
    assert parts(groups) == [("a", 0, 0, 1), ("b", 0, 1, 1), ("c", 1, 0, 5), ("d", 2, 0, 1)]
    assert [offsets(storage, [group]) for group in groups] == [[0], [1], [2, 3, 4, 5, 6], [7]]


def test_a_shared_row_group_is_read_once_for_its_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage, _, groups = written(tmp_path, batch(["a", "b", "c"]))
    read, real = [], pq.ParquetFile.read_row_group
    monkeypatch.setattr(
        pq.ParquetFile, "read_row_group", lambda file, number, **more: read.append(number) or real(file, number, **more)
    )
    assert [offsets(storage, [group]) for group in groups] == [[0], [1], [2]]
    assert read == [0]
    row_groups.forget_row_groups()
    assert offsets(storage, groups[1:]) == [1, 2]
    assert read == [0, 0]


def test_shared_row_groups_are_forgotten_when_they_are_too_large_together() -> None:
    rows, shared = pa.table({"a": list(range(100))}), row_groups.SharedRowGroups(limit=2_000)
    for number in range(3):
        shared.add((number,), rows)
        shared.rows((0,))
    assert [shared.rows((number,)) is not None for number in range(3)] == [True, False, True]


def test_rows_of_many_row_groups_do_not_hold_other_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_groups, "_COPIED_GROUPS", 1)
    storage, _, first = written(tmp_path, batch(["a"] + ["b"] * 9))
    _, _, second = written(tmp_path, batch(["a"] + ["b"] * 9, 10))
    rows = read_groups(storage, [first[0], second[0]], ["offset", "after"])
    assert rows.column("offset").to_pylist() == [0, 10]
    assert rows.get_total_buffer_size() < 5_000


def test_of_many_tables_more_rows_are_sorted_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_log, "_SORTED_TOGETHER", 20)
    sorted_rows, real = [], change_log._Tables.sort
    monkeypatch.setattr(
        change_log._Tables, "sort", lambda tables, rows: sorted_rows.append(len(rows)) or real(tables, rows)
    )
    names = [f"table {n}" for n in range(10)]
    storage, _, groups = written(tmp_path, *(batch(names, 10 * n) for n in range(130)))
    assert sorted_rows == [500, 500, 300]
    assert {group.table: offsets(storage, [group]) for group in groups} == {
        name: list(range(n, 1300, 10)) for n, name in enumerate(names)
    }


def test_a_large_table_among_many_small_ones_keeps_its_row_groups_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_log, "_ROW_GROUP_BYTES", 20_000)
    storage, _, groups = written(tmp_path, batch([*(f"small {n}" for n in range(5)), *["large"] * 95]))
    large = [group for group in groups if group.table == "large"]
    assert len(large) == 3
    assert offsets(storage, large) == list(range(5, 100))
    assert offsets(storage, [group for group in groups if group.table == "small 3"]) == [3]


def test_row_groups_state_facts_of_each_table(tmp_path: Path) -> None:
    operations = [("a", "truncate", 5), ("b", "delete", None), ("a", "update", 3), ("b", "insert", None)]
    rows = [
        {"op": op, "database": "shop", "table": table, "position": f"{n}", "source_time": time, "kind": "row"}
        for n, (table, op, time) in enumerate(operations)
    ]
    _, writer, (a, b) = written(tmp_path, pa.RecordBatch.from_pylist(rows, CHANGE_SCHEMA))
    assert (a.table, a.clears, a.removals, a.min_source_time, a.max_source_time) == ("a", ["0"], 1, 3, 5)
    assert (b.table, b.clears, b.removals, b.min_source_time, b.max_source_time) == ("b", [], 1, None, None)
    assert writer.descriptions == []


@pytest.mark.parametrize("missing", [0.0, 0.3], ids=["whole", "gaps"])
@pytest.mark.parametrize("descents", [0.0, 0.1, 1.0], ids=["rising", "some fall", "random"])
def test_row_groups_state_bounds_of_each_table_in_any_order(missing: float, descents: float, tmp_path: Path) -> None:
    chance = random.Random(3)
    rows: list[dict[str, Any]] = []
    for number in range(300):
        at = chance.randrange(300) if chance.random() < descents else number
        time = None if chance.random() < missing else chance.randrange(1_000)
        table, position = f"t{chance.randrange(7)}", f"{at:04d}"
        op = chance.choice(["insert", "update", "delete", "truncate"])
        change = {"op": op, "database": "shop", "table": table, "position": position, "source_time": time}
        rows.append({**change, "kind": "row", "topic": "t", "partition": 0, "offset": number})
    parts = [pa.RecordBatch.from_pylist(rows[start : start + 50], CHANGE_SCHEMA) for start in range(0, 300, 50)]
    _, _, groups = written(tmp_path, *parts)
    assert len(groups) == 7
    for group in groups:
        mine = [row for row in rows if row["table"] == group.table]
        positions, times = (
            [row[name] for row in mine if row[name] is not None] for name in ("position", "source_time")
        )
        assert (group.min_position, group.max_position) == (min(positions), max(positions))
        assert (group.min_source_time, group.max_source_time) == (min(times), max(times))
        assert group.removals == sum(row["op"] in ("update", "delete") for row in mine)
        assert group.clears == [row["position"] for row in mine if row["op"] == "truncate"]


def test_a_batch_without_rows_is_no_row_group(tmp_path: Path) -> None:
    _, _, groups = written(tmp_path, batch(["a"]).slice(0, 0))
    assert groups == [] and list(tmp_path.rglob("*.parquet")) == []


def test_row_groups_state_where_rows_begin_that_are_of_no_snapshot(tmp_path: Path) -> None:
    operations = [("a", "snapshot", "1"), ("b", "snapshot", "1"), ("c", "insert", "1")]
    operations += [("a", "snapshot", "1"), ("b", "delete", "3"), ("b", "update", "2")]
    rows = [
        {"op": op, "database": "shop", "table": table, "position": position, "kind": "row"}
        for table, op, position in operations
    ]
    storage = Storage(str(tmp_path))
    writer = LogWriter(storage, "log", snapshots=True)
    writer.add(pa.RecordBatch.from_pylist(rows, CHANGE_SCHEMA))
    groups = writer.close()
    assert [(group.table, group.changes_from) for group in groups] == [("a", None), ("b", "2"), ("c", "1")]
    assert [group.snapshots for group in groups] == [[("1", 0)], [("1", 0)], []]


def test_nothing_taken_leaves_no_file(tmp_path: Path) -> None:
    _, _, groups = written(tmp_path)
    assert groups == []
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_footer_is_parsed_once_for_all_tables_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_log, "_SHARED_BYTES", 1)
    names, parsed, parse = [f"table {n:02}" for n in range(20)], [], pq.read_metadata
    monkeypatch.setattr(row_groups.pq, "read_metadata", lambda file: parsed.append(file) or parse(file))
    monkeypatch.setattr(row_groups, "_FOOTERS", row_groups.Footers())
    storage, _, groups = written(tmp_path, batch(names))
    assert [offsets(storage, [group]) for group in groups] == [[n] for n in range(20)]
    assert len(parsed) == 1


def test_footers_are_given_up_when_they_are_too_large_together(tmp_path: Path) -> None:
    footers, sizes = row_groups.Footers(limit=1), []
    for number in range(2):
        storage, _, groups = written(tmp_path, batch(["a"], number))
        with storage.open_file(groups[0].file) as opened:
            footers.footer((storage.root, groups[0].file, opened.size()), opened)
        sizes.append(len(footers._footers))
    assert sizes == [1, 1]


def test_a_file_that_is_cut_off_after_it_was_read_is_damaged(tmp_path: Path) -> None:
    storage, _, groups = written(tmp_path, batch(["a"]))
    assert offsets(storage, groups) == [0]
    file = tmp_path / groups[0].file
    file.write_bytes(file.read_bytes()[:-30])
    with pytest.raises(SinkError) as error:
        offsets(storage, groups)
    assert error.value.code == "log.damaged"


IMAGES_OF = {"insert": ["after"], "update": ["before", "after"], "delete": ["before"], "truncate": []}


def with_images(changes: list[tuple[str, list[str]]], first: int = 0) -> pa.RecordBatch:
    """Return changes of one table by operation and the images that they have."""
    rows = batch(["a"] * len(changes), first).to_pylist()
    for row, (op, images) in zip(rows, changes, strict=True):
        row |= {"op": op, "before": None, "after": None, **{name: name * 100 for name in images}}
    return pa.RecordBatch.from_pylist(rows, CHANGE_SCHEMA)


@pytest.mark.parametrize("before_of", [None, ["delete"]])
@pytest.mark.parametrize("exception", [None, ("update", ["after"]), ("delete", [])], ids=str)
def test_which_rows_have_images_is_known_without_reading_them(
    exception: tuple[str, list[str]] | None,
    before_of: list[str] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(change_log, "_SHARED_BYTES", 1)
    regular = list(IMAGES_OF.items()) * 3
    storage, _, first = written(tmp_path, with_images(regular))
    _, _, second = written(tmp_path, with_images([*regular, *([exception] if exception else [])], 100))
    assert [group.images_of for group in (*first, *second)] == [IMAGES_OF, None if exception else IMAGES_OF]

    read, real = [], pq.ParquetFile.read_row_group
    monkeypatch.setattr(
        pq.ParquetFile,
        "read_row_group",
        lambda file, number, columns, **more: read.append(columns) or real(file, number, columns=columns, **more),
    )
    images = {name: StoredImages(storage, name) for name in ("before", "after")}
    columns = ["offset", "op", "before", "after"]
    rows = read_without_images(storage, [*first, *second], columns, images, before_of=before_of)
    assert read == [["offset", "op"], columns if exception else ["offset", "op"]]
    whole = read_groups(storage, [*first, *second], columns, before_of=before_of)
    for name, stored in images.items():
        assert rows.column(has(name)).to_pylist() == whole.column(name).is_valid().to_pylist()
        assert stored.lengths.tolist() == [12, 13 if exception else 12]
        assert stored.nbytes > 0
    assert sum(stored.nbytes for stored in images.values()) == sum(g.image_bytes for g in (*first, *second))


def test_short_row_groups_do_not_state_which_rows_have_images(tmp_path: Path) -> None:
    _, _, groups = written(tmp_path, with_images(list(IMAGES_OF.items())))
    assert [group.images_of for group in groups] == [None]


def test_rows_of_small_tables_do_not_carry_the_descriptions_of_all_others(tmp_path: Path) -> None:
    tables = [f"t{number:04d}" for number in range(3_000)]
    storage, _, groups = written(tmp_path, batch(tables), batch(tables, 3_000))
    descriptions = []
    with storage.open_file(groups[0].file) as file:
        parquet = pq.ParquetFile(file, read_dictionary=["columns"])
        for number in range(parquet.num_row_groups):
            column = parquet.read_row_group(number, ["columns"]).column(0)
            descriptions.append({word for chunk in column.chunks for word in chunk.dictionary.to_pylist()})
    assert len(descriptions) > 3
    assert sum(map(len, descriptions)) == len(tables)  # each in the row group of its table
    for group in groups[:: len(groups) // 20]:
        rows = read_groups(storage, [group], ["offset", "columns"])
        assert rows.column("columns").chunk(0).dictionary.to_pylist() == [f"columns of {group.table}"]
        assert rows.column("offset").to_pylist() == [int(group.table[1:]), 3_000 + int(group.table[1:])]
