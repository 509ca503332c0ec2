# SPDX-License-Identifier: Apache-2.0
"""Rows and statements that a tool without positions sends again around a TRUNCATE, a new table, a name or new columns.

What is expected is what the source holds: each test states its changes, and which of the records are repeats.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.histories.canal_rows import LATER, SOON, SWAP, T, content, ddl, key_row, record, row
from tests.histories.log import Log
from tests.histories.scripted import Script
from tests.locations import table_location


@pytest.fixture
def script(log: Log, lake: Path) -> Script:
    log.partitions.clear()
    return Script(log, lake, format="canal-json", schema_topic=None)


@pytest.mark.parametrize("batches", [1, 2])
def test_rows_sent_again_behind_the_drop_of_their_key_do_not_count(script: Script, batches: int) -> None:
    """Without a key they would look like new rows, but they state the key that the table had."""
    drop = "ALTER TABLE shop.t DROP PRIMARY KEY"
    script.send(ddl(0, T), row(10, "INSERT", 1, 1), row(20, "INSERT", 2, 2), ddl(30, drop))
    if batches == 2:
        script.sync()
    script.send(row(SOON, "INSERT", 1, 1), row(SOON, "INSERT", 2, 2), ddl(SOON, drop))
    script.sync()
    assert content(script) == Counter([(1, 1), (2, 2)])


@pytest.mark.parametrize("batches", [1, 2])
def test_a_row_from_before_a_truncate_that_comes_again_contradicts_nothing(script: Script, batches: int) -> None:
    """The key is made again behind the TRUNCATE, and its old row comes just before that."""
    script.send(ddl(0, T), row(10, "INSERT", 2, 1, second=1), ddl(20, "TRUNCATE TABLE t", second=3))
    script.send(row(30, "INSERT", 3, 1, second=3))
    before = script.sync().contradictions if batches == 2 else []
    script.send(row(SOON, "INSERT", 2, 1, second=1), row(SOON + 50, "INSERT", 2, 7, second=4))
    assert [*before, *script.sync().contradictions] == []
    assert content(script) == Counter([(2, 7), (3, 1)])


@pytest.mark.parametrize("batches", [1, 2])
def test_a_row_from_before_a_change_of_columns_that_comes_again_contradicts_nothing(
    script: Script, batches: int
) -> None:
    """The clock of the source may be ahead of the tool's, so times of the two say nothing of each other."""
    ahead = 3_600
    script.send(ddl(0, T, second=ahead), row(10, "INSERT", 1, 1, second=ahead + 1))
    before = script.sync().contradictions if batches == 2 else []
    script.send(ddl(20, "ALTER TABLE t MODIFY v VARCHAR(60)", second=ahead + 2))
    script.send(row(SOON, "INSERT", 1, 1, second=ahead + 1), row(SOON + 9, "INSERT", 2, 2, second=ahead + 3))
    script.send(row(SOON + 20, "DELETE", 1, 1, second=ahead + 4))
    assert [*before, *script.sync().contradictions] == []
    assert content(script) == Counter([(2, "2")])


@pytest.mark.parametrize(
    "batches, when, expected",
    [(1, LATER, Counter()), (2, LATER, Counter()), (1, SOON, Counter()), (2, SOON, "parked")],
)
def test_a_row_in_one_millisecond_with_a_change_of_columns_that_comes_again(
    script: Script, when: int, expected: Any, batches: int
) -> None:
    """Its columns show that it came before the change; its position stands behind. Then DELETE is the newest change."""
    script.send(ddl(0, T), ddl(20, "ALTER TABLE t MODIFY v VARCHAR(60)"), row(20, "INSERT", 1, 1, partition=1))
    if batches == 2:
        script.sync()
    script.send(row(30, "DELETE", 1, 1, partition=1), row(when, "INSERT", 1, 1, partition=1))
    script.sync()
    assert content(script) == expected


