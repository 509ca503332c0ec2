# SPDX-License-Identifier: Apache-2.0
"""Compare the twins ``columnar`` and ``scalar`` on every encoding and type: equal results, and neither ever raises.

This is the one suite over both; the other files here state single results.
"""

from __future__ import annotations

import base64
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.fields import ConversionError, Field
from airflow_provider_cdc.core.values.images import type_images
from airflow_provider_cdc.core.values.scalar.convert import convert_value
from airflow_provider_cdc.core.values.types import TypeOptions, arrow_type
from tests.sample import amount

TYPES = [
    ColumnType("tinyint"),
    ColumnType("tinyint", 1),
    ColumnType("int"),
    ColumnType("bigint"),
    ColumnType("bigint", unsigned=True),
    ColumnType("decimal", 5, 2),
    ColumnType("decimal", 38, 10),
    ColumnType("decimal", 38, 0),
    ColumnType("decimal", 65, 3),
    ColumnType("float"),
    ColumnType("double"),
    ColumnType("date"),
    ColumnType("datetime"),
    ColumnType("datetime", 3),
    ColumnType("timestamp", 6),
    ColumnType("time", 3),
    ColumnType("year"),
    ColumnType("bit", 1),
    ColumnType("bit", 12),
    ColumnType("bit", 64),
    ColumnType("varchar", 10),
    ColumnType("enum", labels=("a", "b,c", "x\\,y", "x,y")),
    ColumnType("set", labels=("a", "b,c", "x", "é")),
    ColumnType("set", labels=tuple(f"m{i}" for i in range(64))),
    ColumnType("json"),
    ColumnType("binary", 4),
    ColumnType("varbinary", 4),
    ColumnType("point"),
    ColumnType("vector", 3),
]
# numbers and texts of every kind that an encoding might confuse
TOKENS = (Path(__file__).parent / "tokens.txt").read_bytes().splitlines()
TOKENS += [b'"\xff"', b'"\xc0\x80"', b'"\xed\xa0\x80"', b'"a\xff\xfeb"', b'{"wkb":"\xff"}']


ZONED = {
    Encoding.TEXT,
    Encoding.ISO_TEXT,
    Encoding.EPOCH_MILLIS,
    Encoding.EPOCH_MICROS,
    Encoding.EPOCH_SECONDS,
    Encoding.EPOCH_MILLIS_TEXT,
    Encoding.MIXED_DATETIME,
}


def fields() -> list[Field]:
    result = []
    for column in TYPES:
        targets = {arrow_type(column), arrow_type(column, TypeOptions(True, "string"))}
        result += [
            Field(encoded, column, target)
            for target in targets
            for encoding in Encoding
            for encoded in variants(encoding)
        ]
    return result


def variants(encoding: Encoding) -> list[Encoded]:
    if encoding is Encoding.DECIMAL_BASE64:
        return [Encoded("c", encoding, scale) for scale in (0, 2, 40)]
    if encoding is Encoding.CHARSET_BYTES:
        return [Encoded("c", encoding, charset=name) for name in ("utf8mb4", "latin1", "gbk", "utf16", "swahili", None)]
    if encoding in ZONED:
        return [Encoded("c", encoding, zone=zone) for zone in (None, "Europe/Berlin", "-09:30", "Mars/Olympus")]
    return [Encoded("c", encoding)]


def one_by_one(token: bytes, field: Field) -> tuple[list[Any], str | None, Counter[str]]:
    lost: Counter[str] = Counter()
    try:
        value, reason = convert_value(token, field, lost), None
    except ConversionError as error:
        value, reason = None, error.reason.value
    return comparable(pa.array([value], field.target)), reason, lost


