# SPDX-License-Identifier: Apache-2.0
"""Examples of key conflicts: several rows acquire and release one key, and their records lie on several partitions.

The first half is about formats with positions in the source's log. There only rows of one statement are in doubt: a
tool that spreads them over partitions numbers them from 0 in each. The second half is about formats without positions:
there all changes of one millisecond on several partitions are in doubt, and only their images show the order.

Every example states the rows that the source has afterwards, and holds whichever partition got which record.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations
from typing import Any

import pytest

from airflow_provider_cdc.core.apply.resolve import ordered, resolve
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.clock_position import WIDTHS, partition_number
from airflow_provider_cdc.core.values.types import TypeOptions
from tests.unit.core.apply.changes import change, clock_table_of, table_of, timeline_of

CREATE = "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))"
NOW = 1_700_000_000_000  # milliseconds

Content = tuple[list[tuple[int, str]], list[int]]


def row(key: int, value: str) -> dict[str, Any]:
    return {"id": key, "v": value}


def outcome(changes: Iterable[dict[str, Any]], tool: str) -> Content:
    """Return the rows that a batch writes and the keys that it deletes."""
    wire = open_format(tool)
    changed_rows = clock_table_of(changes) if wire.order == "clock" else table_of(changes)
    plan = resolve(ordered(changed_rows), timeline_of(CREATE), None, wire, TypeOptions())
    assert plan.failures == []
    (step,) = plan.steps
    rows = sorted((item["id"], item["v"]) for item in step.upserts.to_pylist())
    return rows, sorted(step.deletes.column("id").to_pylist())


# with positions: dtle writes an UPDATE of the key as one change


def with_positions(*changes: dict[str, Any]) -> Content:
    return outcome(changes, "dtle-json")


def at(event: int, number: int, partition: int, op: str, before: Any, after: Any) -> dict[str, Any]:
    """Return a change of an event in the binlog.

    :param number: of the row, counted in the records of the event on this partition.
    """
    made = change(event * 10 + number, op, before, after, partition=partition)
    return {**made, "position": f"{event:08d}.{number:010d}"}


@pytest.mark.parametrize("tool", ["debezium-json", "dtle-json", "drs-json"])
@pytest.mark.parametrize("partition", [0, 1])
@pytest.mark.parametrize("offsets", [(1, 2), (2, 1)])
def test_a_row_of_a_snapshot_stands_before_a_change_of_its_position(
    tool: str, partition: int, offsets: tuple[int, int]
) -> None:
    read = {**at(1, 0, 0, "snapshot", None, row(1, "old")), "offset": offsets[0]}
    again = {**at(1, 0, 0, "snapshot", None, row(2, "old")), "offset": offsets[0] + 10}
    gone = {**at(1, 0, partition, "delete", row(1, "old"), None), "offset": offsets[1]}
    changed = {**at(1, 0, partition, "update", row(2, "old"), row(2, "new")), "offset": offsets[1] + 10}
    for changes in ([read, again, gone, changed], [changed, gone, again, read]):
        assert outcome(changes, tool) == ([(2, "new")], [1])


def test_an_update_that_moves_a_key_of_a_snapshot_at_its_position_leaves_it() -> None:
    read = at(1, 0, 0, "snapshot", None, row(1, "old"))
    assert with_positions(read, at(1, 0, 1, "update", row(1, "old"), row(2, "new"))) == ([(2, "new")], [1])


@pytest.mark.parametrize("partitions", permutations((0, 1, 2)))
def test_a_statement_that_shifts_all_keys_keeps_all_rows(partitions: tuple[int, ...]) -> None:
    """``UPDATE t SET id = id + 1 ORDER BY id DESC`` with each row on a partition of its own."""
    rows = [(3, "c"), (2, "b"), (1, "a")]
    moves = [
        at(7, 0, partition, "update", row(key, value), row(key + 1, value))
        for partition, (key, value) in zip(partitions, rows, strict=True)
    ]
    assert with_positions(*moves) == ([(2, "a"), (3, "b"), (4, "c")], [1])


@pytest.mark.parametrize("first", [0, 1])
def test_row_numbers_of_two_partitions_are_not_compared(first: int) -> None:
    """The row that acquires key 2 is the first one of its partition, the row that releases it the second."""
    other = 1 - first
    unrelated = at(7, 0, other, "update", row(50, "x"), row(60, "x"))
    releases = at(7, 1, other, "update", row(2, "b"), row(3, "b"))
    acquires = at(7, 0, first, "update", row(1, "a"), row(2, "a"))
    assert with_positions(unrelated, releases, acquires) == ([(2, "a"), (3, "b"), (60, "x")], [1, 50])


def test_inside_a_partition_the_order_of_the_source_decides() -> None:
    """One row moves from 1 to 2 and on to 3: nobody has key 2 afterwards."""
    steps = [at(7, 0, 0, "update", row(1, "a"), row(2, "a")), at(7, 1, 0, "update", row(2, "a"), row(3, "a"))]
    assert with_positions(*steps) == ([(3, "a")], [1, 2])


@pytest.mark.parametrize("partition", [0, 1])
def test_a_later_statement_decides_on_any_partition(partition: int) -> None:
    """Between two statements positions show the order."""
    acquires = at(7, 0, 1 - partition, "update", row(1, "a"), row(2, "a"))
    releases = at(8, 0, partition, "update", row(2, "a"), row(3, "a"))
    assert with_positions(acquires, releases) == ([(3, "a")], [1, 2])


@pytest.mark.parametrize("partition", [0, 1])
def test_a_row_deleted_after_it_moved_is_gone(partition: int) -> None:
    moves = at(7, 0, partition, "update", row(1, "a"), row(2, "a"))
    deleted = at(8, 0, 1 - partition, "delete", row(2, "a"), None)
    assert with_positions(moves, deleted) == ([], [1, 2])


def test_a_key_that_is_only_released_is_deleted() -> None:
    apart = [at(7, 0, 0, "update", row(1, "a"), row(5, "a")), at(7, 0, 1, "update", row(2, "b"), row(6, "b"))]
    assert with_positions(*apart) == ([(5, "a"), (6, "b")], [1, 2])


# without positions: Canal's JSON, whose records have the time at which Canal built them


def sent(partition: int, offset: int, op: str, before: Any, after: Any, ms: int = 0) -> dict[str, Any]:
    """Return a change that Canal sent.

    :param ms: milliseconds after ``NOW``.
    """
    numbers = (NOW + ms, NOW // 1000, partition_number("rows", partition), offset, 0, 0)
    texts = (f"{number:0{width}d}" for number, width in zip(numbers, WIDTHS, strict=True))
    made = change(offset, op, before, after, partition=partition)
    return {**made, "position": ".".join(("c", *texts))}


def on_partitions(partitions: Iterable[int], *changes: tuple[Any, ...]) -> Content:
    """Return what changes of one millisecond leave, each on the partition next to it."""
    records = [
        sent(partition, 10 * (number + 1), *item)
        for number, (partition, item) in enumerate(zip(partitions, changes, strict=True))
    ]
    return outcome(records, "canal-json")


@pytest.mark.parametrize("partitions", [(0, 1), (1, 0)])
def test_the_image_that_nothing_replaced_is_the_newest_row(partitions: tuple[int, int]) -> None:
    first = ("update", row(1, "a"), row(1, "b"))
    second = ("update", row(1, "b"), row(1, "c"))
    assert on_partitions(partitions, first, second) == ([(1, "c")], [])
    assert on_partitions(partitions, second, first) == ([(1, "c")], [])


@pytest.mark.parametrize("partitions", [(0, 1), (1, 0)])
def test_replace_deletes_one_row_and_inserts_another_under_the_same_key(partitions: tuple[int, int]) -> None:
    deleted, inserted = ("delete", row(1, "old"), None), ("insert", None, row(1, "new"))
    before = sent(0, 1, "insert", None, row(1, "old"), ms=-5)
    records = [sent(p, 10, *item) for p, item in zip(partitions, (deleted, inserted), strict=True)]
    assert outcome([before, *records], "canal-json") == ([(1, "new")], [])


@pytest.mark.parametrize("partitions", [(0, 1), (1, 0)])
def test_a_row_that_was_inserted_and_deleted_in_one_millisecond_is_gone(partitions: tuple[int, int]) -> None:
    """Key 1 was free before: another row with it would have made the INSERT fail."""
    before = sent(0, 1, "delete", row(1, "earlier"), None, ms=-5)
    changes = (("insert", None, row(1, "a")), ("delete", row(1, "a"), None))
    records = [sent(p, 10, *item) for p, item in zip(partitions, changes, strict=True)]
    assert outcome([before, *records], "canal-json") == ([], [1])


@pytest.mark.parametrize("partitions", permutations((0, 1, 2), 2))
def test_a_row_that_changed_and_changed_back_is_as_it_was(partitions: tuple[int, ...]) -> None:
    """The change of an earlier millisecond says how it was."""
    before = sent(0, 1, "insert", None, row(1, "a"), ms=-5)
    there, back = ("update", row(1, "a"), row(1, "b")), ("update", row(1, "b"), row(1, "a"))
    records = [sent(partitions[0], 10, *there), sent(partitions[1], 20, *back)]
    assert outcome([before, *records], "canal-json") == ([(1, "a")], [])


@pytest.mark.parametrize("partitions", [(0, 1), (1, 0)])
def test_changes_of_an_earlier_millisecond_only_say_how_the_row_was(partitions: tuple[int, int]) -> None:
    """From a to b, later to c and back to a: all three changes together seem to change nothing."""
    before = sent(0, 1, "update", row(1, "a"), row(1, "b"), ms=-5)
    changes = (("update", row(1, "b"), row(1, "c")), ("update", row(1, "c"), row(1, "a")))
    records = [sent(p, 10, *item) for p, item in zip(partitions, changes, strict=True)]
    assert outcome([before, *records], "canal-json") == ([(1, "a")], [])


def test_a_later_millisecond_decides_on_any_partition() -> None:
    for partition in (0, 1):
        first = sent(partition, 10, "update", row(1, "a"), row(1, "b"))
        second = sent(1 - partition, 20, "update", row(1, "b"), row(1, "a"), ms=1)
        assert outcome([first, second], "canal-json") == ([(1, "a")], [])


def test_images_that_differ_in_the_order_of_their_members_are_equal() -> None:
    first = ("update", row(1, "a"), row(1, "b"))
    second = ("update", dict(reversed(row(1, "b").items())), row(1, "c"))
    assert on_partitions((1, 0), first, second) == ([(1, "c")], [])


def test_rows_of_different_keys_do_not_conflict() -> None:
    inserts = [("insert", None, row(key, value)) for key, value in ((1, "a"), (2, "b"))]
    assert on_partitions((0, 1), *inserts) == ([(1, "a"), (2, "b")], [])


def test_two_results_that_both_may_be_the_last_one_are_refused() -> None:
    """Nothing shows which came last, and a guess could be wrong."""
    with pytest.raises(DataError) as caught:
        on_partitions((0, 1), ("update", row(1, "a"), row(1, "b")), ("update", row(1, "a"), row(1, "c")))
    assert caught.value.code == "apply.order_unknown"
    assert caught.value.where == {"table": "shop.t"}


def test_the_error_holds_no_values() -> None:
    with pytest.raises(DataError) as caught:
        on_partitions((0, 1), ("insert", None, row(1, "secret")), ("insert", None, row(1, "private")))
    assert "secret" not in str(caught.value) and "private" not in str(caught.value)
