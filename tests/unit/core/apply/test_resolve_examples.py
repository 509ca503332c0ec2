# SPDX-License-Identifier: Apache-2.0
"""Examples of resolving: which rows a batch of changes leaves, and which keys it removes.

Each test states what happened at the source. The expected rows are those that the source has afterwards.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.apply.merge_plan import MergePlan, MergeStep
from airflow_provider_cdc.core.apply.resolve import ordered, resolve
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.values.types import TypeOptions
from tests.unit.core.apply.changes import change, failures, table_of, timeline_of

KEYED = "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))"
KEYLESS = "CREATE TABLE t (a INT, v VARCHAR(20))"

# Debezium writes an UPDATE of the key as a delete and an insert, and all rows of a snapshot share its position.
DEBEZIUM = "debezium-json"
# dtle writes an UPDATE of the key as one change with both images.
DTLE = "dtle-json"


def row(key: int, value: str | None) -> dict[str, Any]:
    return {"id": key, "v": value}


def insert(position: int, key: int, value: str | None) -> dict[str, Any]:
    return change(position, "insert", None, row(key, value))


def update(position: int, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    return change(position, "update", before, after)


def delete(position: int, key: int, value: str | None) -> dict[str, Any]:
    return change(position, "delete", row(key, value), None)


def truncate(position: int) -> dict[str, Any]:
    return change(position, "truncate")


def resolved(
    *changes: dict[str, Any],
    ddl: tuple[str, ...] = (KEYED,),
    tool: str = DEBEZIUM,
    at: int | None = None,
    applied: pa.Table | None = None,
    left_out: tuple[str, ...] | list[str] = (),
    **rest: Any,
) -> MergePlan:
    """Resolve changes of ``shop.t``.

    :param ddl: its statements; the first stands before everything, later ones at 100, 200, ...
    :param at: newest position that the stored rows hold, None where nothing is stored.
    :param applied: changes that the stored rows went through.
    :param left_out: positions of changes that somebody, or a policy, denied.
    """
    timeline = timeline_of(*ddl)
    timeline.denied += left_out
    stored: dict[str, Any] = {}
    if at is not None:
        position = f"{at:08d}.9999999999"
        stored["base_position"] = position
    base = None if at is None else timeline.versions[timeline.version_at(position)].schema
    in_order = ordered(table_of(changes), applied)
    return resolve(in_order, timeline, base, open_format(tool), TypeOptions(), **stored, **rest)


def upserts(step: MergeStep) -> list[tuple[Any, ...]]:
    return sorted(tuple(item.values()) for item in step.upserts.to_pylist())


def deletes(step: MergeStep) -> list[tuple[Any, ...]]:
    return sorted(tuple(item.values()) for item in step.deletes.to_pylist())


def test_the_newest_change_of_a_key_decides_in_whatever_order_records_arrive() -> None:
    history = [
        insert(10, 1, "new"),
        update(20, row(1, "new"), row(1, "paid")),
        update(30, row(1, "paid"), row(1, "sent")),
    ]
    for arrived in (history, history[::-1], [history[2], history[0], history[1]]):
        (step,) = resolved(*arrived).steps
        assert upserts(step) == [(1, "sent")]
        assert deletes(step) == []


def test_a_row_that_was_inserted_and_deleted_leaves_only_its_key_to_delete() -> None:
    (step,) = resolved(insert(10, 1, "a"), delete(20, 1, "a"), insert(30, 2, "b")).steps
    assert upserts(step) == [(2, "b")]
    assert deletes(step) == [(1,)]


def test_a_row_that_was_deleted_and_inserted_again_exists() -> None:
    (step,) = resolved(delete(10, 1, "old"), insert(20, 1, "new")).steps
    assert upserts(step) == [(1, "new")]
    assert deletes(step) == []


def test_an_update_of_the_key_moves_the_row() -> None:
    (step,) = resolved(update(10, row(1, "a"), row(2, "a")), tool=DTLE).steps
    assert upserts(step) == [(2, "a")]
    assert deletes(step) == [(1,)]


def test_two_rows_can_exchange_their_keys_through_a_third_one() -> None:
    moves = [(1, 9, "first"), (2, 1, "second"), (9, 2, "first")]
    changes = [update(10 + n, row(old, v), row(new, v)) for n, (old, new, v) in enumerate(moves)]
    (step,) = resolved(*changes, tool=DTLE).steps
    assert upserts(step) == [(1, "second"), (2, "first")]
    assert deletes(step) == [(9,)]


def test_an_update_to_null_is_a_value_like_any_other() -> None:
    (step,) = resolved(insert(10, 1, "a"), update(20, row(1, "a"), row(1, None))).steps
    assert upserts(step) == [(1, None)]


def test_a_truncate_removes_stored_rows_and_the_changes_before_it() -> None:
    (step,) = resolved(insert(60, 1, "before"), truncate(70), insert(80, 2, "after"), at=50).steps
    assert step.clear
    assert upserts(step) == [(2, "after")]


def test_a_truncate_that_was_left_out_removes_nothing() -> None:
    changes, left_out = (insert(60, 1, "before"), truncate(70), insert(80, 2, "after")), truncate(70)["position"]
    (step,) = resolved(*changes, at=50, left_out=[left_out]).steps
    assert not step.clear
    assert upserts(step) == [(1, "before"), (2, "after")]


def test_a_truncate_that_the_stored_rows_went_through_still_removes_a_row_that_arrives_late() -> None:
    ddl = (KEYED, "TRUNCATE TABLE t")  # at 100
    (step,) = resolved(insert(90, 1, "late"), insert(210, 2, "new"), ddl=ddl, at=200).steps
    assert not step.clear, "the rows stored since the TRUNCATE stay"
    assert upserts(step) == [(2, "new")]


def test_a_change_that_arrives_late_does_not_undo_a_newer_one_that_is_applied() -> None:
    applied = table_of([update(30, row(1, "b"), row(1, "c")), delete(40, 2, "x")])
    late = [update(20, row(1, "a"), row(1, "b")), insert(10, 2, "x"), insert(15, 3, "only late")]
    (step,) = resolved(*late, at=50, applied=applied).steps
    assert upserts(step) == [(1, "c"), (3, "only late")]
    assert deletes(step) == [(2,)]


def test_a_row_from_before_an_added_column_has_the_default_of_that_column() -> None:
    ddl = (KEYED, "ALTER TABLE t ADD COLUMN state VARCHAR(9) NOT NULL DEFAULT 'open'")  # at 100
    later = change(150, "insert", None, {**row(2, "b"), "state": "done"})
    (step,) = resolved(insert(50, 1, "a"), later, ddl=ddl).steps
    assert upserts(step) == [(1, "a", "open"), (2, "b", "done")]


def test_a_changed_primary_key_splits_the_changes_into_two_parts() -> None:
    create = "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20) NOT NULL)"
    ddl = (create, "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (v)")  # at 100
    # id is unique until 100; afterwards two rows may share it
    changes = [insert(50, 1, "a"), insert(60, 2, "gone"), delete(70, 2, "gone"), insert(150, 1, "b")]
    first, second = resolved(*changes, ddl=ddl).steps
    assert (upserts(first), deletes(first)) == ([(1, "a")], [(2,)])
    assert (upserts(second), deletes(second)) == ([(1, "b")], [])


def test_a_table_without_key_keeps_rows_that_are_equal() -> None:
    twice = [change(n, "insert", None, {"a": 1, "v": "x"}) for n in (10, 20)]
    (step,) = resolved(*twice, ddl=(KEYLESS,)).steps
    assert upserts(step) == [(1, "x"), (1, "x")]


def test_a_table_without_key_counts_a_record_that_was_sent_twice_once() -> None:
    record = change(10, "insert", None, {"a": 1, "v": "x"})
    (step,) = resolved(record, {**record, "offset": 99}, ddl=(KEYLESS,)).steps
    assert upserts(step) == [(1, "x")]


def test_an_update_of_a_table_without_key_removes_one_row_and_adds_one() -> None:
    changed = update(10, {"a": 1, "v": "old"}, {"a": 1, "v": "new"})
    (step,) = resolved(changed, ddl=(KEYLESS,)).steps
    assert deletes(step) == [(1, "old")]
    assert upserts(step) == [(1, "new")]


def test_a_snapshot_that_a_table_without_key_does_not_begin_with_is_counted_and_not_applied() -> None:
    """Nothing distinguishes such a row from one that the table already has."""
    initial, ad_hoc = ({**change(position, "snapshot", None, {"a": 1, "v": "x"})} for position in (50, 80))
    plan = resolved(initial, ad_hoc, ddl=(KEYLESS,), snapshots=[initial["position"]])
    assert upserts(plan.steps[-1]) == [(1, "x")]
    assert plan.lossy == {"keyless_snapshot_row": 1}


@pytest.mark.parametrize("bad", ["twenty", "2147483648"])
def test_a_row_whose_value_does_not_fit_is_left_out_and_named_while_the_others_go_on(bad: str) -> None:
    ddl = ("CREATE TABLE t (id INT PRIMARY KEY, v INT)",)
    plan = resolved(insert(10, 1, bad), insert(20, 2, None), ddl=ddl)
    assert [(offset, column) for offset, column, _ in failures(plan)] == [(10, "v")]
    assert upserts(plan.steps[-1]) == [(2, None)]


def test_changes_are_counted_by_operation_as_they_were_received() -> None:
    plan = resolved(insert(10, 1, "a"), insert(20, 2, "b"), delete(30, 1, "a"), truncate(40))
    assert plan.changes == {"insert": 2, "delete": 1, "truncate": 1}


def test_a_batch_without_changes_leaves_an_empty_table_of_the_newest_schema() -> None:
    (step,) = resolved(ddl=(KEYED, "ALTER TABLE t ADD COLUMN n BIGINT")).steps
    assert step.upserts.num_rows == step.deletes.num_rows == 0
    assert step.upserts.schema == pa.schema([("id", pa.int32()), ("v", pa.string()), ("n", pa.int64())])
