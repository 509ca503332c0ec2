# SPDX-License-Identifier: Apache-2.0
"""Count the work of reading what the page shows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event, insert

from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.ledger import Ledger, schema
from airflow_provider_cdc.ledger.database import Database
from airflow_provider_cdc.plugins import pipeline_rows, table_rows
from tests.airflow.page_ledger import state

PIPELINES, TABLES = 500, 1000


@contextmanager
def counted(database: Database) -> Iterator[dict[str, int]]:
    """Count the statements and the steps of SQLite's virtual machine, in hundreds."""
    work = {"statements": 0, "steps": 0}

    def step() -> int:
        work["steps"] += 1
        return 0

    def connect(connection: sqlite3.Connection, _record: object) -> None:
        connection.set_progress_handler(step, 100)

    def execute(*_arguments: Any) -> None:
        work["statements"] += 1

    with database.reading():
        pass  # the engine is there then
    engine = database._engine
    assert engine is not None
    event.listen(engine, "connect", connect)
    event.listen(engine, "before_cursor_execute", execute)
    try:
        yield work
    finally:
        event.remove(engine, "connect", connect)
        event.remove(engine, "before_cursor_execute", execute)


def many(path: str, pipelines: int, tables: int) -> Database:
    """Return a ledger with many pipelines; every tenth has a parked table, the tables' documents are small."""
    ledger = Ledger(path)
    ledger.pipelines()
    listed = [f"p{number:03}" for number in range(pipelines)]
    time = "2026-11-20T09:00:00.000000Z"
    result = {"status": "done", "records": 5, "cut": {"consistent": True, "position": "x", "source_time": time}}
    common = {"kind": "sync", "status": "committed", "start": {}, "end": {}, "planned_at": time, "result": result}
    document = state("t").document()
    with ledger._database.writing() as connection:
        connection.execute(insert(schema.pipelines), [{"name": p, "lease_token": 1} for p in listed])
        batches = [{"pipeline": p, "seq": seq, **common} for p in listed for seq in (1, 2)]
        connection.execute(insert(schema.batches), batches)
        connection.execute(insert(schema.progress), [{"pipeline": p, "seen_at": time} for p in listed])
        for number, pipeline in enumerate(listed):
            states = ["parked" if n == 0 and number % 10 == 0 else "ok" for n in range(tables)]
            rows = [
                {"pipeline": pipeline, "table_id": f"t{n:04}", "seq": 1, "state": s, "document": document}
                for n, s in enumerate(states)
            ]
            connection.execute(insert(schema.tables), rows)
    return Database(path, read_only=True)


def test_the_list_costs_the_same_however_many_tables_the_other_pipelines_have(tmp_path: Any) -> None:
    def cost(tables: int) -> dict[str, int]:
        database = many(f"sqlite:///{tmp_path / f'{tables}.db'}", 60, tables)
        with counted(database) as work, database.reading() as connection:
            page = pipeline_rows.pipeline_page(connection, set(), limit=5)
        assert [line["tables"]["parked"] for line in page["pipelines"]] == [1] * 5
        return work

    few, more = cost(10), cost(200)
    assert few["statements"] == more["statements"] <= 12
    # Only the tables of the five pipelines that are shown are counted: some steps each, in hundreds.
    assert more["steps"] - few["steps"] < 5 * 190 * 20 / 100


def test_tables_of_one_page_are_read_not_all_documents(tmp_path: Any) -> None:
    database = many(f"sqlite:///{tmp_path / 'ledger.db'}", 2, TABLES)
    read = []
    with counted(database) as work, database.reading() as connection:
        engine = database._engine
        assert engine is not None
        page = table_rows.tables(connection, "p000", state=None, search="", offset=0, limit=50)
        read = page["tables"]
    assert (len(read), page["total"], read[0]["state"]) == (50, TABLES, TableStatus.OK)
    assert work["statements"] <= 3
