# SPDX-License-Identifier: Apache-2.0
"""Test numbers in strings, and strings written as numbers: the value is that of the digits."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.images import Field, Typed, type_images
from airflow_provider_cdc.core.values.types import TypeOptions, arrow_type

NUMBERS: list[tuple[ColumnType, str, Any]] = [
    (ColumnType("int"), "-2147483648", -(2**31)),
    (ColumnType("bigint"), "9223372036854775807", 2**63 - 1),
    (ColumnType("bigint", unsigned=True), "18446744073709551615", Decimal(2**64 - 1)),
    (ColumnType("decimal", 10, 2), "1.10", Decimal("1.10")),
    (ColumnType("decimal", 10, 2), "1.1", Decimal("1.10")),
    (ColumnType("decimal", 38, 2), "123456789012345678901234567890123456.78", Decimal("1234567890" * 3 + "123456.78")),
    (ColumnType("decimal", 65, 2), "1234567890123456789012345678901234567890.1", "1234567890" * 4 + ".10"),
    (ColumnType("double"), "0.1", 0.1),
    (ColumnType("double"), "1.0E10", 1e10),
    (ColumnType("float"), "3.4028235E38", 3.4028234663852886e38),
    (ColumnType("year"), "2024", 2024),
    (ColumnType("bit", 12), "4095", 4095),
    (ColumnType("bit", 1), "1", True),
    (ColumnType("tinyint", 1), "5", 5),
]


def typed(tokens: list[str], encoding: Encoding, column: ColumnType, **options: Any) -> Typed:
    target = arrow_type(column, TypeOptions(**options))
    images = pa.array([f'{{"c":{token}}}' for token in tokens])
    return type_images(images, [Field(Encoded("c", encoding), column, target)])


@pytest.mark.parametrize("encoding", [Encoding.NUMBER, Encoding.TEXT])
@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize(("column", "number", "value"), NUMBERS)
def test_a_number_is_its_digits(encoding: Encoding, quote: str, column: ColumnType, number: str, value: Any) -> None:
    token = f"{quote}{number}{quote}"
    other = number if quote else f'"{number}"'
    for tokens in ([token], [token, other, "null"]):
        result = typed(tokens, encoding, column)
        assert result.columns[0].to_pylist() == [value, value, None][: 1 if len(tokens) == 1 else 3]
        assert (result.failures, result.lossy) == ([], {})


@pytest.mark.parametrize("text", ["1.10", "-0.0", "1e2", "12345678901234567890.123456789012345678901234567890"])
def test_a_number_in_a_text_column_keeps_its_digits(text: str) -> None:
    for encoding in (Encoding.TEXT, Encoding.NUMBER):
        assert typed([text], encoding, ColumnType("varchar", 99)).columns[0].to_pylist() == [text]


@pytest.mark.parametrize("encoding", [Encoding.TEXT, Encoding.NUMBER])
def test_a_decimal_as_text_has_the_digits_of_its_column(encoding: Encoding) -> None:
    column = ColumnType("decimal", 65, 4)  # zeros may be cut off (docs/wire/canal.md 10.4), exponents be written
    tokens = ['"10.00"', '"10.0000"', '"1E+3"', '"-0.5"', '"00.5"', '"-0"', '"0.00001"', '"ten"', '"5e61"']
    result = typed(tokens, encoding, column)
    texts = ["10.0000", "10.0000", "1000.0000", "-0.5000", "0.5000", "0.0000", None, None, None]
    assert result.columns[0].to_pylist() == texts
    reasons = ["fraction_lost", "number_invalid", "out_of_range"]
    assert [failure.reason for failure in result.failures] == reasons
    for token, text in zip(tokens, texts, strict=True):
        assert typed([token], encoding, column).columns[0].to_pylist() == [text]


def test_a_string_without_a_number_fails() -> None:
    for column in (ColumnType("int"), ColumnType("double"), ColumnType("decimal", 9, 2), ColumnType("varchar", 9)):
        for token in ('""', '"x"', '" 1"', '"0x10"', '"nan"', '"1_0"', '"١"'):
            result = typed([token], Encoding.NUMBER, column)
            assert [failure.reason for failure in result.failures] == ["number_invalid"]


@pytest.mark.parametrize("encoding", [Encoding.TEXT, Encoding.NUMBER, Encoding.BOOLEAN])
def test_true_and_false_are_booleans_only_in_columns_of_two_values(encoding: Encoding) -> None:
    tokens = ['"true"', '"false"']
    assert typed(tokens, encoding, ColumnType("bit", 1)).columns[0].to_pylist() == [True, False]
    assert typed(tokens, encoding, ColumnType("tinyint", 1)).columns[0].to_pylist() == [1, 0]
    boolean = typed(tokens, encoding, ColumnType("tinyint", 1), tinyint1_as_boolean=True)
    assert boolean.columns[0].to_pylist() == [True, False]
    for column in (ColumnType("int"), ColumnType("tinyint", 4), ColumnType("bit", 8)):
        assert [failure.reason for failure in typed(tokens, encoding, column).failures] == ["number_invalid"] * 2
    for token in ('"TRUE"', '"yes"', '"t"'):
        assert typed([token], encoding, ColumnType("bit", 1)).columns[0].null_count == 1


def test_true_is_text_in_a_text_column() -> None:
    assert typed(['"true"'], Encoding.TEXT, ColumnType("varchar", 9)).columns[0].to_pylist() == ["true"]


def test_a_vector_may_be_in_a_string() -> None:
    for encoding in (Encoding.NUMBER, Encoding.TEXT):
        assert typed(['"[1,2.5]"'], encoding, ColumnType("vector", 2)).columns[0].to_pylist() == [[1.0, 2.5]]
