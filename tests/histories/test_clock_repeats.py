# SPDX-License-Identifier: Apache-2.0
"""Rows that a tool without positions sends again at their key (docs/formats/README.md, Order); Canal's flat JSON.

What is expected is what the source holds: each test states its changes, and which of the records are repeats.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.histories.canal_rows import LATER, SOON, START, T, content, ddl, moved, row
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script
from tests.locations import table_location


@pytest.fixture
def script(log: Log, lake: Path) -> Script:
    log.partitions.clear()
    return Script(log, lake, format="canal-json", schema_topic=None)


@pytest.mark.parametrize("batches", [1, 2])
def test_an_old_row_that_comes_again_does_not_bring_back_what_was_changed_since(script: Script, batches: int) -> None:
    script.send(ddl(0, T), row(10, "INSERT", 1, 1), row(20, "UPDATE", 1, 2, old=1), row(30, "INSERT", 2, 1))
    if batches == 2:
        script.sync()
    script.send(row(LATER, "INSERT", 1, 1), row(LATER, "UPDATE", 1, 2, old=1))
    script.send(row(LATER + 5, "INSERT", 1, 1, partition=1))
    script.sync()
    assert content(script) == Counter([(1, 2), (2, 1)])


@pytest.mark.parametrize("mode", ["mirror", "soft_delete"])
def test_an_old_row_that_comes_again_with_a_late_one_of_another_key_flags_nothing(script: Script, mode: str) -> None:
    script.tables = {"shop.t": {"mode": mode}}
    script.send(ddl(0, T), row(10, "INSERT", 1, 1), row(20, "UPDATE", 1, 2, old=1))
    script.sync()
    script.send(row(5, "INSERT", 2, 1, partition=1), row(LATER, "INSERT", 1, 1, partition=2))
    script.sync()
    flags = (False, None) if mode == "soft_delete" else ()
    assert content(script) == Counter([(1, 2, *flags), (2, 1, *flags)])


def test_a_row_goes_with_the_values_that_it_had_where_an_older_one_came_again(script: Script) -> None:
    script.tables = {"shop.t": {"mode": "soft_delete", "columns": {"metadata": {"op": "_op"}}}}
    script.send(ddl(0, T), row(10, "INSERT", 1, 1), row(20, "UPDATE", 1, 2, old=1))
    script.sync()
    script.send(row(5, "INSERT", 2, 1, partition=1), row(LATER, "INSERT", 1, 1, partition=2))
    script.send(row(LATER + SOON, "DELETE", 1, 2, second=9))
    script.sync()
    rows = DeltaTable(table_location(str(script.root), "shop", "t")).to_pyarrow_table().to_pylist()
    assert sorted(tuple(one.values())[:4] for one in rows) == [(1, 2, "update", True), (2, 1, "insert", False)]


def with_secret(record: Record) -> Record:
    """Return the record of a row of a table with one column more."""
    entry = json.loads(record.value or b"")
    entry["data"][0]["s"], entry["mysqlType"]["s"], entry["sqlType"]["s"] = "secret", "varchar(9)", 12
    return replace(record, value=json.dumps(entry).encode())


WIDER = "CREATE TABLE shop.t (k INT PRIMARY KEY, v INT, s VARCHAR(9))"
UNLOGGED = {"shop.t": {"columns": {"unlogged": "s"}}}


@pytest.mark.parametrize("synced_before", [True, False])
def test_a_row_that_comes_again_is_known_without_a_value_that_now_stays_out_of_the_log(
    script: Script, synced_before: bool
) -> None:
    script.policy = {"on_rule_change": "apply", "quarantine_limit": 0}
    script.tables = {} if synced_before else {"shop.t": {"mode": "append"}}  # which waits: nothing shows the order
    script.send(ddl(0, WIDER), with_secret(row(10, "INSERT", 1, 1)), with_secret(row(20, "UPDATE", 1, 2, old=1)))
    script.sync()
    script.tables = UNLOGGED
    script.send(with_secret(row(LATER, "INSERT", 1, 1)), with_secret(row(LATER + 5, "INSERT", 2, 1)))
    script.sync()
    assert content(script) == Counter([(1, 2), (2, 1)])


def test_a_row_that_comes_again_with_a_value_that_stayed_out_of_the_log_brings_nothing_back(script: Script) -> None:
    script.policy, script.tables = {"on_rule_change": "apply"}, UNLOGGED
    script.send(ddl(0, WIDER), with_secret(row(10, "INSERT", 1, 1)), with_secret(row(20, "UPDATE", 1, 2, old=1)))
    script.sync()
    script.tables = {}
    script.send(with_secret(row(LATER, "INSERT", 1, 1)))
    script.sync()
    (state,) = script.states.values()
    assert state.state == "parked" and state.code == "apply.values_unlogged", state.reason


def test_an_insert_and_the_move_of_its_key_that_come_again_in_two_batches(script: Script) -> None:
    """The repeated UPDATE has to meet the repeated INSERT, which is of an older second and of a later batch."""
    script.send(ddl(0, T), row(10, "INSERT", 4, 1), moved(20, 4, 0, 1, second=7))
    script.sync()
    script.send(row(SOON, "INSERT", 4, 1))
    script.sync()
    script.send(moved(SOON + 10, 4, 0, 1, second=7))
    script.sync()
    assert content(script) == Counter([(0, 1)])


@pytest.mark.parametrize("batches", [1, 2])
def test_a_deleted_row_that_comes_again_long_after_parks_until_the_key_changes(script: Script, batches: int) -> None:
    script.send(ddl(0, T), row(10, "INSERT", 1, 1), row(20, "DELETE", 1, 1), row(30, "INSERT", 2, 1))
    if batches == 2:
        script.sync()
    script.send(row(LATER, "INSERT", 1, 1))
    script.sync()
    assert content(script) == "parked"
    script.send(row(LATER + 10, "INSERT", 1, 7, second=50))
    script.sync()
    assert content(script) == Counter([(1, 7), (2, 1)])


@pytest.mark.parametrize("batches", [1, 2])
def test_a_row_made_again_within_a_second_counts(script: Script, batches: int) -> None:
    script.send(ddl(0, T), row(10, "INSERT", 1, 1), row(20, "DELETE", 1, 1))
    if batches == 2:
        script.sync()
    script.send(row(30, "INSERT", 1, 1))
    script.sync()
    assert content(script) == Counter([(1, 1)])


@pytest.mark.parametrize("batches", [1, 2])
def test_a_copied_record_counts_for_nothing_whatever_its_place(script: Script, batches: int) -> None:
    """The tool built it before what its partition shows: nobody but a copier sends it."""
    inserted, deleted = row(10, "INSERT", 1, 1), row(20, "DELETE", 1, 1)
    script.send(ddl(0, T), inserted, deleted, row(30, "INSERT", 2, 2))
    if batches == 2:
        script.sync()
    script.send(inserted, deleted, ddl(0, T))
    script.sync()
    assert content(script) == Counter([(2, 2)])


def test_a_late_row_does_not_bring_back_repeats_that_were_left_out(script: Script) -> None:
    """The row of partition 1 comes a batch late: what it is compared with has the repeat of a truncated row."""
    script.send(ddl(0, T), row(10, "INSERT", 1, 1), ddl(20, "TRUNCATE TABLE shop.t"), row(LATER, "INSERT", 1, 1))
    script.send(row(30, "INSERT", 2, 2, partition=1))
    script.sync({("canal", 0): 3})
    script.sync({("canal", 0): 4})
    script.sync()
    assert content(script) == Counter([(2, 2)])


@pytest.mark.parametrize("batches", [2, 3])
def test_a_late_row_is_not_overwritten_by_the_repeat_of_a_row_before_it(script: Script, batches: int) -> None:
    """The UPDATE of partition 1 comes a batch later than the repeat."""
    script.send(ddl(0, T), row(10, "INSERT", 1, 1), row(20, "UPDATE", 1, 2, old=1, second=1))
    if batches == 3:
        script.sync()
    script.send(row(LATER, "INSERT", 1, 1))
    script.sync()
    script.send(row(30, "UPDATE", 1, 3, old=2, partition=1, second=2))
    script.sync()
    assert content(script) == Counter([(1, 3)])


@pytest.mark.parametrize("batches", [1, 2])
def test_a_copy_on_another_partition_leaves_the_state_of_its_key_known(script: Script, batches: int) -> None:
    """Its partition never showed a newer time, so the copy has the millisecond of the UPDATE."""
    updated = row(20, "UPDATE", 1, 2, old=1, second=1)
    script.send(ddl(0, T), row(10, "INSERT", 1, 1), updated, row(LATER, "INSERT", 1, 1))
    if batches == 2:
        script.sync()
    script.send(replace(updated, partition=1, time=START + 2 * LATER))
    script.sync()
    assert content(script) == Counter([(1, 2)])


@pytest.mark.parametrize("batches", [2, 3])
@pytest.mark.parametrize("copied", [False, True])
def test_an_update_made_again_behind_a_repeat_of_a_much_older_row_counts(
    script: Script, copied: bool, batches: int
) -> None:
    """The first row is not read again with the last, and its repeat did not count."""
    inserted = row(10, "INSERT", 1, 0)
    script.send(ddl(0, T), inserted, row(20, "UPDATE", 1, 1, old=0))
    script.sync()
    script.send(row(LATER, "UPDATE", 1, 2, old=1, second=20), row(LATER + 10, "UPDATE", 1, 1, old=2, second=20))
    script.send(inserted if copied else row(LATER + 20, "INSERT", 1, 0))
    if batches == 3:
        script.sync()
    script.send(row(LATER + 30, "UPDATE", 1, 2, old=1, second=20))
    script.sync()
    assert content(script) == Counter([(1, 2)])


@pytest.mark.parametrize("batches", [1, 2])
def test_rows_that_move_on_twice_each_time_within_a_millisecond(script: Script, batches: int) -> None:
    """Each time one row leaves key 7 and another one takes it, on another partition."""
    script.send(ddl(0, T), row(10, "INSERT", 7, 1), row(10, "INSERT", 6, 1), row(10, "INSERT", 5, 1))
    if batches == 2:
        script.sync()
    script.send(moved(20, 7, 8, 1, 1, partition=1), moved(20, 6, 7, 1, 1), moved(21, 5, 6, 1, 1, partition=1))
    script.send(moved(30, 8, 9, 1, 2), moved(40, 7, 8, 1, 2, partition=1), moved(40, 6, 7, 1, 2))
    script.sync()
    assert content(script) == Counter([(9, 1), (8, 1), (7, 1)])


def test_a_key_taken_and_left_twice_of_which_an_earlier_batch_saw_the_first(script: Script) -> None:
    """Two milliseconds end as they began; the stored row is of the first, which the second batch completes."""
    script.send(ddl(0, T), row(10, "INSERT", 1, 1, second=1))
    script.sync()
    script.send(moved(10, 1, 2, 1, second=1, partition=1))
    script.send(moved(20, 2, 1, 1, second=2), moved(20, 1, 3, 1, second=2, partition=1))
    script.sync()
    assert content(script) == Counter([(3, 1)])


def test_of_a_record_and_its_copy_the_record_is_the_one_sent_first(script: Script) -> None:
    """The copy's partition sorts before that of the record; behind it the row may have come or been made again."""
    updated, deleted = row(10, "UPDATE", 1, 2, old=1, partition=1), row(10, "DELETE", 1, 2, partition=1)
    script.send(ddl(0, T, partition=1), row(10, "INSERT", 1, 1, partition=1), updated, deleted)
    script.send(row(10, "INSERT", 1, 2, partition=1), deleted)
    script.send(replace(updated, partition=0, time=START + LATER), row(2 * LATER, "INSERT", 1, 2))
    script.sync()
    assert content(script) == "parked"


