# SPDX-License-Identifier: Apache-2.0
"""Protobuf messages as Arrow columns: the same as python-protobuf reads, whatever the bytes."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message import DecodeError, Message

from airflow_provider_cdc.core.formats.common.protobuf_columns import MessageReader
from airflow_provider_cdc.core.formats.generated.canal_entry_pb2 import (
    Column,
    Entry,
    Header,
    Pair,
    RowChange,
    RowData,
)

GROUP_START = b"\x7b"  # of field 15
ROWS = RowChange(
    eventType=1,
    isDdl=False,
    rowDatas=[
        RowData(
            beforeColumns=[Column(name="a", value="é\0😀", isNull=False), Column(index=-1, sqlType=-6, isNull=True)],
            afterColumns=[Column(props=[Pair(key="k", value="v")])],
        ),
        RowData(),
    ],
).SerializeToString()


def oracle(message: Message) -> dict[str, Any]:
    """Return what python-protobuf makes of a message."""
    values: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.is_repeated:
            values[field.name] = [oracle(item) if field.message_type else item for item in value]
        elif field.has_presence and not message.HasField(field.name):
            values[field.name] = None
        else:
            values[field.name] = oracle(value) if field.message_type else value
    return values


def test_columns_are_what_protobuf_reads() -> None:
    batch, malformed = MessageReader(RowChange).read(pa.array([ROWS, b""]))
    assert batch.to_pylist() == [oracle(RowChange.FromString(data)) for data in (ROWS, b"")]
    assert not malformed.any()


def test_an_absent_field_with_presence_is_null_and_one_written_as_zero_is_zero() -> None:
    batch, _ = MessageReader(Entry).read(pa.array([b"", b"\x10\x00"]))
    assert batch.column("entryType").to_pylist() == [None, 0]


def test_an_enum_number_that_is_not_known_stays() -> None:
    batch, _ = MessageReader(Entry).read(pa.array([b"\x10\x63"]))
    assert batch.column("entryType").to_pylist() == [99]


def test_only_the_named_fields_are_read() -> None:
    reader = MessageReader(
        RowChange, {"RowChange": {"isDdl", "rowDatas"}, "RowData": {"beforeColumns"}, "Column": {"isNull"}}
    )
    batch, malformed = reader.read(pa.array([ROWS]))
    assert batch.to_pylist() == [
        {
            "isDdl": False,
            "rowDatas": [{"beforeColumns": [{"isNull": False}, {"isNull": True}]}, {"beforeColumns": []}],
        }
    ]
    assert not malformed.any()


def test_malformed_messages_are_named_and_their_neighbours_read() -> None:
    good = Entry(header=Header(logfileName="f")).SerializeToString()
    invalid_utf8, cut = b"\x0a\x03\x12\x01\xff", good[:-1]
    data = [good, invalid_utf8, good, good, cut, good, b"\xff", b"\xff"]
    batch, malformed = MessageReader(Entry).read(pa.array(data))
    assert malformed.tolist() == [value is not good for value in data]
    assert [row["header"] is not None for row in batch.to_pylist()] == [value is good for value in data]


@pytest.mark.parametrize("depth", [4000, 50_000, 2_000_000])
def test_deeply_nested_unknown_groups_do_not_end_the_process(depth: int) -> None:
    _, malformed = MessageReader(Entry).read(pa.array([GROUP_START * depth, b"\x10\x02"]))
    assert malformed.tolist() == [True, False]


def test_a_length_that_no_message_can_have_is_malformed() -> None:
    for length in (b"\xff" * 9 + b"\x01", b"\xf6" + b"\xff" * 8 + b"\x01"):
        _, malformed = MessageReader(Entry).read(pa.array([b"\x1a" + length + b"abc", b"\x10\x02"]))
        assert malformed.tolist() == [True, False]


def test_bytes_that_protobuf_reads_give_the_same_columns_and_others_nothing_worse_than_malformed() -> None:
    chance = random.Random(3)
    data = [ROWS[:end] for end in range(len(ROWS))]
    for _ in range(3000):
        changed = bytearray(ROWS)
        for _ in range(chance.randint(1, 3)):
            index = chance.randrange(len(changed))
            match chance.randrange(3):
                case 0:
                    changed[index] = chance.randrange(256)
                case 1:
                    del changed[index : index + chance.randint(1, 9)]
                case _:
                    changed[index:index] = chance.randbytes(chance.randint(1, 5))
        data.append(bytes(changed))
    batch, malformed = MessageReader(RowChange).read(pa.array(data))
    batch.validate(full=True)
    for value, row, bad in zip(data, batch.to_pylist(), malformed, strict=True):
        try:
            expected = oracle(RowChange.FromString(value))
        except DecodeError:
            continue
        assert not bad
        assert row == expected
