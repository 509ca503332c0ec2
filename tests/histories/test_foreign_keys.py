# SPDX-License-Identifier: Apache-2.0
"""Foreign keys change rows without row events: those tables park, and only those.

That MySQL and MariaDB log nothing for child rows was recorded on MySQL 8.0 and MariaDB 10.11.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from airflow_provider_cdc.core.config import RunPolicy
from tests.histories.ddl_statements import Create, Drop
from tests.histories.kinds import Kind
from tests.histories.log import Log
from tests.histories.row_statements import Delete, Insert, Truncate
from tests.histories.run import Case, Replay, described
from tests.histories.source import (
    Column,
    DdlEvent,
    Event,
    Name,
    RowEvent,
    Source,
    Statement,
    Structure,
    TableChange,
    create_text,
    full,
)
from tests.histories.tools import Style

P, C, G = ("shop", "p"), ("shop", "c"), ("shop", "g")
A, B = Column("a", Kind("int"), nullable=False), Column("b", Kind("int"))
KEYED, KEYLESS = Structure((A, B), ("a",)), Structure((A, B))
Ends = tuple[dict[str, int], ...]


@dataclass(frozen=True)
class CreateChild(Statement):
    """CREATE TABLE with a foreign key from ``b`` to the parent's ``a``."""

    name: Name
    parent: Name
    action: str = "ON DELETE CASCADE ON UPDATE CASCADE"
    structure: Structure = KEYED

    def run(self, source: Source) -> list[Event]:
        source.add(self.name, self.structure)
        change = TableChange("CREATE", self.name, self.structure)
        return [DdlEvent(self.sql(), "CREATE", self.name, ((self.name[0], self.sql(), (change,)),))]

    def sql(self) -> str:
        key = f",\n  FOREIGN KEY (`b`) REFERENCES {full(self.parent)} (`a`) {self.action}\n) ENGINE"
        return create_text(self.name, self.structure).replace("\n) ENGINE", key)


@dataclass(frozen=True)
class DeleteParent(Statement):
    """DELETE of one row of a table; the rows below it go without an event."""

    name: Name
    key: int
    below: tuple[Name, ...]

    def run(self, source: Source) -> list[Event]:
        table = source.table(self.name)
        (row,) = [row for row in table.rows if row["a"] == self.key]
        table.rows.remove(row)
        keys = {self.key}
        for name in self.below:
            gone = [row for row in source.table(name).rows if row["b"] in keys]
            source.table(name).rows[:] = [row for row in source.table(name).rows if row not in gone]
            keys = {row["a"] for row in gone}
        return [RowEvent(self.name, table.structure, "d", dict(row), None)]

    def sql(self) -> str:
        return f"DELETE FROM {full(self.name)} WHERE a = {self.key}"


@dataclass(frozen=True)
class ChangeKey(Statement):
    """UPDATE of a parent's key; the rows below it get the new one, or NULL, without an event."""

    name: Name
    old: int
    new: int
    below: Name

    def run(self, source: Source) -> list[Event]:
        table = source.table(self.name)
        (row,) = [row for row in table.rows if row["a"] == self.old]
        before = dict(row)
        row["a"] = self.new
        for child in source.table(self.below).rows:
            if child["b"] == self.old:
                child["b"] = self.new
        return [RowEvent(self.name, table.structure, "k", before, dict(row))]

    def sql(self) -> str:
        return f"UPDATE {full(self.name)} SET a = {self.new} WHERE a = {self.old}"


def rows(name: Name, *pairs: tuple[int, int | None]) -> Insert:
    """Insert rows by key and reference."""
    return Insert(name, tuple({"a": a, "b": b} for a, b in pairs))


def states(log: Log, lake: Path, *statements: Statement, ends: Ends = (), partitions: int = 1) -> dict[str, str]:
    """Replay a history; return the tables' states. The content of tables that are well is right."""
    replay = Replay(Case(0, statements, Style(partitions=partitions), batches=1, ends=ends), log, lake)
    problems = replay.run()
    states = {state.table: state.state for state in replay.states.values() if state.state != "dropped"}
    parked = [f"shop.{name}" for name, state in states.items() if state == "parked"]
    wrong = [problem for problem in problems if not any(f": {name}" in problem for name in parked)]
    assert not wrong, described(replay.case, replay.story, problems)
    for state in replay.states.values():
        assert state.state != "parked" or "[apply.cascaded" in state.reason
    return states


FAMILY = (Create(P, KEYED), CreateChild(C, P), rows(P, (1, 1), (2, 2)), rows(C, (10, 1), (20, 2), (30, None)))
# the schema topic has SET and two statements
FAMILY_ENDS = {"/0": 3, ".shop.p/0": 2, ".shop.c/0": 3}


@pytest.mark.parametrize("ends", [(), (FAMILY_ENDS,)])
def test_a_child_parks_whose_rows_went(ends: Ends, log: Log, lake: Path) -> None:
    assert states(log, lake, *FAMILY, DeleteParent(P, 1, (C,)), ends=ends) == {"p": "ok", "c": "parked"}


@pytest.mark.parametrize("ends", [(), (FAMILY_ENDS,)])
def test_a_child_without_rows_of_that_parent_goes_on(ends: Ends, log: Log, lake: Path) -> None:
    history = (*FAMILY, rows(P, (3, 3)), DeleteParent(P, 3, (C,)), rows(C, (40, 2)))
    assert states(log, lake, *history, ends=ends) == {"p": "ok", "c": "ok"}


