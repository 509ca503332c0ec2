# SPDX-License-Identifier: Apache-2.0
"""Test geometries as tools send them; the stored bytes are HEX(g) and the WKB is ST_AsBinary(g) of MariaDB 10.11."""

from __future__ import annotations

import base64
import json

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.images import Field, Typed, type_images

XY = "0000000000000000"
ONE, TWO, FOUR = "000000000000F03F", "0000000000000040", "0000000000001040"
POINT = "0101000000" + ONE + TWO
LINE = "010200000002000000" + XY + XY + ONE + ONE
STORED = [
    ("E6100000", POINT),  # 4326
    ("00000000", "010200000003000000" + XY + XY + ONE + ONE + TWO + "000000000000F0BF"),
    ("01000000", "01030000000100000004000000" + XY + XY + FOUR + XY + FOUR + FOUR + XY + XY),
    ("00000001", "010400000002000000" + "0101000000" + ONE + ONE + "0101000000" + TWO + TWO),  # 16777216
    ("00000000", "010700000003000000" + POINT + LINE + "010500000001000000" + LINE),
    ("00000000", "010700000000000000"),
]
BIG_ENDIAN = "0000000001" + "3FF0000000000000" + "4000000000000000"
NONE = ["00", "0101000000", POINT + "00", "0000000000", "E610000002" + POINT[2:], "0108000000" + XY, "01070000000100"]


def token(raw: bytes, encoding: Encoding) -> object:
    if encoding is Encoding.LATIN1_BYTES:
        return raw.decode("latin-1")
    if encoding is Encoding.BYTE_LIST:
        return str([byte - 256 if byte > 127 else byte for byte in raw])
    return raw.hex() if encoding is Encoding.HEX else base64.b64encode(raw).decode()


def typed(raw: list[bytes], encoding: Encoding, column: str = "geometry") -> Typed:
    images = pa.array([json.dumps({"c": token(value, encoding)}) for value in raw])
    return type_images(images, [Field(Encoded("c", encoding), ColumnType(column), pa.binary())])


ENCODINGS = [Encoding.LATIN1_BYTES, Encoding.BYTE_LIST, Encoding.BASE64, Encoding.HEX, Encoding.CHARSET_BYTES]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_srid_before_a_geometry_is_removed(encoding: Encoding) -> None:
    result = typed([bytes.fromhex(srid + wkb) for srid, wkb in STORED], encoding)
    assert result.columns[0].to_pylist() == [bytes.fromhex(wkb) for _, wkb in STORED]
    assert result.failures == []


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_geometry_without_srid_stays(encoding: Encoding) -> None:
    plain = [bytes.fromhex(wkb) for _, wkb in STORED] + [bytes.fromhex(BIG_ENDIAN), b""]
    assert typed(plain, encoding).columns[0].to_pylist() == plain


@pytest.mark.parametrize("hexadecimal", NONE)
def test_bytes_that_are_not_a_geometry_fail(hexadecimal: str) -> None:
    result = typed([bytes.fromhex(hexadecimal)], Encoding.HEX)
    assert [failure.reason for failure in result.failures] == ["geometry_invalid"]


def test_a_text_is_not_a_geometry() -> None:
    images = pa.array(['{"c":"POINT(1 2)"}'])
    result = type_images(images, [Field(Encoded("c", Encoding.TEXT), ColumnType("point"), pa.binary())])
    assert [failure.reason for failure in result.failures] == ["target_unsupported"]


def test_other_binary_columns_keep_their_bytes() -> None:
    raw = bytes.fromhex("".join(STORED[0]))
    assert typed([raw], Encoding.HEX, "blob").columns[0].to_pylist() == [raw]


def test_geometries_within_geometries_have_an_end() -> None:
    nested = bytes.fromhex("010700000001000000") * 5000
    assert [failure.reason for failure in typed([nested], Encoding.HEX).failures] == ["geometry_invalid"]
