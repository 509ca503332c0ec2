# SPDX-License-Identifier: Apache-2.0
"""Tencent DTS: values of every type as they were received, values that are not carried, and those refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_cdc.core.formats.generated.dts_pb2 import (
    Column,
    Data,
    DataType,
    DMLType,
    Entry,
    RowChange,
)
from airflow_provider_cdc.core.formats.registry import open_format
from tests.unit.core.formats.dts.dts_messages import (
    ABSENT,
    ID,
    NULL,
    change,
    changes,
    dml,
    kinds,
    new,
    number,
    raw,
    record,
    text,
    value,
)


@pytest.mark.parametrize(
    ("kind", "data", "token"),
    [
        ("bigint(20) unsigned", number("18446744073709551615", DataType.UINT64), "18446744073709551615"),
        ("decimal(40,2)", number("1234567890123456789012345678901234567.10", DataType.DECIMAL), None),
        ("decimal(10,2)", number("1.10", DataType.DECIMAL), "1.10"),
        ("float", number("1e-05", DataType.FLOAT32), "1e-05"),
        ("double", number("-0.5", DataType.FLOAT64), "-0.5"),
        ("bit(64)", number("9223372036854775807", DataType.INT64), "9223372036854775807"),
        ("year(4)", number("2024", DataType.INT64), "2024"),
        ("year(4)", text("2024"), "2024"),
        ("varchar(9)", text(""), ""),
        ("varchar(9)", text('a"b\\c\n\x00\x1f😀é'), 'a"b\\c\n\x00\x1f😀é'),
        ("varchar(9)", text("x", ""), "x"),
        ("text", text("中".encode("gbk"), "gbk"), "中"),
        ("text", text("é€".encode("cp1252"), "latin1"), "é€"),
        ("text", text(b"\x81", "latin1"), "\x81"),
        ("text", text("é😀", "utf8mb4"), "é😀"),
        ("text", text("abc", "binary"), "abc"),
        ("enum('a','b')", text("b"), "b"),
        ("set('a','b')", text("a,b"), "a,b"),
        ("time", text("-838:59:59.5"), "-838:59:59.5"),
        ("date", text("0000-00-00"), "0000-00-00"),
        ("datetime(6)", text("2024-01-02 03:04:05.000001"), "2024-01-02 03:04:05.000001"),
        ("timestamp", text("2021-05-17 07:22:42"), "2021-05-17 07:22:42"),
        ("timestamp", text("2021-05-17 07:22:42 +00:00"), "2021-05-17 07:22:42"),
        ("timestamp(3)", text("2021-05-17 07:22:42.123+00:00"), "2021-05-17 07:22:42.123"),
        ("varchar(30)", text("2021-05-17 07:22:42 +00:00"), "2021-05-17 07:22:42 +00:00"),
        ("json", raw('{"a": "é\\n"}'.encode()), '{"a": "é\\n"}'),
        ("json", text('[1.10,"x"]'), '[1.10,"x"]'),
        ("blob", raw(b"\x00\xff\x10"), "AP8Q"),
        ("blob", raw(b""), ""),
        ("varbinary(3)", text(b"\xff\x00", "binary"), "/wA="),
        ("binary(3)", text(b"ab", "latin1"), "YWI="),
        ("geometry", raw(b"\x00\x01"), "AAE="),
        ("int4", number("5"), "5"),
        ("no_such_type", number("5"), "5"),
        ("no_such_type", text("x"), "x"),
        ("int(11)", NULL, None),
        ("blob", NULL, None),
    ],
)
def test_values_stand_in_images_as_they_were_received(kind: str, data: Data, token: str | None) -> None:
    expected = data.sv if token is None and data.sv else token
    assert value(kind, data) == expected


@pytest.mark.parametrize(
    ("kind", "data", "code"),
    [
        ("varchar(9)", text(b"\xff\xfe"), "value.not_text"),
        ("varchar(9)", text(b"\xe4\xb8"), "value.not_text"),
        ("varchar(9)", text(b'"\xff'), "value.not_text"),
        ("varchar(9)", text(b"\xff", "gbk"), "value.not_text"),
        ("varchar(9)", text("x", "klingon"), "value.not_text"),
        ("varchar(9)", text(b"\xe9", "ascii"), "value.not_text"),
        ("varchar(9)", text(b"\xe9", "binary"), "value.not_text"),
        ("varchar(9)", raw(b"abc"), "value.wrong_type"),
        ("varchar(9)", number("5"), "value.wrong_type"),
        ("enum('a','b')", number("1", DataType.INT64), "value.wrong_type"),
        ("datetime", number("5", DataType.INT64), "value.wrong_type"),
        ("blob", number("5"), "value.wrong_type"),
        ("int(11)", raw(b"5"), "value.wrong_type"),
        ("no_such_type", raw(b"5"), "value.wrong_type"),
        ("int(11)", Data(dataType=15, sv="5"), "value.wrong_type"),
        ("int(11)", Data(dataType=-1, sv="5"), "value.wrong_type"),
        ("int(11)", Data(dataType=DataType.INT32), "value.malformed"),
        ("int(11)", Data(dataType=DataType.INT32, bv=b"5"), "value.malformed"),
        ("int(11)", Data(dataType=DataType.INT32, sv="5", bv=b"5"), "value.malformed"),
        ("int(11)", Data(sv="5"), "value.malformed"),
        ("varchar(9)", Data(bv=b"5"), "value.malformed"),
        ("varchar(9)", Data(dataType=DataType.STRING, sv="5"), "value.malformed"),
        ("int(11)", number("0x10"), "value.malformed"),
        ("int(11)", number('"'), "value.malformed"),
        ("double", number("nan", DataType.FLOAT64), "value.malformed"),
        ("int(11)", number("1,2"), "value.malformed"),
        ("int(10) unsigned", number("-1"), "value.malformed"),
        ("bigint(20) unsigned", number("-1", DataType.INT64), "value.malformed"),
        ("json", raw(b"\x00\x01\x00\x0b"), "value.not_json"),
        ("json", raw(b'{"a":'), "value.not_json"),
        ("json", raw(b""), "value.not_json"),
    ],
)
def test_a_value_that_is_not_what_it_says_is_refused_with_its_row_only(kind: str, data: Data, code: str) -> None:
    assert value(kind, data) == code
    columns = [ID, Column(name="c", originalType=kind.encode())]
    good = new(number("1"), NULL)
    actual = changes(record(dml(columns, good, new(number("2"), data), good)))
    assert kinds(actual) == [(0, "insert"), (0, code), (0, "insert")]
    assert [c["index"] for c in actual] == [0, 1, 2]


def test_halves_of_a_character_in_two_values_do_not_make_a_whole_one() -> None:
    kinds = ("a", b"varchar(9)"), ("b", b"varchar(9)")
    columns = [ID, *(Column(name=name, originalType=kind) for name, kind in kinds)]
    row = new(number("1"), text(b'"\xc3'), text(b'\xa9"'))
    actual = changes(record(dml(columns, row, new(number("2"), text('"'), text("\\")))))
    assert [(c["error_code"], c["after"]) for c in actual] == [
        ("value.not_text", None),
        (None, '{"id":"2","a":"\\"","b":"\\\\"}'),
    ]


def test_with_another_timezone_a_timestamp_that_states_utc_keeps_doing_so() -> None:
    zone = {"timezone": "Asia/Shanghai"}
    assert value("timestamp", text("2021-05-17 07:22:42 +00:00"), options=zone) == "2021-05-17 07:22:42 +00:00"


def test_names_of_columns_and_tables_are_kept_as_they_are() -> None:
    columns = [Column(name='we"ird\\é', originalType=b"int", isKey=True)]
    actual = change(dml(columns, new(number("1")), schemaName="Shop ", tableName="T"))
    assert json.loads(actual["after"]) == {'we"ird\\é': "1"}
    assert (actual["database"], actual["table"]) == ("Shop ", "T")
    assert open_format("dts-protobuf").describe(actual["columns"]).names == ('we"ird\\é',)


def test_tables_of_one_record_do_not_mix_their_columns() -> None:
    ab, c = Column(name="ab", originalType=b"int"), Column(name="c", originalType=b"int")
    a, bc = Column(name="a", originalType=b"int"), Column(name="bc", originalType=b"int")
    one, two = new(number("1"), number("2")), new(number("3"), number("4"))
    actual = changes(record(dml([ab, c], one), dml([a, bc], two), dml([ab, c], two, tableName="u")))
    assert [x["after"] for x in actual] == ['{"ab":"1","c":"2"}', '{"a":"3","bc":"4"}', '{"ab":"3","c":"4"}']
    assert actual[0]["columns"] == actual[2]["columns"] != actual[1]["columns"]


# ---- values that are not carried

V = Column(name="v", originalType=b"int(11)")
W = Column(name="w", originalType=b"text")


def update(old: list[Data], fresh: list[Data], columns: list[Column] | None = None) -> Entry:
    return dml(columns or [ID, V, W], RowChange(oldColumns=old, newColumns=fresh), op=DMLType.UPDATE)


def images(entry: Entry) -> Any:
    result = change(entry)
    return result["error_code"] or [result[name] and json.loads(result[name]) for name in ("before", "after")]


def test_an_update_carries_what_changed_and_takes_the_rest_from_before() -> None:
    entry = update([number("1"), number("2"), text("x")], [ABSENT, number("3"), ABSENT])
    assert images(entry) == [{"id": "1", "v": "2", "w": "x"}, {"id": "1", "v": "3", "w": "x"}]


def test_what_neither_image_of_an_update_carries_is_left_out() -> None:
    entry = update([number("1"), ABSENT, ABSENT], [ABSENT, NULL, ABSENT])
    assert images(entry) == [{"id": "1"}, {"id": "1", "v": None}]


def test_a_delete_needs_its_key_only() -> None:
    entry = dml([ID, V], RowChange(oldColumns=[number("1"), ABSENT]), op=DMLType.DELETE)
    assert images(entry) == [{"id": "1"}, None]


@pytest.mark.parametrize("columns", [[ID, V], [V, W]], ids=["key", "no key"])
def test_an_insert_need_not_carry_what_the_statement_did_not_name(columns: list[Column]) -> None:
    assert images(dml(columns, new(number("1"), ABSENT))) == [None, {columns[0].name: "1"}]


@pytest.mark.parametrize(
    "entry",
    [
        dml([ID, V], new(ABSENT, number("1"))),
        dml([ID, V], RowChange(oldColumns=[ABSENT, number("1")]), op=DMLType.DELETE),
        dml([V, W], RowChange(oldColumns=[number("1"), ABSENT]), op=DMLType.DELETE),
        update([ABSENT, number("1"), NULL], [number("1"), number("2"), NULL]),
        update([number("1"), ABSENT], [number("2"), NULL], [V, W]),
        update([ABSENT, number("1"), NULL], [ABSENT, number("2"), NULL]),
    ],
)
def test_a_row_that_cannot_do_without_what_is_not_carried_is_refused(entry: Entry) -> None:
    assert images(entry) == "record.partial_image"


def test_an_update_may_move_the_key() -> None:
    entry = update([number("1"), NULL, NULL], [number("2"), NULL, NULL])
    assert images(entry) == [{"id": "1", "v": None, "w": None}, {"id": "2", "v": None, "w": None}]
