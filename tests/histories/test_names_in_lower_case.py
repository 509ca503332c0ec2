# SPDX-License-Identifier: Apache-2.0
"""A server with lower_case_table_names=1: rows name tables in lower case, statements as they were typed.

Recorded with Debezium on MySQL 8.0: streamed statements, their database and ``tableChanges`` have the typed names.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.histories.ddl_statements import Create
from tests.histories.debezium_records import ddl, row
from tests.histories.kinds import Kind
from tests.histories.log import Log
from tests.histories.row_statements import Insert
from tests.histories.run import Case, Replay, described
from tests.histories.scripted import Script
from tests.histories.source import Column, DdlEvent, Event, Name, Source, Statement, Structure
from tests.histories.tools import Style

T: Name = ("shop", "orders")
STRUCTURE = Structure((Column("a", Kind("int"), nullable=False), Column("b", Kind("int"))), ("a",))


@dataclass(frozen=True)
class Typed(Statement):
    """A statement whose names were typed in another case than the server stores them."""

    statement: Statement

    def run(self, source: Source) -> list[Event]:
        return [_typed(event) for event in self.statement.run(source)]

    def sql(self) -> str:
        return self.statement.sql().replace("orders", "Orders")


def _typed(event: Event) -> Event:
    assert isinstance(event, DdlEvent)
    records = tuple(
        (
            database.title(),
            text.replace("orders", "Orders"),
            tuple(replace(change, name=(change.name[0].title(), change.name[1].title())) for change in changes),
        )
        for database, text, changes in event.records
    )
    return replace(event, statement=event.statement.replace("orders", "Orders"), records=records)


def replay(log: Log, lake: Path, monkeypatch: pytest.MonkeyPatch, **options: str) -> tuple[Replay, list[str]]:
    """Replay a history under settings of the server."""
    history = (Typed(Create(T, STRUCTURE)), Insert(T, ({"a": 1, "b": 1},)))
    attempt = Replay(Case(0, history, Style(partitions=1), batches=1), log, lake)
    job = attempt._job

    def with_options(*arguments: Any) -> Any:
        document = job(*arguments)
        document.format_options.update(options)
        return document

    monkeypatch.setattr(attempt, "_job", with_options)
    return attempt, attempt.run()


def test_rows_find_their_table_where_the_setting_is_stated(
    log: Log, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt, problems = replay(log, lake, monkeypatch, lower_case_table_names="1")
    assert not problems, described(attempt.case, attempt.story, problems)
    assert [(state.table, state.state) for state in attempt.states.values()] == [("orders", "ok")]


def test_rows_that_wait_name_the_setting(log: Log, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt, _ = replay(log, lake, monkeypatch)
    (waiting,) = (state for state in attempt.states.values() if state.table == "orders")
    assert waiting.state == "waiting"
    assert "there is one of Shop.Orders" in waiting.reason
    assert "source.options.lower_case_table_names" in waiting.reason


COLUMNS = {"id": "int", "v": "int"}
TRUNCATE = "KEPT"  # as it was typed: recorded in the record of a TRUNCATE, whose topic is that of the rows


def truncated(log: Log, lake: Path, option: str | None, *, apart: bool) -> Script:
    """Sync a table ``shop.kept`` with two rows, a TRUNCATE that names it in upper case, and a row."""
    script = Script(log, lake, options={} if option is None else {"lower_case_table_names": option})
    created = "kept" if option is None else "Kept"
    script.send(
        ddl(f"CREATE TABLE {created} (id INT PRIMARY KEY, v INT)", 10, table=created, columns=COLUMNS, key=("id",)),
        *(row("c", "kept", 20 + number, {"id": number, "v": number}, key=("id",)) for number in (1, 2)),
    )
    if apart:
        script.sync()
    script.send(replace(row("t", TRUNCATE, 40, None), topic="src.shop.kept"))
    if apart:
        script.sync()
    script.send(row("c", "kept", 50, {"id": 3, "v": 3}, key=("id",)))
    script.sync()
    return script


@pytest.mark.parametrize("apart", [False, True], ids=["one-batch", "batches"])
def test_a_truncate_as_typed_empties_the_table_where_the_setting_is_stated(log: Log, lake: Path, apart: bool) -> None:
    script = truncated(log, lake, "1", apart=apart)
    assert script.rows("shop", "kept") == Counter([(3, 3)])
    assert [(state.table, state.state) for state in script.states.values()] == [("kept", "ok")]


@pytest.mark.parametrize("apart", [False, True], ids=["one-batch", "batches"])
def test_a_truncate_as_typed_parks_the_table_that_it_may_mean_until_the_setting_is_stated(
    log: Log, lake: Path, apart: bool
) -> None:
    script = truncated(log, lake, None, apart=apart)
    (parked,) = (state for state in script.states.values() if state.table == "kept")
    assert parked.state == "parked"
    assert "a TRUNCATE names shop.KEPT" in parked.reason
    assert "state source.options.lower_case_table_names" in parked.reason

    script.options = {"lower_case_table_names": "1"}
    script.send(row("c", "kept", 60, {"id": 4, "v": 4}, key=("id",)))
    script.sync()
    assert script.rows("shop", "kept") == Counter([(3, 3), (4, 4)])
    assert script.states_of("shop", "kept") == ["ok"]
    assert script.states_of("shop", TRUNCATE) == ["dropped"]


@pytest.mark.parametrize("apart", [False, True], ids=["one-batch", "batches"])
def test_names_in_two_cases_are_two_tables_where_the_setting_is_0(log: Log, lake: Path, apart: bool) -> None:
    script = Script(log, lake, options={"lower_case_table_names": "0"})
    for pos, table in ((10, "kept"), (11, TRUNCATE)):
        text = f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)"
        script.send(ddl(text, pos, table=table, columns=COLUMNS, key=("id",)))
        script.send(row("c", table, 20 + pos, {"id": 1, "v": 1}, key=("id",)))
    if apart:
        script.sync()
    script.send(row("t", TRUNCATE, 40, None))
    script.sync()
    assert script.rows("shop", "kept") == Counter([(1, 1)])
    assert script.rows("shop", TRUNCATE) == Counter()
