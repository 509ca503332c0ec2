# SPDX-License-Identifier: Apache-2.0
"""Rows sent again by a tool that numbers the rows of an event again in each record, spread over other records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import permutations
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.apply.resolve import ordered, resolve
from airflow_provider_cdc.core.apply.rewinding import RewindNeeded
from airflow_provider_cdc.core.apply.row_copies import identities
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.values.types import TypeOptions
from tests.unit.core.apply.changes import failures, table_of, timeline_of

KEYED = "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))"
KEYLESS = "CREATE TABLE t (id INT, v VARCHAR(9))"
WIRE = open_format("canal-protobuf")
Row = dict[str, Any]
Images = tuple[Row | None, Row | None]


def record(event: int, partition: int, offset: int, op: str, *rows: Images) -> list[Row]:
    """Return the changes of one record, all of one event in the source's log."""
    return [
        {
            "topic": "rows",
            "partition": partition,
            "offset": offset,
            "index": number,
            "op": op,
            "position": f"{event:08d}.{number:010d}",
            "before": None if before is None else str(before).replace("'", '"'),
            "after": None if after is None else str(after).replace("'", '"'),
            "columns": None,
        }
        for number, (before, after) in enumerate(rows)
    ]


def moved(old: int, new: int) -> Images:
    """Return the MINIMAL images of an UPDATE of the key."""
    return {"id": old}, {"id": new}


def insert(event: int, *keys: int) -> list[Row]:
    """Return a record on partition 0 with rows that have their first key as value."""
    return record(event, 0, event, "insert", *((None, {"id": key, "v": f"row {key}"}) for key in keys))


def content(
    changes: Iterable[Row], create: str = KEYED, applied: Iterable[Row] | None = None, stored: Sequence[Row] = ()
) -> Counter[tuple[int, str]]:
    """Return what a batch upserts or adds."""
    timeline = timeline_of(create)
    schema = timeline.versions[-1].schema
    plan = resolve(
        ordered(table_of(changes), None if applied is None else table_of(applied)),
        timeline,
        schema if stored else None,
        WIRE,
        TypeOptions(),
        read=lambda keys: pa.table(
            {"id": pa.array([r["id"] for r in stored], pa.int32()), "v": [r["v"] for r in stored]}
        ),
    )
    assert failures(plan) == []
    (step,) = plan.steps
    return Counter((row["id"], row["v"]) for row in step.upserts.to_pylist())


INSERTED = insert(1, 4, 6, 9)
# UPDATE t SET id = id - 1 ORDER BY id, hashed over three partitions, over two, and all in one record
SPREAD = [
    record(2, 0, 10, "update", moved(4, 3), moved(9, 8)),
    record(2, 1, 10, "update", moved(6, 5)),
    record(2, 1, 11, "update", moved(6, 5), moved(9, 8)),
    record(2, 2, 10, "update", moved(4, 3), moved(6, 5), moved(9, 8)),
]
SHIFTED = Counter([(3, "row 4"), (5, "row 6"), (8, "row 9")])


@pytest.mark.parametrize("order", permutations(range(4)))
def test_a_move_sent_again_in_other_records_is_one_move(order: tuple[int, ...]) -> None:
    records = [SPREAD[number] for number in order]
    for number, one in enumerate(records):  # which record comes first on its partition decides nothing
        records[number] = [{**row, "offset": 10 + number} for row in one]
    assert content([*INSERTED, *(row for one in records for row in one)]) == SHIFTED


@pytest.mark.parametrize("applied", range(4))
def test_a_move_that_was_applied_and_is_sent_again_in_another_record(applied: int) -> None:
    """The next UPDATE lacks the value, which the stored row has under its newest key."""
    before = [row for number in range(applied + 1) for row in SPREAD[number]]
    later = record(3, 0, 30, "update", moved(5, 7))
    again = content([*SPREAD[3], *later], applied=[*INSERTED, *before])
    assert again == Counter([(3, "row 4"), (7, "row 6"), (8, "row 9")])


@pytest.mark.parametrize("fresh", [SPREAD[1], SPREAD[2], SPREAD[3]])
def test_a_copy_of_an_applied_move_asks_for_the_row_before_it(fresh: list[Row]) -> None:
    """The next UPDATE lacks a value of the row that had key 6, which the stored rows have under key 5."""
    stored = [{"id": 3, "v": "row 4"}, {"id": 5, "v": "row 6"}, {"id": 8, "v": "row 9"}]
    later = record(3, 0, 30, "update", ({"id": 5}, {"w": 1}))
    wide = "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9), w INT)"
    with pytest.raises(RewindNeeded):
        content([*fresh, *later], wide, applied=[*SPREAD[0], *SPREAD[1]], stored=stored)


@pytest.mark.parametrize("swapped", [False, True])
def test_rows_that_take_the_keys_of_others_sent_again_in_other_records(swapped: bool) -> None:
    """``UPDATE t SET id = id + 1 ORDER BY id DESC``: numbers of different records on one partition give no order."""
    first = record(2, 1, 10, "update", moved(2, 3))
    second = record(2, 1, 11, "update", moved(3, 4), moved(1, 2))
    other = record(2, 0, 10, "update", moved(3, 4), moved(2, 3))
    records = [first, other, second] if swapped else [second, first]
    changes = [*insert(1, 1, 2, 3), *(row for one in records for row in one)]
    assert content(changes) == Counter([(2, "row 1"), (3, "row 2"), (4, "row 3")])


def test_an_update_that_one_record_has_twice_is_made_twice() -> None:
    """``INSERT .. VALUES (1), (1), (1) ON DUPLICATE KEY UPDATE v = IF(v = 'a', 'b', 'a')``."""
    there, back = ({"id": 1}, {"v": "a"}), ({"id": 1}, {"v": "b"})
    again = record(2, 1, 10, "update", there, back, there)
    for records in ([again], [again, [{**row, "offset": 20} for row in again]]):
        changes = [*insert(1, 1), *(row for one in records for row in one)]
        assert content(changes) == Counter([(1, "a")])


def test_rows_without_a_key_count_as_often_as_one_record_has_them() -> None:
    a, b = (None, {"id": 1, "v": "a"}), (None, {"id": 2, "v": "b"})
    first = [*record(2, 0, 10, "insert", a, a), *record(2, 1, 10, "insert", b)]
    again = record(2, 0, 20, "insert", a, b, a)
    assert len(set(identities(table_of([*first, *again]), WIRE).tolist())) == len(first)
    assert content([*first, *again], KEYLESS) == Counter({(1, "a"): 2, (2, "b"): 1})