@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("kind, second", [("int", 2), ("varchar(9)", "2")])
def test_a_row_from_before_columns_exchanged_their_names_keeps_its_values_where_it_comes_again(
    script: Script, kind: str, second: Any, batches: int
) -> None:
    first = partial(row, op="INSERT", k=1, v=2, kind=kind)
    swap = "ALTER TABLE shop.t RENAME COLUMN k TO v, RENAME COLUMN v TO k"
    script.send(ddl(0, f"CREATE TABLE shop.t (k INT PRIMARY KEY, v {kind})"), first(10), ddl(20, swap))
    if batches == 2:
        script.sync()
    script.send(first(30))
    script.sync()
    assert content(script) == Counter([(1, second)])


@pytest.mark.parametrize("batches", [1, 2])
def test_a_copied_truncate_empties_nothing(script: Script, batches: int) -> None:
    truncate = ddl(10, "TRUNCATE TABLE shop.t")
    script.send(ddl(0, T), truncate, row(20, "INSERT", 1, 1))
    if batches == 2:
        script.sync()
    script.send(truncate, ddl(LATER, "TRUNCATE TABLE shop.t"), ddl(LATER, "TRUNCATE TABLE shop.t", partition=1))
    script.sync()
    assert content(script) == Counter([(1, 1)])


@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("partition", [0, 1])
@pytest.mark.parametrize("when, expected", [(LATER, Counter([(2, 2)])), (SOON, "parked")])
def test_a_row_from_before_a_swap_of_names_does_not_enter_the_other_table(
    script: Script, when: int, expected: Any, partition: int, batches: int
) -> None:
    script.send(ddl(0, T), ddl(0, "CREATE TABLE shop.u (k INT PRIMARY KEY, v INT)", table="u"))
    script.send(row(10, "INSERT", 1, 1), row(10, "INSERT", 2, 2, table="u"), ddl(20, SWAP))
    if batches == 2:
        script.sync()
    script.send(row(when, "INSERT", 1, 1, partition=partition))
    script.sync()
    assert (content(script), content(script, "u")) == (expected, Counter([(1, 1)]))


@pytest.mark.parametrize("batches", [1, 2])
def test_a_row_from_before_a_truncate_stays_away(script: Script, batches: int) -> None:
    script.send(ddl(0, T), row(10, "INSERT", 1, 1), ddl(20, "TRUNCATE TABLE shop.t"), row(30, "INSERT", 2, 2))
    if batches == 2:
        script.sync()
    script.send(row(LATER, "INSERT", 1, 1))
    script.sync()
    assert content(script) == Counter([(2, 2)])


@pytest.mark.parametrize("batches", [1, 2])
def test_rows_of_a_dropped_table_that_come_again_make_no_table(script: Script, batches: int) -> None:
    script.send(ddl(0, T), row(10, "INSERT", 1, 1), ddl(20, "DROP TABLE shop.t", second=1))
    if batches == 2:
        script.sync()
    script.send(row(LATER, "INSERT", 1, 1))
    script.sync()
    assert {state.state for state in script.states.values()} == {"dropped"}


@pytest.mark.parametrize("when, expected", [(LATER, Counter([(2, 2)])), (SOON, "parked")])
def test_a_row_sent_again_behind_a_truncate_that_comes_before_the_one_it_repeats(
    script: Script, when: int, expected: Any
) -> None:
    """The row of partition 1 comes a batch late; until then its repeat seems to be new."""
    script.send(ddl(0, T), row(10, "INSERT", 1, 1, partition=1), ddl(20, "TRUNCATE TABLE shop.t"))
    script.send(row(30, "INSERT", 2, 2, second=1), row(when, "INSERT", 1, 1))
    script.sync({("canal", 0): 4})
    script.sync()
    assert content(script) == expected


