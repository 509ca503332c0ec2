# SPDX-License-Identifier: Apache-2.0
"""Render the page's script with answers that are read from ledgers; Node runs it, a browser is in tests/airflow."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from sqlalchemy import update

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.ledger import Ledger, ProgressSample, TaskTry, schema
from airflow_provider_cdc.ledger.database import Database
from airflow_provider_cdc.ledger.records import time_text
from airflow_provider_cdc.plugins import (
    batch_rows,
    equality_rows,
    needs,
    pipeline_rows,
    quarantine_rows,
    schema_change_rows,
    table_rows,
    timeline_rows,
)
from airflow_provider_cdc.plugins.ledgers import PageLedger, state_of
from tests.airflow.page_ledger import DAG, batch, fill, looked, run_ago, state, sync_run

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed; Debian's package nodejs brings it")

HERE = Path(__file__).parent
SCRIPT = HERE.parents[2] / "airflow_provider_cdc" / "plugins" / "static" / "page.js"
DAGS = {DAG, "bank_hourly"}
OK = {"ledger": {"name": "cdc", "state": "ok"}}


def rendered(search: str, answers: dict[str, Any], tab: dict[str, str] | None = None, zone: str | None = None) -> str:
    """Return the HTML of the page at an address, after its requests were answered.

    :param tab: what Airflow names to a tab of a DAG or task.
    :param zone: time zone that was chosen in Airflow's UI, None for the browser's.
    """
    assert NODE is not None
    command = [NODE, str(HERE / "render.mjs"), str(SCRIPT)]
    work = json.dumps({"search": search, "answers": answers, "tab": tab, "zone": zone})
    environment = {**os.environ, "TZ": "UTC"}
    done = subprocess.run(command, input=work, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def text(html: str) -> str:
    """Return what is read on a page: each element's text apart, without signs that only repeat a word."""
    html = re.sub(r'<span aria-hidden="true">[^<]*</span>', "", html)
    return " ".join(unescape(re.sub(r"<[^>]*>", "\n", html)).split())


def page_of(url: str) -> str:
    """Return the HTML of the list of a ledger's pipelines."""
    with Database(url, read_only=True).reading() as connection:
        listed = pipeline_rows.pipeline_page(connection, DAGS)
    return rendered("", {"ledgers": {"ledgers": ["cdc"]}, "pipelines": {**OK, **listed}})


def page_of_one(url: str, name: str, **airflow: Any) -> str:
    """Return the HTML of one pipeline.

    :param airflow: answers of Airflow's own interface by DAG.
    """
    html = rendered(f"?pipeline={quote(name)}", answers_of_one(url, name, **airflow))
    assert "no answer for" not in html and "Loading" not in html, html
    return html


def answers_of_one(url: str, name: str, **airflow: Any) -> dict[str, Any]:
    """Return the answers for the page of one pipeline, by address; parameters are those of :func:`page_of_one`."""
    now = datetime.now(UTC)
    with Database(url, read_only=True).reading() as c:
        parts = {
            "": {"pipeline": pipeline_rows.pipeline(c, name, DAGS)},
            "/needs": {"needs": needs.needs(c, name, DAGS, f"{name}.yaml")},
            "/timeline": timeline_rows.timeline(c, name, DAGS, now - timedelta(days=1), now),
            "/equality": equality_rows.equality(c, name),
            "/batches": batch_rows.batches(c, name, DAGS, before=None, limit=25),
            "/tables": table_rows.tables(c, name, state=None, search="", offset=0, limit=50),
            "/schema-changes": schema_change_rows.schema_changes(c, name, before=None, limit=25),
            "/quarantine": quarantine_rows.quarantine(c, name, before=None),
        }
    answers = {f"pipelines/{quote(name)}{part}": {**OK, **answer} for part, answer in parts.items()}
    return answers | {f"/api/v2/dags/{dag}/dagRuns": {"dag_runs": runs} for dag, runs in airflow.items()}


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.db'}"


def row_of(html: str, first: str) -> str:
    """Return the text of the row whose first cell has a text."""
    rows = [text(row) for row in re.findall(r"<tr.*?</tr>", html, re.DOTALL)]
    return next(row for row in rows if row.startswith(f"{first} "))


# ---- a first installation


def listed_of(ledger: PageLedger) -> dict[str, Any]:
    """Return what the route answers."""
    try:
        with ledger.reading() as connection:
            page = pipeline_rows.pipeline_page(connection, DAGS)
            return {"ledger": state_of(ledger), **page}
    except CdcError as error:
        return {"ledger": state_of(ledger, error)}


