# SPDX-License-Identifier: Apache-2.0
"""Report a record that a format cannot decode."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from airflow_provider_cdc.core.formats.common.change_builder import RAW_LIMIT, ChangeBuilder
from airflow_provider_cdc.core.formats.common.record_decoder import UnsupportedRecord, decode_each
from airflow_provider_cdc.core.formats.contract import Records


def decoded(take: Any, *values: bytes | None) -> list[dict[str, Any]]:
    count = len(values)
    records = Records("t", 3, list(range(10, 10 + count)), [1] * count, [b"key"] * count, values)
    return decode_each(records, [], take, "a message of the test", table_of).to_pylist()


def table_of(value: bytes) -> tuple[str | None, str | None]:
    if value != b"bad":
        raise ValueError("no table")
    return "shop", "orders"


def raising(error: Exception) -> Any:
    def take(out: ChangeBuilder, index: int, value: bytes) -> None:
        if value == b"bad":
            raise error
        out.add(index, "row", op="insert", after=value)

    return take


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (UnsupportedRecord("record.partial_image", "lacks a column"), "record.partial_image", "lacks a column"),
        (ValueError("no table"), "record.malformed", "not a message of the test: no table"),
        (RecursionError("too deep"), "record.malformed", "not a message of the test: too deep"),
        (
            msgspec.ValidationError("Expected `int` - at `$.secret`"),
            "record.malformed",
            "not a message of the test: Expected `int`",
        ),
    ],
)
def test_a_bad_record_is_an_error_in_its_place_and_keeps_its_bytes(error: Exception, code: str, text: str) -> None:
    actual = decoded(raising(error), b"{}", b"bad", b"[]")
    assert [(c["offset"], c["kind"]) for c in actual] == [(10, "row"), (11, "error"), (12, "row")]
    assert (actual[1]["error_code"], actual[1]["error"], actual[1]["raw"]) == (code, text, b"bad")
    assert (actual[1]["database"], actual[1]["table"]) == ("shop", "orders")


def test_a_bad_record_that_does_not_show_its_table_has_none() -> None:
    def take(out: ChangeBuilder, index: int, value: bytes) -> None:
        raise ValueError("no change")

    (actual,) = decoded(take, b"other")
    assert (actual["kind"], actual["database"], actual["table"]) == ("error", None, None)


def test_a_fault_of_the_decoder_itself_is_not_taken_for_bad_data() -> None:
    with pytest.raises(AttributeError):
        decoded(raising(AttributeError("a mistake in the code")), b"bad")


def test_a_record_without_value_is_ignored_behind_the_others() -> None:
    changes = decoded(raising(ValueError()), None, b"{}", None)
    assert [(c["kind"], c["offset"]) for c in changes] == [("row", 11), ("ignored", 10), ("ignored", 12)]


def test_a_long_bad_record_is_cut() -> None:
    def take(out: ChangeBuilder, index: int, value: bytes) -> None:
        raise ValueError("long")

    (actual,) = decoded(take, b"x" * (RAW_LIMIT + 1))
    assert len(actual["raw"]) == RAW_LIMIT
