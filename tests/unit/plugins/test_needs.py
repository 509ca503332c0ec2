# SPDX-License-Identifier: Apache-2.0
"""Say what of a pipeline needs a person, on both databases."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.cli import main
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.ledger import Ledger, ProgressSample
from airflow_provider_cdc.ledger.database import Database
from airflow_provider_cdc.ledger.records import time_text
from airflow_provider_cdc.plugins.needs import needs
from tests.airflow.page_ledger import DAG, HOSTILE, VALUE, batch, run_ago, state, sync_run
from tests.unit.ledger.conftest import new_database, url  # noqa: F401

PARKED, WAITING = TableStatus.PARKED, TableStatus.WAITING


def needed(url: str, pipeline: str = "shop", dags: tuple[str, ...] = (DAG,)) -> list[dict[str, Any]]:  # noqa: F811
    with Database(url, read_only=True).reading() as connection:
        return list(needs(connection, pipeline, dags, f"{pipeline}.yaml"))


def missing(table: str) -> Any:
    return state(table, PARKED, code="sink.missing", reason=f"[sink.missing] {table} is gone -> restore it")


def test_tables_with_one_reason_are_one_entry_with_a_command_for_all(url: str) -> None:  # noqa: F811
    ledger = Ledger(url)
    first = batch(ledger, "shop", sync_run(8), [missing("orders")])
    batch(ledger, "shop", sync_run(9), [missing("items"), state("users", WAITING, code="apply.schema_missing")])
    parked, waiting = needed(url)
    assert (parked["state"], parked["code"], parked["tables"]) == (
        "parked",
        "sink.missing",
        ["shop.orders", "shop.items"],
    )
    assert (parked["since"], parked["happened"]) == (
        time_text(first.planned_at),
        "[sink.missing] orders is gone (and 1 more table)",
    )
    assert parked["hint"] == "restore it"
    assert parked["commands"] == ["airflow-cdc rebuild shop.yaml shop.orders shop.items"]
    assert parked["operator"] == (
        'CdcRebuildOperator(task_id="rebuild", pipeline="shop.yaml", tables=["shop.orders", "shop.items"])'
    )
    assert (waiting["state"], waiting["tables"]) == ("waiting", ["shop.users"])
    batch(ledger, "shop", sync_run(10), [state("orders"), state("items"), state("users")])
    assert needed(url) == []


def test_a_change_that_waits_is_named_without_its_values(url: str) -> None:  # noqa: F811
    ledger = Ledger(url)
    waits = state("orders", PARKED, code="apply.approval_required", reason="[apply.approval_required] DROP COLUMN")
    change = {
        "position": "7", "database": "shop", "table": "orders", "policy": "on_drop_column", "answer": "open",
        "statement": f"ALTER TABLE orders DROP COLUMN a, ALTER b SET DEFAULT '{VALUE}'",
    }  # fmt: skip
    other = {**change, "table": "items", "position": "8", "answer": "apply", "by": "ann", "at": "2026-11-20T09:00:00Z"}
    batch(ledger, "shop", sync_run(8), [waits], result={"status": "parked", "asked_changes": [change, other]})
    (need,) = needed(url)
    (shown,) = need["changes"]
    assert (shown["table"], shown["policy"], shown["deniable"]) == ("shop.orders", "on_drop_column", True)
    assert shown["statement"] == "ALTER TABLE orders DROP COLUMN a, ALTER b SET DEFAULT '…'"
    assert need["commands"] == ["airflow-cdc approve shop.yaml", "airflow-cdc approve shop.yaml shop.orders"]


def test_a_name_that_a_terminal_shows_otherwise_has_no_command(url: str) -> None:  # noqa: F811
    batch(Ledger(url), "shop", sync_run(8), [missing(HOSTILE)])
    (need,) = needed(url)
    assert (need["commands"], need["operator"]) == ([], "")
    assert "\u202e" not in str(need) and need["tables"][0].startswith("shop.<img src=x")


def test_a_batch_that_is_refused_names_the_record_to_accept(url: str) -> None:  # noqa: F811
    ledger = Ledger(url)
    with ledger.lease("shop", sync_run(9)) as lease:
        planned = ledger.plan(lease, {"t": {0: 0}}, {"t": {0: 5}}, None)
        begins = [{"topic": "t", "partition": 0, "offset": 3}]
        error = {"code": "source.new_generation", "message": VALUE, "where": {}, "hint": "", "new_generation": begins}
        ledger.refused(lease, planned.seq, error)
    (need,) = needed(url)
    assert (need["state"], need["code"], need["since"]) == (
        "refused",
        "source.new_generation",
        time_text(planned.planned_at),
    )
    assert need["commands"][1] == "airflow-cdc approve shop.yaml --new-generation t/0:3"
    assert VALUE not in str(need)


def test_a_failed_attempt_leads_to_its_log_and_to_those_who_may_read_it(url: str) -> None:  # noqa: F811
    ledger = Ledger(url)
    done = batch(ledger, "shop", sync_run(9))
    ledger.record_attempt("shop", "kafka.unavailable", sync_run(10))
    (need,) = needed(url)
    assert done.committed_at is not None
    assert (need["state"], need["since"], need["run"]) == (
        "failing",
        time_text(done.committed_at),
        sync_run(10).document(),
    )
    assert "brokers" in need["do"]
    assert needed(url, dags=())[0]["run"] is None


def test_a_pipeline_that_nobody_runs_needs_somebody(url: str) -> None:  # noqa: F811
    ledger = Ledger(url)
    batch(ledger, "shop", sync_run(9))
    assert needed(url) == []
    run_ago(ledger, hours=25)
    (stale,) = needed(url)
    assert (stale["state"], stale["table_count"]) == ("stale", 0)
    assert stale["commands"][0] == f"airflow dags unpause {DAG}"
    assert needed(url, dags=())[0]["commands"] == stale["commands"][1:], "the DAG of others is not named"
    now = datetime.now(UTC)
    run_ago(ledger, hours=1)
    ledger.record_progress("shop", ProgressSample(now, now, now - timedelta(hours=30), 30 * 3600.0, 7))
    assert [need["state"] for need in needed(url)] == ["late"]


def test_a_pipeline_that_somebody_holds_says_who_and_until_when(url: str) -> None:  # noqa: F811
    ledger = Ledger(url)
    ledger.record_attempt("shop", "ledger.busy", sync_run(10))
    with ledger.lease("shop", "worker on host-7") as lease:
        (need,) = needed(url)
        holder = f"; worker on host-7 holds the pipeline, at least until {lease.until.isoformat()[:19]}Z"
        assert need["happened"].endswith(holder)
    assert "host-7" not in needed(url)[0]["happened"]


def test_the_command_line_says_what_the_page_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, ledger_url = tmp_path / "my shop.yaml", f"sqlite:///{tmp_path / 'ledger.db'}"
    file.write_text(
        f"name: shop\nsource:\n  topics: x\n  format: canal-json\nsink:\n  root: {tmp_path}\nledger: {ledger_url}\n"
    )
    ledger = Ledger(ledger_url)
    batch(ledger, "shop", sync_run(9), [missing("orders"), state("items")], result={"tables": []})
    ledger.record_attempt("shop", "kafka.unavailable", sync_run(10))
    assert main(["tables", str(file)]) == 0
    shown = capsys.readouterr().out
    with Database(ledger_url, read_only=True).reading() as connection:
        entries = needs(connection, "shop", None, str(file))
    assert [need["code"] for need in entries] == ["kafka.unavailable", "sink.missing"]
    for need in entries:
        assert need["happened"] in shown and need["do"] in shown
        assert all(f"    {command}\n" in shown for command in need["commands"]) and need["commands"]
    assert f"Log: task sync of DAG {DAG}" in shown and f"rebuild '{file}' shop.orders" in shown
    assert main(["tables", str(file), "--json"]) == 0
    remedies = {one["table"]: one["remedy"] for one in json.loads(capsys.readouterr().out)}
    assert remedies["items"] is None
    assert remedies["orders"] == {name: entries[1][name] for name in ("means", "do", "commands", "operator")}
