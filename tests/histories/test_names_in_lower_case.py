# SPDX-License-Identifier: Apache-2.0
"""A server with lower_case_table_names=1: rows name tables in lower case, statements as they were typed.

Recorded with Debezium on MySQL 8.0: streamed statements, their database and ``tableChanges`` have the typed names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.histories.ddl_statements import Create
from tests.histories.kinds import Kind
from tests.histories.log import Log
from tests.histories.row_statements import Insert
from tests.histories.run import Case, Replay, described
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
