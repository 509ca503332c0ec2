# SPDX-License-Identifier: Apache-2.0
"""Updates whose images before name only the columns that they changed, as those of canal-json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from airflow_provider_cdc.core.apply.foreign_key_actions import lost_values
from airflow_provider_cdc.core.apply.merge_plan import MergePlan
from airflow_provider_cdc.core.apply.ordered_changes import RESTORED, STORED_ROW, Changes, has
from airflow_provider_cdc.core.apply.repeated_rows import SENT_COLUMNS, with_sending
from airflow_provider_cdc.core.apply.resolve import RESOLVE_COLUMNS, ordered, resolve
from airflow_provider_cdc.core.formats.common.clock_positions import ClockPositions
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import Reference, SchemaChange, TableTimeline
from airflow_provider_cdc.core.values.types import TypeOptions

WIRE = open_format("canal-json")
NOW = 1_700_000_000_000
Row = Mapping[str, str | None]


def record(op: str, row: Row, old: Row | None = None, key: tuple[str, ...] = ("a", "b")) -> dict[str, Any]:
    types = dict.fromkeys(row, "varchar(9)")
    changed = None if old is None else [old]
    return {"type": op, "data": [row], "old": changed, "mysqlType": types, "pkNames": list(key) or None}


def changes_of(*records: dict[str, Any]) -> pa.Table:
    """Return the row changes of records of d.t, one each second."""
    said = {"database": "d", "table": "t", "isDdl": False, "sql": "", "id": 1}
    times = [NOW + 1000 * number for number in range(len(records))]
    values = [
        json.dumps({**said, **one, "es": time, "ts": time}).encode() for one, time in zip(records, times, strict=True)
    ]
    count = len(values)
    decoded = WIRE.decode(Records("t", 0, list(range(count)), times, [None] * count, values))
    assert set(decoded.column("kind").to_pylist()) == {"row"}
    rows = pa.Table.from_batches([ClockPositions().fill(decoded)])
    return with_sending(rows.select([*RESOLVE_COLUMNS, *SENT_COLUMNS]))


def timeline_of(*statements: str) -> TableTimeline:
    ddl = [SchemaChange("" if not number else f"{number:020d}", number, "d", s) for number, s in enumerate(statements)]
    timeline = build_timeline(ddl)
    owner = timeline.owner(TableName("d", "t"), "~")
    assert owner is not None
    return timeline.tables[owner]


def plan_of(create: str, *records: dict[str, Any]) -> MergePlan:
    return resolve(ordered(changes_of(*records)), timeline_of(create), None, WIRE, TypeOptions())


CREATE = "CREATE TABLE d.t (a VARCHAR(9), b VARCHAR(9), v VARCHAR(9), PRIMARY KEY (a, b))"


@pytest.mark.parametrize(
    ("old", "deleted"),
    [
        ({"v": "0"}, []),
        ({}, []),
        ({"a": "0"}, [{"a": "0", "b": "y"}]),
        ({"b": "0", "v": "0"}, [{"a": "x", "b": "0"}]),
        ({"a": "0", "b": "1"}, [{"a": "0", "b": "1"}]),
        ({"a": "x", "v": "0"}, []),  # Canal also names columns that other rows of the record changed
    ],
)
def test_a_key_that_moved_is_left_with_the_columns_that_stayed(old: Row, deleted: list[Row]) -> None:
    plan = plan_of(CREATE, record("UPDATE", {"a": "x", "b": "y", "v": "1"}, old))
    assert not plan.failures
    assert plan.steps[-1].deletes.to_pylist() == deleted
    assert plan.steps[-1].upserts.to_pylist() == [{"a": "x", "b": "y", "v": "1"}]


def test_values_that_look_like_a_column_of_the_key_are_values() -> None:
    old = {"v": '"a":'}
    plan = plan_of(CREATE, record("UPDATE", {"a": "x", "b": "y", "v": "1"}, old))
    assert (plan.steps[-1].deletes.num_rows, plan.steps[-1].upserts.num_rows) == (0, 1)


@pytest.mark.parametrize("name", ['q"\\', "é ü", "\t", "键"])
def test_names_of_key_columns_may_be_any(name: str) -> None:
    create = f"CREATE TABLE d.t (`{name}` VARCHAR(9) PRIMARY KEY, v VARCHAR(9))"
    plan = plan_of(create, record("UPDATE", {name: "2", "v": "w"}, {name: "1"}, (name,)))
    assert plan.steps[-1].deletes.to_pylist() == [{name: "1"}]
    assert plan.steps[-1].upserts.to_pylist() == [{name: "2", "v": "w"}]


def test_rows_of_a_table_without_key_go_as_they_were() -> None:
    create = "CREATE TABLE d.t (a VARCHAR(9), v VARCHAR(9))"
    update = record("UPDATE", {"a": "x", "v": "new"}, {"v": "old"}, ())
    delete = record("DELETE", {"a": "z", "v": None}, None, ())
    (step,) = plan_of(create, update, delete).steps
    assert step.deletes.to_pylist() == [{"a": "x", "v": "old"}, {"a": "z", "v": None}]
    assert step.upserts.to_pylist() == [{"a": "x", "v": "new"}]


def test_a_bad_value_of_the_key_spoils_its_update_alone() -> None:
    create = "CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(9))"
    bad = record("UPDATE", {"id": "no number", "v": "1"}, {"v": "0"}, ("id",))
    good = record("UPDATE", {"id": "7", "v": "1"}, {"v": "0"}, ("id",))
    plan = plan_of(create, bad, good)
    assert {(failure.offset, failure.column) for failure in plan.failures} == {(0, "id")}
    assert plan.steps[-1].upserts.to_pylist() == [{"id": 7, "v": "1"}]
    assert not plan.steps[-1].deletes.num_rows


def test_a_parents_values_are_lost_with_the_columns_that_stayed() -> None:
    create = "CREATE TABLE d.t (id INT PRIMARY KEY, a VARCHAR(9), b VARCHAR(9), UNIQUE (a, b))"
    update = record("UPDATE", {"id": "1", "a": "x", "b": "new"}, {"b": "old"}, ("id",))
    reference = Reference("", (0, 1), [TableName("d", "t")], ("a", "b"))
    lost = lost_values(changes_of(update), timeline_of(create), reference, WIRE, TypeOptions())
    assert lost.values.to_pylist() == [{"a": "x", "b": "old"}]


class Pieces:
    """Images in pieces of three rows, as the change log stores them."""

    def __init__(self, images: pa.ChunkedArray) -> None:
        every = images.combine_chunks()
        self._pieces = [every.slice(start, 3) for start in range(0, len(every), 3)]
        self.lengths = np.array(list(map(len, self._pieces)))
        self.nbytes = images.nbytes

    def __getitem__(self, piece: int) -> pa.Array:
        return self._pieces[piece]


@pytest.mark.parametrize("stored", [False, True])
def test_images_of_any_rows_are_restored(stored: bool) -> None:
    records = [
        record("UPDATE", {"a": str(n), "b": "y", "v": "1.10"}, {"v": str(n)}) if n % 3 else
        record("DELETE", {"a": str(n), "b": "y", "v": "gone"})
        for n in range(10)
    ]  # fmt: skip
    rows = changes_of(*records)
    pieces = {name: Pieces(rows.column(name)) for name in ("before", "after")}
    table = rows
    if stored:
        table = rows.drop_columns(["before", "after"]).append_column(STORED_ROW, pa.array(range(10)))
        for name in pieces:
            table = table.append_column(has(name), pc.is_valid(rows.column(name)))
    images = Changes(table, pieces if stored else None).image(RESTORED)
    expected = [{"a": str(n), "b": "y", "v": str(n) if n % 3 else "gone"} for n in range(10)]
    assert images.there.all()
    for picked in ([0, 1, 2, 3], [1, 4, 8], [0, 9], [5], []):
        actual = images.at(np.array(picked, dtype=np.int64)).to_pylist()
        assert list(map(json.loads, actual)) == [expected[n] for n in picked]