def comparable(column: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(column.type) or pa.types.is_date32(column.type):
        column = column.view(pa.int64() if pa.types.is_timestamp(column.type) else pa.int32())
    if pa.types.is_floating(column.type):
        column = column.cast(pa.float64())
    values: list[Any] = column.to_pylist()
    return ["NaN" if value != value else value for value in values]  # NaN is not equal to itself


@pytest.mark.parametrize("encoding", Encoding)
def test_columnar_equals_scalar(encoding: Encoding) -> None:
    encoded_so = [field for field in fields() if field.encoded.encoding is encoding]
    for field in random.Random(encoding).sample(encoded_so, amount(1, 2)):
        for token in TOKENS:
            typed = type_images(pa.array([b'{"x":1,"c":' + token + b"}"], pa.binary()), [field])
            reason = typed.failures[0].reason if typed.failures else None
            if reason == "image_invalid":
                assert token[:1] in (b'"', b"{")
                continue
            got = (comparable(typed.columns[0]), reason, Counter(typed.lossy))
            assert got == one_by_one(token, field), (field, token)
            assert typed.absent == [None]


def test_a_batch_of_everything_equals_its_rows() -> None:
    rnd = random.Random(5)
    for field in rnd.sample(fields(), amount(2, 4)):
        tokens = [rnd.choice(TOKENS) for _ in range(600)]
        images = [b'{"c":' + token + b"}" if rnd.random() < 0.95 else b"{}" for token in tokens]
        whole = type_images(pa.array(images, pa.binary()), [field])
        single = [type_images(pa.array([image], pa.binary()), [field]) for image in images]
        assert comparable(whole.columns[0]) == [comparable(typed.columns[0])[0] for typed in single]
        assert [(f.row, f.reason) for f in whole.failures] == [
            (row, typed.failures[0].reason) for row, typed in enumerate(single) if typed.failures
        ]
        assert whole.absent[0].to_pylist() == [image == b"{}" for image in images]
        lost: Counter[str] = Counter()
        for typed in single:
            lost.update(typed.lossy)
        assert whole.lossy == dict(lost)


WIDE = [
    Field(Encoded("id", Encoding.NUMBER), ColumnType("bigint"), pa.int64()),
    Field(Encoded("náme \U0001f600", Encoding.TEXT), ColumnType("varchar", 50), pa.string()),
    Field(Encoded("d", Encoding.DECIMAL_BASE64, 2), ColumnType("decimal", 10, 2), pa.decimal128(10, 2)),
    Field(Encoded("ts", Encoding.ZONED_TEXT), ColumnType("timestamp"), pa.timestamp("us", "UTC")),
    Field(Encoded("b", Encoding.BASE64), ColumnType("varbinary", 50), pa.binary()),
    Field(Encoded("w", Encoding.NUMBER), ColumnType("double"), pa.float64()),
    Field(Encoded("n", Encoding.NUMBER), ColumnType("decimal", 20, 4), pa.decimal128(20, 4)),
    Field(Encoded("t", Encoding.TIME_MICROS), ColumnType("time", 6), pa.string()),
]


def image(rnd: random.Random) -> bytes:
    amount = rnd.randrange(-(10**9), 10**9).to_bytes(5, "big", signed=True)
    members = {
        "id": rnd.randrange(-(2**63), 2**63),
        "náme \U0001f600": rnd.choice(["", "a", "é😀", "\0", 'q"\\']) * rnd.randrange(4),
        "d": base64.b64encode(amount).decode(),
        "ts": "2023-11-30T12:34:56.12346Z",
        "b": base64.b64encode(rnd.randbytes(rnd.randrange(6))).decode(),
        "w": rnd.uniform(-1e6, 1e6),
        "n": rnd.choice([0, 1.5, -12345.6789]),
        "t": rnd.randrange(-3_020_399_999_999, 3_020_400_000_000),
        "unknown": [1, {"x": None}],
    }
    return json.dumps(members, ensure_ascii=rnd.random() < 0.5).encode()


@pytest.mark.parametrize("seed", range(amount(2, 4)))
def test_damaged_images_never_raise(seed: int) -> None:
    rnd = random.Random(seed)
    good = [image(rnd) for _ in range(200)]
    damaged = [damage(text, rnd) if i % 2 else text for i, text in enumerate(good)]
    before = type_images(pa.array(good, pa.binary()), WIDE)
    after = type_images(pa.array(damaged, pa.large_binary()), WIDE)
    assert before.failures == []
    assert {failure.row for failure in after.failures} <= set(range(1, 200, 2))
    for left, right in zip(before.columns, after.columns, strict=True):
        assert comparable(left)[::2] == comparable(right)[::2]  # neighbours of a damaged image are untouched
    failed = {failure.row for failure in after.failures}
    for row, text in enumerate(damaged):
        try:
            json.loads(text)
        except ValueError:
            readable = False
        else:
            readable = True
        assert readable or row in failed or text_is_valid_without_unused_parts(text)


def text_is_valid_without_unused_parts(text: bytes) -> bool:
    """Return whether a text is invalid only by broken UTF-8 in a member that no field reads."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return True
    return False


def damage(text: bytes, rnd: random.Random) -> bytes:
    data = bytearray(text)
    for _ in range(rnd.randrange(1, 4)):
        at = rnd.randrange(len(data))
        kind = rnd.randrange(5)
        if kind == 0:
            data[at] = rnd.randrange(256)
        elif kind == 1:
            del data[at : at + rnd.randrange(1, 5)]
        elif kind == 2:
            data[at:at] = rnd.randbytes(2)
        elif kind == 3:
            data[at:at] = rnd.choice([b'"', b"0", b"-", b"e", b"}", b"null", b"\\u0000", b"=", b"."])
        else:
            del data[at:]
        if not data:
            break
    return bytes(data)
