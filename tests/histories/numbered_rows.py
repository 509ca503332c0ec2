# SPDX-License-Identifier: Apache-2.0
"""Rows of tables with two columns, both of which have the row's number."""

from __future__ import annotations

from collections import Counter

from tests.histories.debezium_records import row
from tests.histories.records import Record

COLUMNS = {"id": "int", "v": "int"}
KEY = ("id",)


def insert(table: str, number: int, pos: int, *, keyed: bool = True) -> Record:
    """Return the insert of a row."""
    return row("c", table, pos, {"id": number, "v": number}, key=KEY if keyed else ())


def expected(*numbers: int) -> Counter[tuple[int, ...]]:
    """Return what a table holds that has these rows."""
    return Counter({(number, number): 1 for number in numbers})
