# SPDX-License-Identifier: Apache-2.0
"""Records without positions are ordered by their partition first, and by the tool's clock between partitions."""

from __future__ import annotations

import pyarrow as pa

from airflow_provider_cdc.core.formats.common.change_builder import ChangeBuilder
from airflow_provider_cdc.core.formats.common.clock_positions import ClockPositions
from airflow_provider_cdc.core.formats.contract import Records


def changes(partition: int, times: list[tuple[int, int]], first: int = 0) -> pa.RecordBatch:
    """Rows of one partition, each with (tool time in ms, source time in s)."""
    offsets = list(range(first, first + len(times)))
    records = Records("t", partition, offsets, [0] * len(times), [None] * len(times), [b""] * len(times))
    out = ChangeBuilder(records, [])
    for index, (tool, source) in enumerate(times):
        out.add(index, "row", op="insert", source_time=source * 1_000_000, tool_time=tool)
    return out.batch()


def order(*batches: pa.RecordBatch) -> list[tuple[int, int]]:
    filler = ClockPositions()
    rows = [row for batch in batches for row in filler.fill(batch).to_pylist()]
    return [(row["partition"], row["offset"]) for row in sorted(rows, key=lambda row: row["position"])]


def test_partitions_interleave_by_the_tools_clock() -> None:
    assert order(changes(0, [(10, 1), (30, 1)]), changes(1, [(20, 1), (40, 1)])) == [(0, 0), (1, 0), (0, 1), (1, 1)]


def test_a_clock_that_runs_backwards_never_changes_the_order_of_a_partition() -> None:
    assert order(changes(0, [(30, 9), (10, 1), (20, 5)])) == [(0, 0), (0, 1), (0, 2)]


def test_source_time_decides_between_records_built_in_the_same_millisecond() -> None:
    assert order(changes(0, [(10, 7)]), changes(1, [(10, 6)])) == [(1, 0), (0, 0)]


def positions(batch: pa.RecordBatch) -> list[str]:
    texts: list[str] = batch.column("position").to_pylist()
    return texts


def test_blocks_of_a_partition_give_the_same_order_as_the_whole() -> None:
    whole = positions(ClockPositions().fill(changes(0, [(5, 1), (9, 1), (2, 8), (9, 2)])))
    filler = ClockPositions()
    blocks = [filler.fill(changes(0, [(5, 1), (9, 1)])), filler.fill(changes(0, [(2, 8), (9, 2)], first=2))]
    assert [p for block in blocks for p in positions(block)] == whole


def test_a_batch_goes_on_where_the_clocks_of_the_one_before_stood() -> None:
    whole = positions(ClockPositions().fill(changes(0, [(5, 1), (9, 1), (2, 8), (9, 2)])))
    before = ClockPositions()
    first = before.fill(changes(0, [(5, 1), (9, 1)]))
    second = ClockPositions(before.clocks()).fill(changes(0, [(2, 8), (9, 2)], first=2))
    assert positions(first) + positions(second) == whole


def test_a_record_of_a_later_batch_that_was_built_earlier_is_earlier() -> None:
    before = ClockPositions()
    newer = positions(before.fill(changes(0, [(30, 1)])))
    assert positions(ClockPositions(before.clocks()).fill(changes(1, [(20, 1)]))) < newer


def test_clocks_are_those_of_the_partitions_read() -> None:
    filler = ClockPositions([("t", 0, 99, 9), ("t", 1, 50, 5)])
    filler.fill(changes(1, [(40, 7), (60, 6)]))
    assert filler.clocks() == [("t", 1, 60, 6)]


def test_a_partition_has_its_number_whatever_others_a_batch_has() -> None:
    alone = positions(ClockPositions().fill(changes(1, [(20, 1)])))
    filler = ClockPositions()
    filler.fill(changes(0, [(10, 1)]))
    assert positions(filler.fill(changes(1, [(20, 1)]))) == alone


def test_what_is_no_change_does_not_set_the_clock() -> None:
    out = ChangeBuilder(Records("t", 0, [0, 1], [99, 99], [None] * 2, [b""] * 2), [])
    out.add(0, "ignored")
    out.add(1, "row", op="insert", tool_time=10)
    assert order(out.batch(), changes(1, [(20, 1)]))[-2:] == [(0, 1), (1, 0)]


def test_rows_of_one_record_keep_their_order_beyond_ten() -> None:
    out = ChangeBuilder(Records("t", 0, [5], [None], [None], [b""]), [])
    for number in range(12):
        out.add(0, "row", op="insert", number=number)
    actual = positions(ClockPositions().fill(out.batch()))
    assert actual == sorted(actual)
    assert len(set(actual)) == 12
