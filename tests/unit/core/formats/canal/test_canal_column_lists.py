# SPDX-License-Identifier: Apache-2.0
"""Lists of Canal's columns are what protobuf reads of their messages, whether they are like an example or not."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from airflow_provider_cdc.core.formats.canal import column_lists as canal_lists
from airflow_provider_cdc.core.formats.canal import column_templates as canal_templates
from airflow_provider_cdc.core.formats.canal.column_lists import AS_BYTES, KEY, ListReader, Lists
from airflow_provider_cdc.core.formats.generated import canal_entry_pb2 as wire
from tests.sample import amount

Row = list[bytes]
NAMES = ["id", "名", "a" * 40, "j"]
TYPES = ["bigint(20) unsigned", "varchar(255)", "enum('a','b')", "JSON"]
SQL_TYPES = [[-5, 3], [12], [4], [12, 2004, 1111]]
VALUES = ["", "1", "x" * 127, "y" * 128, "漢" * 90, "z" * 16_383, "z" * 16_384, "JSON_SET(", '"\\\0']


def column(index: int, chance: random.Random, values: Sequence[str]) -> wire.Column:
    """Return a column as Canal writes it."""
    column = wire.Column(index=index, name=NAMES[index], mysqlType=TYPES[index], isKey=not index)
    column.sqlType = chance.choice(SQL_TYPES[index])
    column.updated = chance.random() < 0.5
    column.isNull = chance.random() < 0.2
    column.value = "" if column.isNull else chance.choice(values)
    return column


def unusual(message: bytes, chance: random.Random) -> bytes:
    """Return a message that protobuf reads, or not, and that Canal does not write."""
    index = chance.randrange(len(message) + 1)
    # no tag of a group: ptars reads one that ends with another's number, which protobuf refuses
    byte = bytes([chance.choice([byte for byte in range(256) if byte & 7 not in (3, 4)])])
    added = [b"\x42\x01q", b"\x30\x01", b"\x30\x00", b"\x28\x00", b"\x28\x01", b"\x42\x81\x00q", b"\xc2\x00\x01q"]
    added += [b"\x30\x80\x00", b"\x30\x02", b"\x42\x00", b"\x42\x01\xff", b"\x1a\x01n", b"\x52\x01t", b"\x48\x07"]
    added += [b"\x3a\x04\x0a\x02ab", b"\x7b\x7c", b"\x98\x06\x01", b"\x08\x07", b"\x20\x01", b"\x42", b"\x52\x7f"]
    part = chance.choice(added)
    doings = [
        part + message,
        message + part,
        message[:index] + part + message[index:],
        message[:index],
        message[index:],
        message[:index] + byte + message[index + 1 :],
        b"",
    ]
    return chance.choice(doings)


def read(reader: ListReader, rows: list[Row]) -> list[Any]:
    """Return what is read of rows, as :func:`expected` does."""
    half = len(rows) // 2
    parts = [pa.array(part, pa.list_(pa.binary())) for part in (rows[:half], rows[half:])]
    with reader.room() as room:
        try:
            return _results(reader, reader.read(parts, np.zeros(len(rows), np.int64), room))
        except UnicodeDecodeError:  # what is compared is not looked at: who makes texts of it asks again
            return _results(reader, reader.read(parts, None, room))


def _results(reader: ListReader, lists: Lists) -> list[Any]:
    values = [lists.room.data[begin:end].tobytes().decode() for begin, end in lists.bounds.tolist()]
    results = []
    for row, (begin, end) in enumerate(pairwise(lists.offsets.tolist())):
        infos = [tuple(one) for one in reader.infos[lists.infos[row]]]
        result = list(zip(infos, values[begin:end], lists.nulls[begin:end].tolist(), strict=True))
        results.append(None if lists.unreadable[row] else result)
    return results


def expected(row: Row) -> Any:
    """Return what protobuf reads of a row, None if it cannot."""
    try:
        return [_expected(_WITHOUT_TEXTS.FromString(message)) for message in row]
    except (DecodeError, UnicodeDecodeError):
        return None


def _expected(one: Any) -> Any:
    name, kind, value = (text.decode() for text in (one.name, one.mysqlType, one.value))
    as_bytes = one.sqlType in (2004, -4) and kind.lower() == "json"
    return (one.index, name, kind, KEY * one.isKey + AS_BYTES * as_bytes), value, one.isNull


def _without_texts() -> Any:
    """Return Column with bytes for texts: of a field that comes twice, only the last one needs to be a text."""
    file = FileDescriptorProto()
    wire.DESCRIPTOR.CopyToProto(file)
    for message in file.message_type:
        for field in message.field:
            if field.type == FieldDescriptorProto.TYPE_STRING:
                field.type = FieldDescriptorProto.TYPE_BYTES
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(wire.Column.DESCRIPTOR.full_name))


_WITHOUT_TEXTS = _without_texts()


def usual_rows(count: int, chance: random.Random, values: Sequence[str] = VALUES) -> list[Row]:
    return [
        [column(index, chance, values).SerializeToString() for index in range(chance.choice([4, 4, 4, 2, 0]))]
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(amount(2, 6)))
def test_any_columns_are_read_as_protobuf_reads_them(seed: int) -> None:
    chance = random.Random(seed)
    reader = ListReader()
    for _ in range(4):
        rows = usual_rows(chance.choice([5, 150, 500]), chance, VALUES if seed % 2 else ["", "1", "23", "x" * 140])
        for row in chance.sample(rows, len(rows) // 6):
            for index in range(len(row)):
                if chance.random() < 0.5:
                    row[index] = unusual(row[index], chance)
        assert read(reader, rows) == [expected(row) for row in rows]


@pytest.mark.parametrize("seed", range(amount(1, 2)))
def test_every_change_of_a_byte_among_usual_rows_is_seen(seed: int) -> None:
    chance = random.Random(seed)
    one = [column(index, chance, ["7", "seven"]) for index in range(4)]
    good = [message.SerializeToString() for message in one]
    rows = [good] * 100
    for index, message in enumerate(good):
        for at in range(len(message)):
            for byte in (0, 1, 0x28, 0x30, 0x42, 0x80, 0xFF, message[at] ^ 1, message[at] ^ 8):
                changed = message[:at] + bytes([byte]) + message[at + 1 :]
                rows.append([*good[:index], changed, *good[index + 1 :]])
    # each change stands between usual rows
    assert read(ListReader(), rows) == [expected(row) for row in rows]


def test_values_that_are_no_text_make_their_own_row_unreadable_and_no_other() -> None:
    chance = random.Random(1)
    rows = usual_rows(300, chance, ["abc"])
    rows[30] = [message.replace(b"abc", b"a\xffc") for message in rows[30]] or [b"\x42\x01\xff"]
    if expected(rows[30]) is not None:
        rows[30] = [b"\x30\x00\x42\x01\xff"]
    assert read(ListReader(), rows) == [expected(row) for row in rows]


def test_what_is_usual_is_not_read_field_by_field(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(3)
    values = ["", "1", "x" * 127, "y" * 128, "漢" * 90, "z" * 16_383]
    rows = [
        [wire.Column(index=i, name=NAMES[i], mysqlType="text", sqlType=-5, isNull=False, value=chance.choice(values),
                     updated=chance.random() < 0.5).SerializeToString() for i in range(4)]
        for _ in range(3_000)
    ]  # fmt: skip
    reader = ListReader()
    monkeypatch.setattr(reader, "_columns", None)
    assert read(reader, rows) == [expected(row) for row in rows]


def test_names_and_types_too_long_to_compare_are_read_as_well() -> None:
    long = wire.Column(
        name="n", mysqlType="enum(" + ",".join(f"'{i}'" for i in range(900)) + ")", isNull=False, value="4"
    )
    rows = [[long.SerializeToString()]] * 200
    assert canal_templates.template_of(rows[0]) is None
    assert read(ListReader(), rows) == [expected(row) for row in rows]


def test_no_rows_and_rows_without_columns() -> None:
    assert read(ListReader(), []) == []
    assert read(ListReader(), [[]] * 200) == [[]] * 200


def test_stretches_of_columns_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = usual_rows(500, random.Random(9))
    whole = read(ListReader(), rows)
    monkeypatch.setattr(canal_lists, "_TOGETHER", 20)
    assert read(ListReader(), rows) == whole
