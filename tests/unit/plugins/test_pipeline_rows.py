# SPDX-License-Identifier: Apache-2.0
"""Read from a ledger what the page shows, on both databases."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sqlalchemy import update

from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.ledger import Ledger, ProgressSample, schema
from airflow_provider_cdc.ledger.database import Database
from airflow_provider_cdc.ledger.records import time_text
from airflow_provider_cdc.plugins import (
    lag_rows,
    pipeline_rows,
)
from tests.airflow.page_ledger import DAG, batch, state, sync_run
from tests.unit.plugins.page_rows import DAGS, names, page_of


def test_pipelines_that_need_somebody_come_first(filled: Database) -> None:
    with filled.reading() as connection:
        page = page_of(connection, DAGS)
    assert names(page) == ["crashed", "shop", "bank", "by_hand"]
    assert (page["total"], page["hidden"]) == (4, 1)
    assert page["counts"] == {"failing": 1, "parked": 1, "waiting": 0, "late": 0, "new": 0, "ok": 2}
    crashed, shop, bank, by_hand = page["pipelines"]
    assert [line["dag"] for line in page["pipelines"]] == [DAG, DAG, "bank_hourly", None]
    assert (shop["state"], bank["state"], by_hand["state"], crashed["state"]) == ("parked", "ok", "ok", "crashed")
    assert shop["tables"] == {"parked": 1, "waiting": 1, "ok": 2, "dropped": 1}
    assert shop["cut"]["source_time"] == "2026-11-20T09:00:00+00:00"
    assert (shop["cut"]["consistent"], bank["cut"]["consistent"], crashed["cut"]) == (False, True, None)
    assert (bank["lag"]["seconds"], by_hand["lag"]) == (4.0, None)
    run = sync_run(9)
    assert shop["batch"]["run"] == run.document()
    assert (shop["batch"]["seq"], shop["batch"]["outcome"], by_hand["batch"]["run"]) == (2, "parked", None)


def test_a_page_is_a_part_and_a_search_ignores_case(filled: Database) -> None:
    with filled.reading() as connection:
        assert names(page_of(connection, DAGS, offset=1, limit=2)) == ["shop", "bank"]
        assert names(page_of(connection, DAGS, search="HAN")) == ["by_hand"]
        assert names(page_of(connection, DAGS, search="Bank_Hour")) == ["bank"]  # its DAG
        shops = page_of(connection, DAGS, search="shop", group="parked")
    assert (names(shops), shops["total"], shops["counts"]["failing"]) == (["shop"], 1, 1)


def test_a_task_has_the_pipelines_that_it_ran_and_a_sensor_those_of_its_dag(url: str) -> None:
    ledger = Ledger(url)
    for name in ("a", "b"):
        batch(ledger, name, replace(sync_run(9), task_id=f"sync_{name}"))
    batch(ledger, "a", "ann")  # by hand: the pipeline is still the DAG's
    batch(ledger, "c", sync_run(9, "bank_hourly"))
    with Database(url, read_only=True).reading() as connection:

        def of(dag: str, task: str | None = None) -> tuple[list[str], int]:
            page = page_of(connection, DAGS, of=pipeline_rows.DagPart(dag, task))
            return names(page), page["counts"]["ok"]

        assert of(DAG) == of(DAG, "received") == (["a", "b"], 2)
        assert of(DAG, "sync_b") == (["b"], 1)
        assert of("shop") == ([], 0)
        assert names(page_of(connection, {"bank_hourly"}, of=pipeline_rows.DagPart(DAG))) == [], (
            "the user may not read it"
        )


def test_of_one_group_the_one_that_is_so_for_longest_comes_first(url: str) -> None:
    ledger = Ledger(url)
    for name, hours in (("a", 1), ("b", 30), ("c", 2)):
        batch(ledger, name, sync_run(9), [state("accounts", TableStatus.PARKED)])
        then = time_text(datetime.now(UTC) - timedelta(hours=hours))
        with ledger._database.writing() as connection:
            connection.execute(update(schema.batches).where(schema.batches.c.pipeline == name).values(planned_at=then))
    with Database(url, read_only=True).reading() as connection:
        page = page_of(connection, DAGS)
    assert names(page) == ["b", "c", "a"]
    assert page["pipelines"][1]["since"] == page["pipelines"][1]["unsettled_since"]


def test_a_sparkline_has_the_highest_lag_of_each_hour(url: str) -> None:
    ledger = Ledger(url)
    batch(ledger, "bank", sync_run(9, "bank_hourly"))
    now = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
    for minutes, seconds in ((0, 5.0), (20, 7.0), (45, 3.0), (24 * 60, 9.0), (26 * 60, 11.0)):
        seen = now - timedelta(minutes=minutes)
        ledger.record_progress("bank", ProgressSample(seen, seen, seen, seconds, 0))
    with Database(url, read_only=True).reading() as connection:
        lags = lag_rows.sparklines(connection, ["bank", "none"], now)
    assert list(lags) == ["bank"]
    assert lags["bank"] == [9.0, *[None] * 22, 3.0, 7.0]


def test_pipelines_of_dags_that_the_user_may_not_read_are_only_counted(filled: Database) -> None:
    with filled.reading() as connection:
        page = page_of(connection, {"bank_hourly"})
    assert names(page) == ["bank", "by_hand"]
    assert page["hidden"] == 3


def test_a_run_by_hand_does_not_open_a_pipeline_to_all(url: str) -> None:
    ledger = Ledger(url)
    batch(ledger, "shop", sync_run())
    batch(ledger, "shop", "ann on host")
    with Database(url, read_only=True).reading() as connection:
        assert pipeline_rows.readable_pipelines(connection, {"bank_hourly"}) == ({}, 1)
        assert pipeline_rows.readable_pipelines(connection, {DAG}) == ({"shop": DAG}, 0)


def test_a_batch_without_records_does_not_hide_the_cut_before_it(url: str) -> None:
    ledger = Ledger(url)
    batch(ledger, "bank", sync_run(9, "bank_hourly"))
    batch(ledger, "bank", sync_run(10, "bank_hourly"), result={"status": "empty", "records": 0, "cut": None})
    with Database(url, read_only=True).reading() as connection:
        bank = pipeline_rows.pipeline(connection, "bank", DAGS)
    assert (bank["batch"]["seq"], bank["cut"]["source_time"]) == (2, "2026-11-20T09:00:00+00:00")
