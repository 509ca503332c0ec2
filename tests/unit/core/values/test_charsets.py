# SPDX-License-Identifier: Apache-2.0
"""Test text in MySQL's character sets.

``charsets.json`` is what MariaDB 10.11 makes of every sequence of one and two bytes, and of three that begin with 8F in
the EUC sets: how many are one character, and the SHA-256 of lines ``<bytes> <code point>``, both in hexadecimal digits,
ordered by the bytes. Left out are private characters, U+FFFD, and what :data:`UNKNOWN` names.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.fields import ConversionError, Field
from airflow_provider_cdc.core.values.images import Typed, type_images
from airflow_provider_cdc.core.values.shared.charsets import decoder
from airflow_provider_cdc.core.values.types import arrow_type

SERVER = json.loads((Path(__file__).parent / "charsets.json").read_text())
EUC = ("ujis", "eucjpms")
MULTI_BYTE = {"big5", "cp932", "euckr", "gb2312", "gbk", "sjis", *EUC}
# characters of seven pairs that the server itself cannot convert, and IBM's kanji, which Python does not know
UNKNOWN = {"big5": ["a15a", "a1c3", "a1c5", "a1fe", "a240", "a2cc", "a2ce"], "eucjpms": ["8ff3", "8ff4"]}


def sequences(charset: str) -> Iterator[bytes]:
    for first in range(256):
        yield bytes([first])
        if charset in MULTI_BYTE and first > 127:
            for second in range(256):
                yield bytes([first, second])
    if charset in EUC:
        for second in range(128, 256):
            for third in range(256):
                yield bytes([0x8F, second, third])


def character(raw: bytes, charset: str) -> str | None:
    if raw.hex()[:4] in UNKNOWN.get(charset, ()):
        return None
    try:
        text = decoder(charset)(raw)
    except ConversionError:
        return None
    return text if len(text) == 1 and not "\ue000" <= text <= "\uf8ff" else None


@pytest.mark.parametrize("charset", SERVER)
def test_every_character_is_the_servers(charset: str) -> None:
    decoded = {raw: char for raw in sequences(charset) if (char := character(raw, charset))}
    lines = "".join(f"{raw.hex()} {ord(decoded[raw]):x}\n" for raw in sorted(decoded))
    assert [len(decoded), hashlib.sha256(lines.encode()).hexdigest()] == SERVER[charset]


# MySQL manual, "Character Sets, Collations, Unicode"; GB 18030-2005 for A8BC
TEXTS = [
    ("utf8", b"\xe4\xbd\xa0", "你"),
    ("utf8mb3", b"\xe4\xbd\xa0", "你"),
    ("utf8mb4", b"\xf0\x9f\x98\x80", "😀"),
    ("UTF8MB4", b"a\0b", "a\0b"),
    (None, b"\xc3\xa9", "é"),
    ("", b"\xc3\xa9", "é"),
    ("binary", b"\xc3\xa9", "é"),
    ("latin1", b"\x80\x81\xe9", "€\x81é"),
    ("ucs2", b"\x4f\x60\x00a", "你a"),
    ("utf16", b"\xd8\x3d\xde\x00", "😀"),
    ("utf16le", b"\x3d\xd8\x00\xde", "😀"),
    ("utf32", b"\0\1\xf6\0", "😀"),
    ("gb18030", b"\x94\x39\xfc\x36\xc4\xe3", "😀你"),
    ("gb18030", b"\xa8\xbc\x81\x35\xf4\x37\xe1", None),
    ("gb18030", b"\xa8\xbc\x81\x35\xf4\x37", "\u1e3f\ue7c7"),
    ("gbk", b"\xc4\xe3\xba\xc3", "你好"),
    ("big5", b"\xa7\x41\xf9\xd6a\xf9\xdc", "你碁a嫺"),
    ("sjis", b"\x81\x5f\\", "\\\\"),
    ("cp932", b"\x81\x60\x87\x40", "～①"),
    ("ujis", b"\xa1\xc0", "\\"),
    ("eucjpms", b"\xa1\xc1\xad\xa1\x8f\xa2\xb7~", "～①～~"),
    ("utf8mb4", b"\xed\xa0\x80", None),
    ("utf8mb4", b"\xc3", None),
    ("utf16", b"\xd8\x3d", None),
    ("ucs2", b"\xd8\x3d\xde\x00", None),
    ("ucs2", b"a", None),
    ("ascii", b"\xe9", None),
    ("gbk", b"\xff", None),
    ("big5", b"a\xf9", None),
    ("cp932", b"\x80", None),
]


def typed(raw: list[bytes], charset: str | None, column: ColumnType, zone: str | None = None) -> Typed:
    images = [json.dumps({"c": base64.b64encode(value).decode()}) for value in raw]
    encoded = Encoded("c", Encoding.CHARSET_BYTES, charset=charset, zone=zone)
    return type_images(pa.array(images), [Field(encoded, column, arrow_type(column))])


@pytest.mark.parametrize(("charset", "raw", "text"), TEXTS)
def test_text_is_whole_or_fails(charset: str | None, raw: bytes, text: str | None) -> None:
    result = typed([raw, b""], charset, ColumnType("varchar", 9))
    assert result.columns[0].to_pylist() == [text, ""]
    assert [failure.reason for failure in result.failures] == ([] if text is not None else ["text_invalid"])


def test_an_unknown_character_set_fails_even_where_all_is_ascii() -> None:
    assert {failure.reason for failure in typed([b"a", b"b"], "klingon", ColumnType("text")).failures} == {
        "charset_unknown"
    }


def test_text_is_read_by_the_type_of_the_column() -> None:
    assert typed([b"\0-\0" + b"7"], "ucs2", ColumnType("int")).columns[0].to_pylist() == [-7]
    assert typed([b"1.10"], "latin1", ColumnType("decimal", 65, 2)).columns[0].to_pylist() == ["1.10"]
    instant = typed([b"2020-07-01 12:00:00"], "utf8", ColumnType("timestamp"), "Asia/Shanghai").columns[0]
    assert instant.cast(pa.string()).to_pylist() == ["2020-07-01 04:00:00.000000Z"]


def test_binary_columns_take_the_bytes_as_they_are() -> None:
    assert typed([b"\xff\x00", b""], "binary", ColumnType("varbinary", 9)).columns[0].to_pylist() == [b"\xff\0", b""]
    assert typed([b"\xff"], "binary", ColumnType("binary", 3)).columns[0].to_pylist() == [b"\xff\0\0"]
