# SPDX-License-Identifier: Apache-2.0
"""Map stored rows as an ALTER does: which one needs a barrier, and what is lost at it."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.apply.merge_plan import MergePlan
from airflow_provider_cdc.core.apply.resolve import ordered, resolve
from airflow_provider_cdc.core.apply.schema_mapping import Mapper
from airflow_provider_cdc.core.apply.table_rewrite import after_steps, goes_in_pieces, remaining_pieces
from airflow_provider_cdc.core.apply.target_schema import target_schema
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.gtid import server_of
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.timeline.barriers import barriers
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import SchemaChange, TableTimeline
from airflow_provider_cdc.core.values.types import TypeOptions
from tests.unit.core.apply.changes import change, table_of, timeline_of

FREE = [
    ("VARCHAR(5)", "VARCHAR(200)"),
    ("VARCHAR(5) CHARACTER SET latin1", "VARCHAR(5) CHARACTER SET utf8mb4"),
    ("CHAR(5)", "VARCHAR(5)"),
    ("VARCHAR(63)", "TINYTEXT"),
    ("TINYTEXT", "VARCHAR(255)"),
    ("TEXT", "LONGTEXT"),
    ("VARBINARY(5)", "BLOB"),
    ("INT", "BIGINT"),
    ("INT NOT NULL", "INT NULL"),
    ("SET('a','b')", "SET('a','x','b')"),
    ("ENUM('a','b')", "ENUM('b','a')"),
]
COSTLY = [
    ("VARCHAR(200)", "VARCHAR(5)"),
    ("VARCHAR(5) CHARACTER SET utf8mb4", "VARCHAR(5) CHARACTER SET latin1"),
    ("VARCHAR(5)", "CHAR(5)"),
    ("VARCHAR(64)", "TINYTEXT"),
    ("TINYTEXT", "VARCHAR(254)"),
    ("LONGTEXT", "TEXT"),
    ("TEXT CHARACTER SET latin1", "TEXT CHARACTER SET utf8mb4"),
    ("BLOB", "VARBINARY(5)"),
    ("BIGINT", "INT"),
    ("INT NULL", "INT NOT NULL"),
    ("SET('a','b')", "SET('b','a')"),
    ("ENUM('a','b')", "ENUM('b')"),
    ("JSON", "LONGTEXT"),
]


def altered(*types: str) -> TableTimeline:
    create, *alters = types
    return timeline_of(
        f"CREATE TABLE t (id INT PRIMARY KEY, v {create})", *(f"ALTER TABLE t MODIFY v {t}" for t in alters)
    )


def content(
    timeline: TableTimeline, stored: list[Any], at: int, *changes: dict[str, Any], position: str = ""
) -> tuple[list[Any], Counter[str]]:
    """Return the column's values after some changes, and what was lost.

    :param stored: values under schema version ``at``.
    :param position: newest position that they went through.
    """
    base = timeline.versions[at].schema
    rows = [{"id": number, "v": value} for number, value in enumerate(stored)]
    table = pa.Table.from_pylist(rows, target_schema(base, TypeOptions()).columns)
    wire = open_format("canal-protobuf")
    plan: MergePlan = resolve(
        ordered(table_of(changes)), timeline, base, wire, TypeOptions(), base_position=position, read=lambda _: table
    )
    assert plan.failures == []
    lossy = Counter(plan.lossy)
    mapper = Mapper(timeline.versions, timeline.fills, TypeOptions(), plan.lossy)
    result, _ = after_steps(table, base, plan.steps, mapper)
    demand_same_in_pieces(result, table, base, plan, Mapper(timeline.versions, timeline.fills, TypeOptions(), lossy))
    assert lossy == plan.lossy
    return [row["v"] for row in sorted(result.to_pylist(), key=lambda row: row["id"])], plan.lossy


def demand_same_in_pieces(
    content: pa.Table, stored: pa.Table, base: TableSchema, plan: MergePlan, mapper: Mapper
) -> None:
    """Demand that stored rows that are carried one by one, and then the plan's own, are the content."""
    assert goes_in_pieces(base, plan.steps, mapper)
    rows = (stored.slice(number, 1) for number in range(stored.num_rows))
    remaining = remaining_pieces(rows, base, plan.steps, mapper)
    added, _ = after_steps(None, base, plan.steps, mapper)
    assert pa.concat_tables([*remaining, added]).to_pylist() == content.to_pylist()


