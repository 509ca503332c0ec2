# SPDX-License-Identifier: Apache-2.0
"""Examples of schema mapping: what an ALTER TABLE makes of the rows that a table already has.

Expected values are those that MySQL shows after the ALTER TABLE. Where they depend on the SQL mode they are those
without strict mode: a statement in the binlog succeeded.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from airflow_provider_cdc.core.apply.target_schema import target_schema
from airflow_provider_cdc.core.values.types import TypeOptions
from tests.unit.core.apply.altering import altered, carried, mapper, stored


def test_a_renamed_column_keeps_its_values() -> None:
    assert carried(altered("a INT", "RENAME COLUMN a TO b"), {"id": 1, "a": 7}) == [{"id": 1, "b": 7}]


def test_two_columns_that_exchange_their_names_keep_their_values() -> None:
    timeline = altered("a INT, b INT", "RENAME COLUMN a TO b, RENAME COLUMN b TO a")
    assert carried(timeline, {"id": 1, "a": 7, "b": 8}) == [{"id": 1, "b": 7, "a": 8}]


def test_a_column_that_was_dropped_and_added_again_does_not_get_its_old_values_back() -> None:
    assert carried(altered("a INT", "DROP COLUMN a", "ADD COLUMN a INT"), {"id": 1, "a": 7}) == [{"id": 1, "a": None}]


@pytest.mark.parametrize(
    ("definition", "value"),
    [
        ("n INT", None),
        ("n INT DEFAULT 5", 5),
        ("n INT NOT NULL", 0),
        ("n VARCHAR(5) NOT NULL", ""),
        ("n DECIMAL(6,2) NOT NULL DEFAULT 1.5", Decimal("1.50")),
        ("n ENUM('small','large') NOT NULL", "small"),
    ],
)
def test_older_rows_have_the_default_of_an_added_column(definition: str, value: Any) -> None:
    assert carried(altered("a INT", f"ADD COLUMN {definition}"), {"id": 1, "a": 7}) == [{"id": 1, "a": 7, "n": value}]


def test_a_default_that_is_changed_later_does_not_change_older_rows() -> None:
    timeline = altered("a INT", "ADD COLUMN n INT DEFAULT 5", "ALTER COLUMN n SET DEFAULT 6")
    assert carried(timeline, {"id": 1, "a": 7}) == [{"id": 1, "a": 7, "n": 5}]


def test_columns_have_the_order_of_the_source() -> None:
    (row,) = carried(altered("a INT, b INT", "MODIFY b INT FIRST", "ADD c INT AFTER b"), {"id": 1, "a": 7, "b": 8})
    assert list(row) == ["b", "c", "id", "a"]


def test_a_conversion_that_loses_part_of_a_value_is_counted_once_for_each_value() -> None:
    timeline, lossy = altered("v VARCHAR(10)", "MODIFY v VARCHAR(3)"), Counter[str]()
    content = stored(timeline, 0, [{"id": 1, "v": "abcdef"}, {"id": 2, "v": "abc"}, {"id": 3, "v": None}])
    result = mapper(timeline, lossy).content(content, timeline.versions[0].schema, 1)
    assert result.column("v").to_pylist() == ["abc", "abc", None]
    assert lossy == {"text_cut": 1}


def test_rows_pass_every_type_that_a_column_had_since_they_were_written() -> None:
    timeline = altered("v VARCHAR(10)", "MODIFY v VARCHAR(3)", "MODIFY v VARCHAR(10)")
    assert carried(timeline, {"id": 1, "v": "abcdef"}, version=0) == [{"id": 1, "v": "abc"}]
    assert carried(timeline, {"id": 1, "v": "abcdef"}, version=2) == [{"id": 1, "v": "abcdef"}]


def test_a_number_beyond_its_new_type_becomes_the_nearest_one() -> None:
    timeline = altered("n BIGINT", "MODIFY n TINYINT UNSIGNED")
    rows = [{"id": 1, "n": 1000}, {"id": 2, "n": -1}, {"id": 3, "n": 255}]
    assert [row["n"] for row in carried(timeline, *rows)] == [255, 0, 255]


def test_stored_rows_of_a_schema_that_a_late_alter_replaced_are_converted_in_one_step() -> None:
    """The stored schema is no longer on the timeline: an ALTER before it arrived only now."""
    then = altered("v VARCHAR(10)", "ADD COLUMN x INT")
    now = altered("v VARCHAR(10)", "MODIFY v VARCHAR(3), ADD COLUMN x INT")
    content = stored(then, 1, [{"id": 1, "v": "abcdef", "x": 9}])
    result = mapper(now).content(content, then.versions[1].schema, 1)
    assert result.to_pylist() == [{"id": 1, "v": "abc", "x": 9}]


def test_rows_that_lie_under_the_wanted_schema_are_not_touched() -> None:
    timeline = altered("n INT")
    content = stored(timeline, 0, [{"id": 1, "n": 7}])
    assert mapper(timeline).content(content, timeline.versions[0].schema, 0) is content


def test_every_column_of_the_target_may_be_null() -> None:
    """The source may relax NOT NULL at any time, and the target then needs no change."""
    schema = target_schema(altered("n INT NOT NULL").versions[0].schema, TypeOptions()).columns
    assert all(field.nullable for field in schema)
