# SPDX-License-Identifier: Apache-2.0
"""Read from a ledger what the page shows, on both databases."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.engine import Connection

from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.ledger import Ledger, ProgressSample, schema
from airflow_provider_cdc.ledger.database import Database
from airflow_provider_cdc.ledger.health import records_since
from airflow_provider_cdc.ledger.records import time_text
from airflow_provider_cdc.plugins import (
    batch_rows,
    equality_rows,
    lag_rows,
    needs,
    pipeline_rows,
    quarantine_rows,
    schema_change_rows,
    table_rows,
    timeline_rows,
)
from tests.airflow import page_ledger
from tests.airflow.page_ledger import DAG, HOSTILE, SECRET, VALUE, batch, fill, looked, run_ago, state, sync_run
from tests.unit.ledger.conftest import new_database, url  # noqa: F401

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAGS = {DAG, "bank_hourly"}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Database:
    """Return one ledger for all tests that only read it."""
    folder = tmp_path_factory.mktemp("ledger")
    address = f"sqlite:///{folder / 'ledger.db'}" if request.param == "sqlite" else new_database(request)
    fill(address, NOW)
    return Database(address, read_only=True)


def names(page: dict[str, Any]) -> list[str]:
    return [line["name"] for line in page["pipelines"]]


def page_of(connection: Connection, dags: set[str], **more: Any) -> dict[str, Any]:
    return pipeline_rows.pipeline_page(connection, dags, **more)


# ---- pipelines


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


def test_a_task_has_the_pipelines_that_it_ran_and_a_sensor_those_of_its_dag(url: str) -> None:  # noqa: F811
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


def test_of_one_group_the_one_that_is_so_for_longest_comes_first(url: str) -> None:  # noqa: F811
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


@pytest.mark.parametrize(("behind", "records", "word"), [(50, 9, "late"), (50, 0, "ok"), (20, 9, "ok")])
def test_a_pipeline_is_late_beyond_twice_the_usual_distance_of_its_runs(
    url: str,  # noqa: F811
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


def test_a_sparkline_has_the_highest_lag_of_each_hour(url: str) -> None:  # noqa: F811
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


def test_a_run_by_hand_does_not_open_a_pipeline_to_all(url: str) -> None:  # noqa: F811
    ledger = Ledger(url)
    batch(ledger, "shop", sync_run())
    batch(ledger, "shop", "ann on host")
    with Database(url, read_only=True).reading() as connection:
        assert pipeline_rows.readable_pipelines(connection, {"bank_hourly"}) == ({}, 1)
        assert pipeline_rows.readable_pipelines(connection, {DAG}) == ({"shop": DAG}, 0)


def test_a_batch_without_records_does_not_hide_the_cut_before_it(url: str) -> None:  # noqa: F811
    ledger = Ledger(url)
    batch(ledger, "bank", sync_run(9, "bank_hourly"))
    batch(ledger, "bank", sync_run(10, "bank_hourly"), result={"status": "empty", "records": 0, "cut": None})
    with Database(url, read_only=True).reading() as connection:
        bank = pipeline_rows.pipeline(connection, "bank", DAGS)
    assert (bank["batch"]["seq"], bank["cut"]["source_time"]) == (2, "2026-11-20T09:00:00+00:00")


def overview(url: str, name: str) -> dict[str, Any]:  # noqa: F811
    with Database(url, read_only=True).reading() as connection:
        return pipeline_rows.pipeline(connection, name, DAGS)


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
    url: str,  # noqa: F811
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
def test_a_pipeline_that_nobody_runs_is_stale(url: str, batches: int) -> None:  # noqa: F811
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


def test_a_batch_that_nobody_works_on_is_not_running(url: str) -> None:  # noqa: F811
    ledger = Ledger(url)
    with ledger.lease("bank", sync_run(9, "bank_hourly")) as lease:
        ledger.plan(lease, {"t": {0: 0}}, {"t": {0: 5}}, None)
        assert overview(url, "bank")["state"] == "running"
        with ledger._database.writing() as connection:  # as after kill -9: nobody renews it
            over = time_text(datetime.now(UTC) - timedelta(minutes=1))
            connection.execute(update(schema.pipelines).values(lease_until=over))
        assert overview(url, "bank")["state"] == "interrupted"
    assert overview(url, "bank")["state"] == "interrupted"


def test_progress_is_that_of_a_living_worker(url: str) -> None:  # noqa: F811
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
        ledger.progressed(lease, planned.seq, done)
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
        ledger.progressed(lease, planned.seq, done)
    assert shown() == [None, None]
    with ledger.lease("bank", sync_run(10, "bank_hourly")) as lease:
        assert shown() == [None, None], "another worker has the batch"
        ledger.progressed(lease, planned.seq, done)
        ledger.commit(lease, planned.seq, {"status": "done"})
        assert shown() == [None, None]


def test_a_failed_attempt_is_seen_until_one_ends_well(url: str) -> None:  # noqa: F811
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


def test_a_pipeline_that_never_had_a_batch_is_seen_by_those_who_may_read_the_dag(url: str) -> None:  # noqa: F811
    ledger = Ledger(url)
    task = sync_run(10, "bank_hourly")
    ledger.record_attempt("bank", "configuration", task)
    with Database(url, read_only=True).reading() as connection:
        assert names(page_of(connection, {DAG})) == []
        (line,) = page_of(connection, {"bank_hourly"})["pipelines"]
    assert (line["state"], line["batch"], line["rests"]) == ("failing", None, False)
    assert (line["attempt"]["code"], line["attempt"]["run"]) == ("configuration", task.document())


def test_a_pipeline_with_parked_tables_says_since_when(url: str) -> None:  # noqa: F811
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


def test_records_since_a_log_that_began_again_are_not_counted(url: str) -> None:  # noqa: F811
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


# ---- parts of a pipeline


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


def test_a_parked_table_has_no_location_that_another_table_took_over(url: str) -> None:  # noqa: F811
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


def test_versions_without_a_visible_change_are_left_out(url: str) -> None:  # noqa: F811
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


def test_of_a_group_in_quarantine_the_first_record_is_named(url: str) -> None:  # noqa: F811
    ledger = Ledger(url)
    for offsets in ((3, 5), (), (12, 14, 19)):
        items = [{**page_ledger.QUARANTINE[1], "offset": offset} for offset in offsets]
        batch(ledger, "shop", "me", result={"quarantined": len(items), "quarantine": items})
    with Database(url, read_only=True).reading() as connection:
        (group,) = quarantine_rows.quarantine(connection, "shop", before=None)["groups"]
    assert [group[name] for name in ("count", "offset", "seq", "newest_seq")] == [5, 3, 1, 3]


def test_quarantine_looks_through_some_batches_at_a_time(
    url: str,  # noqa: F811
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


def test_the_lag_is_that_of_the_worst_moment_of_each_interval(url: str) -> None:  # noqa: F811
    ledger = Ledger(url)
    begin = datetime(2026, 11, 20, 8, tzinfo=UTC)
    for minutes, seconds in ((0, 5.0), (1, 9.0), (9, None), (10, 2.0), (20, None)):
        ledger.record_progress("shop", ProgressSample(begin + timedelta(minutes=minutes), lag_seconds=seconds))
    with Database(url, read_only=True).reading() as connection:
        by_ten = lag_rows.lag(connection, "shop", begin - timedelta(days=1), NOW)["points"]
        by_one = lag_rows.lag(connection, "shop", begin + timedelta(minutes=1), NOW)["points"]
    assert [point["seconds"] for point in by_ten] == [9.0, 2.0, None]
    assert [point["seconds"] for point in by_one] == [9.0, None, 2.0, None]


# ---- what must not be shown


def everything(connection: Connection) -> dict[str, Any]:
    """Return every answer about the filled ledger."""
    parts = {"before": None, "limit": 50}
    return {
        "page": page_of(connection, DAGS),
        "tables": table_rows.tables(connection, "shop", state=None, search="", offset=0, limit=50),
        "history": [
            table_rows.table_history(connection, "shop", name, **parts)
            for name in ("shop.orders", f"shop.{HOSTILE}", "shop.payments")
        ],
        "batches": batch_rows.batches(connection, "shop", DAGS, **parts),
        "schema": schema_change_rows.schema_changes(connection, "shop", **parts),
        "quarantine": quarantine_rows.quarantine(connection, "shop", before=None),
        "timeline": timeline_rows.timeline(connection, "shop", DAGS, NOW - timedelta(days=31), datetime.now(UTC)),
        "needs": needs.needs(connection, "shop", DAGS, "shop.yaml"),
        "equality": equality_rows.equality(connection, "shop"),
    }


def test_no_answer_has_a_row_value_a_secret_or_a_control_character(filled: Database) -> None:
    with filled.reading() as connection:
        answers = everything(connection)
    text = json.dumps(answers, ensure_ascii=False)
    assert "record.json_invalid" in text and "ADD COLUMN grade ENUM('…', '…') DEFAULT '…'" in text
    assert VALUE not in text and SECRET not in text
    # An id names its table in requests and is never shown; JSON escapes its control characters.
    for line in answers["tables"]["tables"]:
        line.pop("id")
    shown = json.dumps(answers, ensure_ascii=False)
    assert "\u202e" not in shown and "\\u001b[31m'" not in shown
