# SPDX-License-Identifier: Apache-2.0
"""Thousands of random DTS rows: the columns give what reading message by message, value by value, gives."""

from __future__ import annotations

import json
import random
from base64 import b64encode
from itertools import pairwise
from typing import Any

from airflow_provider_cdc.core.formats.common.record_groups import whole_groups
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.generated.dts_pb2 import (
    Column,
    Data,
    DataType,
    DMLType,
    Entries,
    Entry,
    Envelope,
)
from airflow_provider_cdc.core.formats.registry import open_format
from tests.sample import TIMES

CODECS = {"utf8": "utf-8", "utf8mb4": "utf-8", "": "utf-8", "gbk": "gbk", "latin1": "cp1252"}
KINDS = ["int(11)", "int(10) unsigned", "decimal(10,2)", "varchar(20)", "text", "blob", "json", "timestamp", "datetime"]


class Row(Exception):
    """A row that is refused."""


def token(kind: str, data: Data) -> Any:
    """Return a value by docs/wire/tencent-dts.md 3."""
    if data.dataType == DataType.NIL:
        return None
    if kind.startswith(("int", "decimal")):
        if data.sv.startswith("-") and "unsigned" in kind:
            raise Row
        return data.sv
    if kind == "blob":
        return b64encode(data.bv).decode()
    if kind == "json":
        json.loads(data.bv)
        return data.bv.decode()
    return data.bv.decode(CODECS[data.charset])


def image(names: list[str], kinds: list[str], values: list[Data]) -> dict[str, Any] | None:
    result = {
        name: token(kind, data)
        for name, kind, data in zip(names, kinds, values, strict=True)
        if data.dataType != DataType.NA
    }
    return result or None


def oracle(entry: Entry) -> list[Any]:
    """Return the rows of an entry as (op, before, after), None for one that is refused."""
    event = entry.event.dmlEvent
    columns = [Column.FromString(message) for message in event.columns]
    names = [column.name for column in columns]
    kinds = [column.originalType.decode() for column in columns]
    keys = [column.isKey for column in columns]
    result = []
    for row in event.rows:
        old, new = list(row.oldColumns), list(row.newColumns)
        if event.dmlEventType == DMLType.UPDATE and len(old) == len(new):
            new = [a if b.dataType == DataType.NA else b for a, b in zip(old, new, strict=True)]
        try:
            for values, needed in ((old, event.dmlEventType != 0), (new, event.dmlEventType != 2)):
                if len(values) != (len(names) if needed else 0):
                    raise Row
                absent = [data.dataType == DataType.NA for data in values]
                if any(absent) and event.dmlEventType != 0 and not any(keys):
                    raise Row
                if any(a and k for a, k in zip(absent, keys, strict=False)):
                    raise Row
            images = [image(names, kinds, values) if values else None for values in (old, new)]
            result.append((DMLType.Name(event.dmlEventType).lower(), *images))
        except (Row, UnicodeDecodeError):
            result.append(None)
    return result


def random_value(chance: random.Random, kind: str) -> Data:
    draw = chance.random()
    if draw < 0.1:
        return Data()
    if draw < 0.12:
        return Data(dataType=DataType.NA)
    if kind.startswith(("int", "decimal")):
        return Data(dataType=DataType.INT32, sv=str(chance.choice([0, 7, 123456, -1 if draw > 0.95 else 1])))
    if kind == "blob":
        return Data(dataType=DataType.BYTES, bv=chance.randbytes(chance.randrange(8)))
    if kind == "json":
        return Data(dataType=DataType.BYTES, bv=json.dumps({"a": chance.choice(['"', "é", 1.5])}).encode())
    charset = chance.choice(list(CODECS))
    content = chance.choice(["", "x", 'say "hi"\n', "中文", "a\\b", "z" * 40]).encode(
        "gbk" if charset == "gbk" else "utf-8"
    )
    return Data(dataType=DataType.STRING, charset=charset, bv=b"\xff\xff" if draw > 0.99 else content)


