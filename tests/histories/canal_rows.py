# SPDX-License-Identifier: Apache-2.0
"""Write rows of canal-json, which only a clock orders."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from tests.histories.records import Record
from tests.histories.scripted import Script

START = 1_700_000_000_000  # of the tool's clock, in milliseconds
SOON, LATER = 500, 60_000
T = "CREATE TABLE shop.t (k INT PRIMARY KEY, v INT)"
SWAP = "RENAME TABLE shop.t TO shop.x, shop.u TO shop.t, shop.x TO shop.u"


def record(millis: int, members: dict[str, Any], partition: int = 0, second: int = 0, table: str = "t") -> Record:
    times = {"es": START + second * 1000, "ts": START + millis}
    value = {"database": "shop", "table": table, "id": 0, "isDdl": False, "sql": "", "old": None, **members, **times}
    return Record("canal", partition, START + millis, None, json.dumps(value).encode())


def ddl(millis: int, sql: str, partition: int = 0, second: int = 0, table: str = "t") -> Record:
    kind = {"DROP": "ERASE"}.get(sql.split()[0], sql.split()[0])
    return record(millis, {"type": kind, "isDdl": True, "sql": sql, "data": None}, partition, second, table)


def row(
    millis: int,
    op: str,
    k: int,
    v: int,
    old: int | None = None,
    partition: int = 0,
    second: int = 0,
    table: str = "t",
    kind: str = "int",
) -> Record:
    """Return a row.

    :param kind: type of v, as MySQL writes it.
    """
    data = [{"k": str(k), "v": str(v)}]
    members = {"type": op, "data": data, "old": None if old is None else [{"v": str(old)}], "pkNames": ["k"]}
    types = {"mysqlType": {"k": "int", "v": kind}, "sqlType": {"k": 4, "v": 4 if kind == "int" else 12}}
    return record(millis, {**members, **types}, partition, second, table)


def moved(millis: int, old: int, k: int, v: int, second: int = 0, partition: int = 0) -> Record:
    """Return an UPDATE of a row's key."""
    members = {"type": "UPDATE", "data": [{"k": str(k), "v": str(v)}], "old": [{"k": str(old)}], "pkNames": ["k"]}
    types = {"mysqlType": {"k": "int", "v": "int"}, "sqlType": {"k": 4, "v": 4}}
    return record(millis, {**members, **types}, partition, second)


def key_row(millis: int, k: int, second: int = 0) -> Record:
    """Return an INSERT into a table that has the column k only."""
    members = {"type": "INSERT", "data": [{"k": str(k)}], "pkNames": ["k"]}
    return record(millis, {**members, "mysqlType": {"k": "int"}, "sqlType": {"k": 4}}, second=second)


def content(script: Script, table: str = "t") -> Counter[tuple[Any, ...]] | str:
    """Return the rows of a table, or why it is parked."""
    states = [s for s in script.states.values() if (s.database, s.table) == ("shop", table) and s.state != "dropped"]
    parked = [state.reason for state in states if state.state != "ok"]
    if parked:
        assert all("apply.order_unknown" in reason for reason in parked), parked
        return "parked"
    return script.rows("shop", table) or Counter()
