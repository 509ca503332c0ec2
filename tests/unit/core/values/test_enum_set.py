# SPDX-License-Identifier: Apache-2.0
"""Test ENUM, SET and BIT as integers."""

from __future__ import annotations

import base64
import random

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.images import Field, Typed, type_images
from airflow_provider_cdc.core.values.types import arrow_type

ENUM = ColumnType("enum", labels=("small", "", "größe", "a,b"))
SET = ColumnType("set", labels=("x", "größe", "z"))
FULL = ColumnType("set", labels=tuple(f"m{i}" for i in range(64)))


def typed(tokens: list[str], encoding: Encoding, column: ColumnType) -> Typed:
    images = pa.array([f'{{"c":{token}}}' for token in tokens])
    return type_images(images, [Field(Encoded("c", encoding), column, arrow_type(column))])


@pytest.mark.parametrize("quote", ["", '"'])
def test_enum_numbers_begin_at_one(quote: str) -> None:
    tokens = [f"{quote}{number}{quote}" for number in (1, 2, 3, 4, 0)]
    result = typed([*tokens, "null"], Encoding.ENUM_INDEX, ENUM)
    assert (result.columns[0].to_pylist(), result.failures) == (["small", "", "größe", "a,b", "", None], [])


@pytest.mark.parametrize("quote", ["", '"'])
def test_set_members_come_in_the_order_of_the_type(quote: str) -> None:
    tokens = [f"{quote}{number}{quote}" for number in range(8)]
    result = typed([*tokens, "null"], Encoding.SET_BITMASK, SET)
    members = ["", "x", "größe", "x,größe", "z", "x,z", "größe,z", "x,größe,z"]
    assert (result.columns[0].to_pylist(), result.failures) == ([*members, None], [])


def test_sixty_four_members() -> None:
    rnd = random.Random(64)
    numbers = [0, 1 << 63, (1 << 64) - 1, *(rnd.getrandbits(64) for _ in range(300))]
    expected = [",".join(f"m{i}" for i in range(64) if number >> i & 1) for number in numbers]
    signed = [number - (1 << 64) if number >> 63 else number for number in numbers]
    for written in (numbers, signed):
        for quote in ("", '"'):
            tokens = [f"{quote}{number}{quote}" for number in written]
            assert typed(tokens, Encoding.SET_BITMASK, FULL).columns[0].to_pylist() == expected


@pytest.mark.parametrize(
    ("encoding", "column", "token", "reason"),
    [
        (Encoding.ENUM_INDEX, ENUM, "5", "out_of_range"),
        (Encoding.ENUM_INDEX, ENUM, '"-1"', "out_of_range"),
        (Encoding.ENUM_INDEX, ENUM, '"small"', "number_invalid"),
        (Encoding.ENUM_INDEX, ENUM, '""', "number_invalid"),
        (Encoding.ENUM_INDEX, ENUM, "1.5", "fraction_lost"),
        (Encoding.ENUM_INDEX, ENUM, "true", "token_unexpected"),
        (Encoding.ENUM_INDEX, ENUM, "[1]", "token_unexpected"),
        (Encoding.ENUM_INDEX, ColumnType("enum"), "1", "labels_unknown"),
        (Encoding.ENUM_INDEX, ColumnType("enum"), "0", "labels_unknown"),
        (Encoding.SET_BITMASK, SET, "8", "out_of_range"),
        (Encoding.SET_BITMASK, SET, "-1", "out_of_range"),
        (Encoding.SET_BITMASK, SET, '"x"', "number_invalid"),
        (Encoding.SET_BITMASK, FULL, str(1 << 64), "out_of_range"),
        (Encoding.SET_BITMASK, FULL, str(-(1 << 63) - 1), "out_of_range"),
        (Encoding.SET_BITMASK, ColumnType("set"), "0", "labels_unknown"),
    ],
)
def test_a_number_without_a_label_fails(encoding: Encoding, column: ColumnType, token: str, reason: str) -> None:
    for tokens in ([token], ["null", token]):
        assert [failure.reason for failure in typed(tokens, encoding, column).failures] == [reason]


@pytest.mark.parametrize("length", [1, 8, 12, 63, 64])
def test_bits_from_the_highest(length: int) -> None:
    rnd = random.Random(length)
    numbers = [0, 1, (1 << length) - 1, *(rnd.getrandbits(length) for _ in range(100))]
    whole = [base64.b64encode(number.to_bytes((length + 7) // 8, "big")).decode() for number in numbers]
    # zero bytes at the front may be missing (docs/wire/oceanbase-oms.md 7.4)
    short = [base64.b64encode(number.to_bytes((number.bit_length() + 7) // 8, "big")).decode() for number in numbers]
    for texts in (whole, short):
        result = typed([f'"{text}"' for text in texts] + ["null"], Encoding.BITS_BE, ColumnType("bit", length))
        assert [value if value is None else int(value) for value in result.columns[0].to_pylist()] == [*numbers, None]
    over = base64.b64encode((1 << length).to_bytes(9, "big")).decode()
    failures = typed([f'"{over}"'], Encoding.BITS_BE, ColumnType("bit", length)).failures
    assert [failure.reason for failure in failures] == ["out_of_range"]
