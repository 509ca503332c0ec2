# SPDX-License-Identifier: Apache-2.0
"""Reproduce what random histories have found, each as small as it gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.histories.ddl_statements import Alter, ChangeColumn, Create, CreateLike, Drop, Place, Rename
from tests.histories.log import Log
from tests.histories.plain_tables import INT, KEYED, KEYLESS, A, B, T, U, rows
from tests.histories.row_statements import Delete, Insert, ShiftKey, Truncate, Update
from tests.histories.run import Case, Replay, described
from tests.histories.source import Column, Statement, Structure
from tests.histories.tools import Style


def equal(
    log: Log, lake: Path, *statements: Statement, ends: tuple[dict[str, int], ...], partitions: int = 1, seed: int = 0
) -> Replay:
    """Replay a history in stated cuts; fail when the lake differs."""
    replay = Replay(Case(seed, statements, Style(partitions=partitions), ends=ends), log, lake)
    problems = replay.run()
    assert not problems, described(replay.case, replay.story, problems)
    return replay


@pytest.mark.parametrize("structure", [KEYED, KEYLESS], ids=["keyed", "keyless"])
def test_a_column_that_only_changes_its_place(structure: Structure, log: Log, lake: Path) -> None:
    move = Alter(T, (ChangeColumn("b", "b", location=Place(first=True)),))
    equal(
        log,
        lake,
        Create(T, structure),
        rows(1),
        move,
        rows(2),
        ends=({"/0": 2, ".shop.t/0": 1}, {"/0": 3, ".shop.t/0": 1}),
    )


def test_a_table_that_rewinds_and_moves_leaves_nothing_behind(log: Log, lake: Path) -> None:
    # the row of the new name comes a batch before the RENAME
    later = Insert(U, ({"a": 2, "b": 2},))
    ends = ({"/0": 2, ".shop.t/0": 1, ".shop.u/0": 1},)
    equal(log, lake, Create(T, KEYED), rows(1), Rename(((T, U),)), later, ends=ends)


def test_a_late_row_of_a_table_without_key_stays_behind_a_truncate(log: Log, lake: Path) -> None:
    # this seed sends the first row to partition 0, TRUNCATE and the second row to partition 1
    truncated = (Create(T, KEYLESS), rows(1), Truncate(T), rows(9))
    equal(log, lake, *truncated, ends=({"/0": 2, ".shop.t/1": 2},), partitions=2, seed=6)


def test_a_table_renamed_and_dropped_in_one_batch_is_reported_by_its_last_name(log: Log, lake: Path) -> None:
    switch = (
        CreateLike(("shop", "_gho"), T),
        Rename(((T, ("shop", "_del")), (("shop", "_gho"), T))),
        Drop((("shop", "_del"),)),
    )
    replay = equal(log, lake, Create(T, KEYED), rows(1), *switch, ends=({"/0": 2, ".shop.t/0": 1},))
    states = {(state.table, state.state) for state in replay.states.values()}
    assert states == {("t", "ok"), ("_del", "dropped")}


def test_a_deleted_row_inserted_again(log: Log, lake: Path) -> None:
    equal(log, lake, Create(T, KEYED), rows(1), Delete(T, (0,)), rows(1), ends=({"/0": 2, ".shop.t/0": 2},))


def test_a_table_dropped_before_its_late_rename_came_is_dropped_by_its_last_name(log: Log, lake: Path) -> None:
    table, gho, gone = ("shop", "orders"), ("shop", "_orders_gho"), ("shop", "_orders_del")
    switch = (CreateLike(gho, table), Rename(((table, gone), (gho, table))), Drop((gone,)), Drop((table,)))
    style = Style(partitions=3, embedded=True)  # this seed sends the RENAME to the partition that is read last
    case = Case(3, (Create(table, KEYLESS), *switch), style, batches=3, late=2, replays=2, format="drs-json-c")
    replay = Replay(case, log, lake)
    assert replay.run() == []
    states = {(state.table, state.state) for state in replay.states.values()}
    assert states == {("orders", "dropped"), ("_orders_del", "dropped")}


@pytest.mark.parametrize("seed", (14, 21, 26, 31))
def test_updates_without_unchanged_columns_of_rows_that_took_the_keys_of_others(
    seed: int, log: Log, lake: Path
) -> None:
    """One statement's rows lie on two partitions, numbered again in each: a key is released before it is acquired."""
    table = Structure((A, B, Column("c", INT)), ("a",))
    inserted = Insert(T, tuple({"a": key, "b": key, "c": key} for key in range(1, 9)))
    statements = (Create(T, table), inserted, ShiftKey(T, -1), Update(T, tuple(range(8)), {"b": 0}))
    style = Style(partitions=2, embedded=True, minimal=True)
    replay = Replay(Case(seed, statements, style, batches=1, format="canal-protobuf"), log, lake)
    problems = replay.run()
    assert not problems, described(replay.case, replay.story, problems)
