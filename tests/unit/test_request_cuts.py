# SPDX-License-Identifier: Apache-2.0
"""A large request is cut at one time of the log in all partitions, and each part has records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from airflow_provider_cdc.batch.request_cuts import first_part, most_records
from airflow_provider_cdc.batch.result import BatchResult, TableResult, joined
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.model.offsets import Offsets
from airflow_provider_cdc.core.model.status import ResultStatus, TableStatus
from airflow_provider_cdc.core.plan.ranges import Range

FUTURE = 4_000_000_000_000
"""Milliseconds since 1970, in the year 2096."""


class Log:
    """Partitions of topics by the times of their records, milliseconds since 1970."""

    def __init__(self, **topics: list[list[int]]) -> None:
        self.times = topics
        self.asked: list[list[str]] = []

    def offsets_at(self, topics: Iterable[str], timestamp_ms: int) -> Offsets:
        """Return the first offset at or after a time; partitions that have none are missing, as Kafka's are."""
        names = list(topics)
        self.asked.append(names)
        first: Offsets = {}
        for name in names:
            for partition, times in enumerate(self.times[name]):
                offset = next((number for number, time in enumerate(times) if time >= timestamp_ms), None)
                if offset is not None:
                    first.setdefault(name, {})[partition] = offset
        return first

    def range(self, starts: Mapping[str, list[int]] | None = None) -> Range:
        """Return the range up to the ends."""
        start = {name: dict(enumerate((starts or {}).get(name, [0] * len(p)))) for name, p in self.times.items()}
        return Range(start, {name: dict(enumerate(map(len, parts))) for name, parts in self.times.items()})


def parts(log: Log, most: int, settle: Callable[[Range], Range] = lambda part: part, **options: Any) -> list[Range]:
    """Return all parts of everything that is in the log."""
    result: list[Range] = []
    starts: dict[str, list[int]] = {}
    options = {"counted": ["t"], "schema_topic": None, **options}
    while True:
        part = first_part(log.range(starts), log, most, settle=settle, **options)  # type: ignore[arg-type]
        result.append(part)
        starts = {name: list(ends.values()) for name, ends in part.end.items()}
        if part.cut_at is None:
            return result


def sizes(ranges: list[Range]) -> list[int]:
    return [sum(one.records for one in part.offset_ranges() if one.topic == "t") for part in ranges]


def test_a_request_that_is_small_enough_is_not_cut_and_nothing_is_asked() -> None:
    log = Log(t=[[1, 2, 3]])
    assert [part.cut_at for part in parts(log, 3)] == [None]
    assert log.asked == []


def test_parts_follow_each_other_without_a_gap_and_have_at_most_so_many_records() -> None:
    log = Log(t=[list(range(1000, 2000)), list(range(1500, 2500, 10))])
    ranges = parts(log, 100)
    assert sum(sizes(ranges)) == 1100
    assert all(50 <= size <= 100 for size in sizes(ranges[:-1]))
    for before, after in pairwise(ranges):
        assert after.start == before.end
    assert [part.cut_at is None for part in ranges] == [False] * (len(ranges) - 1) + [True]


def test_all_partitions_end_at_one_time() -> None:
    log = Log(t=[list(range(1000, 2000)), list(range(1500, 2500, 10)), []])
    for part in parts(log, 300)[:-1]:
        assert part.cut_at is not None
        cut_ms = round(part.cut_at.timestamp() * 1000)
        ends = [sum(time < cut_ms for time in times) for times in log.times["t"]]
        assert list(part.end["t"].values()) == ends


def test_records_of_one_time_are_not_separated() -> None:
    assert sizes(parts(Log(t=[[5] * 40 + [6] * 3]), 10)) == [40, 3]
    assert sizes(parts(Log(t=[[5] * 40]), 10)) == [40]


def test_records_with_a_time_in_the_future_are_the_last_part() -> None:
    assert sizes(parts(Log(t=[[1, 2] + [FUTURE + time for time in range(30)]]), 2)) == [2, 30]


@pytest.mark.parametrize("most", [1, 2, 3, 7])
def test_times_that_run_backwards_lose_nothing(most: int) -> None:
    ranges = parts(Log(t=[[9, 3, 8, 1, 7, 7, 2], [4, 1, 1, 9, 5]]), most)
    assert sum(sizes(ranges)) == 12 and all(sizes(ranges))


def test_the_schema_topic_is_read_to_its_end_and_heartbeats_do_not_count() -> None:
    log = Log(t=[[10, 20, 30, 40]], ddl=[[10, 20, 30, 40]], beats=[list(range(100))])
    first, *_, last = parts(log, 2, schema_topic="ddl")
    assert first.end["ddl"] == {0: 4}
    assert 10 < first.end["beats"][0] < 100 and last.end["beats"] == {0: 100}
    assert all("ddl" not in names for names in log.asked)


def test_a_group_longer_than_a_part_is_read_whole() -> None:
    def settle(part: Range) -> Range:
        end = part.end["t"][0]
        return Range(part.start, {"t": {0: 0 if end < 60 else end}}, cut_at=part.cut_at)

    ranges = parts(Log(t=[list(range(1000))]), 10, settle)
    assert 60 <= sizes(ranges)[0] <= 160 and sum(sizes(ranges)) == 1000


def test_the_result_of_several_batches_has_their_sums_and_the_last_state() -> None:
    def of(seq: int, upserts: int, state: TableStatus, status: ResultStatus) -> BatchResult:
        table = TableResult("shop", "orders", "merge", upserts, 1, state, seq)
        result = BatchResult("shop", seq, status, upserts, {"insert": upserts}, 1, tables=[table], phases={"land": 0.5})
        return replace(result, cpu_seconds=None if seq == 1 else 1.5, added_bytes=100 * seq)

    one = of(1, 5, TableStatus.WAITING, ResultStatus.WAITING)
    assert joined([one]) is one
    both = joined([one, of(2, 7, TableStatus.OK, ResultStatus.DONE)])
    assert (both.seq, both.status, both.batches, both.records, both.changes) == (
        2,
        ResultStatus.DONE,
        2,
        12,
        {"insert": 12},
    )
    assert both.tables == [TableResult("shop", "orders", "merge", 12, 2, TableStatus.OK, 2)]
    assert (both.schema_changes, both.phases) == (2, {"land": 1.0})
    assert (both.cpu_seconds, both.added_bytes) == (1.5, 300)


@pytest.mark.parametrize(
    ("policy", "spark", "wire", "most"),
    [
        ({"engine": "spark"}, {}, "debezium-json", 12_000_000),
        ({"engine": "spark"}, {}, "canal-json", 4_000_000),  # not all of its tables can be split by key
        ({"engine": "spark"}, {"connection": "cluster"}, "canal-json", None),
        ({"engine": "inline"}, {"connection": "cluster"}, "debezium-json", 12_000_000),
        ({"engine": "spark", "batch_records": 7}, {}, "debezium-json", 7),
        ({"engine": "spark", "batch_records": 7}, {"connection": "cluster"}, "debezium-json", 7),
    ],
)
def test_one_machine_has_bounded_batches_and_a_cluster_whole_requests(
    policy: dict[str, Any], spark: dict[str, Any], wire: str, most: int | None
) -> None:
    pipeline = CdcPipeline.from_dict(
        {
            "name": "orders",
            "source": {"topics": "orders", "format": wire},
            "sink": {"root": "/lake"},
            "policy": policy,
            "spark": spark,
        }
    )
    assert most_records(pipeline, 20_000_000) == most