@pytest.mark.parametrize("when, expected", [(LATER, Counter([(2, 2)])), (SOON, "parked")])
def test_a_row_sent_again_to_a_new_table_of_its_name_that_comes_before_the_one_it_repeats(
    script: Script, when: int, expected: Any
) -> None:
    """The row of partition 1 comes a batch late, and is of the dropped table."""
    script.send(ddl(0, T), row(10, "INSERT", 1, 1, partition=1), ddl(20, "DROP TABLE shop.t"), ddl(30, T, second=1))
    script.send(row(40, "INSERT", 2, 2, second=1), row(when, "INSERT", 1, 1))
    script.sync({("canal", 0): 5})
    script.sync()
    assert content(script) == expected


def test_a_statement_that_comes_before_the_one_it_repeats(script: Script) -> None:
    drop = "DROP TABLE shop.t"
    script.send(ddl(0, T), row(10, "INSERT", 1, 1), ddl(20, drop), ddl(30, "CREATE TABLE shop.t (k INT PRIMARY KEY)"))
    script.send(ddl(LATER, drop, partition=1))
    script.sync({("canal", 0): 2, ("canal", 1): 1})
    script.sync()
    assert content(script) == Counter() and script.rows("shop", "t") is not None


@pytest.mark.parametrize("late", [0, 1])
def test_copies_of_a_statement_order_it_with_the_rows_of_their_partitions(log: Log, lake: Path, late: int) -> None:
    """OMS writes TRUNCATE to both partitions; rows before and behind it have the same millisecond."""
    log.partitions.clear()
    create = {"create": T}
    script = Script(log, lake, format="oms-canal", schema_topic=None, tables={"shop.t": create})
    truncate = [{"type": "TRUNCATE", "isDdl": True, "data": None}] * 2
    for partition, members in enumerate(truncate):
        before, behind = 10 + partition, 20 + partition
        script.send(row(10, "INSERT", before, 1, partition=partition), record(10, members, partition))
        script.send(row(10, "INSERT", behind, 1, partition=partition))
    if late:
        script.sync({("canal", 0): 3, ("canal", 1): 1})
    script.sync()
    assert content(script) == Counter([(20, 1), (21, 1)])


def test_a_row_in_one_millisecond_with_a_new_table_of_its_name_parks(script: Script) -> None:
    """It may be of the table that was renamed or of the new one, and does not fit the new one."""
    new = "CREATE TABLE shop.t (k INT PRIMARY KEY, w VARCHAR(9), x INT)"
    script.send(ddl(0, T), row(10, "INSERT", 1, 1), ddl(20, "RENAME TABLE shop.t TO shop.u"), ddl(20, new))
    script.send(row(20, "INSERT", 2, 2, partition=1))
    script.sync()
    assert (content(script), content(script, "u")) == ("parked", "parked")


@pytest.mark.parametrize("when, expected", [(LATER, Counter()), (SOON, "parked")])
@pytest.mark.parametrize("batches", [1, 2])
def test_a_row_sent_again_in_one_millisecond_with_a_new_table_of_its_name(
    script: Script, when: int, expected: Any, batches: int
) -> None:
    """Its older second puts it before the CREATE; no table has the name there, so it would be one of the new table."""
    script.send(ddl(0, T), row(10, "INSERT", 1, 1), ddl(20, "DROP TABLE shop.t"))
    if batches == 2:
        script.sync()
    script.send(ddl(when, T, second=1), row(when, "INSERT", 1, 1, partition=1))
    script.sync()
    assert content(script) == expected


def test_a_row_with_other_columns_sent_again_in_one_millisecond_with_a_new_table_of_its_name(script: Script) -> None:
    narrow = "CREATE TABLE shop.t (k INT PRIMARY KEY)"
    script.send(ddl(0, T), row(10, "INSERT", 1, 1), ddl(20, "DROP TABLE shop.t"))
    script.send(ddl(SOON, narrow, second=1), row(SOON, "INSERT", 1, 1, partition=1))
    script.sync()
    assert content(script) == Counter()


