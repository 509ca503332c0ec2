# SPDX-License-Identifier: Apache-2.0
"""Tencent DTS: the character sets of a record's texts, one for all of them or several."""

from __future__ import annotations

import json

import pytest

from airflow_provider_cdc.core.formats.generated.dts_pb2 import Column, Data, DataType
from tests.unit.core.formats.dts.dts_messages import ID, changes, dml, new, number, record

NOTE = Column(name="note", originalType=b"text")


@pytest.mark.parametrize(
    "charsets",
    [
        ["utf8mb4", "utf8mb4"],
        ["utf8mb4", "", "utf8mb4"],
        ["gbk", "gbk"],
        ["utf8", "gbk", "utf8"],
        ["gbk", "latin1"],  # together as long as one of another name twice
        [""],
        ["utf8", "utf8utf8"],
    ],
)
def test_texts_are_read_in_their_own_character_set(charsets: list[str]) -> None:
    codecs = {"gbk": "gbk", "latin1": "cp1252"}
    rows = [
        new(number(str(i)), Data(dataType=DataType.STRING, charset=name, bv='é"'.encode(codecs.get(name, "utf-8"))))
        for i, name in enumerate(charsets)
    ]
    actual = changes(record(dml([ID, NOTE], *rows)))
    assert [c["error_code"] or json.loads(c["after"])["note"] for c in actual] == [
        "value.not_text" if name == "utf8utf8" else 'é"' for name in charsets
    ]
