# SPDX-License-Identifier: Apache-2.0
"""Check what callers of expressions rely on: columns, types, failures of single rows, chunks and blocks."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.expressions import expression
from airflow_provider_cdc.core.expressions.errors import ExpressionError
from airflow_provider_cdc.core.expressions.expression import parse, parse_condition


def test_columns_are_those_of_the_text_once_and_as_spelt() -> None:
    assert parse('CASE WHEN a = 1 THEN `B c` ELSE "d" END = A AND a IN (e, 1)').columns == ("a", "B c", "d", "A", "e")


def test_a_column_is_found_exactly_else_in_another_case() -> None:
    columns = {"id": pa.array([1]), "ID": pa.array([2])}
    assert [parse(name).evaluate(columns, 1)[0].to_pylist() for name in ("id", "ID", "Id")] == [[1], [2], [2]]


def test_a_row_that_fails_is_marked_and_the_others_have_values() -> None:
    values, failed = parse("10 % a").evaluate({"a": pa.array([3, 0, None, 4])}, 4)
    assert values.to_pylist() == [1, None, None, 2]
    assert failed is not None and failed.tolist() == [False, True, False, False]


def test_what_case_does_not_choose_may_fail() -> None:
    columns = {"a": pa.array([7, 7]), "b": pa.array([0, 2])}
    values, failed = parse("CASE WHEN b <> 0 THEN a % b END").evaluate(columns, 2)
    assert (values.to_pylist(), failed) == ([None, 1], None)


def test_a_condition_takes_whole_numbers_as_mysql_does() -> None:
    types = {"test": pa.int8(), "s": pa.string()}
    assert parse("test").type(types) == pa.int8()
    assert parse_condition("test").type(types) == pa.bool_()
    with pytest.raises(ExpressionError, match="a condition is expected here, and this is STRING"):
        parse_condition("s").type(types)


def test_rows_are_evaluated_in_blocks_over_all_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expression, "_BLOCK", 4)
    chunks = pa.chunked_array([[0, 1, 2], [], [3, 4, 5, 6], [7, 8]], pa.int64())
    values, failed = parse("10 / a").evaluate({"a": chunks}, 9)
    assert [round(float(one), 3) for one in values.to_pylist()[1:3]] == [10.0, 5.0]
    assert failed is not None and failed.tolist() == [True] + [False] * 8
    values, failed = parse("a + 1").evaluate({"a": chunks}, 9)
    assert (values.to_pylist(), failed) == ([*range(1, 10)], None)


def test_no_rows_have_a_type() -> None:
    values, failed = parse("a / 2").evaluate({"a": pa.chunked_array([], pa.int32())}, 0)
    assert (values.type, len(values), failed) == (parse("a / 2").type({"a": pa.int32()}), 0, None)


def test_an_expression_and_its_error_travel() -> None:
    one = parse("a + 1")
    assert pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(ExpressionError) as caught:
        parse("a +")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.position, copy.message) == (str(caught.value), caught.value.position, caught.value.message)
