# SPDX-License-Identifier: Apache-2.0
"""Test every encoding: exact values, and a stable reason for each invalid value."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.images import Failure, Field, Typed, type_images
from airflow_provider_cdc.core.values.types import TypeOptions, arrow_type

MISSING = b""


def typed(tokens: list[bytes], field: Field) -> Typed:
    name = json.dumps(field.encoded.name, ensure_ascii=False).encode()
    images = [b"{" + (name + b": " + token if token else b"") + b"}" for token in tokens]
    return type_images(pa.array(images, pa.binary()), [field])


def shown(column: pa.Array) -> list[Any]:
    temporal = pa.types.is_timestamp(column.type) or pa.types.is_date32(column.type)
    values: list[Any] = (column.cast(pa.string()) if temporal else column).to_pylist()
    return values


E = Encoding
GOOD: list[tuple[Encoding, int | None, ColumnType, list[tuple[bytes, Any]]]] = [
    (
        E.NUMBER,
        None,
        ColumnType("tinyint"),
        [(b"-128", -128), (b"127", 127), (b"true", 1), (b"1.0", 1), (b'"-128"', -128), (b"null", None)],
    ),
    (E.NUMBER, None, ColumnType("bigint"), [(b"9223372036854775807", 2**63 - 1), (b"-9223372036854775808", -(2**63))]),
    (E.NUMBER, None, ColumnType("decimal", 5, 2), [(b"1.10", Decimal("1.10")), (b"-0.0", Decimal("0.00"))]),
    (
        E.NUMBER,
        None,
        ColumnType("decimal", 38, 2),
        [(b"123456789012345678901234567890123456.78", Decimal("123456789012345678901234567890123456.78"))],
    ),
    (
        E.NUMBER,
        None,
        ColumnType("decimal", 65, 2),
        [
            (b"1234567890123456789012345678901234567890.1", "1234567890123456789012345678901234567890.10"),
            (b"1e2", "100.00"),
        ],
    ),
    (E.NUMBER, None, ColumnType("double"), [(b"0.1", 0.1), (b"1e308", 1e308), (b"5", 5.0), (b"5e-324", 5e-324)]),
    # the double nearest to this text is half way between two floats: rounding twice would give the upper one
    (E.NUMBER, None, ColumnType("float"), [(b"1.00000017881393432617187499999999999", 1.00000011920928955078125)]),
    (E.NUMBER, None, ColumnType("vector", 2), [(b"[1,2.5]", [1.0, 2.5]), (b"[]", []), (b"null", None)]),
    (E.NUMBER, None, ColumnType("year"), [(b"1901", 1901), (b"2155", 2155)]),
    (E.BOOLEAN, None, ColumnType("tinyint", 1), [(b"true", 1), (b"false", 0), (b"-5", -5)]),
    (E.BOOLEAN, None, ColumnType("bit", 1), [(b"true", True), (b"0", False)]),
    (
        E.TEXT,
        None,
        ColumnType("varchar", 9),
        [
            (b'""', ""),
            ('"é😀"'.encode(), "é😀"),
            (b'"\\ud83d\\ude00"', "😀"),
            (b'"a\\u0000b"', "a\0b"),
            (b"1.10", "1.10"),
        ],
    ),
    (E.TEXT, None, ColumnType("enum", labels=("a,b", "c")), [(b'"a\\\\,b"', "a,b"), (b'"c"', "c"), (b'""', "")]),
    (E.TEXT, None, ColumnType("enum", labels=("it's", "b")), [(b'"its"', "it's"), (b'"it\'s"', "it's")]),
    (E.TEXT, None, ColumnType("enum", labels=("it's", "its", "i'ts")), [(b'"its"', "its"), (b'"i\'ts"', "i'ts")]),
    (E.TEXT, None, ColumnType("enum", labels=("it's", "i'ts")), [(b'"its"', "its")]),
    (E.TEXT, None, ColumnType("int"), [(b'"00042"', 42), (b'"-1"', -1)]),
    (E.TEXT, None, ColumnType("decimal", 5, 2), [(b'"1.1"', Decimal("1.10")), (b'"1e2"', Decimal("100.00"))]),
    (E.TEXT, None, ColumnType("float"), [(b'"3.4028235e38"', 3.4028234663852886e38)]),
    (E.TEXT, None, ColumnType("date"), [(b'"0000-01-01"', "0000-01-01"), (b'"9999-12-31"', "9999-12-31")]),
    (E.TEXT, None, ColumnType("datetime", 3), [(b'"2020-02-29 23:59:59.5"', "2020-02-29 23:59:59.500000")]),
    (E.TEXT, None, ColumnType("timestamp"), [(b'"2020-02-29 23:59:59"', "2020-02-29 23:59:59.000000Z")]),
    (E.TEXT, None, ColumnType("time"), [(b'"-838:59:59"', "-838:59:59")]),
    (E.TEXT, None, ColumnType("bit", 1), [(b'"1"', True)]),
    (E.TEXT, None, ColumnType("varbinary", 9), [('"é"'.encode(), "é".encode())]),
    (
        E.BASE64,
        None,
        ColumnType("binary", 4),
        [(b'"YQ=="', b"a\0\0\0"), (b'""', b"\0\0\0\0"), (b'"YWJjZA=="', b"abcd")],
    ),
    (E.BASE64, None, ColumnType("blob"), [(b'""', b""), (b'"/+8="', b"\xff\xef")]),
    (E.BASE64, None, ColumnType("text"), [(b'"w6k="', "é")]),
    (E.BASE64_URL, None, ColumnType("blob"), [(b'"_-8="', b"\xff\xef"), (b'"_-8"', b"\xff\xef"), (b'""', b"")]),
    (E.HEX, None, ColumnType("blob"), [(b'"00fF"', b"\x00\xff"), (b'""', b"")]),
    (
        E.EPOCH_DAYS,
        None,
        ColumnType("date"),
        [(b"-354285", "1000-01-01"), (b"-719528", "0000-01-01"), (b"0", "1970-01-01")],
    ),
    (E.EPOCH_MILLIS, None, ColumnType("datetime", 1), [(b"1701347696100", "2023-11-30 12:34:56.100000")]),
    (E.EPOCH_MICROS, None, ColumnType("datetime", 6), [(b"-1", "1969-12-31 23:59:59.999999")]),
    (E.EPOCH_NANOS, None, ColumnType("datetime", 6), [(b"-1000", "1969-12-31 23:59:59.999999")]),
    (
        E.TIME_MICROS,
        None,
        ColumnType("time", 6),
        [(b"-45296123456", "-12:34:56.123456"), (b"3020399999999", "838:59:59.999999"), (b"0", "00:00:00.000000")],
    ),
    (
        E.TIME_MICROS_UNSCALED,
        None,
        ColumnType("time", 1),
        [(b"3723000001", "01:02:03.1"), (b"-3723000009", "-01:02:03.9"), (b"0", "00:00:00.0")],
    ),
    (E.TIME_MICROS_UNSCALED, None, ColumnType("time", 6), [(b"-2880123100000", "-800:02:03.100000")]),
    (E.TIME_MICROS_UNSCALED, None, ColumnType("time"), [(b"86399000000", "23:59:59")]),
    (
        E.YEAR_SINCE_1900,
        None,
        ColumnType("year"),
        [
            (b"122", 2022),
            (b"2050", 1950),
            (b"1999", 1999),
            (b"100", 2000),
            (b"255", 2155),
            (b"2001", 1901),
            (b"-1900", 0),
        ],
    ),
    (E.TIME_MILLIS, None, ColumnType("time"), [(b"-1000", "-00:00:01"), (b"360000000", "100:00:00")]),
    (E.TIME_NANOS, None, ColumnType("time", 3), [(b"1000000", "00:00:00.001")]),
    (E.ISO_TEXT, None, ColumnType("date"), [(b'"2023-11-30Z"', "2023-11-30"), (b'"2023-11-30"', "2023-11-30")]),
    (E.ISO_TEXT, None, ColumnType("datetime"), [(b'"2023-11-30T12:34Z"', "2023-11-30 12:34:00.000000")]),
    (E.ISO_TEXT, None, ColumnType("time", 2), [(b'"12:34:56Z"', "12:34:56.00"), (b'"-12:34:56.7"', "-12:34:56.70")]),
    (
        E.ZONED_TEXT,
        None,
        ColumnType("timestamp", 6),
        [
            (b'"2023-11-30T12:34:56.12346Z"', "2023-11-30 12:34:56.123460Z"),
            (b'"2023-11-30T12:34:56.123456000+05:30"', "2023-11-30 07:04:56.123456Z"),
        ],
    ),
    (
        E.DECIMAL_BASE64,
        2,
        ColumnType("decimal", 38, 4),
        [
            (b'"APo="', Decimal("2.5000")),
            (b'"/w=="', Decimal("-0.0100")),
            (b'"AAAAAAAAAAAAAAAAAAAAAAAAAAE="', Decimal("0.01")),
        ],
    ),
    (
        E.DECIMAL_BASE64,
        30,
        ColumnType("decimal", 65, 30),
        [(b'"/w=="', "-0." + "0" * 29 + "1"), (b'"AA=="', "0." + "0" * 30)],
    ),
    (E.DECIMAL_BASE64, 0, ColumnType("bigint", unsigned=True), [(b'"AP//////////"', Decimal(2**64 - 1))]),
    (E.BITS_LE, None, ColumnType("bit", 60), [(b'"EAAAAAAAAAA="', 16), (b"true", 1)]),
    (E.BITS_LE, None, ColumnType("bit", 64), [(b'"//////////8="', Decimal(2**64 - 1))]),
    (
        E.WRAPPED_UNSIGNED,
        None,
        ColumnType("bigint", unsigned=True),
        [(b"-1", Decimal(2**64 - 1)), (b"18446744073709551615", Decimal(2**64 - 1)), (b"0", Decimal(0))],
    ),
    (E.GEOMETRY, None, ColumnType("point"), [(b'{"wkb":"AQ==","srid":4326,"x":1}', b"\1"), (b'{"wkb":null}', None)]),
]
BAD: list[tuple[Encoding, int | None, ColumnType, list[tuple[bytes, str]]]] = [
    (
        E.NUMBER,
        None,
        ColumnType("tinyint"),
        [
            (b"128", "out_of_range"),
            (b'"1x"', "number_invalid"),
            (b"{}", "token_unexpected"),
            (b"1.5", "fraction_lost"),
            (b"9" * 60, "out_of_range"),
        ],
    ),
    (
        E.NUMBER,
        None,
        ColumnType("decimal", 5, 2),
        [(b"1.105", "fraction_lost"), (b"1000", "out_of_range"), (b"3e38", "out_of_range")],
    ),
    (E.NUMBER, None, ColumnType("double"), [(b"1e400", "out_of_range")]),
    (E.NUMBER, None, ColumnType("float"), [(b"3.5e38", "out_of_range")]),
    (E.NUMBER, None, ColumnType("bit", 1), [(b"2", "out_of_range")]),
    (E.TEXT, None, ColumnType("double"), [(b'"nan"', "number_invalid"), (b'"-inf"', "number_invalid")]),
    (
        E.TEXT,
        None,
        ColumnType("int"),
        [(b'"0x10"', "number_invalid"), (b'""', "number_invalid"), (b'" 5"', "number_invalid")],
    ),
    # Arrow reads this as 0.0000: it multiplies beyond 128 bits without noticing
    (E.TEXT, None, ColumnType("decimal", 16, 4), [(b'"-3402823669209384634633746074317682114560"', "out_of_range")]),
    (E.TEXT, None, ColumnType("date"), [(b'"2020-13-01"', "date_invalid"), (b'"10000-01-01"', "date_invalid")]),
    (E.TEXT, None, ColumnType("varchar", 9), [(b"true", "token_unexpected"), (b'"\xff"', "text_invalid")]),
    (
        E.BASE64,
        None,
        ColumnType("blob"),
        [(b'"YQ"', "base64_invalid"), (b'"YQ==\\n"', "base64_invalid"), (b"5", "token_unexpected")],
    ),
    (E.BASE64, None, ColumnType("binary", 1), [(b'"YWI="', "too_long")]),
    (E.BASE64, None, ColumnType("text"), [(b'"/w=="', "text_invalid")]),
    (E.BASE64_URL, None, ColumnType("blob"), [(b'"/+8="', "base64_invalid")]),
    (E.HEX, None, ColumnType("blob"), [(b'"0"', "hex_invalid"), (b'"0g"', "hex_invalid"), (b'"00 00"', "hex_invalid")]),
    (
        E.EPOCH_DAYS,
        None,
        ColumnType("date"),
        [(b"2932897", "out_of_range"), (b'"1x"', "number_invalid"), (b"[]", "token_unexpected")],
    ),
    (E.EPOCH_NANOS, None, ColumnType("datetime", 6), [(b"1.5", "number_invalid")]),
    (E.TIME_MICROS, None, ColumnType("time", 3), [(b"1", "fraction_lost"), (b"3020400000000", "out_of_range")]),
    (
        E.TIME_MICROS_UNSCALED,
        None,
        ColumnType("time", 1),
        [(b"3723100000", "fraction_lost"), (b"3020400000000", "out_of_range"), (b"1e3", "number_invalid")],
    ),
    (E.TIME_MICROS_UNSCALED, None, ColumnType("time"), [(b"1", "fraction_lost")]),
    (
        E.YEAR_SINCE_1900,
        None,
        ColumnType("year"),
        [(b"0", "out_of_range"), (b"99", "out_of_range"), (b"2000", "out_of_range"), (b"2070", "out_of_range")],
    ),
    (E.ZONED_TEXT, None, ColumnType("timestamp", 6), [(b'"2023-11-30T12:34:56"', "zone_unknown")]),
    (E.ZONED_TEXT, None, ColumnType("timestamp", 6), [(b'"2023-11-30T12:34:56.1234567891Z"', "date_invalid")]),
    (
        E.DECIMAL_BASE64,
        0,
        ColumnType("decimal", 38, 0),
        [(b'"f////////////////////w=="', "out_of_range"), (b'""', "number_invalid")],
    ),
    (E.BITS_LE, None, ColumnType("bit", 3), [(b'"CA=="', "out_of_range")]),
    (E.GEOMETRY, None, ColumnType("point"), [(b"{}", "token_unexpected"), (b'{"wkb":"!"}', "base64_invalid")]),
]


@pytest.mark.parametrize(("encoding", "scale", "column", "cases"), GOOD)
def test_values(encoding: Encoding, scale: int | None, column: ColumnType, cases: list[tuple[bytes, Any]]) -> None:
    field = Field(Encoded("c", encoding, scale), column, arrow_type(column))
    result = typed([token for token, _ in cases] + [b"null", MISSING], field)
    assert (result.failures, result.lossy) == ([], {})
    assert result.columns[0].type == field.target
    assert shown(result.columns[0]) == [value for _, value in cases] + [None, None]
    assert result.absent[0].to_pylist() == [False] * (len(cases) + 1) + [True]
    for token, value in cases:  # alone, so that no odd neighbour decides the way
        assert shown(typed([token], field).columns[0]) == [value]


@pytest.mark.parametrize(("encoding", "scale", "column", "cases"), BAD)
def test_failures(encoding: Encoding, scale: int | None, column: ColumnType, cases: list[tuple[bytes, str]]) -> None:
    field = Field(Encoded("c", encoding, scale), column, arrow_type(column))
    result = typed([token for token, _ in cases], field)
    assert result.failures == [Failure(row, "c", reason) for row, (_, reason) in enumerate(cases)]
    assert result.columns[0].null_count == len(cases)
    assert result.absent == [None]


def test_invalid_dates_become_null_and_are_counted() -> None:
    column = ColumnType("datetime", 3)
    tokens = [
        b'"0000-00-00 00:00:00.000"',
        b'"2020-02-30 00:00:00"',
        b'"2020-05-00 01:02:03"',
        b'"2020-01-01 00:00:00"',
    ]
    result = typed(tokens, Field(Encoded("c", Encoding.TEXT), column, arrow_type(column)))
    assert shown(result.columns[0]) == [None, None, None, "2020-01-01 00:00:00.000000"]
    assert (result.lossy, result.failures) == ({"zero_date": 1, "invalid_date": 2}, [])
    as_text = typed(
        tokens, Field(Encoded("c", Encoding.TEXT), column, arrow_type(column, TypeOptions(zero_dates="text")))
    )
    assert as_text.columns[0].to_pylist() == [json.loads(token) for token in tokens]


def test_gos_zero_time_is_a_zero_date() -> None:
    column, tokens = ColumnType("timestamp", 1), [b'"0001-01-01T00:00:00Z"', b'"2020-01-01T00:00:00Z"']
    result = typed(tokens, Field(Encoded("c", Encoding.ZONED_TEXT), column, arrow_type(column)))
    assert shown(result.columns[0]) == [None, "2020-01-01 00:00:00.000000Z"]
    assert (result.lossy, result.failures) == ({"zero_date": 1}, [])
    as_text = typed(tokens, Field(Encoded("c", Encoding.ZONED_TEXT), column, pa.string()))
    assert as_text.columns[0].to_pylist() == ["0000-00-00 00:00:00.0", "2020-01-01 00:00:00.0"]


def test_dates_as_text_look_as_the_database_prints_them() -> None:
    for column, encoding, token, text in [
        (ColumnType("date"), Encoding.EPOCH_DAYS, b"-719528", "0000-01-01"),
        (ColumnType("datetime", 2), Encoding.EPOCH_MILLIS, b"10", "1970-01-01 00:00:00.01"),
        (ColumnType("timestamp"), Encoding.ZONED_TEXT, b'"2020-01-01T00:00:00+01:00"', "2019-12-31 23:00:00"),
    ]:
        result = typed([token], Field(Encoded("c", encoding), column, pa.string()))
        assert (result.columns[0].to_pylist(), result.failures) == ([text], [])


def test_tinyint_as_boolean_counts_lost_values() -> None:
    column = ColumnType("tinyint", 1)
    result = typed([b"0", b"1", b"2", b"-1", b"true"], Field(Encoded("c", Encoding.NUMBER), column, pa.bool_()))
    assert result.columns[0].to_pylist() == [False, True, True, True, True]
    assert (result.lossy, result.failures) == ({"tinyint_as_boolean": 2}, [])
