# SPDX-License-Identifier: Apache-2.0
"""Partial images folded over random histories, against a plain Python table."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from airflow_provider_cdc.core.apply.merge_plan import MergePlan
from airflow_provider_cdc.core.apply.resolve import ordered, resolve
from airflow_provider_cdc.core.apply.rewinding import RewindNeeded
from airflow_provider_cdc.core.apply.row_sets import without_keys
from airflow_provider_cdc.core.apply.target_schema import target_schema
from airflow_provider_cdc.core.apply.update_chains import Chains, KeyEvents
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.values.types import TypeOptions
from tests.sample import TIMES
from tests.unit.core.apply.changes import change, clock_table_of, failures, table_of, timeline_of

CREATE = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(9), c INT)"
WIRE = open_format("oms-shareplex")
Row = dict[str, Any]


@dataclass
class Lake:
    """A table in memory that resolving reads and that its deltas change.

    :ivar asked: keys that were read.
    """

    create: str = CREATE
    alters: tuple[str, ...] = ()
    rows: list[Row] = field(default_factory=list)
    asked: list[Row] = field(default_factory=list)
    wire: Any = WIRE

    def take(self, changes: list[Row], *, applied: list[Row] | None = None, position: str = "") -> MergePlan:
        """Resolve changes and carry out the plan."""
        timeline = timeline_of(self.create, *self.alters)
        schema = timeline.versions[-1].schema
        plain = target_schema(schema, TypeOptions()).columns
        stored = pa.Table.from_pylist(self.rows, plain)

        def read(keys: pa.Table | None) -> pa.Table:
            self.asked += [] if keys is None else keys.to_pylist()
            return stored

        as_table = clock_table_of if self.wire.order == "clock" else table_of
        before = None if applied is None else as_table(applied)
        plan = resolve(
            ordered(as_table(changes), before),
            timeline,
            schema,
            self.wire,
            TypeOptions(),
            base_position=position,
            read=read,
        )
        (step,) = plan.steps
        names = [column.name for column in schema.key_columns]
        gone = pa.concat_tables([step.deletes, step.upserts.select(names)])
        left = pa.concat_tables([without_keys(stored, gone, names), step.upserts])
        self.rows = sorted(left.to_pylist(), key=lambda row: row["id"])
        return plan


class Source:
    """A table that reports its changes as a tool does that leaves out what did not change."""

    def __init__(self, seed: int, moves: bool = True) -> None:
        self._chance = random.Random(seed)
        self._moves = moves
        self.rows: dict[int, Row] = {}
        self.position = 0

    def content(self) -> list[Row]:
        return [self.rows[key] for key in sorted(self.rows)]

    def run(self, steps: int) -> list[Row]:
        return [self._step() for _ in range(steps)]

    def _step(self) -> Row:
        self.position += 1
        chance = self._chance
        free = [key for key in range(8) if key not in self.rows]
        if free and (not self.rows or chance.random() < 0.25):
            key = chance.choice(free)
            row = self.rows[key] = {"id": key, **self._values()}
            return change(self.position, "insert", None, row)
        key = chance.choice(list(self.rows))
        before = self.rows.pop(key)
        if chance.random() < 0.15:
            return change(self.position, "delete", self._some(before, {"id"}))
        changed = {name: value for name, value in self._values().items() if chance.random() < 0.4}
        after = {**before, **changed}
        if self._moves and free and chance.random() < 0.25:
            after["id"] = chance.choice(free)
        self.rows[after["id"]] = after
        moved = {"id"} if after["id"] != key else set()
        reported = None if not moved and chance.random() < 0.3 else self._some(before, {"id"})
        image = self._some(after, set(changed) | moved)
        if reported is None:
            image["id"] = key
        return change(self.position, "update", reported, image)

    def _values(self) -> Row:
        chance = self._chance
        return {
            "a": chance.choice([None, self.position]),
            "b": chance.choice([None, f"b{self.position}"]),
            "c": self.position,
        }

    def _some(self, row: Row, needed: set[str]) -> Row:
        return {name: value for name, value in row.items() if name in needed or self._chance.random() < 0.2}


@pytest.mark.parametrize("seed", range(25 * TIMES))
def test_batches_of_partial_updates_leave_what_the_source_has(seed: int) -> None:
    chance, source, lake = random.Random(seed), Source(seed), Lake()
    for _ in range(4):
        changes = source.run(chance.choice([1, 5, 40]))
        changes += [{**again, "offset": again["offset"] + 1000} for again in changes if chance.random() < 0.2]
        chance.shuffle(changes)
        assert failures(lake.take(changes)) == []
        assert lake.rows == source.content()


def test_changes_that_come_late_leave_what_the_source_has_or_ask_to_go_back() -> None:
    """One partition lags behind in each batch; rows are spread by the key they have afterwards, as tools do."""
    back = 0
    for seed in range(24 * TIMES):
        source, lake = Source(seed, moves=seed % 3 == 0), Lake()
        lake.take(source.run(20))
        for _ in range(5):
            settled = list(lake.rows)
            changes = source.run(8)
            late = [one for one in changes if _key(one) % 2]
            early = [one for one in changes if one not in late]
            lake.take(early)
            try:
                plan = lake.take(late, applied=early, position=changes[-1]["position"])
            except RewindNeeded as needed:
                assert needed.position == changes[0]["position"]
                assert seed % 3 == 0  # only where keys moved
                lake.rows, back = settled, back + 1
                plan = lake.take(changes)
            assert failures(plan) == []
            assert lake.rows == source.content()
    assert 2 * TIMES < back < 32 * TIMES


def _key(one: Row) -> int:
    image = json.loads(one["before"] if one["op"] == "delete" else one["after"])
    return int(image["id"] if "id" in image else json.loads(one["before"])["id"])


def test_only_rows_that_lack_a_value_are_read() -> None:
    lake = Lake(rows=[{"id": n, "a": n, "b": "x", "c": n} for n in range(5)])
    lake.take(
        [
            change(1, "update", {"id": 1}, {"a": 7}),
            change(2, "update", {"id": 2}, {"id": 2, "a": 7, "b": "y", "c": 7}),
            change(3, "delete", {"id": 3}),
            change(4, "insert", None, {"id": 3, "a": 1, "b": None, "c": 1}),
            change(5, "update", {"id": 3}, {"c": 2}),
        ]
    )
    assert lake.asked == [{"id": 1}]
    assert lake.rows[1] == {"id": 1, "a": 7, "b": "x", "c": 1}
    assert lake.rows[3] == {"id": 3, "a": 1, "b": None, "c": 2}


def test_nothing_is_read_where_images_are_full() -> None:
    lake = Lake()
    lake.take([change(n, "update", {"id": n}, {"id": n, "a": 1, "b": None, "c": 1}) for n in range(9)])
    assert lake.asked == []
    assert len(lake.rows) == 9


@pytest.mark.parametrize(
    "before",
    [
        [],
        [change(1, "insert", None, {"id": 1, "a": 1, "b": "x", "c": 1}), change(2, "delete", {"id": 1})],
        [change(2, "update", {"id": 1}, {"id": 5, "a": 1, "b": "x", "c": 1})],
    ],
    ids=["never there", "deleted", "moved away"],
)
def test_an_update_of_a_row_that_is_not_there_fails(before: list[Row]) -> None:
    lake = Lake()
    plan = lake.take([*before, change(3, "update", {"id": 1}, {"a": 7})])
    assert failures(plan) == [(3, "b", "row_unknown")]
    assert [row for row in lake.rows if row["id"] == 1] == []


def test_what_follows_a_row_that_failed_fails_too() -> None:
    lake = Lake(rows=[{"id": 1, "a": 1, "b": "x", "c": 1}])
    plan = lake.take([change(1, "update", {"id": 1}, {"a": "no number"}), change(2, "update", {"id": 1}, {"c": 2})])
    assert (2, "a", "row_unknown") in failures(plan)
    assert (1, "a", "number_invalid") in failures(plan) or len(failures(plan)) == 2
    assert lake.rows == [{"id": 1, "a": 1, "b": "x", "c": 1}]


def test_an_update_that_names_its_key_nowhere_fails() -> None:
    plan = Lake().take([change(1, "update", None, {"a": 1}), change(2, "update", {"b": "x"}, {"a": 1})])
    assert {(offset, reason) for offset, _, reason in failures(plan)} == {(1, "column_absent"), (2, "column_absent")}


def test_without_a_key_what_an_update_lacks_is_as_in_the_row_before() -> None:
    """As binlog_row_image=MINIMAL writes it: the whole row before, of the row after what changed."""
    timeline = timeline_of("CREATE TABLE t (a INT, b INT)")
    images = [({"a": 1, "b": 2}, {"a": None}), ({"a": 3, "b": None}, {"a": 4}), ({"a": 5, "b": 6}, {"a": 5, "b": 7})]
    rows = table_of([change(position, "update", *both) for position, both in enumerate(images)])
    plan = resolve(ordered(rows), timeline, None, WIRE, TypeOptions())
    assert failures(plan) == []
    (step,) = plan.steps
    assert step.deletes.to_pylist() == [{"a": 1, "b": 2}, {"a": 3, "b": None}, {"a": 5, "b": 6}]
    assert step.upserts.to_pylist() == [{"a": None, "b": 2}, {"a": 4, "b": None}, {"a": 5, "b": 7}]


def test_without_a_key_a_row_before_that_is_not_whole_fails_with_the_row_after() -> None:
    timeline = timeline_of("CREATE TABLE t (a INT, b INT)")
    rows = table_of([change(1, "update", {"a": 1}, {"a": 2}), change(2, "update", {"a": 1, "b": 1}, {"b": 3})])
    plan = resolve(ordered(rows), timeline, None, WIRE, TypeOptions())
    assert set(failures(plan)) == {(1, "b", "column_absent")}
    assert plan.steps[0].upserts.to_pylist() == [{"a": 1, "b": 3}]


def test_rows_of_one_statement_on_several_partitions_did_not_come_one_before_the_other() -> None:
    # UPDATE t SET id = id + 1 ORDER BY id DESC: the row that moved to 2 is not the one that left it
    lake = Lake(rows=[{"id": 1, "a": 1, "b": "one", "c": 1}, {"id": 2, "a": 2, "b": "two", "c": 2}])
    two = {**change(7, "update", {"id": 2}, {"id": 3}, partition=1), "position": f"{7:08d}.{1:010d}"}
    one = change(7, "update", {"id": 1}, {"id": 2}, partition=0)
    plan = lake.take([one, two])
    assert failures(plan) == []
    assert lake.rows == [{"id": 2, "a": 1, "b": "one", "c": 1}, {"id": 3, "a": 2, "b": "two", "c": 2}]


def test_without_positions_what_one_moment_has_on_several_partitions_is_not_put_in_an_order() -> None:
    def positioned(one: Row, second: int) -> Row:
        position = f"c.{second:014d}.{second:011d}.{one['partition']:018d}.{one['offset']:019d}.{0:010d}.{0:09d}"
        return {**one, "position": position}

    wire = open_format("oms-shareplex", {"sequenceEnabled": "false"})
    stored = [{"id": n, "a": n, "b": "x", "c": n} for n in (1, 2)]
    moves = [
        positioned(change(1, "update", {"id": 1}, {"id": 3, "a": 7}, partition=0), 5),
        positioned(change(2, "update", {"id": 3}, {"id": 5, "c": 8}, partition=1), 5),
        positioned(change(3, "update", {"id": 2}, {"id": 4}, partition=1), 5),
    ]
    lake = Lake(rows=stored, wire=wire)
    assert failures(lake.take(moves)) == [(2, "a", "row_unknown")]
    later = Lake(rows=stored, wire=wire)
    assert failures(later.take([moves[0], positioned(moves[1], 6), moves[2]])) == []
    assert {"id": 5, "a": 7, "b": "x", "c": 8} in later.rows


def test_columns_added_and_types_changed_on_the_way_are_carried() -> None:
    lake = Lake(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT)",
        ("ALTER TABLE t ADD b INT DEFAULT 5", "ALTER TABLE t MODIFY a BIGINT, CHANGE b d INT DEFAULT 5"),
    )
    lake.take(
        [
            change(1, "insert", None, {"id": 1, "a": 1}),
            change(2, "update", {"id": 1}, {"a": 2}),
            change(150, "update", {"id": 1}, {"a": 3}),
            change(160, "insert", None, {"id": 2, "a": 4, "b": 6}),
            change(250, "update", {"id": 1}, {"d": 7}),
            change(260, "update", {"id": 2}, {"a": 2**40}),
        ]
    )
    assert lake.rows == [{"id": 1, "a": 3, "d": 7}, {"id": 2, "a": 2**40, "d": 6}]


def test_a_barrier_settles_what_came_before_it() -> None:
    timeline = timeline_of("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9), b INT)", "ALTER TABLE t MODIFY a INT")
    base = timeline.versions[0].schema
    stored = pa.Table.from_pylist(
        [{"id": 1, "a": "7", "b": 1}, {"id": 2, "a": "8", "b": 2}], target_schema(base, TypeOptions()).columns
    )
    rows = [
        change(10, "update", {"id": 1}, {"b": 3}),
        change(150, "update", {"id": 1}, {"b": 4}),
        change(160, "update", {"id": 2}, {"b": 5}),
    ]
    plan = resolve(ordered(table_of(rows)), timeline, base, WIRE, TypeOptions(), read=lambda keys: stored)
    assert plan.steps[0].upserts.to_pylist() == [{"id": 1, "a": "7", "b": 3}]
    assert sorted(plan.steps[1].upserts.to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "a": 7, "b": 4},
        {"id": 2, "a": 8, "b": 5},
    ]


@pytest.mark.parametrize(
    ("alter", "expected"),
    [
        ("ALTER TABLE t MODIFY a INT", {"id": 1, "a": 7, "b": 4}),
        ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id, b)", {"id": 1, "a": "7", "b": 4}),
    ],
    ids=["type", "key"],
)
def test_a_barrier_in_the_batch_that_creates_the_table_settles_what_came_before_it(alter: str, expected: Row) -> None:
    timeline = timeline_of("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9), b INT)", alter)
    rows = [
        change(10, "insert", None, {"id": 1, "a": "7", "b": 3}),
        change(150, "update", {"id": 1, "b": 3}, {"b": 4}),
    ]
    plan = resolve(ordered(table_of(rows)), timeline, None, WIRE, TypeOptions())
    assert failures(plan) == []
    assert plan.steps[1].upserts.to_pylist() == [expected]


def test_a_barrier_after_a_truncate_settles_what_came_between() -> None:
    timeline = timeline_of("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9), b INT)", "ALTER TABLE t MODIFY a INT")
    base = timeline.versions[0].schema
    stored = pa.Table.from_pylist([{"id": 1, "a": "6", "b": 1}], target_schema(base, TypeOptions()).columns)
    rows = [
        change(10, "truncate"),
        change(20, "insert", None, {"id": 1, "a": "7", "b": 3}),
        change(150, "update", {"id": 1}, {"b": 4}),
        change(160, "update", {"id": 2}, {"b": 5}),
    ]
    plan = resolve(ordered(table_of(rows)), timeline, base, WIRE, TypeOptions(), read=lambda keys: stored)
    assert plan.steps[1].upserts.to_pylist() == [{"id": 1, "a": 7, "b": 4}]
    assert failures(plan) == [(160, "a", "row_unknown")]


def test_a_truncated_table_has_no_rows_to_complete_from() -> None:
    lake = Lake(rows=[{"id": 1, "a": 1, "b": "x", "c": 1}])
    plan = lake.take([change(1, "truncate"), change(2, "update", {"id": 1}, {"a": 7})])
    assert failures(plan) == [(2, "b", "row_unknown")]


@pytest.mark.parametrize(
    ("applied", "back"),
    [
        (change(5, "update", {"id": 1}, {"c": 9}), False),
        (change(5, "update", {"id": 1}, {"id": 2, "c": 9}), True),
    ],
    ids=["an update that kept its key", "an update that moved it"],
)
def test_stored_rows_that_went_through_later_changes_count_only_if_they_are_the_same_rows(
    applied: Row, back: bool
) -> None:
    lake = Lake(rows=[{"id": 1, "a": 1, "b": "x", "c": 1}])
    lake.take([applied])
    late = change(3, "update", {"id": 1}, {"a": 7, "c": 2})
    if back:
        with pytest.raises(RewindNeeded) as needed:
            lake.take([late], applied=[applied], position=applied["position"])
        assert needed.value.position == late["position"]
    else:
        lake.take([late], applied=[applied], position=applied["position"])
        assert lake.rows == [{"id": 1, "a": 7, "b": "x", "c": 9}]


def test_a_chain_of_a_hundred_thousand_updates_of_one_row_is_followed_at_once() -> None:
    count = 100_000
    events = KeyEvents(
        np.zeros(count, int),
        np.arange(count),
        np.ones(count, bool),
        np.r_[False, np.ones(count - 1, bool)],
        np.arange(count),
        np.zeros(count, int),
        True,
    )
    chains = Chains(events)
    nodes = chains.nearest(np.r_[False, np.ones(count - 1, bool)], np.zeros(count, bool))
    assert set(nodes.tolist()) == {0}