@pytest.mark.parametrize(("old", "new"), FREE)
def test_a_type_that_holds_every_value_of_the_old_one_costs_nothing(old: str, new: str) -> None:
    assert barriers(altered(old, new).versions) == []


@pytest.mark.parametrize(("old", "new"), COSTLY)
def test_a_type_that_may_not_hold_a_value_is_a_barrier(old: str, new: str) -> None:
    assert barriers(altered(old, new).versions) == [1]


def test_stored_rows_and_rows_before_the_alter_are_cut_and_counted_once() -> None:
    before = change(50, "insert", None, {"id": "7", "v": "seventh"})
    after = change(150, "insert", None, {"id": "8", "v": "eight"})
    actual = content(altered("VARCHAR(200)", "VARCHAR(5)"), ["zeroth", "one", None], 0, before, after)
    assert actual == (["zerot", "one", None, "seven", "eight"], {"text_cut": 2})


def test_a_row_that_is_replaced_after_the_alter_is_not_what_was_cut() -> None:
    after = change(150, "update", {"id": "0", "v": "zerot"}, {"id": "0", "v": "new"})
    assert content(altered("VARCHAR(200)", "VARCHAR(5)"), ["zeroth"], 0, after)[0] == ["new"]


def test_null_is_replaced_where_a_column_becomes_not_null() -> None:
    timeline = altered("INT NULL", "BIGINT NOT NULL DEFAULT 5")
    assert content(timeline, [None, 1], 0) == ([0, 1], {"null_replaced": 1})


def test_a_type_that_goes_and_comes_back_cuts_only_rows_that_were_there() -> None:
    timeline = altered("VARCHAR(200)", "VARCHAR(5)", "VARCHAR(200)")
    assert content(timeline, ["zeroth"], 0, position="00000050") == (["zerot"], {"text_cut": 1})
    assert content(timeline, ["zeroth"], 2, position="00000200") == (["zeroth"], {})
    further = altered("VARCHAR(200)", "VARCHAR(5)", "VARCHAR(200)", "VARCHAR(300)")
    assert content(further, ["zeroth"], 2, position="00000250") == (["zeroth"], {})


def test_the_gtid_of_an_alter_shows_which_server_dropped_fractions() -> None:
    """MySQL's manual: "Fractional Seconds in Time Values" (rounding); MariaDB's: "Microseconds in MariaDB"."""
    stored = datetime(2020, 1, 1, 23, 59, 59, 600_000)
    create = SchemaChange("", 0, "shop", "CREATE TABLE t (id INT PRIMARY KEY, v DATETIME(6))")
    for gtid, expected in {
        "3E11FA47-71CA-11E1-9E33-C80AA9429562:23": datetime(2020, 1, 2),
        "3e11fa47-71ca-11e1-9e33-c80aa9429562:tag_1:23": datetime(2020, 1, 2),
        "0-4711-55": datetime(2020, 1, 1, 23, 59, 59),
    }.items():
        alter = SchemaChange("00000100", 1, "shop", "ALTER TABLE t MODIFY v DATETIME", server=server_of(gtid))
        changes = [SchemaChange.from_document(change.document()) for change in (create, alter)]
        (timeline,) = build_timeline(changes).tables.values()
        again = TableTimeline.from_document(timeline.document())
        assert content(again, [stored], 0)[0] == [expected]
    assert server_of("1234") is server_of(None) is None


def test_partial_images_are_completed_from_what_was_cut() -> None:
    timeline = timeline_of(
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(200), w INT)", "ALTER TABLE t MODIFY v VARCHAR(5)"
    )
    rows = [
        change(50, "insert", None, {"id": "1", "v": "seventh", "w": "1"}),
        change(150, "update", {"id": "1"}, {"w": "2"}),
    ]
    plan = resolve(ordered(table_of(rows)), timeline, None, open_format("canal-protobuf"), TypeOptions())
    assert plan.steps[1].upserts.to_pylist() == [{"id": 1, "v": "seven", "w": 2}]