def test_a_row_made_again_at_once_and_one_sent_again_much_later_count_each_by_itself(script: Script) -> None:
    """All is of one second; the second DELETE counts, the last INSERT does not, and the log does not show it."""
    script.send(ddl(0, T), row(5, "INSERT", 2, 1), moved(10, 2, 1, 1, partition=1))
    script.send(row(10, "DELETE", 1, 1), row(10, "INSERT", 1, 1), row(10, "DELETE", 1, 1), row(LATER, "INSERT", 1, 1))
    script.sync()
    assert content(script) == "parked"


def test_rows_resolved_again_are_not_compared_with_themselves(script: Script) -> None:
    """The ALTER of partition 2 comes two batches late; all changes are of one second, so each may repeat another."""
    script.send(ddl(0, T), row(10, "INSERT", 1, 1))
    script.sync()
    script.send(row(20, "UPDATE", 1, 2, old=1), row(20, "UPDATE", 1, 3, old=2, partition=1))
    script.sync()
    script.send(row(30, "INSERT", 2, 2))
    script.sync()
    script.send(ddl(15, "ALTER TABLE shop.t MODIFY v BIGINT", partition=2))
    script.sync()
    assert content(script) == Counter([(1, 3), (2, 2)])


def test_a_copied_record_that_would_bring_a_deleted_row_back_parks(script: Script) -> None:
    inserted = row(10, "INSERT", 1, 1)
    script.send(ddl(0, T), inserted, row(20, "DELETE", 1, 1), inserted)
    script.sync()
    assert content(script) == "parked"


