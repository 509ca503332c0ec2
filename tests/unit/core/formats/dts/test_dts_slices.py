# SPDX-License-Identifier: Apache-2.0
"""Tencent DTS: slices of records, running numbers, and shards that share a partition."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.generated.dts_pb2 import Column, Envelope
from airflow_provider_cdc.core.formats.registry import open_format
from tests.unit.core.formats.dts.dts_messages import (
    ID,
    INSERT,
    MARKS,
    SLICES,
    UPDATE,
    changes,
    dml,
    kinds,
    new,
    number,
    record,
    sliced,
    text,
)

NOTE = Column(name="note", originalType=b"text")


def test_slices_cut_anywhere_give_the_same_rows() -> None:
    entry = dml([ID, NOTE], *[new(number(str(i)), text("é" * 10)) for i in range(5)])
    whole = [c["after"] for c in changes(record(entry))]
    for count in (2, 3, 7, 40):
        actual = changes(*sliced(count, entry))
        assert [c["after"] for c in actual if c["kind"] == "row"] == whole
        assert {c["offset"] for c in actual if c["kind"] == "row"} == {count - 1}


def test_slices_of_shards_that_share_a_partition_are_put_together_apart() -> None:
    one, other = sliced(2, dml([ID], new(number("1")))), sliced(2, dml([ID], new(number("2"))))
    actual = changes(one[0], other[0], INSERT, other[1], one[1], shards="abcba")
    assert kinds(actual) == [(0, "ignored"), (1, "ignored"), (2, "insert"), (3, "insert"), (4, "insert")]
    assert [actual[3]["after"], actual[4]["after"]] == ['{"id":"2"}', '{"id":"1"}']


def test_the_rest_of_a_group_that_began_before_the_log_is_passed_over() -> None:
    assert kinds(changes(SLICES[1], INSERT)) == [(0, "ignored"), (1, "insert")]


def test_a_group_that_lacks_a_slice_is_one_error() -> None:
    parts = sliced(4, dml([ID, NOTE], new(number("1"), text("x" * 50))))
    assert kinds(changes(INSERT, parts[0], parts[2], parts[3], INSERT)) == [
        (0, "insert"),
        (1, "ignored"),
        (2, "ignored"),
        (3, "record.slices_missing"),
        (4, "insert"),
    ]
    assert kinds(changes(INSERT, parts[1], parts[2], parts[3])) == [
        (0, "insert"),
        (1, "ignored"),
        (2, "ignored"),
        (3, "record.slices_missing"),
    ]
    assert kinds(changes(parts[0], INSERT)) == [(0, "record.slices_missing"), (1, "insert")]


def test_a_group_that_is_begun_again_loses_nothing() -> None:
    parts = sliced(3, dml([ID], new(number("1"))))
    actual = kinds(changes(parts[0], parts[1], *parts))
    assert actual == [*[(index, "ignored") for index in range(4)], (4, "insert")]


def test_a_record_that_is_no_envelope_does_not_tear_a_group() -> None:
    assert kinds(changes(SLICES[0], b"x", SLICES[1])) == [(0, "ignored"), (1, "record.malformed"), (2, "insert")]


def test_a_group_whose_bytes_are_no_entries_is_one_error_with_all_of_them() -> None:
    pieces = (b"\x0a\xff", b"\x01\x02")
    sent = [Envelope(version=1, total=2, index=i, data=data).SerializeToString() for i, data in enumerate(pieces)]
    actual = changes(*sent, INSERT)
    assert kinds(actual) == [(0, "ignored"), (1, "record.malformed"), (2, "insert")]
    assert actual[1]["raw"] == b"\x0a\xff\x01\x02"


def test_a_record_sent_again_is_passed_over() -> None:
    actual = changes(INSERT, UPDATE, INSERT, UPDATE, MARKS, numbers=[5, 6, 5, 6, 7])
    assert kinds(actual)[:4] == [(0, "insert"), (1, "update"), (2, "ignored"), (3, "ignored")]
    assert len(actual) == 6


def test_records_that_are_missing_are_reported_after_the_one_behind_them() -> None:
    actual = changes(INSERT, MARKS, UPDATE, numbers=[5, 8, 9])
    assert kinds(actual) == [(0, "insert"), (1, "begin"), (1, "commit"), (1, "record.lost"), (2, "update")]
    assert [c["index"] for c in actual] == [0, 0, 1, 2, 0]
    assert actual[3]["error"].startswith("2 records")


def test_records_missing_between_stretches_are_reported() -> None:
    assert kinds(changes(INSERT, numbers=[8], heard={"": 5})) == [(0, "insert"), (0, "record.lost")]
    assert kinds(changes(INSERT, numbers=[5], heard={"": 5})) == [(0, "ignored")]
    assert kinds(changes(SLICES[1], numbers=[6], heard={"": 5})) == [(0, "record.slices_missing")]


def test_the_number_one_begins_again() -> None:
    assert kinds(changes(INSERT, UPDATE, numbers=[500, 1])) == [(0, "insert"), (1, "update")]


def test_shards_count_on_their_own() -> None:
    actual = changes(INSERT, INSERT, INSERT, INSERT, numbers=[5, 90, 6, 92], shards="abab")
    assert kinds(actual) == [(0, "insert"), (1, "insert"), (2, "insert"), (3, "insert"), (3, "record.lost")]


@pytest.mark.parametrize("number", [b"", b"x", b"-1", b"1" * 30])
def test_a_number_that_is_none_is_an_error(number: bytes) -> None:
    records = Records("t", 0, [0], [0], [None], [INSERT], [[("ps", number)]])
    (actual,) = open_format("dts-protobuf").decode(records).to_pylist()
    assert actual["error_code"] == "record.malformed"


def test_the_part_of_a_record_is_recognised_by_value_and_headers() -> None:
    part_of = open_format("dts-protobuf").part_of
    assert part_of(SLICES[1], [("ps", b"17"), ("ShardId", b"set_1")]) == ("set_1", 17, 1, 2)
    assert part_of(INSERT, None) == ("", None, 0, 1)
    for nothing in (None, b"", b"\xff", Envelope(version=3).SerializeToString()):
        assert part_of(nothing, None) is None
