# SPDX-License-Identifier: Apache-2.0
"""Write records of which some cannot be read, and report how their tables end."""

from __future__ import annotations

from tests.histories.debezium_records import ddl, row
from tests.histories.records import Record
from tests.histories.scripted import Script

OK, PARKED, DROPPED, REFUSED = "ok", "parked", "dropped", "refused"


def create(table: str, pos: int) -> Record:
    columns = {"id": "int", "v": "varchar"}
    text = f"CREATE TABLE `{table}` (`id` int, `v` varchar(20), PRIMARY KEY (`id`))"
    return ddl(text, pos, time=pos, table=table, columns=columns, key=("id",))


def insert(table: str, number: int, pos: int) -> Record:
    return row("c", table, pos, {"id": number, "v": f"v{number}"}, key=("id",), time=pos)


def outcome(script: Script) -> dict[str, str]:
    """Return the states of all tables that are not dropped."""
    return {s.table: str(s.state) for s in script.states.values() if s.state != DROPPED}
