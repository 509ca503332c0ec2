# SPDX-License-Identifier: Apache-2.0
"""A range ends where no group of records is open; the rest of the log comes with the next batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from airflow_provider_cdc.batch.planner import end_between_groups
from airflow_provider_cdc.core.formats.contract import Headers, SliceInfo
from airflow_provider_cdc.core.plan.ranges import Range
from airflow_provider_cdc.sources.kafka_reading import KafkaRecord, TopicPartition


class Wire:
    """Records such as ``0/2``, place and total; header ``sender``."""

    def part_of(self, value: bytes | None, headers: Headers) -> SliceInfo | None:
        index, total = (value or b"").decode().split("/")
        return SliceInfo((dict(headers or ()).get("sender") or b"").decode(), None, int(index), int(total))


class Log:
    """Partitions of topic ``t``; a record is ``0/2`` or ``a 0/2`` with its sender, ``-`` a control record."""

    def __init__(self, *partitions: Iterable[str]) -> None:
        self.partitions = [list(texts) for texts in partitions]
        self.reads: list[int] = []

    def read(
        self, windows: Mapping[TopicPartition, tuple[int, int]], count: int
    ) -> dict[TopicPartition, list[KafkaRecord]]:
        self.reads.append(count)
        return {partition: self._records(partition[1], *window)[:count] for partition, window in windows.items()}

    def _records(self, partition: int, start: int, end: int) -> list[KafkaRecord]:
        result = []
        for offset in range(start, end):
            *sender, text = self.partitions[partition][offset].split()
            if text != "-":
                headers = [("sender", name.encode()) for name in sender] or None
                result.append(KafkaRecord("t", partition, offset, 0, None, text.encode(), headers))
        return result


def ends(log: Log, *starts: int, wire: Any = None) -> list[int]:
    """Return where a range of everything from ``starts`` on really ends."""
    begin = {"t": dict(enumerate(starts or [0] * len(log.partitions)))}
    planned = Range(begin, {"t": {i: len(texts) for i, texts in enumerate(log.partitions)}})
    result = end_between_groups(planned, log, wire or Wire(), ["t"])  # type: ignore[arg-type]
    assert result.start == planned.start
    return list(result.end["t"].values())


@pytest.mark.parametrize(
    ("texts", "end"),
    [
        ("0/1 0/1", 2),
        ("0/1 0/2 1/2", 3),
        ("0/1 0/2", 1),
        ("0/1 0/3 1/3", 1),
        ("0/1 - 0/2 -", 2),
        ("0/1 -", 2),
        ("- -", 2),
        ("0/3 1/3", 0),
        ("- 0/3 1/3", 0),
    ],
)
def test_an_open_group_at_the_end_is_left_for_the_next_batch(texts: str, end: int) -> None:
    assert ends(Log(texts.split())) == [end]


def test_of_senders_that_share_a_partition_the_oldest_open_group_counts() -> None:
    assert ends(Log(["a 0/1", "b 0/2", "a 0/1", "a 0/2", "a 1/2"])) == [1]
    assert ends(Log(["a 0/1", "b 0/2", "a 0/2", "b 1/2", "a 1/2", "b 0/2"])) == [5]


def test_the_next_batch_begins_with_the_group_that_was_left() -> None:
    assert ends(Log(["0/1", "0/2"])) == [1]
    assert ends(Log(["0/1", "0/2", "1/2"]), 1) == [3]


def test_each_partition_ends_on_its_own() -> None:
    assert ends(Log(["0/1", "0/2"], ["0/2", "1/2"], [])) == [1, 2, 0]


def test_only_the_last_records_of_a_partition_are_read() -> None:
    log = Log(["0/1"] * 10_000 + ["0/2"])
    assert ends(log) == [10_000]
    assert log.reads == [20]


def test_a_group_longer_than_the_first_look_is_found() -> None:
    log = Log(["0/1"] * 9_000 + [f"{index}/900" for index in range(800)])
    assert ends(log) == [9_000]
    assert log.reads == [20, 200, 2_000]


def test_a_range_that_is_one_open_group_ends_where_it_starts() -> None:
    assert ends(Log(["0/1", *[f"{index}/900" for index in range(800)]]), 1) == [1]


def test_where_senders_share_a_partition_more_is_read_to_find_the_quiet_ones() -> None:
    assert ends(Log([*["b 0/1"] * 900, "a 0/2", *["b 0/1"] * 150])) == [900]


def test_formats_without_groups_end_where_they_are_asked_to() -> None:
    log = Log(["0/2"])
    assert ends(log, wire=object()) == [1]
    assert log.reads == []
