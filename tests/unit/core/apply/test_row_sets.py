# SPDX-License-Identifier: Apache-2.0
"""Rows by what they compare equal in."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from airflow_provider_cdc.core.apply.row_sets import (
    group_numbers,
    having_keys,
    left_after_netting,
    multiset_difference,
    newest,
    row_digests,
    without_keys,
)
from airflow_provider_cdc.core.apply.value_forms import ValueForms


def test_groups_are_equal_exactly_where_all_columns_are() -> None:
    a = pa.array([1, 1, None, None, 2, 1])
    b = pa.array(["x", "y", None, None, "x", "x"])
    groups = group_numbers([a, b])
    assert [list(groups).index(g) for g in groups] == [0, 1, 2, 2, 4, 0]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([0.0, -0.0, float("nan"), None, 0.0]),
        pa.array([Decimal("1.10"), Decimal("1.11"), Decimal("2.00"), None, Decimal("1.10")]),
        pa.array([b"", b"\x00", b"a", None, b""]),
        pa.array([[1.0], [2.0], [], None, [1.0]]),
        pa.array([True, False, None, False, True]).cast(pa.string()),
    ],
)
def test_the_first_and_the_last_value_are_the_same_group_whatever_the_type(values: pa.Array) -> None:
    for groups in (group_numbers([values]), row_digests(pa.table({"v": values})).to_pylist()):
        assert groups[0] == groups[4]
        assert groups[0] != groups[1]


def test_digests_of_rows_are_equal_where_all_columns_are() -> None:
    chance, texts = np.random.default_rng(3), [None, "", "-", "1:", "1:-", "a", "ab", "b", "ä", "\0"]
    drawn = [[texts[n] for n in chance.integers(0, len(texts), 400)] for _ in range(3)]
    numbers = pa.array(chance.integers(0, 3, 400), pa.int16())
    columns = [
        *(pa.array(column, pa.string()) for column in drawn),
        numbers,
        numbers.cast(pa.int64()).cast(pa.timestamp("us")),
    ]
    rows = pa.table(dict(zip("abcde", columns, strict=True)))
    digests = row_digests(rows).to_pylist()
    groups = group_numbers(rows.columns).tolist()
    assert len(set(digests)) == len(set(groups)) == len(set(zip(digests, groups, strict=True)))
    pieces = pa.concat_tables([rows.slice(0, 7), rows.slice(7)])  # as other tasks read them
    assert row_digests(pieces).to_pylist() == digests
    assert row_digests(rows.schema.empty_table()).to_pylist() == []


def test_many_columns_of_many_values_do_not_overflow() -> None:
    columns = [pa.array(np.random.default_rng(i).integers(0, 50_000, 50_000)) for i in range(8)]
    assert len(set(group_numbers(columns).tolist())) == 50_000


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_texts_may_have_more_bytes_than_an_array_can_hold(kind: pa.DataType) -> None:
    chunk = pa.array([*(f"{n}" * (2 << 20) for n in range(10)), None], kind)  # 20 MiB, shared by all chunks
    values = pa.chunked_array([chunk] * 110)
    assert values.nbytes > 2**31
    numbers = group_numbers([values]).reshape(110, 11)
    assert len(set(numbers[0].tolist())) == 11 and (numbers == numbers[0]).all()


def test_the_newest_row_of_each_group_is_kept_in_order() -> None:
    assert newest(np.array([0, 1, 0, 2, 1])).tolist() == [2, 3, 4]
    assert newest(np.array([], dtype=np.int64)).tolist() == []


def test_rows_of_given_keys_are_taken_out() -> None:
    content = pa.table({"a": [1, 2, 2, 3], "b": ["x", "x", "y", "y"], "v": [1, 2, 3, 4]})
    keys = pa.table({"a": [2, 9], "b": ["y", "y"]})
    assert without_keys(content, keys, ["a", "b"]).column("v").to_pylist() == [1, 2, 4]


def test_a_multiset_takes_like_a_counter() -> None:
    chance = np.random.default_rng(3)
    for _ in range(200):
        tables = [
            pa.table({"x": pa.array([None if v == 0 else int(v) for v in chance.integers(0, 4, n)], pa.int64())})
            for n in chance.integers(0, 12, 3)
        ]
        content, _, removes = tables
        rows, unmatched = multiset_difference(content, removes, ValueForms({}))
        have = Counter(content["x"].to_pylist())
        take = Counter(removes["x"].to_pylist())
        assert Counter(rows["x"].to_pylist()) == have - take
        assert Counter(unmatched["x"].to_pylist()) == take - have


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize(
    "values",
    [
        pa.array([0.0, -0.0, float("nan"), None, 1.5]),
        pa.array([7, 8, 9]),
        pa.array([Decimal("1.10"), Decimal("1.11"), None, Decimal("0.00")]),
        pa.array([b"", b"\x00", b"a", None]),
        pa.array(["", "a", "A", "ä", None]),
        pa.array([[1.0], [2.0], [], None]),
        pa.array([1, -1, 0, None], pa.int64()).cast(pa.timestamp("us", "UTC")),
    ],
)
def test_rows_have_the_keys_that_the_same_group_numbers_say(values: pa.Array, width: int) -> None:
    chance, names = np.random.default_rng(width), ["a", "b", "c"][:width]

    def drawn(count: int) -> pa.Table:
        columns = [values.take(pa.array(chance.integers(0, len(values), count))) for _ in names]
        rows = pa.table(dict(zip(names, columns, strict=True)))
        return pa.concat_tables([rows.slice(0, 2), rows.slice(2)])  # as rows of several files

    content, keys = drawn(60), drawn(5)
    numbers = group_numbers(pa.concat_tables([content, keys]).columns).tolist()
    if not any(column.null_count for column in content.columns):  # a table's files may say so, and a batch's keys not
        content = content.cast(pa.schema([field.with_nullable(False) for field in content.schema]))
    expected = [number in numbers[60:] for number in numbers[:60]]
    assert having_keys(content, keys, names).tolist() == expected
    assert any(expected)
    for empty in (content.slice(0, 0), keys.slice(0, 0)):
        assert not having_keys(content, empty, names).any()
        assert having_keys(empty, keys, names).tolist() == []


def test_a_removal_takes_the_newest_equal_row_that_was_added_before_it() -> None:
    """Against a walk through the events, one after the other."""
    chance = np.random.default_rng(7)
    for _ in range(300):
        count = int(chance.integers(1, 14))
        groups, fills = chance.integers(0, 3, count), chance.random(count) < 0.5
        moments = np.sort(chance.integers(0, 6, count))
        added: dict[int, list[int]] = {}
        expected = np.ones(count, dtype=bool)
        for index in np.lexsort((~fills, moments)).tolist():
            there = added.setdefault(int(groups[index]), [])
            if fills[index]:
                there.append(index)
            elif there:
                expected[[index, there.pop()]] = False
        assert left_after_netting(groups, fills, moments).tolist() == expected.tolist(), (groups, fills, moments)
