# SPDX-License-Identifier: Apache-2.0
"""Columns that inserts lack: their default, a column that the tool leaves out, or a table that waits."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from airflow_provider_cdc.core.apply.merge_plan import MergePlan
from airflow_provider_cdc.core.apply.resolve import ordered, resolve
from airflow_provider_cdc.core.apply.row_images import SchemaMissing
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import SchemaChange
from airflow_provider_cdc.core.values.types import TypeOptions
from tests.unit.core.apply.changes import change, failures, table_of, timeline_of

Row = dict[str, Any]
DEFAULTS = """CREATE TABLE t (id INT PRIMARY KEY, a INT DEFAULT 5, b VARCHAR(9), c DECIMAL(4,2) NOT NULL,
    d VARCHAR(9) DEFAULT (UUID()), e TIMESTAMP DEFAULT '2020-01-01 00:00:00', f VARCHAR(9) AS (b), g JSON NOT NULL)"""
WHOLE = {"a": "1", "b": "x", "c": "1.00", "d": "u", "e": "2020-01-01 00:00:00", "f": "x", "g": "{}"}


STATED = open_format("canal-protobuf", {"binlog_row_image": "minimal"})
UNSTATED = open_format("canal-protobuf")


def inserted(lacking: set[str], wire: Any = STATED, create: str = DEFAULTS, *later: Row) -> MergePlan:
    image = {"id": "1", **{name: value for name, value in WHOLE.items() if name not in lacking}}
    rows = table_of([change(1, "insert", None, image), *later])
    return resolve(ordered(rows), timeline_of(create), None, wire, TypeOptions())


@pytest.mark.parametrize(("column", "value"), [("a", 5), ("b", None)])
def test_a_column_that_an_insert_does_not_name_has_its_default(column: str, value: Any) -> None:
    """The server writes no such column under binlog_row_image MINIMAL."""
    (step,) = inserted({column}).steps
    (row,) = step.upserts.to_pylist()
    assert row[column] == value
    assert row["id"] == 1


MINIMAL = change(2, "delete", {"id": "2"}, None)
FULL = change(2, "delete", {"id": "2", "d": "u"}, None)


@pytest.mark.parametrize(("column", "value"), [("a", 5), ("b", None), ("c", Decimal("0.00"))])
def test_images_that_have_only_what_changed_show_that_none_was_left_out(column: str, value: Any) -> None:
    (step,) = inserted({column}, UNSTATED, DEFAULTS, MINIMAL).steps
    assert step.upserts.to_pylist()[0][column] == value
    seen = change(3, "insert", None, {"id": "3", **WHOLE})
    assert failures(inserted({column}, UNSTATED, DEFAULTS, FULL, seen)) == []


@pytest.mark.parametrize("column", ["a", "b", "c"])
def test_a_column_that_no_row_has_is_left_out_where_images_are_whole(column: str) -> None:
    assert failures(inserted({column}, UNSTATED, DEFAULTS, FULL)) == [(1, column, "column_absent")]


@pytest.mark.parametrize("column", ["a", "b", "c"])
@pytest.mark.parametrize("options", [{}, {"binlog_row_image": "full"}])
@pytest.mark.parametrize("format", ["canal-protobuf", "dts-protobuf"])
def test_a_table_waits_where_nothing_shows_whether_a_column_is_left_out(
    format: str, options: dict[str, str], column: str
) -> None:
    with pytest.raises(SchemaMissing, match=f"no row has the column {column}") as raised:
        inserted({column}, open_format(format, options))
    assert "exclude_columns" in raised.value.hint
    assert "source.options.binlog_row_image" in raised.value.hint


def test_a_dropped_column_is_not_what_images_lack() -> None:
    """An image before with the key alone is whole once the other column that rows have was dropped."""
    timeline = timeline_of("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)", "ALTER TABLE t DROP b")
    rows = [change(1, "insert", None, {"id": "1", "b": "1"}), change(150, "update", {"id": "1"}, {"id": "1"})]
    with pytest.raises(SchemaMissing, match="no row has the column a"):
        resolve(ordered(table_of(rows)), timeline, None, UNSTATED, TypeOptions())


def test_whole_images_of_a_table_without_key_show_nothing_of_a_later_column() -> None:
    """MINIMAL writes the whole row before a change where there is no key."""
    timeline = timeline_of("CREATE TABLE t (id INT, b INT)", "ALTER TABLE t ADD a INT, ADD PRIMARY KEY (id)")
    before = [change(1, "insert", None, {"id": "1", "b": "1"}), change(2, "delete", {"id": "1", "b": "1"}, None)]
    added = change(150, "insert", None, {"id": "2", "b": "1"})
    with pytest.raises(SchemaMissing, match="no row has the column a"):
        resolve(ordered(table_of([*before, added])), timeline, None, UNSTATED, TypeOptions())
    minimal = change(160, "delete", {"id": "3"}, None)
    plan = resolve(ordered(table_of([*before, added, minimal])), timeline, None, UNSTATED, TypeOptions())
    assert failures(plan) == []


def test_another_row_image_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="none of full, minimal, noblob"):
        open_format("canal-protobuf", {"binlog_row_image": "MIN"})


@pytest.mark.parametrize("column", ["d", "e", "f", "g"], ids=["expression", "session time zone", "generated", "json"])
def test_a_column_whose_default_is_not_certain_fails_where_an_insert_does_not_name_it(column: str) -> None:
    assert failures(inserted({column})) == [(1, column, "column_absent")]


def test_defaults_of_inserts_are_those_of_the_schema_at_their_position() -> None:
    timeline = timeline_of(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT DEFAULT 5)",
        "ALTER TABLE t ALTER a SET DEFAULT 6",
        "ALTER TABLE t CHANGE a b BIGINT DEFAULT 7",
    )
    rows = [change(position, "insert", None, {"id": str(position)}) for position in (50, 150, 250)]
    rows += [change(260, "update", {"id": "50"}, {"id": "51"})]
    plan = resolve(ordered(table_of(rows)), timeline, None, STATED, TypeOptions())
    actual = {row["id"]: row["b"] for row in plan.steps[-1].upserts.to_pylist()}
    assert actual == {51: 5, 150: 6, 250: 7}


def test_nothing_is_a_default_where_the_source_is_no_mysql_or_the_default_is_not_known() -> None:
    create = "CREATE TABLE t (id INT PRIMARY KEY, a INT DEFAULT 5, b VARCHAR(9))"
    assert failures(inserted({"a"}, open_format("oms-shareplex"), create)) == [(1, "a", "column_absent")]
    snapshot = table_of([change(1, "snapshot", None, {"id": "1"})])
    timeline = timeline_of("CREATE TABLE t (id INT PRIMARY KEY, a INT DEFAULT 5)")
    plan = resolve(ordered(snapshot), timeline, None, open_format("canal-protobuf"), TypeOptions())
    assert failures(plan) == [(1, "a", "column_absent")]


def test_a_schema_that_only_rows_describe_has_no_known_defaults() -> None:
    key = (Column(1, "id", ColumnType("int"), False), Column(2, "part", ColumnType("int"), False))
    schema = TableSchema((*key, Column(3, "a", ColumnType("int"))), (1, 2))
    observed = SchemaChange("", 0, "shop", "", (("shop", "t", schema),), fallback=True)
    (timeline,) = build_timeline([observed]).tables.values()
    rows = [change(1, "insert", None, {"id": "1", "part": "1"}), change(2, "insert", None, {"id": "1", "a": "1"})]
    plan = resolve(ordered(table_of(rows)), timeline, None, open_format("canal-protobuf"), TypeOptions())
    assert sorted(failures(plan)) == [(1, "a", "column_absent"), (2, "part", "column_absent")]


def test_an_insert_into_a_table_without_key_takes_defaults_too() -> None:
    timeline = timeline_of("CREATE TABLE t (a INT DEFAULT 5, b INT)")
    rows = table_of([change(1, "insert", None, {"b": "1"}), change(2, "insert", None, {})])
    plan = resolve(ordered(rows), timeline, None, STATED, TypeOptions())
    assert plan.steps[0].upserts.to_pylist() == [{"a": 5, "b": 1}, {"a": 5, "b": None}]