def test_a_name_dropped_twice_within_a_second_has_the_columns_of_its_last_table(script: Script) -> None:
    drop = "DROP TABLE shop.t"
    creates = [f"CREATE TABLE shop.t ({name} INT PRIMARY KEY)" for name in "abc"]
    script.send(ddl(0, creates[0]), ddl(10, drop), ddl(20, creates[1]), ddl(30, drop), ddl(40, creates[2]))
    script.sync()
    assert content(script) == Counter()
    assert DeltaTable(table_location(str(script.root), "shop", "t")).to_pyarrow_table().column_names == ["c"]


def test_rows_of_a_name_in_doubt_do_not_wait_once_it_is_certain_again(script: Script) -> None:
    there, back = "RENAME TABLE shop.u TO shop.t", "RENAME TABLE shop.t TO shop.u"
    create = "CREATE TABLE shop.u (k INT PRIMARY KEY, v INT)"
    script.send(ddl(0, create, table="u"), ddl(10, there), ddl(20, back), ddl(30, there), row(40, "INSERT", 1, 1))
    script.send(ddl(50, "DROP TABLE shop.t", second=1), ddl(60, T, second=2), row(70, "INSERT", 2, 2, second=2))
    script.sync()
    assert content(script) == Counter([(2, 2)])


def test_a_later_batch_does_not_wait_for_the_columns_of_a_dropped_table(script: Script) -> None:
    """The rows that batch 3 is compared with have the repeat of a row of the dropped table, and not the row."""
    inserted = row(10, "INSERT", 1, 1)
    script.send(ddl(0, T), inserted)
    script.sync()
    script.send(ddl(20, "DROP TABLE shop.t", second=1), ddl(30, "CREATE TABLE shop.t (k INT PRIMARY KEY)", second=1))
    script.send(key_row(40, 2, second=2), key_row(LATER, 3, second=50), inserted)
    script.sync()
    script.send(key_row(LATER + 10, 4, second=50))
    script.sync()
    assert content(script) == Counter([(2,), (3,), (4,)])


def test_a_row_sent_twice_more_that_the_new_table_of_its_name_cannot_have_is_left_out(script: Script) -> None:
    """It came shortly before the new table too, but has other columns."""
    script.send(ddl(0, T), row(10, "INSERT", 1, 1), ddl(20, "DROP TABLE shop.t", second=1), row(LATER, "INSERT", 1, 1))
    script.send(ddl(LATER + 10, "CREATE TABLE shop.t (k INT PRIMARY KEY)", second=50), row(LATER + 20, "INSERT", 1, 1))
    script.send(key_row(LATER + 30, 2, second=50))
    script.sync()
    assert content(script) == Counter([(2,)])


def test_rows_next_to_the_first_statement_of_a_doubt_do_not_wait_once_the_name_is_certain(script: Script) -> None:
    """The row has the millisecond of the RENAME on a partition that sorts before that of the RENAME."""
    there, back = "RENAME TABLE shop.u TO shop.t", "RENAME TABLE shop.t TO shop.u"
    create = "CREATE TABLE shop.u (k INT PRIMARY KEY, v INT)"
    script.send(ddl(0, create, 1, table="u"), ddl(10, there, 1), ddl(20, back, 1), ddl(30, there, 1))
    script.send(ddl(40, "RENAME TABLE shop.t TO shop.w", 1), row(40, "INSERT", 1, 1, table="w"))
    script.send(ddl(50, "DROP TABLE shop.w", 1, second=1), ddl(60, T.replace("shop.t", "shop.w"), 1, second=2))
    script.send(row(70, "INSERT", 2, 2, partition=1, second=2, table="w"))
    script.sync()
    assert content(script, "w") == Counter([(2, 2)])


