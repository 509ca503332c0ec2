# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from functools import partial

import pytest

import airflow_provider_cdc.core.formats.common.joined_partitions as module
from airflow_provider_cdc.core.formats.common.clock_positions import ClockPositions
from airflow_provider_cdc.core.formats.common.joined_partitions import decode_joined, joined_partitions, partition_runs
from airflow_provider_cdc.core.formats.common.record_faults import decode_all
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.registry import open_format


def records(topic: str, partition: int, start: int, *values: bytes | None) -> Records:
    """Return records of consecutive offsets."""
    count = len(values)
    offsets = list(range(start, start + count))
    return Records(topic, partition, offsets, [1_000 + offset for offset in offsets], [None] * count, list(values))


def message(table: str, number: int, second: int = 0) -> bytes:
    """Return an insert as Canal writes it."""
    members = {"database": "shop", "table": table, "type": "INSERT", "isDdl": False, "es": 1_000 * second, "ts": 5_000}
    return json.dumps({**members, "data": [{"id": str(number)}], "old": None}).encode()


decode = partial(decode_all, open_format("canal-json"), reopen=partial(open_format, "canal-json"))


def test_few_records_wait_for_others_and_many_are_decoded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH_RECORDS", 4)
    parts = [records(str(n), 0, 0, *[b"{}"] * count) for n, count in enumerate([1, 2, 1, 9, 3])]
    together = [[part.topic for part in some] for some in joined_partitions(parts)]
    assert together == [["0", "1", "2"], ["3"], ["4"]]


def test_large_records_are_decoded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH_BYTES", 100)
    parts = [records("a", 0, 0, b"x" * 99, None), records("b", 0, 0, b"x"), records("a", 0, 2, b"x")]
    assert [list(map(len, some)) for some in joined_partitions(parts)] == [[2, 1], [1]]


def test_a_source_without_records_gives_nothing() -> None:
    assert list(joined_partitions([])) == []


def test_changes_keep_the_places_of_their_records() -> None:
    parts = [
        records("a", 1, 70, message("t", 1), None, b"broken"),
        records("b", 0, 0),
        records("b", 2, 5_000_000_000, message("u", 2)),
        records("a", 1, 73, message("t", 3)),
    ]
    changes = decode_joined(decode, parts).to_pylist()
    assert [(c["topic"], c["partition"], c["offset"], c["kind"]) for c in changes] == [
        ("a", 1, 70, "row"),
        ("a", 1, 72, "error"),
        ("b", 2, 5_000_000_000, "row"),
        ("a", 1, 73, "row"),
        ("a", 1, 71, "ignored"),
    ]
    assert [change["kafka_time"].timestamp() for change in changes[:2]] == [1.070, 1.072]
    assert changes[1]["raw"] == b"broken"


def test_records_without_any_give_no_changes() -> None:
    changes = decode_joined(decode, [records("a", 0, 0), records("b", 0, 0)])
    assert len(changes) == 0 and list(partition_runs(changes)) == []


def test_runs_are_those_of_one_topic_and_partition() -> None:
    parts = [records(*where, message("t", 1), message("t", 2)) for where in [("a", 0, 0), ("a", 1, 0), ("b", 1, 0)]]
    again = records("a", 0, 2, message("t", 3))
    runs = [run.to_pylist() for run in partition_runs(decode_joined(decode, [*parts, again]))]
    assert [(run[0]["topic"], run[0]["partition"], len(run)) for run in runs] == [
        ("a", 0, 2),
        ("a", 1, 2),
        ("b", 1, 2),
        ("a", 0, 1),
    ]


def test_clocks_of_partitions_that_are_decoded_together_run_apart() -> None:
    parts = [
        records("a", 0, 0, message("t", 1, 9)),
        records("b", 0, 0, message("u", 1, 1)),
        records("a", 0, 1, message("t", 2, 2)),  # its source time runs back: the partition's clock does not
        records("b", 0, 1, message("u", 2, 2)),
    ]
    alone, together = ClockPositions(), ClockPositions()
    stated = [alone.fill(decode(part)).column("position")[0].as_py() for part in parts]
    assert together.fill(decode_joined(decode, parts)).column("position").to_pylist() == stated
    assert together.clocks() == alone.clocks()
