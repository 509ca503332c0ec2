# SPDX-License-Identifier: Apache-2.0
"""Ledgers for the page, written through the ledger's own interface, with hostile names, secrets and row values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import insert, update

from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.model.schema import Column, ColumnType, Default, TableSchema
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.ledger import Batch, Ledger, Owner, ProgressSample, TaskTry, schema
from airflow_provider_cdc.ledger.records import time_text

SECRET = "s3cret-passw0rd"
VALUE = "row-value-4711"
HOSTILE = "<img src=x onerror=\"document.title='owned'\">'\u202e\x1b[31m"
DAG = "shop_hourly"
UNKNOWN_DAG = "gone"


def sync_run(hour: int = 9, dag_id: str = DAG) -> TaskTry:
    return TaskTry(dag_id, f"scheduled__2026-11-20T{hour:02}:00:00+00:00", "sync")


def columns(*names: str) -> TableSchema:
    """Return a schema; its first column is the key, its others have a default and labels that are values."""
    first, *rest = names
    typed = ColumnType("enum", labels=(VALUE, "b"))
    others = [Column(n, name, typed, default=Default("constant", VALUE)) for n, name in enumerate(rest, start=2)]
    return TableSchema((Column(1, first, ColumnType("int"), nullable=False), *others), (1,))


def state(table: str, status: TableStatus = TableStatus.OK, **members: Any) -> TableState:
    location = f"/lake/shop/{table}" if table.isidentifier() else "/lake/shop/x"
    values = {
        "location": location, "version": 3, "applied_position": "binlog.000007:1234",
        "schema": columns("id", "name").document(),
    }  # fmt: skip
    return TableState(f"shop.{table}", "shop", table, state=status, **{**values, **members})


def batch(
    ledger: Ledger,
    pipeline: str,
    owner: Owner,
    tables: Sequence[TableState] = (),
    *,
    result: Mapping[str, Any] | None = None,
    ddl: Sequence[Mapping[str, Any]] = (),
) -> Batch:
    """Plan and commit the next batch of a pipeline, of ten records."""
    with ledger.lease(pipeline, owner) as lease:
        last = ledger.last(pipeline)
        start = last.end if last is not None else {"shop.log": {0: 0}}
        end = {"shop.log": {0: start["shop.log"][0] + 10}}
        planned = ledger.plan(lease, start, end, datetime(2026, 11, 20, 9, tzinfo=UTC))
        ledger.started(lease, planned.seq, "inline")
        stored = {
            "pipeline": pipeline, "seq": planned.seq, "status": "done", "records": 10, "changes": {"insert": 7},
            "schema_changes": len(ddl), "quarantined": 0, "seconds": 3.2, "tables": [{}] * len(tables),
            "cpu_seconds": 1.26, "added_bytes": 48_300, "statements": [f"ALTER TABLE t COMMENT '{VALUE}'"],
            "cut": {"consistent": True, "position": "binlog.000007:1234", "source_time": "2026-11-20T09:00:00+00:00"},
            **(result or {}),
        }  # fmt: skip
        documents = {one.table_id: one.document() for one in tables}
        return ledger.commit(lease, planned.seq, stored, documents, [dict(change) for change in ddl])


def looked(ledger: Ledger, name: str, *minutes_ago: int, records: int = 0) -> None:
    """Record figures of a lag of no seconds."""
    for minutes in minutes_ago:
        seen = datetime.now(UTC) - timedelta(minutes=minutes)
        ledger.record_progress(name, ProgressSample(seen, seen, seen, 0.0, records))


def run_ago(ledger: Ledger, **age: float) -> None:
    """Let all batches and attempts of a ledger be so old."""
    then = time_text(datetime.now(UTC) - timedelta(**age))
    with ledger._database.writing() as connection:
        connection.execute(update(schema.batches).values(planned_at=then, committed_at=then))
        connection.execute(update(schema.attempts).values(at=then))


def statement(text: str, number: int) -> dict[str, Any]:
    """Return the document of a schema change."""
    return {
        "id": f"{number}", "position": f"binlog.000007:{number:04}", "order": number, "database": "shop",
        "statement": text, "structure": [], "time": 1_795_251_600_000_000 + number * 1_000_000,
    }  # fmt: skip


QUARANTINE = [
    {"topic": "shop.log", "partition": 0, "offset": 12, "database": "shop", "table": HOSTILE,
     "error_code": "record.json_invalid", "error": f"cannot read {VALUE}"},
    {"topic": "shop.log", "partition": 0, "offset": 17, "database": "shop", "table": "orders", "column": "price",
     "reason": "number_invalid"},
    {"topic": "shop.log", "partition": 0, "offset": 18, "database": "", "table": "",
     "error_code": "record.json_invalid", "error": "nothing names its table"},
]  # fmt: skip


def fill_shop(ledger: Ledger, now: datetime) -> None:
    """Make a pipeline with settled, parked, waiting and dropped tables, schema changes, quarantine and lag."""
    first = [state("orders"), state("items"), state("old", TableStatus.DROPPED)]
    batch(ledger, "shop", sync_run(8), first, ddl=[statement("CREATE TABLE orders (id INT)", 1)])
    changed = state("orders", schema=columns("id", "name", "grade").document(), source_time=1_795_251_600_000_000)
    parked = state(
        HOSTILE, TableStatus.PARKED, code="ddl.not_understood",
        reason=f"[ddl.not_understood] the statement on {HOSTILE} is not understood",
    )  # fmt: skip
    waits = state("payments", TableStatus.WAITING, waiting_since="2026-11-20T08:55:00Z", reason="waits for a DDL")
    ddl = [
        statement(f"ALTER TABLE orders ADD COLUMN grade ENUM('{VALUE}', 'b') DEFAULT '{VALUE}' /* {SECRET} */", 2),
        statement(f"ALTER TABLE `{HOSTILE}` PARTITION BY x", 3),
    ]
    result = {"status": "parked", "quarantined": 5, "quarantine": QUARANTINE, "parked": [{}], "waiting": [{}]}
    batch(ledger, "shop", sync_run(9), [changed, parked, waits], result=result, ddl=ddl)
    samples = []
    for minutes in range(0, 22 * 60, 10):
        seen = now - timedelta(hours=22) + timedelta(minutes=minutes)
        unknown = 600 <= minutes < 660
        seconds = 30.0 + 3 * (minutes % 240) + (1200 if 840 <= minutes < 900 else 0)
        lag = None if unknown else seconds
        samples.append(ProgressSample(seen, seen, seen - timedelta(seconds=seconds), lag, minutes % 97))
    with ledger._database.writing() as connection:  # all at once: each transaction waits for the disk
        rows = [{"pipeline": "shop", **sample.document()} for sample in samples]
        connection.execute(insert(schema.progress), rows)


def fill(url: str, now: datetime | None = None) -> Ledger:
    """Fill a ledger with ``shop``, a settled pipeline ``bank``, one by hand, and one of a DAG that is not known."""
    now = now or datetime.now(UTC)
    ledger = Ledger(url)
    fill_shop(ledger, now)
    batch(ledger, "bank", sync_run(9, "bank_hourly"), [state("accounts"), state("transfers")])
    sample = ProgressSample(now - timedelta(minutes=1), now, now - timedelta(seconds=4), 4.0, 0)
    ledger.record_progress("bank", sample)
    batch(ledger, "by_hand", "ann on host", [state("users")])
    batch(ledger, "elsewhere", sync_run(9, UNKNOWN_DAG), [state("users")])
    with ledger.lease("crashed", sync_run(9)) as lease:
        planned = ledger.plan(lease, {"t": {0: 0}}, {"t": {0: 5}}, None)
        ledger.crashed(lease, planned.seq, "land.py:81")
    return ledger
