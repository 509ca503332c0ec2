# SPDX-License-Identifier: Apache-2.0
"""Read the parts of one pipeline's page: tables and their history, batches, quarantine, lag."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.ledger import Ledger, ProgressSample
from airflow_provider_cdc.ledger.database import Database
from airflow_provider_cdc.plugins import (
    batch_rows,
    lag_rows,
    quarantine_rows,
    table_rows,
)
from tests.airflow import page_ledger
from tests.airflow.page_ledger import HOSTILE, batch, state, sync_run
from tests.unit.plugins.page_rows import DAGS, NOW


def test_tables_come_parked_first_and_can_be_filtered(filled: Database) -> None:
    def ids(**more: Any) -> list[str]:
        with filled.reading() as connection:
            options = {"state": None, "search": "", "offset": 0, "limit": 50, **more}
            return [line["id"] for line in table_rows.tables(connection, "shop", **options)["tables"]]

    parked = f"shop.{HOSTILE}"
    assert ids() == [parked, "shop.payments", "shop.items", "shop.orders", "shop.old"]
    assert ids(offset=1, limit=2) == ["shop.payments", "shop.items"]
    assert ids(state="waiting") == ["shop.payments"]
    assert ids(search="OP.ORD") == ["shop.orders"]
    assert ids(search="%") == [] and ids(search="\\") == [] and ids(search="_") == []


def test_a_parked_table_has_no_location_that_another_table_took_over(url: str) -> None:
    ledger = Ledger(url)
    location = state("orders").location
    batch(ledger, "shop", sync_run(8), [state("orders_old", TableStatus.PARKED, location=location)])

    def locations() -> list[tuple[str, str | None, int | None]]:
        with Database(url, read_only=True).reading() as connection:
            page = table_rows.tables(connection, "shop", state=None, search="", offset=0, limit=50)
            return [(line["table"], line["location"], line["version"]) for line in page["tables"]]

    assert locations() == [("orders_old", location, 3)]  # its rows lie there until the other table begins
    batch(ledger, "shop", sync_run(9), [state("orders", version=4)])
    assert locations() == [("orders_old", None, None), ("orders", location, 4)]


def test_a_tables_history_shows_states_and_columns(filled: Database) -> None:
    with filled.reading() as connection:
        page = table_rows.table_history(connection, "shop", "shop.orders", before=None, limit=50)
    second, first = page["versions"]
    assert (second["seq"], first["seq"], page["before"]) == (2, 1, None)
    added = {"change": "added", "column": "grade", "before": "", "after": "enum(2 labels)"}
    assert second["columns"] == [added]
    assert (first["columns"], first["column_count"], second["column_count"]) == ([], 2, 3)


def test_versions_without_a_visible_change_are_left_out(url: str) -> None:
    ledger = Ledger(url)
    for version in range(6):
        batch(ledger, "bank", sync_run(), [state("accounts", version=version)])
    with Database(url, read_only=True).reading() as connection:
        newest = table_rows.table_history(connection, "bank", "shop.accounts", before=None, limit=3)
        rest = table_rows.table_history(connection, "bank", "shop.accounts", before=newest["before"], limit=3)
    assert newest["versions"] == [] and newest["before"] == 4
    assert [line["seq"] for line in rest["versions"]] == [1] and rest["before"] is None


def test_batches_name_their_runs_to_those_who_may_read_the_dag(filled: Database) -> None:
    with filled.reading() as connection:
        page = batch_rows.batches(connection, "shop", DAGS, before=None, limit=1)
        rest = batch_rows.batches(connection, "shop", set(), before=page["before"], limit=1)
    (second,), (first,) = page["batches"], rest["batches"]
    assert (second["seq"], first["seq"], page["before"], rest["before"]) == (2, 1, 2, None)
    assert second["run"] == sync_run(9).document() and first["run"] is None
    assert (second["status"], second["quarantined"], second["parked"], second["waiting"]) == ("parked", 5, 1, 1)


def test_quarantine_is_grouped_by_reason_and_table(filled: Database) -> None:
    with filled.reading() as connection:
        page = quarantine_rows.quarantine(connection, "shop", before=None)
    assert (page["unnamed"], page["before"]) == (2, None)
    first, second, third = page["groups"]
    assert (first["topic"], first["partition"], first["offset"], first["code"]) == (
        "shop.log", 0, 12, "record.json_invalid",
    )  # fmt: skip
    assert (second["database"], second["table"], second["column"], second["code"]) == (
        "shop", "orders", "price", "number_invalid",
    )  # fmt: skip
    assert (third["table"], third["code"], third["count"]) == ("", "record.json_invalid", 1)


def test_of_a_group_in_quarantine_the_first_record_is_named(url: str) -> None:
    ledger = Ledger(url)
    for offsets in ((3, 5), (), (12, 14, 19)):
        items = [{**page_ledger.QUARANTINE[1], "offset": offset} for offset in offsets]
        batch(ledger, "shop", "me", result={"quarantined": len(items), "quarantine": items})
    with Database(url, read_only=True).reading() as connection:
        (group,) = quarantine_rows.quarantine(connection, "shop", before=None)["groups"]
    assert [group[name] for name in ("count", "offset", "seq", "newest_seq")] == [5, 3, 1, 3]


def test_quarantine_looks_through_some_batches_at_a_time(
    url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(quarantine_rows, "_WINDOW", 3)
    ledger = Ledger(url)
    for quarantined in (0, 7, 0, 0, 0):
        batch(ledger, "shop", "me", result={"quarantined": quarantined})
    with Database(url, read_only=True).reading() as connection:
        page = quarantine_rows.quarantine(connection, "shop", before=None)
        rest = quarantine_rows.quarantine(connection, "shop", before=page["before"])
    assert (page["unnamed"], page["before"]) == (0, 3)
    assert (rest["unnamed"], rest["before"]) == (7, None)


def test_the_lag_is_that_of_the_worst_moment_of_each_interval(url: str) -> None:
    ledger = Ledger(url)
    begin = datetime(2026, 11, 20, 8, tzinfo=UTC)
    for minutes, seconds in ((0, 5.0), (1, 9.0), (9, None), (10, 2.0), (20, None)):
        ledger.record_progress("shop", ProgressSample(begin + timedelta(minutes=minutes), lag_seconds=seconds))
    with Database(url, read_only=True).reading() as connection:
        by_ten = lag_rows.lag(connection, "shop", begin - timedelta(days=1), NOW)["points"]
        by_one = lag_rows.lag(connection, "shop", begin + timedelta(minutes=1), NOW)["points"]
    assert [point["seconds"] for point in by_ten] == [9.0, 2.0, None]
    assert [point["seconds"] for point in by_one] == [9.0, None, 2.0, None]