@pytest.mark.parametrize("ends", [(), (FAMILY_ENDS,), ({**FAMILY_ENDS, ".shop.p/0": 4},)])
def test_a_child_whose_rows_were_deleted_by_themselves_goes_on(ends: Ends, log: Log, lake: Path) -> None:
    # the last cut has the parent's delete a batch before the child's
    history = (*FAMILY, Delete(C, (0,)), DeleteParent(P, 1, (C,)), rows(C, (40, 2)))
    assert states(log, lake, *history, ends=ends) == {"p": "ok", "c": "ok"}


@pytest.mark.parametrize("ends", [(), (FAMILY_ENDS,)])
def test_a_key_that_came_back_with_new_children(ends: Ends, log: Log, lake: Path) -> None:
    gone = (Delete(C, (0,)), DeleteParent(P, 1, (C,)))
    assert states(log, lake, *FAMILY, *gone, rows(P, (1, 5)), rows(C, (11, 1)), ends=ends) == {"p": "ok", "c": "ok"}


@pytest.mark.parametrize("ends", [(), (FAMILY_ENDS,)])
def test_a_key_that_came_back_does_not_bring_its_children(ends: Ends, log: Log, lake: Path) -> None:
    history = (*FAMILY, DeleteParent(P, 1, (C,)), rows(P, (1, 5)), rows(C, (11, 1)))
    assert states(log, lake, *history, ends=ends) == {"p": "ok", "c": "parked"}


@pytest.mark.parametrize("ends", [(), (FAMILY_ENDS,)])
def test_a_changed_key_parks_the_child(ends: Ends, log: Log, lake: Path) -> None:
    assert states(log, lake, *FAMILY, ChangeKey(P, 1, 9, C), ends=ends) == {"p": "ok", "c": "parked"}


@pytest.mark.parametrize("action", ["ON DELETE RESTRICT", "ON DELETE NO ACTION ON UPDATE RESTRICT", ""])
def test_a_foreign_key_that_changes_no_rows_parks_nothing(action: str, log: Log, lake: Path) -> None:
    # with foreign_key_checks off the child keeps its row
    history = (Create(P, KEYED), CreateChild(C, P, action), rows(P, (1, 1)), rows(C, (10, 1)), DeleteParent(P, 1, ()))
    assert states(log, lake, *history) == {"p": "ok", "c": "ok"}


@pytest.mark.parametrize("ends", [(), (FAMILY_ENDS,)])
def test_a_child_without_key_parks(ends: Ends, log: Log, lake: Path) -> None:
    family = (Create(P, KEYED), CreateChild(C, P, structure=KEYLESS), *FAMILY[2:])
    assert states(log, lake, *family, DeleteParent(P, 1, (C,)), ends=ends) == {"p": "ok", "c": "parked"}


def test_tables_below_a_child_park_too(log: Log, lake: Path) -> None:
    family = (*FAMILY[:2], CreateChild(G, C), *FAMILY[2:], rows(G, (100, 10), (200, 20)))
    before = {"/0": 4, ".shop.p/0": 2, ".shop.c/0": 3, ".shop.g/0": 2}
    history = (*family, DeleteParent(P, 1, (C, G)), rows(G, (300, 20)))
    assert states(log, lake, *history, ends=(before,)) == {"p": "ok", "c": "parked", "g": "parked"}
    later = (before, {**before, ".shop.p/0": 4}, {**before, ".shop.p/0": 4, ".shop.g/0": 3})
    assert states(log, lake, *history, ends=later) == {"p": "ok", "c": "parked", "g": "parked"}


def test_tables_below_a_child_go_on_when_its_own_deletes_come_late(log: Log, lake: Path) -> None:
    family = (*FAMILY[:2], CreateChild(G, C), *FAMILY[2:], rows(G, (100, 10), (200, 20)))
    before = {"/0": 4, ".shop.p/0": 4, ".shop.c/0": 3, ".shop.g/0": 2}
    history = (*family, Delete(G, (0,)), Delete(C, (0,)), DeleteParent(P, 1, ()), rows(G, (300, 20)))
    ends = (before, {**before, ".shop.c/0": 5, ".shop.g/0": 4})
    assert states(log, lake, *history, ends=ends) == {"p": "ok", "c": "ok", "g": "ok"}


def test_a_table_that_refers_to_itself_parks(log: Log, lake: Path) -> None:
    tree = (CreateChild(C, C), rows(C, (1, None), (2, 1), (3, 2), (4, None)))
    assert states(log, lake, *tree, DeleteParent(C, 4, (C,))) == {"c": "ok"}
    assert states(log, lake, *tree, DeleteParent(C, 1, (C,))) == {"c": "parked"}


def test_an_emptied_child_is_known_again(log: Log, lake: Path) -> None:
    history = (*FAMILY, DeleteParent(P, 1, (C,)), Truncate(C), rows(C, (40, 2)))
    assert states(log, lake, *history) == {"p": "ok", "c": "ok"}
    assert states(log, lake, *history, ends=({**FAMILY_ENDS, ".shop.p/0": 4},)) == {"p": "ok", "c": "ok"}


def test_a_child_created_again_is_known_again(log: Log, lake: Path) -> None:
    history = (*FAMILY, DeleteParent(P, 1, (C,)), Drop((C,)), CreateChild(C, P), rows(C, (40, 2)))
    assert states(log, lake, *history, ends=({**FAMILY_ENDS, ".shop.p/0": 4},)) == {"p": "ok", "c": "ok"}


def test_a_policy_keeps_the_rows(log: Log, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.histories.run.RunPolicy", partial(RunPolicy, on_cascade="ignore"))
    history = (*FAMILY[:2], CreateChild(G, C), *FAMILY[2:], DeleteParent(P, 1, (C,)))
    replay = Replay(Case(0, history, Style(partitions=1), batches=1), log, lake)
    problems = replay.run()
    assert problems == ["batch 1 of 1: shop.c: too much (1 x) a='10', b='1'"]
    assert {state.state for state in replay.states.values()} == {"ok"}
