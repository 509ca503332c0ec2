# SPDX-License-Identifier: Apache-2.0
"""Say how a pipeline is: running, late, stale, failing, or with parked tables, and since when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.ledger import Ledger, ProgressSample, schema
from airflow_provider_cdc.ledger.database import Database
from airflow_provider_cdc.ledger.health import records_since
from airflow_provider_cdc.ledger.records import time_text
from airflow_provider_cdc.plugins import (
    batch_rows,
    pipeline_rows,
    table_rows,
)
from tests.airflow.page_ledger import DAG, batch, looked, run_ago, state, sync_run
from tests.unit.plugins.page_rows import DAGS, names, overview, page_of


@pytest.mark.parametrize(("behind", "records", "word"), [(50, 9, "late"), (50, 0, "ok"), (20, 9, "ok")])
def test_a_pipeline_is_late_beyond_twice_the_usual_distance_of_its_runs(
    url: str,
    behind: int,
    records: int,
    word: str,
) -> None:
    ledger = Ledger(url)
    for _ in range(3):
        batch(ledger, "bank", sync_run(9, "bank_hourly"))
    now = datetime.now(UTC)
    with ledger._database.writing() as connection:
        for seq, minutes in ((1, 40), (2, 20), (3, 0)):
            mine = update(schema.batches).where(schema.batches.c.seq == seq)
            connection.execute(mine.values(planned_at=time_text(now - timedelta(minutes=minutes))))
    applied = now - timedelta(minutes=behind)
    ledger.record_progress("bank", ProgressSample(now, now, applied, behind * 60.0, records))
    line = overview(url, "bank")
    assert (line["state"], line["bound_seconds"]) == (word, pytest.approx(2400, abs=1))
    assert (line["since"] == time_text(applied)) == (word == "late")


@pytest.mark.parametrize(
    ("figures", "present", "usual"),
    [
        ((60,), False, None),  # nobody knows how often anybody looks
        ((9,), True, None),
        ((180, 120, 60), True, 3600),
        ((300, 240, 180, 121), False, 3600),
        # many more than are looked at: the newest ones count
        ((*range(2000, 800, -60), *range(420, 19, -20)), True, 1200),
        ((*range(2000, 800, -60), *range(441, 40, -20)), False, 1200),
    ],
)
def test_an_old_lag_is_not_the_present_one(
    url: str,
    figures: tuple[int, ...],
    present: bool,
    usual: int | None,
) -> None:
    ledger = Ledger(url)
    batch(ledger, "bank", sync_run(9, "bank_hourly"))
    batch(ledger, "shop", sync_run(9))
    looked(ledger, "bank", *figures)
    looked(ledger, "shop", 1)
    lag = overview(url, "bank")["lag"]
    assert (lag["present"], lag["seconds"]) == (present, 0.0)
    assert lag["usual_seconds"] == pytest.approx(usual, abs=1)


@pytest.mark.parametrize("batches", [1, 3])
def test_a_pipeline_that_nobody_runs_is_stale(url: str, batches: int) -> None:
    ledger = Ledger(url)
    for hour in range(batches):
        batch(ledger, "bank", sync_run(hour, "bank_hourly"))
    looked(ledger, "bank", 25 * 60)
    assert overview(url, "bank")["state"] == "ok"
    run_ago(ledger, hours=25)
    line = overview(url, "bank")
    assert (line["state"], line["lag"]["present"]) == ("stale", False)
    assert timedelta(hours=24.9) < datetime.now(UTC) - datetime.fromisoformat(line["ran_at"]) < timedelta(hours=25.1)
    # somebody looks, and nothing is there to run for; then something is
    looked(ledger, "bank", 3, 2, 1)
    assert overview(url, "bank")["state"] == "ok"
    looked(ledger, "bank", 0, records=7)
    assert overview(url, "bank")["state"] == "stale"
    # a run that finds nothing new has no batch of its own
    ledger.record_attempt("bank", "", sync_run(11, "bank_hourly"))
    assert overview(url, "bank")["state"] == "ok"


def test_a_batch_that_nobody_works_on_is_not_running(url: str) -> None:
    ledger = Ledger(url)
    with ledger.lease("bank", sync_run(9, "bank_hourly")) as lease:
        ledger.plan(lease, {"t": {0: 0}}, {"t": {0: 5}}, None)
        assert overview(url, "bank")["state"] == "running"
        with ledger._database.writing() as connection:  # as after kill -9: nobody renews it
            over = time_text(datetime.now(UTC) - timedelta(minutes=1))
            connection.execute(update(schema.pipelines).values(lease_until=over))
        assert overview(url, "bank")["state"] == "interrupted"
    assert overview(url, "bank")["state"] == "interrupted"


def test_progress_is_that_of_a_living_worker(url: str) -> None:
    ledger = Ledger(url)
    done = {"step": "apply", "seconds": 40.0, "rows": 3000, "all_rows": 6000, "tables": 3, "all_tables": 6}

    def shown() -> list[Any]:
        with Database(url, read_only=True).reading() as connection:
            listed = batch_rows.batches(connection, "bank", DAGS, before=None, limit=1)["batches"][0]
        return [listed["progress"], overview(url, "bank")["batch"]["progress"]]

    def age(**values: str) -> None:
        with ledger._database.writing() as connection:
            connection.execute(update(schema.pipelines).values(**values))

    with ledger.lease("bank", sync_run(9, "bank_hourly"), 3600) as lease:
        planned = ledger.plan(lease, {}, {"t": {0: 5}}, None)
        assert shown() == [None, None]
        ledger.progressed("bank", lease.token, planned.seq, done)
        text = "apply: 3 of 6 tables, 3000 of 6000 rows, 40 s, about 40 s left"
        for one in shown():
            assert {**one, "at": ""} == {**done, "at": "", "share": 0.5, "seconds_left": 40, "text": text}
        until = time_text(lease.until)
        age(lease_until=time_text(datetime.now(UTC) - timedelta(seconds=1)))
        assert shown() == [None, None], "its worker was killed, and the lease has ended"
        age(lease_until=until)
        assert shown()[0]["step"] == "apply"
        with ledger._database.writing() as connection:
            old = {**done, "at": time_text(datetime.now(UTC) - timedelta(seconds=91)), "lease": lease.token}
            connection.execute(update(schema.batches).values(progress=old))
        assert shown() == [None, None], "a lease may be long"
        ledger.progressed("bank", lease.token, planned.seq, done)
    assert shown() == [None, None]
    with ledger.lease("bank", sync_run(10, "bank_hourly")) as lease:
        assert shown() == [None, None], "another worker has the batch"
        ledger.progressed("bank", lease.token, planned.seq, done)
        ledger.commit(lease, planned.seq, {"status": "done"})
        assert shown() == [None, None]


def test_a_failed_attempt_is_seen_until_one_ends_well(url: str) -> None:
    ledger = Ledger(url)
    batch(ledger, "bank", sync_run(9, "bank_hourly"))
    batch(ledger, "aaa", sync_run(9, "bank_hourly"))
    task = sync_run(10, "bank_hourly")
    ledger.record_attempt("bank", "config.invalid", task)
    line = overview(url, "bank")
    assert (line["state"], line["attempt"]["code"], line["attempt"]["run"]) == (
        "failing",
        "config.invalid",
        task.document(),
    )
    with Database(url, read_only=True).reading() as connection:
        assert names(page_of(connection, DAGS)) == ["bank", "aaa"]
    ledger.record_attempt("bank", "", task)
    line = overview(url, "bank")
    assert (line["state"], line["attempt"]) == ("ok", None)


def test_a_pipeline_that_never_had_a_batch_is_seen_by_those_who_may_read_the_dag(url: str) -> None:
    ledger = Ledger(url)
    task = sync_run(10, "bank_hourly")
    ledger.record_attempt("bank", "configuration", task)
    with Database(url, read_only=True).reading() as connection:
        assert names(page_of(connection, {DAG})) == []
        (line,) = page_of(connection, {"bank_hourly"})["pipelines"]
    assert (line["state"], line["batch"], line["rests"]) == ("failing", None, False)
    assert (line["attempt"]["code"], line["attempt"]["run"]) == ("configuration", task.document())


def test_a_pipeline_with_parked_tables_says_since_when(url: str) -> None:
    ledger = Ledger(url)
    batch(ledger, "bank", sync_run(9, "bank_hourly"), [state("accounts")])
    parked = batch(ledger, "bank", sync_run(10, "bank_hourly"), [state("accounts", TableStatus.PARKED)])
    batch(ledger, "bank", sync_run(11, "bank_hourly"), [state("transfers", TableStatus.WAITING)])
    assert overview(url, "bank")["unsettled_since"] == time_text(parked.planned_at)
    with Database(url, read_only=True).reading() as connection:
        assert pipeline_rows.pipeline(connection, "bank", DAGS)["unsettled_records"] == 20
        page = table_rows.tables(connection, "bank", state=None, search="", offset=0, limit=50)
    accounts, transfers = [line["held"] for line in page["tables"]]
    assert accounts == {"seq": 2, "since": time_text(parked.planned_at), "at_least": False, "records": 20}
    assert (transfers["seq"], transfers["records"]) == (3, 10)


def test_records_since_a_log_that_began_again_are_not_counted(url: str) -> None:
    ledger = Ledger(url)
    batch(ledger, "bank", sync_run(9, "bank_hourly"), [state("accounts", TableStatus.PARKED)])
    with ledger.lease("bank", sync_run(10, "bank_hourly")) as lease:
        ledger.plan(lease, {"shop.log": {0: 0}}, {"shop.log": {0: 5}}, None)
    with ledger._database.writing() as connection:
        connection.execute(
            update(schema.batches).where(schema.batches.c.seq == 1).values(start={"shop.log": {"0": 900}})
        )
    with Database(url, read_only=True).reading() as connection:
        assert records_since(connection, "bank", {1, 7}) == {}