def test_a_statement_sent_again_on_a_late_partition_has_no_effect_again(script: Script) -> None:
    """All is of one millisecond, and partition 0, which sorts first, comes a batch after the others."""
    for partition in (0, 1):
        statements = [T, T, "RENAME TABLE shop.t TO shop.u"]
        script.send(*(ddl(0, statement, partition) for statement in statements))
    script.send(row(10, "INSERT", 1, 1, table="u"))
    script.sync({("canal", 0): 0, ("canal", 1): 3})
    script.sync()
    assert content(script, "u") == Counter([(1, 1)])


def test_two_names_exchanged_twice_within_a_second_park(script: Script) -> None:
    for partition in (0, 1):
        script.send(ddl(0, T, partition), ddl(0, T.replace("shop.t", "shop.u"), partition, table="u"))
        script.send(ddl(20, SWAP, partition), ddl(20, SWAP, partition))
    script.send(row(30, "INSERT", 1, 1))
    script.sync({("canal", 0): 2, ("canal", 1): 4})
    script.sync()
    assert (content(script), content(script, "u")) == ("parked", "parked")


def test_a_table_whose_name_is_in_doubt_parks_and_does_not_wait(script: Script) -> None:
    """All statements are of one millisecond on both partitions; batch 1 lacks the last one, and most of partition 0."""
    for partition in (0, 1):
        script.send(ddl(0, T.replace("shop.t", "shop.a"), partition, table="a"), ddl(0, T, partition, second=7))
        script.send(ddl(0, "RENAME TABLE shop.t TO shop.x", partition, second=8))
        script.send(ddl(0, "RENAME TABLE shop.a TO shop.t", partition, second=8))
    script.sync({("canal", 0): 1, ("canal", 1): 3})
    script.sync()
    assert "waiting" not in {state.state for state in script.states.values()}


@pytest.mark.parametrize(("renamed", "outcome"), [(2, Counter([(1, 1)])), (1, "parked")])
def test_a_truncate_and_a_row_behind_a_new_name_of_the_key_lose_nothing(
    renamed: int, outcome: Counter[Any] | str, script: Script
) -> None:
    """Behind a statement of a later second on their partition both were sent again; else the TRUNCATE may be new.

    :param renamed: second of the statement between them and what they repeat.
    """
    truncate = "TRUNCATE TABLE shop.t"
    script.send(ddl(0, T), ddl(10, truncate, second=1), row(15, "INSERT", 1, 1, second=1))
    script.send(ddl(20, "ALTER TABLE shop.t RENAME COLUMN k TO z", second=renamed))
    script.send(ddl(SOON, truncate, second=1), row(SOON + 5, "INSERT", 1, 1, second=1))
    script.sync()
    assert content(script) == outcome


def test_rows_of_an_earlier_table_of_the_name_that_come_again_contradict_nothing(script: Script) -> None:
    """Two helpers of one name are made, filled and renamed; the rows of the first come again behind the second."""
    made, filled = "CREATE TABLE shop.x LIKE shop.t", partial(row, op="INSERT", k=1, v=1, table="x")
    swapped = "RENAME TABLE shop.t TO shop.old, shop.x TO shop.t"
    script.send(ddl(0, T), ddl(10, made, second=1), filled(20, second=1), ddl(30, swapped, second=1))
    script.send(ddl(40, "DROP TABLE shop.old", second=2), ddl(50, made, second=4))
    script.send(filled(SOON, second=1), filled(SOON + 10, second=5), ddl(SOON + 20, swapped, second=6))
    script.send(row(SOON + 200, "INSERT", 2, 2, second=6, partition=1))  # each partition is read as far
    result = script.sync()
    script.send(row(SOON + 300, "INSERT", 3, 3, second=7), row(SOON + 300, "INSERT", 4, 4, second=7, partition=1))
    assert (result.contradictions, script.sync().contradictions) == ([], [])
    assert content(script) == Counter([(k, k) for k in range(1, 5)])