def test_a_first_installation_is_an_invitation(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'cdc' / 'ledger.db'}"
    html = rendered("", {"ledgers": {"ledgers": ["cdc"]}, "pipelines": listed_of(PageLedger("cdc", url))})
    assert "There is no ledger yet: the first batch creates it" in text(html)
    assert "airflow-cdc doctor shop.yaml" in text(html) and "cdc-note-bad" not in html and "alert" not in html
    shown = unescape(re.findall(r"<pre[^>]*>(.*?)</pre>", html, re.DOTALL)[0])
    assert CdcPipeline.from_dict(yaml.safe_load(shown)).source.topics == r"shopdb\.shop\..*"
    Ledger(url).pipelines()
    html = rendered("", {"ledgers": {"ledgers": ["cdc"]}, "pipelines": listed_of(PageLedger("cdc", url))})
    assert "No pipeline has run yet" in text(html) and "cdc-note-bad" not in html


def test_a_ledger_that_does_not_answer_is_still_an_alarm(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_text("not a database")
    ledger = PageLedger("cdc", f"sqlite:///{tmp_path / 'ledger.db'}")
    html = rendered("", {"ledgers": {"ledgers": ["cdc"]}, "pipelines": listed_of(ledger)})
    assert "cdc-note-bad" in html and "cdc-welcome" not in html


def test_a_table_of_another_mode_says_so(url: str) -> None:
    states = [state("accounts", made_with={"mode": "soft_delete"}), state("transfers", made_with={})]
    batch(Ledger(url), "bank", sync_run(8, "bank_hourly"), states)
    html = page_of_one(url, "bank")
    assert "soft_delete" in row_of(html, "shop.accounts") and "mirror" not in row_of(html, "shop.transfers")


# ---- tables that are not applied


def test_a_parked_table_says_since_when_and_how_much_was_read_since(url: str) -> None:
    ledger = Ledger(url)
    applied = int(datetime(2026, 11, 20, 8, 59, 30, tzinfo=UTC).timestamp() * 1e6)
    batch(ledger, "bank", sync_run(8, "bank_hourly"), [state("accounts", source_time=applied), state("transfers")])
    parked = state(
        "accounts",
        TableStatus.PARKED,
        source_time=applied,
        code="sink.missing",
        reason="[sink.missing] the table is gone",
    )
    for hour in (9, 10, 11):
        batch(ledger, "bank", sync_run(hour, "bank_hourly"), [parked, state("transfers")])
    run_ago(ledger, hours=25)
    looked(ledger, "bank", 1)
    assert "tables not applied for 25 h" in row_of(page_of(url), "bank")
    html = page_of_one(url, "bank")
    assert row_of(html, "shop.accounts").startswith(
        "shop.accounts parked for 25 h [sink.missing] the table is gone 2026-11-20 08:59:30 30 records read since"
    )
    assert row_of(html, "shop.transfers").startswith("shop.transfers ok ")
    facts = text(html.partition("<dl")[2].partition("</dl>")[0])
    needed = text(html.partition("<ul")[2].partition("</ul>")[0])
    assert needed.startswith('className="cdc-needs"> parked for 25 h')
    assert "What to do Restore the location" in needed and "airflow-cdc approve" not in needed
    assert re.search(r"Not applied since \(UTC\) \d{4}-\d\d-\d\d \d\d:\d\d:\d\d 30 records read since", facts), facts


# ---- attempts


def test_a_failed_attempt_shows_its_code_and_leads_to_its_log(url: str) -> None:
    Ledger(url).record_attempt("bank", "kafka.unavailable", TaskTry("bank_hourly", "r 1", "received", -1, 3))
    html = page_of(url)
    expected = r"bank failing for [\d.]+ s kafka\.unavailable [\d.]+ s ago log of received, r 1 unknown"
    assert re.match(expected, row_of(html, "bank"))
    log = "/dags/bank_hourly/runs/r%201/tasks/received?try_number=3"
    assert f'to="{log}"' in html and f'to="{log}"' in page_of_one(url, "bank")


# ---- lag


def test_an_old_lag_is_unknown_in_the_list_and_the_pipeline_is_stale(url: str) -> None:
    ledger = Ledger(url)
    for hour in (7, 8, 9):
        batch(ledger, "bank", sync_run(hour, "bank_hourly"))
    seen = datetime.now(UTC) - timedelta(hours=25)
    ledger.record_progress("bank", ProgressSample(seen, seen, seen, 0.0, 0))
    with ledger._database.writing() as connection:
        connection.execute(update(schema.batches).values(planned_at=time_text(seen), committed_at=time_text(seen)))
    row = row_of(page_of(url), "bank")
    assert row.startswith("bank stale not run for 25 h unknown, last seen 25 h ago")
    assert "0 records" not in row and " ok " not in row


def test_a_lag_of_some_minutes_ago_says_so(url: str) -> None:
    ledger = Ledger(url)
    batch(ledger, "bank", sync_run(9, "bank_hourly"))
    for minutes in (120, 60, 20):
        seen = datetime.now(UTC) - timedelta(minutes=minutes)
        ledger.record_progress("bank", ProgressSample(seen, seen, seen, 3.0, 5))
    row = row_of(page_of(url), "bank")
    assert row.startswith("bank ok 3 s, 5 records 20 min ago")


def test_every_part_of_a_filled_ledger_is_shown(url: str) -> None:
    fill(url)
    html = page_of(url)
    assert [row_of(html, name).split()[1] for name in ("shop", "bank", "by_hand", "crashed")] == [
        "parked", "ok", "ok", "crashed",
    ]  # fmt: skip
    shop = page_of_one(url, "shop")
    assert "<img" not in shop and "&#60;img src=x" in shop
    assert "3.2 s, CPU 1.3 s, 48 kB" in text(shop)
    quarantine = text(shop.rpartition("<section")[2])
    assert "number_invalid shop.orders price 1 shop.log/0:17 2 2" in quarantine
    assert "record.json_invalid – 1 shop.log/0:18 2 2" in quarantine
    assert "and 2 more records" in quarantine


@pytest.mark.parametrize(
    ("tab", "shown"),
    [
        ({"dagId": "bank_hourly"}, "State ok"),  # the one pipeline's own page
        ({"dagId": DAG}, "crashed crashed"),  # its pipelines
        ({"dagId": DAG, "taskId": "sync"}, "crashed crashed"),
        ({"dagId": "other"}, "No pipeline has run in this DAG. All pipelines"),
    ],
)
def test_a_tab_shows_the_pipelines_of_its_dag(tab: dict[str, str], shown: str, url: str) -> None:
    fill(url)
    of = pipeline_rows.DagPart(tab["dagId"], tab.get("taskId"))
    with Database(url, read_only=True).reading() as connection:
        listed = pipeline_rows.pipeline_page(connection, DAGS, of=of)
    answers = {**answers_of_one(url, "bank"), "ledgers": {"ledgers": ["cdc"]}, "pipelines": {**OK, **listed}}
    html = rendered("", answers, tab)
    assert shown in text(html) and "CDC pipelines" not in text(html) and "Loading" not in html
    assert 'to="/plugin/cdc"' in html or tab["dagId"] == DAG
    assert ("by_hand" in html, "not shown" in html) == (False, False)


def test_times_are_those_of_the_zone_that_the_ui_shows_and_the_title_names_the_page(url: str) -> None:
    fill(url)
    answers = answers_of_one(url, "bank")
    for zone, shown in ((None, "2026-11-20 09:00:00 UTC"), ("Asia/Tokyo", "2026-11-20 18:00:00 Asia/Tokyo")):
        html = rendered("?pipeline=bank", answers, zone=zone)
        assert "<title>bank - Airflow</title>" in html
        assert f"equal the source at {shown}" in text(html) and f"At ({zone or 'UTC'})" in text(html)
    assert "<title>Airflow</title>" in rendered("?pipeline=bank", answers, {"dagId": "bank_hourly"}), "Airflow names it"


def test_a_command_that_decides_is_not_copied_with_the_one_that_shows(url: str) -> None:
    why = {"code": "apply.approval_required", "reason": "[apply.approval_required] DROP TABLE"}
    batch(Ledger(url), "bank", sync_run(9, "bank_hourly"), [state("accounts", TableStatus.PARKED, **why)])
    needed = page_of_one(url, "bank").partition("cdc-needs")[2].partition("</section>")[0]
    shown = [unescape(one) for one in re.findall(r"<pre[^>]*>(.*?)</pre>", needed)]
    assert shown[:2] == ["airflow-cdc approve bank.yaml", "airflow-cdc approve bank.yaml shop.accounts"]


def test_runs_of_the_dag_are_on_the_axis(url: str) -> None:
    batch(Ledger(url), "bank", sync_run(9, "bank_hourly"))
    due = [(datetime.now(UTC) - timedelta(hours=hours)).isoformat() for hours in (1, 2)]
    runs = [
        {"dag_id": "bank_hourly", "dag_run_id": f"r {at}", "run_after": at, "state": word}
        for at, word in zip(due, ("success", "failed"), strict=True)
    ]
    html = page_of_one(url, "bank", bank_hourly=runs)
    lane = html.partition('aria-label="Runs"')[2].partition("</g>")[0]
    assert re.findall("cdc-shape-[a-z]+", lane) == ["cdc-shape-tick", "cdc-shape-cross"]
    assert f'to="/dags/bank_hourly/runs/{quote(f"r {due[1]}", safe="")}"' in lane


def test_one_figure_draws_a_point(url: str) -> None:
    ledger = Ledger(url)
    batch(ledger, "bank", sync_run(9, "bank_hourly"))
    looked(ledger, "bank", 1)
    assert page_of_one(url, "bank").count('className="cdc-point-alone"') == 1
    looked(ledger, "bank", 25)  # another interval of the plot
    assert "cdc-point-alone" not in page_of_one(url, "bank")
