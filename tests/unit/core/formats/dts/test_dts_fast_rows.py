# SPDX-License-Identifier: Apache-2.0
"""Rows of Tencent DTS found in their messages' bytes are those that are read field by field."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.dts import dts_protobuf
from airflow_provider_cdc.core.formats.dts import entries as dts_entries
from airflow_provider_cdc.core.formats.generated.dts_pb2 import Column, Data, DataType, DMLType, RowChange
from tests.unit.core.formats.dts.dts_messages import ABSENT, ID, NULL, dml, number, raw, record, sliced, text

NAMES = ["int(11)", "varchar(9)", "timestamp", "bigint(20) unsigned", "json", "blob", "point2"]
TEXTS = ["", "a", 'é"\\\n😀', "x" * 126, "y" * 127, "z" * 128, "w" * 16_383, "v" * 16_384, "2021-05-17 07:22:42+00:00"]
Values = Callable[[random.Random], Data]


def usual(chance: random.Random) -> Data:
    return chance.choice([NULL, text(chance.choice(TEXTS[:7])), number(str(chance.randrange(10**9)))])


def any_value(chance: random.Random) -> Data:
    others = [ABSENT, raw(b"\xff\0"), number("-1"), number("1x"), number(""), text(b"\xff"), text(b"\xfe"), text("{}")]
    others += [text("é".encode("gbk"), "gbk"), text("a", "utf8mb4"), text("b", ""), number("1", 99), number("7" * 130)]
    others += [Data(dataType=DataType.STRING, sv="1"), text(chance.choice(TEXTS))]
    return usual(chance) if chance.random() < 0.9 else chance.choice(others)


def records_of(chance: random.Random, values: Values) -> list[bytes]:
    """Return records of some groups, one of them cut."""
    groups = []
    for _ in range(chance.randrange(2, 9)):
        columns = [ID, *(Column(name=f"c{i}", originalType=t.encode()) for i, t in enumerate(NAMES[:4]))]
        if values is any_value and chance.random() < 0.3:
            columns += [Column(name="q", originalType=chance.choice(NAMES).encode())]
        row = [[[number("7")] + [values(chance) for _ in columns[1:]] for _ in "ab"] for _ in range(3)]
        op = chance.choice([DMLType.INSERT, DMLType.UPDATE, DMLType.DELETE])
        old = op != DMLType.INSERT
        rows = [RowChange(oldColumns=a if old else [], newColumns=b if op != DMLType.DELETE else []) for a, b in row]
        groups.append(dml(columns, *rows, op=op))
    return [*(record(group) for group in groups[1:]), *sliced(2, groups[0])]


def decoded(values: list[bytes], passed: int = 0) -> list[dict[str, object]]:
    """Return changes.

    :param passed: how often plain rows are not looked for.
    """
    wire = dts_protobuf.WireFormat()
    wire._passed = passed
    count = len(values)
    batch = wire.decode(Records("t", 0, list(range(count)), [1] * count, [None] * count, values))
    batch.validate(full=True)
    result: list[dict[str, object]] = batch.to_pylist()
    return result


@pytest.mark.parametrize("seed", range(60))
def test_rows_of_any_kind_are_as_those_read_field_by_field(seed: int) -> None:
    chance = random.Random(seed)
    values = records_of(chance, any_value if seed % 3 else usual)
    for _ in range(chance.randrange(3) if seed % 2 else 0):
        broken, index = chance.randrange(len(values)), chance.randrange(40, 200)
        value = bytearray(values[broken])
        value[index % len(value)] = chance.randrange(256)
        values[broken] = bytes(value)
    assert decoded(values) == decoded(values, passed=99)


def test_usual_rows_are_not_read_field_by_field(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(4)
    columns = [ID, *(Column(name=f"c{i}", originalType=b"varchar(9)") for i in range(3))]
    rows = [RowChange(newColumns=[number("1"), text("é"), NULL, text(chance.choice(TEXTS[:7]))]) for _ in range(50)]
    values = [record(dml(columns, *rows))]
    expected = decoded(values, passed=1)
    monkeypatch.delattr(dts_entries, "Rows")
    assert decoded(values) == expected


@pytest.mark.parametrize("together", [1, 300, 3_000])
def test_stretches_of_records_do_not_show(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(together)
    values = [value for _ in range(6) for value in records_of(chance, any_value)]
    whole = decoded(values)
    monkeypatch.setattr(dts_protobuf, "_TOGETHER", together)
    assert decoded(values) == whole
    assert isinstance(dts_protobuf.WireFormat().decode(Records("t", 0, [], [], [], [])), pa.RecordBatch)