@pytest.mark.parametrize("batches", [1, 2])
def test_a_row_in_doubt_and_a_copied_move_of_its_key_are_two_questions(script: Script, batches: int) -> None:
    """The row was made before the TRUNCATE or behind it, and the key was left once: only then the row is there."""
    script.send(ddl(0, T), ddl(5, "TRUNCATE TABLE t"), row(10, "INSERT", 7, 1))
    if batches == 2:
        script.sync()
    script.send(ddl(SOON, "TRUNCATE TABLE t"), row(SOON + 9, "INSERT", 7, 1), moved(SOON + 9, 7, 10, 1, partition=1))
    script.send(moved(SOON + 9, 7, 10, 1, partition=1), moved(SOON + 9, 10, 6, 1, second=1, partition=1))
    script.send(moved(SOON + 9, 6, 7, 1, second=1))
    script.sync()
    assert content(script) == "parked"


def test_rows_behind_those_that_are_compared_are_compared_with_older_ones_too(script: Script) -> None:
    """Key 8 is taken, left and taken again; the rest of what is sent again, the leaving, comes a batch later."""
    script.send(ddl(0, T), row(10, "INSERT", 2, 1), moved(20, 2, 8, 1), moved(30, 8, 5, 1, second=7, partition=1))
    script.send(row(40, "INSERT", 8, 4, second=8), row(50, "UPDATE", 8, 5, old=4, second=8))
    script.send(row(SOON, "INSERT", 2, 1), moved(SOON + 10, 2, 8, 1))
    script.sync()
    script.send(moved(SOON + 20, 8, 5, 1, second=7, partition=1))
    script.sync()
    assert content(script) == Counter([(5, 1), (8, 5)])


