# SPDX-License-Identifier: Apache-2.0
"""Random logs of DTS records: following them in columns gives what following them one by one gives."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from airflow_provider_cdc.core.formats.common.record_group_runs import SliceColumns
from airflow_provider_cdc.core.formats.common.record_groups import SliceGroups, whole_groups
from airflow_provider_cdc.core.formats.contract import Headers, Records
from airflow_provider_cdc.core.formats.dts import slices as dts_slices
from airflow_provider_cdc.core.formats.dts.producers import sender_of, senders_of
from airflow_provider_cdc.core.formats.generated.dts_pb2 import Column, Entries, Envelope
from airflow_provider_cdc.core.formats.registry import open_format
from tests.sample import amount
from tests.unit.core.formats.dts.dts_messages import ID, dml, new, number, text

Pair = tuple[bytes | None, Headers]


def one_by_one(groups: SliceGroups, parts: SliceColumns, add: Callable[[int], None]) -> list[Any]:
    for record in range(len(parts.known)):
        add(record)
    return []


def log(chance: random.Random) -> list[Pair]:
    """Return some shards' groups, with slices lost and sent again, numbers left out and records that are no slice."""
    shards = [None] if chance.random() < 0.4 else [b"a", b"b", b"c"][: chance.randrange(1, 4)]
    numbers = {shard: chance.choice([0, 1, 7, 10**17]) for shard in shards}
    left: dict[bytes | None, list[bytes]] = {shard: [] for shard in shards}
    bare, trouble = chance.random() < 0.1, chance.choice([0, 0, 0.03, 0.15])
    sent: list[Pair] = []
    while len(sent) < chance.randrange(5, 50):
        shard = chance.choice(shards)
        left[shard] = left[shard] or group(chance)
        numbers[shard] += 1
        value, headers = left[shard].pop(0), [("other", b"x")] if chance.random() < trouble else []
        if not bare and chance.random() >= trouble / 3:
            headers.append(("ps", str(numbers[shard]).encode()))
        if shard is not None:
            headers.append(("ShardId", shard))
        sent += (
            spoiled(chance, (value, headers), sent, numbers, shard) if chance.random() < trouble else [(value, headers)]
        )
    return sent


def group(chance: random.Random) -> list[bytes]:
    row = new(number(str(chance.randrange(100))), text("é" * chance.randrange(9)))
    data = Entries(items=[dml([ID, Column(name="note", originalType=b"text")], row)]).SerializeToString()
    total = chance.choice([1, 1, 1, 2, 3, 5])
    cuts = sorted([0, len(data), *(chance.randrange(len(data)) for _ in range(total - 1))])
    slices = [
        Envelope(version=1, total=chance.choice([0, 1]) if total == 1 else total, index=index, data=data[low:high])
        for index, (low, high) in enumerate(pairwise(cuts))
    ]
    return [slice.SerializeToString() for slice in slices]


def spoiled(chance: random.Random, pair: Pair, sent: list[Pair], numbers: dict[Any, int], shard: Any) -> list[Pair]:
    """Return what stands in the log in place of a record."""
    wrong: list[Pair] = [
        (b"\xff", pair[1]),
        (None, pair[1]),
        (b"", pair[1]),
        (Envelope(version=2, total=1).SerializeToString(), pair[1]),
        (Envelope(version=1, total=2, index=2**31).SerializeToString(), pair[1]),
        (Envelope(version=1, total=2**32 - 1).SerializeToString(), pair[1]),
        (Envelope(version=1, total=1, data=b"\x0a\xff").SerializeToString(), pair[1]),
        (pair[0], [("ps", b"x")]),
        (pair[0], [("ps", b"1" * 20)]),
        (pair[0], [("ps", None)]),
        (pair[0], None),
    ]
    what = chance.randrange(5)
    if what == 0:
        return []  # lost
    if what == 1:
        numbers[shard] += chance.choice([1, 3])
        return [pair]
    if what == 2:
        return [pair, *(sent[-chance.randrange(1, 6) :] if sent else [])]
    if what == 3:
        numbers[shard] = chance.choice([0, max(0, numbers[shard] - 3)])
        return [pair]
    return [chance.choice(wrong), *([pair] if chance.random() < 0.5 else [])]


