# SPDX-License-Identifier: Apache-2.0
"""Rows of a name that no schema change has created yet: they stay in sight until one does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.histories.debezium_records import TOPIC, ddl, row, snapshot_ddl
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

COLUMNS = {"id": "int", "v": "int"}
KEY = ("id",)
DDL_TOPIC = (TOPIC, 0)


def insert(table: str, number: int, pos: int, **more: Any) -> Record:
    return row("c", table, pos, {"id": number, "v": number}, key=KEY, **more)


@pytest.fixture
def script(log: Log, lake: Path) -> Script:
    """Tables a, b and c with a row each, applied."""
    script = Script(log, lake)
    script.send(*snapshot_ddl(100, {name: (COLUMNS, KEY) for name in "abc"}))
    script.send(*(insert(name, number, 100 + number) for number, name in enumerate("abc", 1)))
    script.sync()
    return script


def test_a_waiting_name_stays_listed_while_its_rows_have_no_table(script: Script) -> None:
    script.held = {DDL_TOPIC}
    script.send(ddl("RENAME TABLE a TO z", 200, table="z", columns=COLUMNS, key=KEY), insert("z", 9, 210))
    script.sync()
    assert script.states_of("shop", "z") == ["waiting"]
    script.send(insert("b", 8, 220))  # a batch without a row of z
    script.sync()
    assert script.states_of("shop", "z") == ["waiting"]
    script.held = set()
    script.sync()
    assert script.rows("shop", "z") == Counter({(1, 1): 1, (9, 9): 1})
    assert [state for state in script.states_of("shop", "z") if state != "dropped"] == ["ok"]


def test_a_waiting_name_parks_after_the_grace_time_though_it_has_no_new_rows(script: Script) -> None:
    script.send(insert("z", 9, 210))
    script.sync()
    for _ in range(6):  # minutes; the grace time is five
        script.send(insert("b", 8, 220 + script.minutes))
        script.sync()
    assert script.states_of("shop", "z") == ["parked"]


def test_three_names_swapped_and_moved_to_another_database_a_batch_after_their_rows(script: Script) -> None:
    swap = "RENAME TABLE a TO tmp, b TO a, c TO b, tmp TO c"
    script.held = {DDL_TOPIC}
    script.send(ddl(swap, 200), ddl("RENAME TABLE shop.c TO archive.c", 300))
    moved = row("c", "c", 310, {"id": 7, "v": 7}, key=KEY, db="archive")
    script.send(moved, insert("a", 6, 210), insert("b", 5, 210))
    script.sync()
    script.send(insert("b", 4, 320))
    script.sync()
    assert script.states_of("archive", "c") == ["waiting"]
    script.held = set()
    script.sync()
    assert script.rows("archive", "c") == Counter({(1, 1): 1, (7, 7): 1})
    assert script.rows("shop", "a") == Counter({(2, 2): 1, (6, 6): 1})
    assert script.rows("shop", "b") == Counter({(3, 3): 1, (5, 5): 1, (4, 4): 1})
    assert script.rows("shop", "c") == Counter()
    assert [state for state in script.states_of("archive", "c") if state != "dropped"] == ["ok"]
