# SPDX-License-Identifier: Apache-2.0
"""Test seconds and milliseconds since 1970 with fractions: exact, or a failure."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.images import Field, Typed, type_images
from airflow_provider_cdc.core.values.types import TypeOptions, arrow_type

SECONDS, MILLIS = Encoding.EPOCH_SECONDS, Encoding.EPOCH_MILLIS_TEXT
COLUMN = ColumnType("timestamp", 6)


def typed(tokens: list[str], encoding: Encoding, column: ColumnType = COLUMN, **options: object) -> Typed:
    target = arrow_type(column, TypeOptions(**options))  # type: ignore[arg-type]
    images = pa.array([f'{{"c":{token}}}' for token in tokens])
    return type_images(images, [Field(Encoded("c", encoding), column, target)])


GOOD = [
    (SECONDS, "1624614713.201", "2021-06-25 09:51:53.201000"),  # docs/wire/huawei-drs.md 3.2
    (SECONDS, "1606233662.012345", "2020-11-24 16:01:02.012345"),  # docs/wire/oceanbase-oms.md 7.3
    (SECONDS, "1606233662.012345000", "2020-11-24 16:01:02.012345"),
    (SECONDS, "1606233662", "2020-11-24 16:01:02.000000"),
    (SECONDS, "-0.000001", "1969-12-31 23:59:59.999999"),
    (SECONDS, "-1.5", "1969-12-31 23:59:58.500000"),
    (SECONDS, "-62167219200", "0000-01-01 00:00:00.000000"),
    (SECONDS, "253402300799.999999", "9999-12-31 23:59:59.999999"),
    (SECONDS, "1.6246147132E9", "2021-06-25 09:51:53.200000"),
    (SECONDS, "0", "1970-01-01 00:00:00.000000"),
    (MILLIS, "1624614713201", "2021-06-25 09:51:53.201000"),
    (MILLIS, "1624614713201.005", "2021-06-25 09:51:53.201005"),
    (MILLIS, "-1", "1969-12-31 23:59:59.999000"),
]
BAD = [
    (SECONDS, '"1606233662.0123456789"', "fraction_lost"),
    (MILLIS, '"1.0000001"', "fraction_lost"),
    (SECONDS, '"253402300800"', "out_of_range"),
    (SECONDS, '"-62167219201"', "out_of_range"),
    (MILLIS, '"1e30"', "out_of_range"),
    (SECONDS, '"2020-01-01 00:00:00"', "number_invalid"),
    (SECONDS, '""', "number_invalid"),
    (SECONDS, '" 1"', "number_invalid"),
    (SECONDS, '"nan"', "number_invalid"),
    (SECONDS, "true", "token_unexpected"),
    (SECONDS, "[1]", "token_unexpected"),
]


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize(("encoding", "number", "expected"), GOOD)
def test_exact_to_the_microsecond(encoding: Encoding, number: str, expected: str, quote: str) -> None:
    token = quote + number + quote
    for tokens in ([token], [token, "null", '"x"']):
        result = typed(tokens, encoding)
        assert result.columns[0].cast(pa.string())[0].as_py() == expected + "Z"
        assert [failure.row for failure in result.failures] == ([2] if len(tokens) > 1 else [])
    assert typed([token], encoding, zero_dates="text").columns[0].to_pylist() == [expected]


@pytest.mark.parametrize(
    ("encoding", "number", "exact"),
    [
        (SECONDS, "1606233662.012345678", "2020-11-24 16:01:02.012345678"),
        (SECONDS, "-0.000000001", "1969-12-31 23:59:59.999999999"),
        (MILLIS, "1.0001", "1970-01-01 00:00:00.001000100"),
        (Encoding.EPOCH_NANOS, "1001", "1970-01-01 00:00:00.000001001"),
    ],
)
def test_nanoseconds_are_cut_and_counted_or_stay_in_a_text(encoding: Encoding, number: str, exact: str) -> None:
    for options, expected, lossy in (({}, exact[:-3] + "Z", {"fraction_cut": 1}), ({"zero_dates": "text"}, exact, {})):
        result = typed([number, "0"], encoding, **options)
        assert result.columns[0].cast(pa.string())[0].as_py() == expected
        assert (result.lossy, result.failures) == (lossy, [])


@pytest.mark.parametrize(("encoding", "token", "reason"), BAD)
def test_inexact_numbers_fail(encoding: Encoding, token: str, reason: str) -> None:
    for options in ({}, {"zero_dates": "text"}):
        result = typed([token], encoding, **options)
        assert [failure.reason for failure in result.failures] == [reason]


def test_a_zero_date_among_numbers() -> None:
    tokens = ['"0000-00-00 00:00:00"', '"1"']  # docs/wire/oceanbase-oms.md 7.4
    result = typed(tokens, SECONDS)
    assert (result.columns[0].null_count, result.lossy, result.failures) == (1, {"zero_date": 1}, [])
    column = ColumnType("timestamp")
    as_text = typed(tokens, SECONDS, column, zero_dates="text")
    assert as_text.columns[0].to_pylist() == ["0000-00-00 00:00:00", "1970-01-01 00:00:01"]


@pytest.mark.parametrize(("encoding", "unit"), [(SECONDS, 1_000_000), (MILLIS, 1000)])
@pytest.mark.parametrize("quote", ["", '"'])
def test_any_instant_round_trips(encoding: Encoding, unit: int, quote: str) -> None:
    rnd = random.Random(unit)
    micros = [rnd.randrange(-62_167_219_200_000_000, 253_402_300_800_000_000) for _ in range(2000)]
    tokens = [f"{quote}{Decimal(value) / unit:f}{quote}" for value in micros]
    result = typed(tokens, encoding)
    assert result.columns[0].view(pa.int64()).to_pylist() == micros
    assert result.failures == []


@pytest.mark.parametrize(
    ("encoding", "token"),
    [(Encoding.EPOCH_MILLIS, '"1624614713201"'), (Encoding.EPOCH_MICROS, '"1624614713201000"')],
)
def test_integers_may_be_in_strings(encoding: Encoding, token: str) -> None:
    assert typed([token], encoding).columns[0].cast(pa.string()).to_pylist() == ["2021-06-25 09:51:53.201000Z"]
