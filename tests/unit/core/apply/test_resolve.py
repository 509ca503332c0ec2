# SPDX-License-Identifier: Apache-2.0
"""Resolving: what images lack is reported, never made NULL."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_cdc.core.apply.merge_plan import MergePlan
from airflow_provider_cdc.core.apply.resolve import ordered, resolve
from airflow_provider_cdc.core.apply.row_images import SchemaMissing
from airflow_provider_cdc.core.formats.oms.images import Descriptions
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.values.types import TypeOptions
from tests.unit.core.apply.changes import change, failures, table_of, timeline_of

CREATE = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(9))"


def resolved(*rows: dict[str, Any], create: str = CREATE, wire: str = "debezium-json") -> MergePlan:
    return resolve(ordered(table_of(rows)), timeline_of(create), None, open_format(wire), TypeOptions())


@pytest.mark.parametrize("op", ["snapshot", "insert", "update"])
def test_a_row_that_lacks_a_column_fails_where_images_are_full(op: str) -> None:
    plan = resolved(change(1, op, None, {"id": 1, "a": 1}), change(2, op, None, {"id": 2, "a": None, "b": None}))
    assert failures(plan) == [(1, "b", "column_absent")]
    assert plan.steps[-1].upserts.to_pylist() == [{"id": 2, "a": None, "b": None}]


def test_a_delete_needs_the_key_alone() -> None:
    plan = resolved(change(1, "delete", {"id": 1}), change(2, "delete", {"a": 1, "b": "x"}))
    assert plan.steps[-1].deletes.to_pylist() == [{"id": 1}]
    assert failures(plan) == [(2, "id", "column_absent")]


def test_a_table_without_key_needs_whole_rows() -> None:
    plan = resolved(
        change(1, "insert", None, {"a": 1}),
        change(2, "delete", {"a": 1}),
        change(3, "insert", None, {"a": 1, "b": None}),
        create="CREATE TABLE t (a INT, b INT)",
    )
    assert failures(plan) == [(1, "b", "column_absent"), (2, "b", "column_absent")]
    assert plan.steps[-1].upserts.to_pylist() == [{"a": 1, "b": None}]


def test_a_row_that_lacks_several_columns_is_one_failure() -> None:
    assert failures(resolved(change(1, "insert", None, {"id": 1}))) == [(1, "a", "column_absent")]


def test_a_description_that_says_another_table_waits_for_the_schema_change() -> None:
    said = '{"columns": [{"field": "id"}, {"field": "a"}], "key": ["id"]}'
    with pytest.raises(SchemaMissing):
        resolved(change(1, "insert", None, {"id": 1, "a": 1}, columns=said))


def test_a_description_that_is_not_complete_may_leave_out_columns_but_not_add_one() -> None:
    def said(*names: str) -> str:
        descriptions = Descriptions()
        return descriptions.texts[descriptions.number(names, None, {}, oracle=False, complete=False)]

    rows = [change(1, "delete", {"id": 1}, columns=said("id"))]
    assert resolved(*rows, wire="oms-shareplex").steps[-1].deletes.num_rows == 1
    with pytest.raises(SchemaMissing):
        resolved(change(1, "delete", {"id": 1}, columns=said("id", "new")), wire="oms-shareplex")


@pytest.mark.parametrize("partition", [0, 1])
def test_of_one_statements_rows_on_two_partitions_taking_a_key_comes_last(partition: int) -> None:
    # UPDATE t SET id = id + 1 ORDER BY id DESC; each partition counts the rows it has from 0
    rows = {n: {"id": n, "a": n, "b": "x"} for n in (1, 2)}
    moves = [
        change(7, "update", rows[1], {**rows[1], "id": 2}, partition=0),
        {**change(7, "update", rows[2], {**rows[2], "id": 3}, partition=partition), "position": "00000007.0000000001"},
    ]
    step = resolved(*moves, wire="oms-shareplex").steps[-1]
    upserts = {row["id"]: row["a"] for row in step.upserts.to_pylist()}
    assert upserts == ({2: 1, 3: 2} if partition else {3: 2})  # in one partition the order is the source's
    assert {row["id"] for row in step.deletes.to_pylist()} == {1, 2, 3} - set(upserts)