def test_a_row_that_comes_before_the_one_it_repeats(script: Script) -> None:
    """Partition 0 is read late: its INSERT and UPDATE come a batch after the repeat of the INSERT on partition 1."""
    script.send(ddl(0, T), row(10, "INSERT", 1, 1), row(20, "UPDATE", 1, 2, old=1))
    script.send(row(LATER, "INSERT", 1, 1, partition=1))
    script.sync({("canal", 0): 1, ("canal", 1): 1})
    script.sync()
    assert content(script) == Counter([(1, 2)])


def test_a_later_batch_does_not_bring_back_a_repeat_that_was_left_out(script: Script) -> None:
    """The rows that batch 3 is compared with have the repeat of the INSERT, and not the INSERT."""
    inserted = row(10, "INSERT", 1, 1)
    script.send(ddl(0, T), inserted, row(20, "UPDATE", 1, 2, old=1, second=1))
    script.sync()
    script.send(row(LATER, "INSERT", 2, 2, second=50), inserted)
    script.sync()
    script.send(row(LATER + 10, "INSERT", 3, 3, second=50))
    script.sync()
    assert content(script) == Counter([(1, 2), (2, 2), (3, 3)])


def test_a_repeat_that_counted_until_late_rows_came_is_taken_back(script: Script) -> None:
    """The move of key 2 comes again a batch before the INSERTs around it; until then it seems to be made again."""
    script.send(ddl(0, T), row(10, "INSERT", 2, 1, second=1), moved(20, 2, 5, 1, second=2))
    script.send(row(30, "INSERT", 2, 1, second=3))
    script.sync()
    script.send(moved(SOON + 10, 2, 5, 1, second=2, partition=1))
    script.sync()
    script.send(row(SOON, "INSERT", 2, 1, second=1), row(SOON + 10, "INSERT", 2, 1, second=3))
    script.sync()
    assert content(script) == Counter([(5, 1), (2, 1)])
