# SPDX-License-Identifier: Apache-2.0
"""Statements that change rows without row events: the tables park, and what makes their rows known again ends that."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.histories.ddl_statements import Create, Drop
from tests.histories.kinds import Kind
from tests.histories.log import Log
from tests.histories.row_statements import Insert, Truncate
from tests.histories.run import Case, Replay, described
from tests.histories.source import Column, DdlEvent, Event, Name, Source, Statement, Structure, TableChange, full
from tests.histories.tools import Style

T: Name = ("shop", "t")
U: Name = ("shop", "u")
STRUCTURE = Structure((Column("a", Kind("int"), nullable=False), Column("b", Kind("int"))), ("a",))


@dataclass(frozen=True)
class DropPartition(Statement):
    """ALTER TABLE ... DROP PARTITION: its rows go without an event."""

    name: Name

    def run(self, source: Source) -> list[Event]:
        table = source.table(self.name)
        del table.rows[0]
        change = TableChange("ALTER", self.name, table.structure)
        return [DdlEvent(self.sql(), "ALTER", self.name, ((self.name[0], self.sql(), (change,)),))]

    def sql(self) -> str:
        return f"ALTER TABLE {full(self.name)} DROP PARTITION p0"


@dataclass(frozen=True)
class ExchangePartition(Statement):
    """ALTER TABLE ... EXCHANGE PARTITION: both tables' rows change without an event."""

    name: Name
    other: Name

    def run(self, source: Source) -> list[Event]:
        table, other = source.table(self.name), source.table(self.other)
        table.rows, other.rows = other.rows, table.rows
        change = TableChange("ALTER", self.name, table.structure)
        return [DdlEvent(self.sql(), "ALTER", self.name, ((self.name[0], self.sql(), (change,)),))]

    def sql(self) -> str:
        return f"ALTER TABLE {full(self.name)} EXCHANGE PARTITION p0 WITH TABLE {full(self.other)}"


def rows(name: Name, *keys: int) -> Insert:
    """Insert rows by key."""
    return Insert(name, tuple({"a": key, "b": key} for key in keys))


def replayed(log: Log, lake: Path, *statements: Statement, ends: tuple[dict[str, int], ...] = ()) -> Replay:
    """Replay a history, in one batch or in stated cuts."""
    replay = Replay(Case(0, statements, Style(partitions=1), batches=1, ends=ends), log, lake)
    problems = replay.run()
    assert all(" is parked: " in problem for problem in problems if "is parked" in problem)
    replay.story += problems
    return replay


def states(replay: Replay) -> dict[str, str]:
    """Return the state of each table that was not dropped, by name."""
    return {state.table: state.state for state in replay.states.values() if state.state != "dropped"}


@pytest.mark.parametrize(
    "ends", [(), ({"/0": 2, ".shop.t/0": 2},), ({"/0": 3, ".shop.t/0": 2},), ({"/0": 3, ".shop.t/0": 3},)]
)
def test_a_truncate_after_a_dropped_partition(ends: tuple[dict[str, int], ...], log: Log, lake: Path) -> None:
    # the schema topic has SET, CREATE and ALTER; the table's topic two rows, TRUNCATE and a row
    history = (Create(T, STRUCTURE), rows(T, 1, 2), DropPartition(T), Truncate(T), rows(T, 3))
    replay = replayed(log, lake, *history, ends=ends)
    assert states(replay) == {"t": "ok"}, described(replay.case, replay.story, [])
    assert not [line for line in replay.story if "missing" in line or "too much" in line]


@pytest.mark.parametrize("ends", [(), ({"/0": 3, ".shop.t/0": 2},)])
def test_a_table_created_again_after_a_dropped_partition(
    ends: tuple[dict[str, int], ...], log: Log, lake: Path
) -> None:
    again = (Drop((T,)), Create(T, STRUCTURE), rows(T, 3))
    replay = replayed(log, lake, Create(T, STRUCTURE), rows(T, 1, 2), DropPartition(T), *again, ends=ends)
    assert states(replay) == {"t": "ok"}, described(replay.case, replay.story, [])


def test_a_truncate_before_the_dropped_partition_does_not_count(log: Log, lake: Path) -> None:
    history = (Create(T, STRUCTURE), Truncate(T), rows(T, 1, 2), DropPartition(T), rows(T, 3))
    assert states(replayed(log, lake, *history)) == {"t": "parked"}


def test_an_exchanged_partition_parks_both_tables(log: Log, lake: Path) -> None:
    history = (Create(T, STRUCTURE), Create(U, STRUCTURE), rows(T, 1), rows(U, 2), ExchangePartition(T, U))
    assert states(replayed(log, lake, *history)) == {"t": "parked", "u": "parked"}
