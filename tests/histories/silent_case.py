# SPDX-License-Identifier: Apache-2.0
"""Describe a loss that was silent once: a history that ended ``ok`` with wrong rows, and what switches its fix off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pytest

from tests.histories.debezium_records import ddl, row
from tests.histories.records import Record
from tests.histories.scripted import Script
from tests.public_cases.case import read_case

Rows = Counter[tuple[Any, ...]]
Truth = Mapping[str, Rows]  # what the source holds, by ``database.table``
Story = Callable[[Script], Iterator[Truth]]
Switch = Callable[[pytest.MonkeyPatch], None]

RIGHT = "right"  # with the fix the rows are right


class Noticed(StrEnum):
    """When somebody notices that rows are wrong."""

    SAME = "in the same batch"
    LATER = "in a later batch"
    VERIFY = "by verify"
    NEVER = "not at all"


def stored_rows(script: Script, name: str) -> Rows | None:
    """Return all rows of a table."""
    return script.rows(*name.split("."))


@dataclass(frozen=True)
class Silent:
    """A loss that was silent once.

    :param kind: number of the loss in the list of those that were found.
    :param what: what went wrong, in words.
    :param story: sends the records of one batch after the other, and yields what the source holds then.
    :param switch: switches the fix off.
    :param fixed: what happens with the fix: :data:`RIGHT`, or the code of what is refused, parked or waits.
    :param noticed: when the witness alone notices it, ``by`` what: kinds of contradictions that are counted, or for
        which the table is ``parked``.
    :param why: what the log shows of it, or why it shows nothing.
    :param silent: number of the batch from which on rows are wrong in silence, counted from 1; 0 where the fix is the
        witness itself, whatever ``verify`` says.
    :param pipeline: arguments of the script.
    :param read: returns what a reader finds in a table.
    """

    kind: str
    what: str
    story: Story
    switch: Switch
    fixed: str
    noticed: Noticed
    why: str
    by: str = ""
    silent: int = 2
    pipeline: Mapping[str, Any] = field(default_factory=dict)
    read: Callable[[Script, str], Rows | None] = stored_rows


@dataclass(frozen=True)
class Unswitched:
    """A loss that was silent once, whose fix cannot be switched off.

    :param why: it cannot.
    """

    kind: str
    what: str
    why: str


COLUMNS = {"id": "int", "v": "int"}
KEY = ("id",)
CREATE = ddl("CREATE TABLE t (id INT PRIMARY KEY, v INT)", 100, table="t", columns=COLUMNS, key=KEY)


def insert(number: int, pos: int, table: str = "t") -> Record:
    """Return the insert of a row that has its number in both columns."""
    return row("c", table, pos, {"id": number, "v": number}, key=KEY)


def update(number: int, pos: int, table: str = "t") -> Record:
    """Return the update of a row that is as it was inserted."""
    return row("u", table, pos, {"id": number, "v": 10 * number}, before={"id": number, "v": number}, key=KEY)


def holds(*rows: tuple[Any, ...], table: str = "shop.t") -> Truth:
    """Return that a table has these rows."""
    return {table: Counter(rows)}


def of_public_case(name: str) -> list[Record]:
    """Return the records of a set-up in tests/public_cases."""
    return [Record(r.topic, r.partition, r.timestamp, r.key, r.value, r.headers) for r in read_case(name).records]
