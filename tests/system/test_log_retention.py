# SPDX-License-Identifier: Apache-2.0
"""Old rows leave the change log, never before every table has applied them, and late rows refuse their own table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from airflow_provider_cdc.core.documents import ExpiredLog, Maintenance, Replay
from airflow_provider_cdc.ledger import Ledger
from spark_jobs.driver.maintenance import maintain
from spark_jobs.driver.run_batch import sync
from tests.services.broker import Broker
from tests.system.course import TABLES, Course
from tests.system.jobs import SECRETS, inline, job_of
from tests.system.pipeline_site import PipelineSite
from tests.system.site import Site
from tests.system.verdict import unequal

pytestmark = pytest.mark.system


@pytest.fixture
def course(broker: Broker, tmp_path: Path, request: pytest.FixtureRequest) -> Course:
    """Return a pipeline of three tables after four batches, each with a row of every table."""
    events = Course(broker, "".join(c for c in request.node.name if c.isalnum())[-60:], tmp_path)
    events.create(100, *TABLES)
    for key in (1, 2, 3, 4):
        events.insert(100 + 100 * key, key, *TABLES)
        events.sync()
    return events


def expire(course: Course, through: int) -> ExpiredLog:
    order = Maintenance(1 << 20, 24, expire_through=through)
    return maintain(job_of(course), order, SECRETS, inline).expired


def rows_of(course: Course) -> list[int]:
    """Return the batches that have rows in the change log."""
    return [seq for seq in range(1, course.lake.seq + 1) if list(course.log(seq).glob("*.parquet"))]


def test_applied_rows_go_and_batches_go_on(course: Course) -> None:
    report = expire(course, 3)
    assert (report.through, report.files) == (3, 3)
    assert rows_of(course) == [4]
    assert expire(course, 3) == ExpiredLog(3)
    course.update(900, 1, *TABLES)
    assert {state for state, _ in course.sync().values()} == {"ok"}
    assert course.values("sick") == {1: "900", 2: "300", 3: "400", 4: "500"}
    assert expire(course, 99).through == 4, "the newest batch stays"


def test_a_row_that_is_older_than_the_log_refuses_its_own_table(course: Course) -> None:
    expire(course, 3)
    course.update(250, 1, "sick")
    course.update(900, 1, "t0")
    states = course.sync()
    assert states["sick"][0] == "parked"
    assert "[retention.log_expired]" in states["sick"][1]
    assert {states[table][0] for table in ("t0", "t1")} == {"ok"}
    assert course.values("sick")[1] == "200"
    assert course.values("t0")[1] == "900"


def test_rows_that_a_parked_table_has_yet_to_take_stay(course: Course) -> None:
    gone = course.folder / "shop" / "sick"
    away = gone.rename(gone.with_name("away"))
    course.update(700, 1, *TABLES)
    assert course.sync()["sick"][0] == "parked"
    course.update(800, 1, "t0")
    course.sync()
    assert expire(course, 99).through == 4
    away.rename(gone)
    course.update(900, 2, *TABLES)
    assert {state for state, _ in course.sync().values()} == {"ok"}
    assert course.values("sick") == {1: "700", 2: "900", 3: "400", 4: "500"}


def test_a_replay_keeps_the_files_that_it_names_and_passes_over_what_is_gone(course: Course) -> None:
    expire(course, 1)
    course.lake.seq += 1
    job = replace(job_of(course), seq=course.lake.seq, earlier=[1, 2, 3, 4], order=Replay())
    result = sync(job, SECRETS, inline, lambda line: None)
    assert {state.state for state in result.states} == {"ok"}
    assert result.changes == {"replayed": 9}
    course.lake.states.update({state.table_id: state for state in result.states})
    course.update(900, 1, *TABLES)
    course.sync()
    assert expire(course, 4).files == 0
    assert rows_of(course) == [2, 3, 4, 6]


def test_old_rows_job_documents_and_states_go(request: pytest.FixtureRequest) -> None:
    ground: PipelineSite = request.getfixturevalue("shop")
    site = ground.site
    assert site.sync().code == 0
    ground.feed(1)
    assert site.sync().code == 0
    young = site.command("maintain")
    assert young.json["log"] == {"through": 0, "files": 0, "file_bytes": 0, "jobs": 0, "folded": 0}

    ground.feed(2)
    assert site.sync().code == 0
    _make_old(site, 2)
    done = site.command("maintain")
    assert done.code == 0, done.err
    log = done.json["log"]
    assert (log["through"], log["jobs"], log["folded"], done.json["batches"]) == (2, 2, 2, 1)
    assert log["files"] > 0
    assert not site.log(1).exists() and not site.log(2).exists()
    assert not site.job(2).exists() and site.job(3).exists()
    again = site.command("maintain").json
    assert (again["log"]["files"], again["log"]["folded"], again["batches"]) == (0, 0, 0)
    assert unequal(site, 2) == {}

    before = _facts(site)
    assert before["batches"][0]["result"]["batches"] == 2
    site.ledger.unlink()
    ground.feed(3)
    after = site.sync()
    assert (after.code, after.json["parked"]) == (0, []), after.err
    assert unequal(site, 3) == {}
    rebuilt = _facts(site)
    assert [batch["seq"] for batch in rebuilt["batches"]] == [2, 3, 4]
    assert rebuilt["batches"][:2] == before["batches"]
    assert rebuilt["changes"][: len(before["changes"])] == before["changes"]
    for table, versions in before["versions"].items():
        assert rebuilt["versions"][table][: len(versions)] == versions


def _make_old(site: Site, through: int) -> None:
    """Let batches be older than any retention."""
    with create_engine(f"sqlite:///{site.ledger}").begin() as connection:
        old = "UPDATE cdc_batches SET committed_at = '2025-01-01T00:00:00.000000Z' WHERE seq <= :seq"
        connection.execute(text(old), {"seq": through})


def _facts(site: Site) -> dict[str, Any]:
    """Return what a ledger has of batches, schema changes and states, without who worked when."""
    ledger = Ledger(f"sqlite:///{site.ledger}")
    mine = {"seq", "kind", "status", "start", "end", "until", "topics", "result"}
    batches = [{name: batch.document()[name] for name in sorted(mine)} for batch in ledger.batches("shop")]
    for batch in batches:
        for cost in ("seconds", "cpu_seconds"):  # of a run, which the lake does not know
            batch["result"].pop(cost, None)
    changes = (
        create_engine(f"sqlite:///{site.ledger}")
        .connect()
        .execute(text("SELECT id, number, seq, document FROM cdc_schema_changes ORDER BY number"))
    )
    versions = {table: ledger.table_versions("shop", table) for table in ledger.tables("shop")}
    return {"batches": batches, "changes": [tuple(row) for row in changes], "versions": versions}


def test_the_ledger_forgets_past_states_but_the_newest(tmp_path: Path) -> None:
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    with ledger.lease("p", "test") as lease:
        for seq in range(1, 5):
            ledger.plan(lease, {}, {"t": {0: seq}}, None)
            ledger.commit(lease, seq, {}, {"a": {"state": f"{seq}"}, **({"b": {"state": "1"}} if seq == 1 else {})})
        assert ledger.forget_states(lease, 3) == 2
        assert ledger.forget_states(lease, 3) == 0
    assert [seq for seq, _ in ledger.table_versions("p", "a")] == [3, 4]
    assert [seq for seq, _ in ledger.table_versions("p", "b")] == [1]
