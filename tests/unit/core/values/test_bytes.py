# SPDX-License-Identifier: Apache-2.0
"""Test bytes in every form in which tools write them."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.images import Field, Typed, type_images
from airflow_provider_cdc.core.values.types import arrow_type


def javas(raw: bytes) -> list[int]:
    return [byte - 256 if byte > 127 else byte for byte in raw]


FORMS: list[tuple[Encoding, Callable[[bytes], object]]] = [
    (Encoding.LATIN1_BYTES, lambda raw: raw.decode("latin-1")),
    (Encoding.BYTE_LIST, javas),
    (Encoding.BYTE_LIST, list),
    (Encoding.BYTE_LIST, lambda raw: str(javas(raw))),
    (Encoding.BYTE_LIST, lambda raw: json.dumps(list(raw), separators=(",", ":"))),
    (Encoding.BASE64, lambda raw: base64.b64encode(raw).decode()),
    (Encoding.BASE64_URL, lambda raw: base64.urlsafe_b64encode(raw).decode()),
    (Encoding.HEX, lambda raw: raw.hex()),
    (Encoding.HEX, lambda raw: "0x" + raw.hex().upper()),
    (Encoding.CHARSET_BYTES, lambda raw: base64.b64encode(raw).decode()),
]
NAMES = [f"{encoding}-{number}" for number, (encoding, _) in enumerate(FORMS)]


def typed(tokens: list[str], encoding: Encoding, column: ColumnType) -> Typed:
    images = pa.array([f'{{"c":{token}}}' for token in tokens])
    return type_images(images, [Field(Encoded("c", encoding), column, arrow_type(column))])


@pytest.mark.parametrize(("encoding", "written"), FORMS, ids=NAMES)
def test_any_bytes_round_trip(encoding: Encoding, written: Callable[[bytes], object]) -> None:
    rnd = random.Random(3)
    raw = [bytes(range(256)), b"", *(rnd.randbytes(rnd.randrange(40)) for _ in range(200))]
    tokens = [json.dumps(written(value)) for value in raw]
    result = typed([*tokens, "null"], encoding, ColumnType("blob"))
    assert (result.columns[0].to_pylist(), result.failures) == ([*raw, None], [])
    assert typed([*tokens, "{}"], encoding, ColumnType("blob")).columns[0].to_pylist() == [*raw, None]


@pytest.mark.parametrize(("encoding", "written"), FORMS, ids=NAMES)
def test_zeros_that_a_tool_strips_are_put_back(encoding: Encoding, written: Callable[[bytes], object]) -> None:
    tokens = [json.dumps(written(value)) for value in (b"a\xff", b"", b"abc", b"abcd")]
    result = typed([*tokens, "null"], encoding, ColumnType("binary", 3))
    assert result.columns[0].to_pylist() == [b"a\xff\0", b"\0\0\0", b"abc", None, None]
    assert [(failure.row, failure.reason) for failure in result.failures] == [(3, "too_long")]


@pytest.mark.parametrize(("encoding", "written"), FORMS, ids=NAMES)
def test_text_is_utf8_or_fails(encoding: Encoding, written: Callable[[bytes], object]) -> None:
    tokens = [json.dumps(written(value)) for value in ('{"größe": "😀"}'.encode(), b"", b"a\xff")]
    result = typed(tokens, encoding, ColumnType("json"))
    assert result.columns[0].to_pylist() == ['{"größe": "😀"}', "", None]
    assert [(failure.row, failure.reason) for failure in result.failures] == [(2, "text_invalid")]


@pytest.mark.parametrize(
    ("encoding", "token", "reason"),
    [
        (Encoding.LATIN1_BYTES, '"\\u0100"', "byte_invalid"),
        (Encoding.LATIN1_BYTES, '"😀"', "byte_invalid"),
        (Encoding.LATIN1_BYTES, "5", "token_unexpected"),
        (Encoding.BYTE_LIST, "[256]", "byte_invalid"),
        (Encoding.BYTE_LIST, "[-129]", "byte_invalid"),
        (Encoding.BYTE_LIST, "[-1,256]", "byte_invalid"),
        (Encoding.BYTE_LIST, "[1.0]", "byte_invalid"),
        (Encoding.BYTE_LIST, "[true]", "byte_invalid"),
        (Encoding.BYTE_LIST, "[null]", "byte_invalid"),
        (Encoding.BYTE_LIST, '["1"]', "byte_invalid"),
        (Encoding.BYTE_LIST, '"[true]"', "byte_invalid"),
        (Encoding.BYTE_LIST, '"[1],[2]"', "byte_invalid"),
        (Encoding.BYTE_LIST, '"[1"', "byte_invalid"),
        (Encoding.BYTE_LIST, '""', "byte_invalid"),
        (Encoding.BYTE_LIST, '"5"', "byte_invalid"),
        (Encoding.BYTE_LIST, "5", "token_unexpected"),
        (Encoding.BYTE_LIST, "{}", "token_unexpected"),
        (Encoding.HEX, '"0x1"', "hex_invalid"),
        (Encoding.HEX, '"0x0x61"', "hex_invalid"),
    ],
)
def test_values_that_are_not_bytes_fail(encoding: Encoding, token: str, reason: str) -> None:
    for tokens in ([token], ["null", token]):
        assert [failure.reason for failure in typed(tokens, encoding, ColumnType("blob")).failures] == [reason]


def test_bytes_have_no_meaning_for_numbers() -> None:
    for encoding, written in FORMS[:-1]:  # but text in a character set has
        result = typed([json.dumps(written(b"1"))], encoding, ColumnType("int"))
        assert [failure.reason for failure in result.failures] == ["target_unsupported"]
