# SPDX-License-Identifier: Apache-2.0
"""Test date-times in the forms that one tool mixes (docs/wire/oceanbase-oms.md 7.3, 7.4, 10.19, 10.33)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.fields import Field, Reason
from airflow_provider_cdc.core.values.images import Typed, type_images
from airflow_provider_cdc.core.values.types import TypeOptions, arrow_type

INSTANT = "2020-11-24 16:01:02.012345"  # of the samples' 2020-11-25 00:01:02.012345 at +08:00


def typed(tokens: list[str], column: str, zone: str | None = None, zero_dates: str = "null") -> Typed:
    column_type = ColumnType(column, 6)
    target = arrow_type(column_type, TypeOptions(zero_dates=zero_dates))  # type: ignore[arg-type]
    images = pa.array([f'{{"c":{token}}}' for token in tokens])
    return type_images(images, [Field(Encoded("c", Encoding.MIXED_DATETIME, zone=zone), column_type, target)])


def texts(result: Typed) -> list[str | None]:
    assert not result.failures
    (column,) = result.columns
    return [text and text.removesuffix("Z") for text in column.cast(pa.string()).to_pylist()]


@pytest.mark.parametrize(
    "token",
    ['"1606233662.012345"', '"2020-11-25 00:01:02.012345 Asia/Shanghai"', '"2020-11-25 00:01:02.012345 +08:00"'],
)
def test_an_instant_is_the_same_in_every_form(token: str) -> None:
    assert texts(typed([token], "timestamp")) == [INSTANT]


def test_forms_may_be_mixed_in_a_column() -> None:
    tokens = ['"1606233662.012345"', '"2020-11-25 00:01:02.012345 Asia/Shanghai"', "null", "1606233662012", '"0"']
    instants = [INSTANT, INSTANT, None, "2020-11-24 16:01:02.012000", "1970-01-01 00:00:00.000000"]
    assert texts(typed(tokens, "timestamp")) == instants


@pytest.mark.parametrize("column", ["timestamp", "datetime"])
def test_milliseconds_may_have_the_nanoseconds_of_the_second_after_them(column: str) -> None:
    """The described form of ``ts`` (docs/wire/oceanbase-oms.md 10.19); 1590315269 is 2020-05-24 10:14:29 UTC."""
    result = typed(["1590315269000.123456789", "1590315269123.123456000", "1590315269000"], column)
    expected = ["2020-05-24 10:14:29.123456", "2020-05-24 10:14:29.123456", "2020-05-24 10:14:29.000000"]
    assert (texts(result), result.lossy) == (expected, {"fraction_cut": 1})


@pytest.mark.parametrize("zone", ["", " UTC"])
@pytest.mark.parametrize("column", ["timestamp", "datetime"])
def test_nanoseconds_of_texts_are_cut_and_counted(column: str, zone: str) -> None:
    tokens = [f'"2020-11-24 16:01:02.{fraction}{zone}"' for fraction in ("012345678", "012345000", "5")]
    result = typed(tokens, column, "UTC")
    fractions = ["012345", "012345", "500000"]
    assert texts(result) == [f"2020-11-24 16:01:02.{fraction}" for fraction in fractions]
    assert result.lossy == {"fraction_cut": 1}


@pytest.mark.parametrize("token", ['"2020-11-24 16:01:02.012345678"', "1606233662000.012345678"])
def test_dates_kept_as_text_keep_nanoseconds(token: str) -> None:
    result = typed([token, '"2020-11-24 16:01:02.012345000"', '"0000-00-00 00:00:00"'], "datetime", zero_dates="text")
    expected = ["2020-11-24 16:01:02.012345678", "2020-11-24 16:01:02.012345", "0000-00-00 00:00:00"]
    assert (texts(result), result.lossy) == (expected, {})


def test_local_time_of_an_instant_column_is_in_the_stated_zone() -> None:
    assert texts(typed(['"2020-11-25 00:01:02.012345"'], "timestamp", "Asia/Shanghai")) == [INSTANT]
    assert texts(typed(['"2020-11-25 00:01:02"'], "timestamp")) == ["2020-11-25 00:01:02.000000"]


def test_local_time_of_a_local_time_column_stays() -> None:
    assert texts(typed(['"2020-11-25 00:01:02"'], "datetime", "Asia/Shanghai")) == ["2020-11-25 00:01:02.000000"]


def test_instants_of_a_local_time_column_become_local_time_of_the_stated_zone() -> None:
    tokens = [
        '"1606233662.012345"',
        "1606233662012",
        '"2020-11-24 16:01:02.5 UTC"',
        '"2020-11-25 00:01:02 Asia/Shanghai"',
    ]
    local_times = ["2020-11-25 00:01:02.012345", "2020-11-25 00:01:02.012000", "2020-11-25 00:01:02.500000"]
    assert texts(typed(tokens, "datetime", "Asia/Shanghai")) == [*local_times, "2020-11-25 00:01:02.000000"]


def test_a_zone_is_not_dropped_from_a_local_time_column() -> None:
    result = typed(['"2020-11-25 00:01:02 Asia/Shanghai"'], "datetime")
    assert [failure.reason for failure in result.failures] == [Reason.ZONE]


@pytest.mark.parametrize(
    "token",
    [
        '"2020-11-25 00:01:02 Mars/Olympus"',
        '"2020-03-29 02:30:00 Europe/Berlin"',  # a time that no clock there showed
        '"2020-11-25 00:01:02.0123456789 UTC"',  # a tenth of a nanosecond
        '"1606233662.0123456789"',
        "1606233662012.345",  # the same
        "1606233662012.345678901",  # the milliseconds and the nanoseconds do not agree
        "1606233662012.5",  # a fraction after milliseconds: of them, or of the second?
        '"99999999999999"',
        '"noon"',
        "true",
    ],
)
def test_an_unknown_form_fails(token: str) -> None:
    assert len(typed([token], "timestamp").failures) == 1


def test_zero_and_impossible_dates_become_null_and_are_counted_or_stay_as_text() -> None:
    tokens = ['"0000-00-00 00:00:00"', '"2023-02-31 00:00:00"', '"2020-11-25 00:01:02.5"']
    result = typed(tokens, "datetime")
    assert texts(result) == [None, None, "2020-11-25 00:01:02.500000"]
    assert result.lossy == {"zero_date": 1, "invalid_date": 1}
    as_text = typed(tokens, "datetime", zero_dates="text")
    assert texts(as_text) == ["0000-00-00 00:00:00", "2023-02-31 00:00:00", "2020-11-25 00:01:02.500000"]


def test_one_of_two_instants_with_one_local_time_is_counted() -> None:
    result = typed(['"2020-10-25 02:30:00 Europe/Berlin"'], "timestamp")
    assert texts(result) == ["2020-10-25 00:30:00.000000"]
    assert result.lossy == {"ambiguous_time": 1}
