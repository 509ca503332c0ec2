# SPDX-License-Identifier: Apache-2.0
"""Write rows of canal-json, which only a clock orders."""

from __future__ import annotations

import json
from typing import Any

from tests.histories.records import Record

START = 1_700_000_000_000  # of the tool's clock, in milliseconds


def record(millis: int, members: dict[str, Any], partition: int = 0, second: int = 0, table: str = "t") -> Record:
    times = {"es": START + second * 1000, "ts": START + millis}
    value = {"database": "shop", "table": table, "id": 0, "isDdl": False, "sql": "", "old": None, **members, **times}
    return Record("canal", partition, START + millis, None, json.dumps(value).encode())


def ddl(millis: int, sql: str, partition: int = 0, second: int = 0, table: str = "t") -> Record:
    kind = {"DROP": "ERASE"}.get(sql.split()[0], sql.split()[0])
    return record(millis, {"type": kind, "isDdl": True, "sql": sql, "data": None}, partition, second, table)
