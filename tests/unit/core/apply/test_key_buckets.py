# SPDX-License-Identifier: Apache-2.0
"""Keys are divided into buckets the same way in every process, however they are read."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, time
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from airflow_provider_cdc.core.apply.key_buckets import bucket_numbers, net_events, newest_events
from airflow_provider_cdc.core.formats.registry import open_format

_VALUES: list[tuple[list[Any], pa.DataType]] = [
    ([0, 1, -1, 2**62], pa.int64()),
    (["", "a", "ä", "a" * 300], pa.string()),
    ([b"", b"\x00", b"\x00\x00"], pa.binary()),
    ([Decimal("1.50"), Decimal("-0.01")], pa.decimal128(10, 2)),
    ([Decimal(10) ** 50], pa.decimal256(60)),
    ([date(2020, 1, 1)], pa.date32()),
    ([datetime(2020, 1, 1, 1, 2, 3, 4)], pa.timestamp("us")),
    ([time(1, 2, 3)], pa.time64("us")),
    ([0.0, -0.0, 1.5], pa.float32()),
    ([True, False], pa.bool_()),
]


@pytest.mark.parametrize(("values", "kind"), _VALUES, ids=[str(kind) for _, kind in _VALUES])
def test_a_key_has_one_bucket_whatever_is_read_with_it(values: list[Any], kind: pa.DataType) -> None:
    values = [*values, None]
    together = bucket_numbers(pa.table({"k": pa.array(values * 2, kind)}), 1000)
    pieces = pa.table({"k": pa.chunked_array([pa.array([value], kind) for value in values], kind)})
    assert together.tolist() == bucket_numbers(pieces, 1000).tolist() * 2
    assert bucket_numbers(pieces.slice(1), 1000).tolist() == together.tolist()[1 : len(values)]


def test_every_column_of_the_key_counts() -> None:
    keys = pa.table({"a": [1, 1, 2, 2], "b": ["x", "y", "x", "y"]})
    assert len(set(bucket_numbers(keys, 1_000_000).tolist())) == 4


@pytest.mark.parametrize("step", [1, 2, 10, 1024])
def test_buckets_of_numbers_in_sequence_are_alike_in_size(step: int) -> None:
    keys = pa.table({"id": np.arange(0, 40_000 * step, step)})
    sizes = np.bincount(bucket_numbers(keys, 4), minlength=4).tolist()
    assert sum(sizes) == 40_000
    assert min(sizes) > 9_000


@pytest.mark.parametrize("shuffled", [False, True])
def test_the_newest_event_of_each_key_is_found_in_whatever_order_parts_come(shuffled: bool) -> None:
    random = Random(7)
    parts: list[list[dict[str, Any]]] = [[] for _ in range(4)]
    content: dict[int, int | None] = {}  # row by key, None where it is gone
    for number in range(400):
        key, moved = random.randrange(30), random.randrange(30)
        part = parts[random.randrange(4) if shuffled else number // 100]
        row = {"topic": "t", "partition": 0, "offset": number, "index": 0, "position": f"{number:06d}", "row": number}
        op = random.choice(["insert", "update", "delete"])
        if op == "delete" or (op == "update" and moved != key):
            part.append({"key_0": key, **row, "op": op, "fills": False})
            content[key] = None
        if op != "delete":
            key = moved if op == "update" else key
            part.append({"key_0": key, **row, "op": op, "fills": True})
            content[key] = number
    events = pa.Table.from_pylist([event for part in parts for event in part])
    numbers, doubtful = newest_events(events, open_format("debezium-json", {}))
    assert not len(doubtful)
    last = events.take(pa.array(numbers))
    newest = zip(*(last.column(name).to_pylist() for name in ("key_0", "row", "fills")), strict=True)
    assert {key: row if fills else None for key, row, fills in newest} == content
    assert last.num_rows == len(content)


@pytest.mark.parametrize("seed", range(10))
def test_of_equal_rows_one_goes_for_each_that_is_removed(seed: int) -> None:
    chance, events, count = Random(seed), list[dict[str, Any]](), Counter[int]()
    for number in range(200):
        digest, op = chance.randrange(12), chance.choice(["insert", "delete", "update", "snapshot"])
        position = "s" if op == "snapshot" else f"{number:06d}"
        signs = {"insert": [True], "snapshot": [True], "delete": [False], "update": [True, False]}[op]
        sent = 1 if op == "snapshot" else chance.choice([1, 1, 1, 2, 3])
        for fills in signs:
            row = digest if fills else (digest + number) % 12  # before an update
            count[row] += 1 if fills else -1
            again = {"key_0": b"%d" % row, "key_1": b"%d" % row, "fills": fills, "op": op, "position": position}
            events += [{**again, "topic": "t", "partition": copy, "offset": number, "index": 0} for copy in range(sent)]
    chance.shuffle(events)
    index, settled = net_events(pa.Table.from_pylist(events), open_format("debezium-json", {}))
    left = Counter({row: 0 for row in count})
    for one in index.tolist():
        left[int(events[one]["key_0"])] += 1 if events[one]["fills"] else -1
    assert left == count
    assert len(index) == sum(map(abs, count.values()))  # none is both added and removed
    once = {(event["key_0"], event["fills"], event["position"]) for event in events if event["op"] != "snapshot"}
    added = sum(fills for _, fills, _ in once) + sum(event["op"] == "snapshot" for event in events)
    assert settled == added - sum(events[one]["fills"] for one in index.tolist())


def test_no_keys_have_no_buckets() -> None:
    assert bucket_numbers(pa.table({"id": pa.chunked_array([], pa.int64())}), 3).tolist() == []
