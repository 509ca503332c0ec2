# SPDX-License-Identifier: Apache-2.0
"""A ledger with a pipeline in each state that the page knows; one of them was made by real batches."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import update

from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.ledger import Ledger, ProgressSample, schema
from airflow_provider_cdc.ledger.records import time_text
from tests.airflow.page_ledger import QUARANTINE, batch, state, statement, sync_run
from tests.airflow.shop import demand_data, until
from tests.system.recorded_files import FilesSite

REAL = "web_shop"
STATES = {
    "new_log": "refused", "killed_twice": "crashed", "no_broker": "failing", "asks": "parked", "early_rows": "waiting",
    "killed": "interrupted", "forgotten": "stale", "behind": "late", "unborn": "new", "at_work": "running",
    "well": "ok", REAL: "parked",
}  # fmt: skip
"""State of each pipeline."""


def fill_states(folder: Path) -> str:
    """Make the ledger; return its URL."""
    demand_data()
    site = FilesSite(folder, {}, {"name": REAL})
    for phase in range(2):
        site.feed(phase)
        assert site.sync("--until", until(phase)).code == 0
    shutil.rmtree(site.lake / "shop" / "orders")
    site.feed(2)
    assert site.sync("--until", until(2)).code == 3
    url = f"sqlite:///{site.ledger}"
    ledger = Ledger(url)
    _fill_tables(ledger)
    _fill_runs(ledger)
    return url


def _fill_tables(ledger: Ledger) -> None:
    """Add pipelines of which tables have stopped."""
    asks = state(
        "customers", TableStatus.PARKED, code="apply.approval_required",
        reason="[apply.approval_required] DROP TABLE customers waits for an approval",
    )  # fmt: skip
    unfit = state(
        "prices", TableStatus.PARKED, code="apply.quarantine_exceeded",
        reason="[apply.quarantine_exceeded] 3 rows do not fit their columns (first at shop.log/0:17)",
    )  # fmt: skip
    change = {
        "position": "binlog.000007:0009", "database": "shop", "table": "customers", "policy": "on_drop_table",
        "statement": "DROP TABLE customers", "answer": "open",
    }  # fmt: skip
    decided = {**change, "table": "items", "answer": "apply", "by": "eve", "at": time_text(datetime.now(UTC))}
    recent = int(datetime.now(UTC).timestamp() * 1e6) - 600_000_000
    ddl = [
        {**statement(text, number), "time": recent + number * 60_000_000}
        for number, text in enumerate(
            ("ALTER TABLE t ADD a INT", "ALTER TABLE t MODIFY a BIGINT", "DROP TABLE u", "ALTER"), start=1
        )
    ]
    batch(ledger, "asks", sync_run(8), [state("customers"), state("items")], ddl=ddl)
    result = {"status": "parked", "asked_changes": [change, decided], "quarantined": 5, "quarantine": QUARANTINE}
    batch(ledger, "asks", sync_run(9), [asks, unfit], result=result)
    waits = state("payments", TableStatus.WAITING, code="apply.schema_missing", reason="a row has other columns")
    batch(ledger, "early_rows", sync_run(9), [state("users"), waits], result={"status": "waiting"})
    for hour in range(3):
        batch(ledger, "well", sync_run(hour, "bank_hourly"), [state("accounts"), state("transfers")])


def _fill_runs(ledger: Ledger) -> None:
    """Add pipelines whose runs failed, stopped or are late."""
    now = datetime.now(UTC)
    for name in ("new_log", "killed_twice", "killed", "at_work"):
        lease = ledger.lease(name, sync_run(10), seconds=3600)
        planned = ledger.plan(lease, {"t": {0: 0}}, {"t": {0: 5}}, None)
        if name == "new_log":
            begins = [{"topic": "t", "partition": 0, "offset": 3}]
            error = {"code": "source.new_generation", "message": "", "where": {}, "hint": "", "new_generation": begins}
            ledger.refused(lease, planned.seq, error)
        if name == "killed_twice":
            ledger.crashed(lease, planned.seq, "land.py:81")
    batch(ledger, "no_broker", sync_run(9), [state("users")])
    ledger.record_attempt("no_broker", "kafka.unavailable", sync_run(10))
    for hour in range(2):
        batch(ledger, "forgotten", sync_run(hour), [state("users")])
        batch(ledger, "behind", sync_run(hour), [state("users")])
    with ledger.lease("unborn", sync_run(9)):
        pass
    over, then = time_text(now - timedelta(minutes=7)), time_text(now - timedelta(hours=25))
    with ledger._database.writing() as connection:
        p, b = schema.pipelines, schema.batches
        connection.execute(update(p).where(p.c.name == "killed").values(lease_until=over))
        connection.execute(update(b).where(b.c.pipeline == "forgotten").values(planned_at=then, committed_at=then))
    for name, seconds, records in (("well", 4.0, 0), ("behind", 7200.0, 4711)):
        for hours in range(24):
            lag = 1800.0 * (hours % 3) if hours else seconds
            seen = now - timedelta(hours=hours, minutes=1)
            applied = seen - timedelta(seconds=lag)
            if hours not in (7, 8):  # nobody looked
                ledger.record_progress(name, ProgressSample(seen, seen, applied, lag, records))
    for minutes in range(2, 10):  # somebody looks each minute
        seen = now - timedelta(minutes=minutes)
        ledger.record_progress("behind", ProgressSample(seen, seen, seen - timedelta(hours=2), 7200.0, 4711))
