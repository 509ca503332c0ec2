# SPDX-License-Identifier: Apache-2.0
"""Write the records of one table, and read its rows: for tests of rules for columns and rows."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from airflow_provider_cdc.core.timeline.asked_changes import AskedChange
from tests.histories.debezium_records import ddl, row
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

CREATE = "CREATE TABLE shop.t (id int NOT NULL, name varchar(20), born date, n decimal(10,2), PRIMARY KEY (id))"
OPTIONS = {"decimal.handling.mode": "string"}
SALT = {"mask": {"salt": "pepper"}}


def put(pos: int, op: str = "c", before: dict[str, Any] | None = None, **image: Any) -> Record:
    return row(op, "t", pos, image, before=before, key=("id",), time=pos)


def gone(pos: int, **image: Any) -> Record:
    return row("d", "t", pos, None, before=image, key=("id",), time=pos)


def statement(text: str, pos: int) -> Record:
    return ddl(text, pos, time=pos)


ANN = {"id": 1, "name": "Ann", "born": 3650, "n": "12.50"}
BOB = {"id": 2, "name": None, "born": None, "n": "-7.00"}
RECORDS = [statement(CREATE, 4), put(21, **ANN), put(31, **BOB)]


def synced(log: Log, lake: Path, records: list[Record], *cuts: int, **rule: Any) -> Script:
    """Return a pipeline that read records in batches."""
    script = Script(log, lake, tables={"shop.t": rule} if rule else {}, secrets=SALT, options=OPTIONS)
    for start, end in pairwise([0, *cuts, len(records)]):
        script.send(*records[start:end])
        script.sync()
    return script


def stored(script: Script) -> list[dict[str, Any]]:
    """Return the rows of the table, which is as it should be."""
    assert script.states_of("shop", "t") == ["ok"], [state.reason for state in script.states.values()]
    return sorted(DeltaTable(str(script.root / "shop" / "t")).to_pyarrow_table().to_pylist(), key=str)


def digest(text: str) -> str:
    return hashlib.sha256(f"pepper{text}".encode()).hexdigest()


MORE = put(51, id=3, name="Cid", born=1, n="3.00")
OTHER = [statement("CREATE TABLE shop.o (id int PRIMARY KEY)", 5), row("c", "o", 41, {"id": 1}, key=("id",), time=41)]


def with_another(log: Log, lake: Path) -> Script:
    """Return table t with two rows, and another table."""
    script = Script(log, lake, secrets=SALT, options=OPTIONS)
    script.send(*RECORDS, *OTHER)
    script.sync()
    return script


def change(script: Script, rule: dict[str, Any], *records: Record) -> None:
    """State another rule for the table, and run a batch."""
    script.tables = {"shop.t": rule} if rule else {}
    script.send(*records)
    script.sync()


def version(script: Script) -> int:
    return DeltaTable(str(script.root / "shop" / "t")).version()


def lying(script: Script) -> list[dict[str, Any]]:
    """Return the rows that lie at the table's location, whatever its state."""
    return sorted(DeltaTable(str(script.root / "shop" / "t")).to_pyarrow_table().to_pylist(), key=str)


def question(script: Script) -> AskedChange:
    (item,) = script.waiting("t")
    return item