def random_entry(chance: random.Random, number: int) -> Entry:
    entry = Entry()
    entry.header.MergeFrom(type(entry.header)(messageType=2, seqId=number, schemaName="s", tableName="t"))
    event = entry.event.dmlEvent
    event.dmlEventType = chance.randrange(3)
    width = chance.choice([1, 2, 5, 9])
    kinds = [chance.choice(KINDS[:2]) if index == 0 else chance.choice(KINDS) for index in range(width)]
    keyed = chance.random() < 0.8
    for index, kind in enumerate(kinds):
        column = Column(name=f"c{index}", originalType=kind.encode(), isKey=keyed and index == 0)
        event.columns.append(column.SerializeToString())
    for _ in range(chance.randrange(1, 6)):
        row = event.rows.add()
        short = int(chance.random() < 0.02)
        if event.dmlEventType != DMLType.INSERT:
            row.oldColumns.extend(random_value(chance, kind) for kind in kinds[short:])
        if event.dmlEventType != DMLType.DELETE:
            row.newColumns.extend(random_value(chance, kind) for kind in kinds[short:])
    return entry


def sent(chance: random.Random, entries: list[Entry]) -> list[bytes]:
    """Return the records of one group."""
    data = Entries(items=entries).SerializeToString()
    total = chance.choice([1, 1, 1, 2, 4])
    cuts = sorted([0, len(data), *(chance.randrange(len(data)) for _ in range(total - 1))])
    return [
        Envelope(version=1, total=total, index=index, data=data[low:high]).SerializeToString()
        for index, (low, high) in enumerate(pairwise(cuts))
    ]


def stretch(values: list[bytes], first: int = 0) -> Records:
    count = len(values)
    headers = [[("ps", str(first + index + 1).encode())] for index in range(count)]
    return Records("t", 0, list(range(first, first + count)), [0] * count, [None] * count, values, headers)


def test_columns_give_what_single_messages_give_however_the_records_are_cut() -> None:
    chance = random.Random(5)
    values: list[bytes] = []
    expected: list[Any] = []
    for group in range(200 * TIMES):
        entries = [random_entry(chance, group * 10 + index + 1) for index in range(chance.randrange(1, 5))]
        values += sent(chance, entries)
        expected += [row for entry in entries for row in oracle(entry)]
    whole = open_format("dts-protobuf").decode(stretch(values))
    whole.validate(full=True)
    rows = [
        None if c["kind"] == "error" else (c["op"], *(c[n] and json.loads(c[n]) for n in ("before", "after")))
        for c in whole.to_pylist()
        if c["kind"] != "ignored"
    ]
    assert rows == expected
    assert sum(row is None for row in rows) > 50

    wire = open_format("dts-protobuf")
    cuts = sorted({0, len(values), *(chance.randrange(len(values)) for _ in range(60))})
    blocks = [stretch(values[low:high], low) for low, high in pairwise(cuts)]
    parts = [change for block in whole_groups(blocks, wire) for change in wire.decode(block).to_pylist()]
    assert parts == whole.to_pylist()


def test_a_broken_record_changes_nothing_of_the_others() -> None:
    chance = random.Random(9)
    groups = [Entries(items=[random_entry(chance, number + 1)]).SerializeToString() for number in range(100 * TIMES)]
    values = [Envelope(version=1, total=1, data=data).SerializeToString() for data in groups]
    wire = open_format("dts-protobuf")
    alone = [[{**c, "offset": 0} for c in wire.decode(stretch([value])).to_pylist()] for value in values]
    broken: dict[int, bytes] = {}
    for index in chance.sample(range(len(values)), 20 * TIMES):
        value = bytearray(values[index])
        value[chance.randrange(8, len(value))] ^= 1 << chance.randrange(8)
        broken[index] = bytes(value)
    mixed = [broken.get(index, value) for index, value in enumerate(values)]
    actual: dict[int, list[Any]] = {index: [] for index in range(len(values))}
    for change in open_format("dts-protobuf").decode(stretch(mixed)).to_pylist():
        actual[change["offset"]].append({**change, "offset": 0})
    assert all(actual[index] for index in broken)
    assert [actual[index] for index in range(len(values)) if index not in broken] == [
        changes for index, changes in enumerate(alone) if index not in broken
    ]
