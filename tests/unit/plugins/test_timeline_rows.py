# SPDX-License-Identifier: Apache-2.0
"""Show what happened to a pipeline on one time axis, and whether its tables equal the source, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import update

from airflow_provider_cdc.core.documents.proof import Proof
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.ledger import Ledger, schema
from airflow_provider_cdc.ledger.database import Database
from airflow_provider_cdc.plugins import timeline_rows
from airflow_provider_cdc.plugins.equality_rows import equality
from airflow_provider_cdc.plugins.schema_change_rows import schema_changes
from tests.airflow.page_ledger import DAG, batch, looked, state, statement, sync_run
from tests.unit.ledger.conftest import new_database, url  # noqa: F401

PARKED = TableStatus.PARKED
KINDS = {
    "ALTER TABLE orders ADD COLUMN a INT": "mapping",
    "ALTER TABLE orders MODIFY a BIGINT": "barrier",
    "DROP TABLE orders": "destructive",
    "ALTER TABLE orders ADD": "unknown",
}


def now_statement(text: str, number: int) -> dict[str, Any]:
    return {**statement(text, number), "time": int(datetime.now(UTC).timestamp() * 1e6) - 60_000_000}


def timeline_of(url: str, hours: float = 1) -> dict[str, Any]:  # noqa: F811
    now = datetime.now(UTC)
    with Database(url, read_only=True).reading() as connection:
        return timeline_rows.timeline(connection, "shop", {DAG}, now - timedelta(hours=hours), now)


def test_batches_ddl_decisions_and_parks_are_on_one_axis(url: str) -> None:  # noqa: F811
    ledger = Ledger(url)
    snapshot = {**now_statement("CREATE TABLE orders (id INT)", 90), "snapshot": "x"}
    ddl = [now_statement(text, number) for number, text in enumerate(KINDS, start=1)]
    old = statement("ALTER TABLE orders ADD COLUMN b INT", 80)
    batch(ledger, "shop", sync_run(8), ddl=[snapshot, old, *ddl])
    open_change = {
        "position": "1", "database": "shop", "table": "orders", "policy": "on_drop_table", "statement": "DROP TABLE",
        "answer": "open",
    }  # fmt: skip
    answers = [
        open_change,
        {**open_change, "position": "2", "answer": "deny", "by": "", "at": ""},  # a policy's own
        {**open_change, "position": "3", "answer": "apply", "by": "eve", "at": "2026-11-20T09:00:00Z"},
    ]
    parked = state("orders", PARKED, code="sink.missing", reason="gone")
    batch(ledger, "shop", "me", [parked], result={"status": "parked", "asked_changes": answers})
    looked(ledger, "shop", 1)
    shown = timeline_of(url)
    assert [(one["seq"], one["outcome"], one["records"], one["run"] is None) for one in shown["batches"]] == [
        (2, "parked", 10, True),
        (1, "done", 10, False),
    ]
    assert {one["statement"]: one["kind"] for one in shown["schema_changes"]} == KINDS
    assert [(one["seq"], one["by"], one["answer"]) for one in shown["decisions"]] == [(2, "eve", "apply")]
    assert [(one["table"], one["state"]) for one in shown["stopped"]] == [("shop.orders", "parked")]
    assert (len(shown["points"]), shown["more_batches"]) == (1, False)


def test_older_batches_are_left_out_and_said_to_be(url: str, monkeypatch: Any) -> None:  # noqa: F811
    monkeypatch.setattr(timeline_rows, "_MOST_BATCHES", 2)
    ledger = Ledger(url)
    for _ in range(3):
        batch(ledger, "shop", sync_run(8))
    shown = timeline_of(url)
    assert ([one["seq"] for one in shown["batches"]], shown["more_batches"]) == ([3, 2], True)
    assert timeline_of(url, hours=-1)["batches"] == []


def test_the_statements_of_a_snapshot_are_folded(url: str) -> None:  # noqa: F811
    snapshot = [{**statement(f"CREATE TABLE t{n} (id INT)", n), "snapshot": "x"} for n in range(1, 4)]
    batch(Ledger(url), "shop", sync_run(8), ddl=[*snapshot, statement("ALTER TABLE t1 ADD b INT", 9)])
    with Database(url, read_only=True).reading() as connection:
        folded = schema_changes(connection, "shop", before=None, limit=2)
        all_of_them = schema_changes(connection, "shop", before=None, limit=9, snapshot=True)
    assert ([one["statement"] for one in folded["schema_changes"]], folded["before"]) == (
        ["ALTER TABLE t1 ADD b INT"],
        None,
    )
    assert (folded["of_snapshots"], len(all_of_them["schema_changes"])) == (3, 4)


DELTA = {"type": "delta", "naming": {}}


def equality_of(url: str) -> dict[str, Any]:  # noqa: F811
    with Database(url, read_only=True).reading() as connection:
        return dict(equality(connection, "shop")["equality"])


def test_tables_equal_the_source_unless_something_speaks_against_it(url: str) -> None:  # noqa: F811
    ledger = Ledger(url)
    batch(ledger, "shop", sync_run(8), [state("orders", location="shop/orders"), state("old", TableStatus.DROPPED)])
    with ledger._database.writing() as connection:
        connection.execute(update(schema.pipelines).values(lake={"tables": "s3://lake", "sink": DELTA}))
    equal = equality_of(url)
    assert [equal[name] for name in ("tables", "unsettled", "contradictions", "quarantined")] == [1, 0, 0, 0]
    assert equal["source_time"] == "2026-11-20T09:00:00+00:00"
    assert equal["reads"] == ["SELECT * FROM delta.`s3://lake/shop/orders` VERSION AS OF 3;"]
    contradicted = state("orders", proof=Proof(contradictions={"key_there": 2}))
    batch(ledger, "shop", sync_run(9), [contradicted, state("a`b")], result={"quarantined": 4})
    worse = equality_of(url)
    assert [worse[name] for name in ("contradictions", "quarantined", "quarantined_seq")] == [2, 4, 2]
    batch(ledger, "shop", sync_run(10), [state("orders", PARKED)])
    assert (equality_of(url)["unsettled"], equality_of(url)["reads"]) == (1, [])


def test_a_name_that_ends_quotes_has_no_statement(url: str) -> None:  # noqa: F811
    ledger = Ledger(url)
    batch(ledger, "shop", sync_run(8), [state("t", location="shop/a`b"), state("u\nDROP", version=None)])
    assert equality_of(url)["reads"] == [], "the kind of the tables is not known"
    with ledger._database.writing() as connection:
        connection.execute(update(schema.pipelines).values(lake={"tables": "/lake", "sink": DELTA}))
    reads = equality_of(url)["reads"]
    assert all(read.startswith("-- ") and "\n" not in read for read in reads) and len(reads) == 2
