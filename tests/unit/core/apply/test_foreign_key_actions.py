# SPDX-License-Identifier: Apache-2.0
"""Find the values that a parent table lost, and the rows that still refer to them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.apply.foreign_key_actions import Lost, RowsUnknown, lost_values, referring
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.timeline.timeline import Reference
from airflow_provider_cdc.core.values.types import TypeOptions
from tests.unit.core.apply.changes import NAME, change, table_of, timeline_of

PARENT = "CREATE TABLE t (id INT PRIMARY KEY, code VARCHAR(9) UNIQUE, n INT)"


def lost(*changes: dict[str, Any], to: tuple[str, ...] = (), wire: str = "debezium-json") -> list[tuple[Any, ...]]:
    """Values that the parent lost, and where."""
    reference = Reference("", (1,) * max(1, len(to)), [NAME], to)
    result = lost_values(table_of(changes), timeline_of(PARENT), reference, open_format(wire), TypeOptions())
    values = zip(*(column.to_pylist() for column in result.values.columns), strict=True)
    return [(*value, int(position[:8])) for value, position in zip(values, result.positions.to_pylist(), strict=True)]


def row(number: int, code: str = "x", n: int = 0) -> dict[str, Any]:
    return {"id": number, "code": code, "n": n}


def test_deletes_take_the_values_of_their_row() -> None:
    changes = [change(1, "insert", after=row(1)), change(2, "delete", row(1)), change(3, "delete", row(2))]
    assert lost(*changes) == [(1, 2), (2, 3)]
    assert lost(*changes, to=("code", "id")) == [("x", 1, 2), ("x", 2, 3)]


def test_updates_take_a_value_only_where_it_changed() -> None:
    changes = [change(1, "update", row(1, "a"), row(1, "a", 5)), change(2, "update", row(1, "a"), row(1, "b"))]
    assert lost(*changes, to=("code",)) == [("a", 2)]
    assert lost(*changes) == []


def test_an_update_that_says_nothing_of_the_row_before_took_nothing() -> None:
    assert lost(change(1, "update", None, row(1)), to=("code",)) == []


def test_a_delete_that_names_only_the_key_does_not_say_which_other_values_went() -> None:
    assert lost(change(1, "delete", {"id": 1})) == [(1, 1)]
    with pytest.raises(RowsUnknown, match=r"apply\.cascade_unknown"):
        lost(change(1, "delete", {"id": 1}), to=("code",))


def test_columns_that_the_parent_is_not_known_to_have() -> None:
    with pytest.raises(RowsUnknown, match=r"names columns"):
        lost(change(1, "delete", row(1)), to=("other",))


def referring_rows(rows: dict[str, list[Any]], gone: list[Any], positions: list[str] | None = None) -> list[bool]:
    """Return which rows refer to values that went at 5."""
    names = list(rows)
    values = pa.table({name: [value[i] for value in gone] for i, name in enumerate(names)})
    where = None if positions is None else pa.chunked_array([positions])
    return referring(pa.table(rows), names, Lost(values, pa.array(["5"] * len(gone))), where).to_pylist()


def test_all_columns_of_a_foreign_key_count_and_null_refers_to_nothing() -> None:
    assert referring_rows({"a": [1, 1, None, 2], "b": [7, 8, 7, 7]}, [(1, 7), (2, 9)]) == [True, False, False, False]


def test_texts_are_compared_as_the_server_may_compare_them() -> None:
    assert referring_rows({"a": ["ABC", "Ábc ", "abd", None]}, [("abc",)]) == [True, True, False, False]


def test_bytes_are_compared_as_bytes() -> None:
    assert referring_rows({"a": [b"\xff", b"A"]}, [(b"\xff",), (b"a",)]) == [True, False]


def test_numbers_of_two_widths_are_equal() -> None:
    rows = pa.table({"a": pa.array([1, 2], pa.int64())})
    gone = Lost(pa.table({"id": pa.array([2], pa.int32())}), pa.array(["5"]))
    assert referring(rows, ["a"], gone).to_pylist() == [False, True]


def test_a_row_newer_than_the_loss_refers_to_a_value_that_came_back() -> None:
    assert referring_rows({"a": [1, 1, 2]}, [(1,)], ["4", "6", "1"]) == [True, False, False]