def records(pairs: list[Pair], heard: dict[str, int | None]) -> Records:
    count = len(pairs)
    values, headers = [value for value, _ in pairs], [headers for _, headers in pairs]
    return Records("t", 0, list(range(5, 5 + count)), [0] * count, [None] * count, values, headers, heard)


def test_columns_give_what_following_one_by_one_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(11)
    in_columns, wire = dts_slices.follow, open_format("dts-protobuf")
    for _ in range(amount(12, 30)):
        pairs = log(chance)
        heard = {name: chance.choice([None, 0, 1, 7, 10**17]) for name in chance.sample(["", "a", "b"], 2)}
        actual = []
        for way in (in_columns, one_by_one):
            monkeypatch.setattr(dts_slices, "follow", way)
            batch = wire.decode(records(pairs, heard))
            batch.validate(full=True)
            actual.append(batch.to_pylist())
        assert actual[0] == actual[1]
        monkeypatch.setattr(dts_slices, "follow", in_columns)
        again = []
        for stretch in whole_groups(cut(chance, records(pairs, {})), wire):
            again += wire.decode(stretch).to_pylist()
        assert again == wire.decode(records(pairs, {})).to_pylist()


def cut(chance: random.Random, whole: Records) -> list[Records]:
    bounds = sorted({0, len(whole), *(chance.randrange(len(whole)) for _ in range(4))})
    names = ("offsets", "timestamps", "keys", "values", "headers")
    return [
        replace(whole, **{name: getattr(whole, name)[low:high] for name in names}) for low, high in pairwise(bounds)
    ]


def test_a_log_without_faults_needs_no_record_one_by_one_but_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(12)
    values = [value for _ in range(200) for value in group(chance)]
    taken: list[int] = []
    real = dts_slices.follow

    def noting(groups: SliceGroups, parts: SliceColumns, add: Callable[[int], None]) -> list[Any]:
        def note(record: int) -> None:
            taken.append(record)
            add(record)

        return real(groups, parts, note)

    monkeypatch.setattr(dts_slices, "follow", noting)
    headers: list[Headers] = [[("ps", str(index + 1).encode())] for index in range(len(values))]
    pairs = list(zip(values, headers, strict=True))
    open_format("dts-protobuf").decode(records(pairs, {"": 0}))
    assert taken == []
    open_format("dts-protobuf").decode(records(pairs[len(group(random.Random(12))) :], {}))
    assert len(taken) <= 5


@pytest.mark.parametrize("width", [0, 1, 2, 3])
def test_headers_of_many_records_show_what_each_shows(width: int) -> None:
    chance = random.Random(width)
    texts = [b"1", b"007", b"18446744073709551615", b"9" * 18, b"1" * 19, b"x", b"", b"-1", "٣".encode(), b"\xff", None]
    for _ in range(amount(30, 75)):
        names = [chance.choice(["ps", "ShardId", "x"]) for _ in range(width)]
        usual = chance.random() < 0.5
        headers: list[Headers] = []
        for _ in range(chance.randrange(1, 6)):
            values = [b"%d" % chance.randrange(99) if usual else chance.choice(texts) for _ in names]
            headers.append(None if chance.random() < 0.05 else list(zip(names, values, strict=True)))
        senders = senders_of(headers, len(headers))
        for index, expected in enumerate(map(sender_of, headers)):
            assert bool(senders.known[index]) == isinstance(expected, tuple)
            if isinstance(expected, tuple):
                name, count = expected
                assert senders.names[senders.sender[index]] == name
                assert senders.number[index] == (-1 if count is None or count >= 10**18 else count)
