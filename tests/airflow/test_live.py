# SPDX-License-Identifier: Apache-2.0
"""Backfills and kills in a whole Airflow: windows in every order, and a retry behind its own dead try.

It takes minutes and needs a machine with room for a scheduler, so it runs only on demand: ``CDC_WINDOWS=24`` runs that
many windows in each mode.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.airflow.live_windows import END, HOUR, START, WINDOWS, batches, fill, things, write_pipeline
from tests.system import processes

from .live import PATIENCE, LiveAirflow, connection
from .shop import ROOT, Shop

if TYPE_CHECKING:
    from tests.services.postgres import Postgres

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.timeout(2 * PATIENCE),
    pytest.mark.skipif("CDC_WINDOWS" not in os.environ, reason="set CDC_WINDOWS to run a whole Airflow"),
]

COVERING = ("cover", "backwards")

DAGS = """
import os
from datetime import datetime, timedelta
from pathlib import Path
from airflow.sdk import DAG
from airflow.timetables.interval import CronDataIntervalTimetable
from airflow_provider_cdc import CdcSyncOperator

# Only backfills make runs: the schedule has ended.
start, end = (datetime.fromisoformat(os.environ[name]) for name in ("FIRST", "LAST"))
args = dict(start_date=start, end_date=end, catchup=False)
sync = dict(task_id="sync", deferrable=True, poll_interval=10, lease_wait=timedelta(hours=1))
hourly = CronDataIntervalTimetable("@hourly", timezone="UTC")
for name in ("exact", "cover", "backwards", "broken"):
    with DAG(name, schedule=hourly, **args):
        window = {} if name in ("cover", "backwards") else dict(window="exact", after="{{ data_interval_start }}")
        CdcSyncOperator(pipeline=Path(os.environ["PIPELINES"], f"{name}.yaml"), **window, **sync)
with DAG("killed", schedule="@once", start_date=start):
    CdcSyncOperator(pipeline=Path(os.environ["PIPELINES"], "killed.yaml"), until="now", retries=1,
                    retry_delay=timedelta(seconds=1), **sync)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("live")


@pytest.fixture(scope="module")
def live(postgres: Postgres, folder: Path) -> Iterator[LiveAirflow]:
    from tests.services.broker import OwnBroker

    (folder / "dags").mkdir()
    (folder / "dags" / "dags.py").write_text(DAGS)
    _copy_examples(folder / "dags")
    with OwnBroker() as broker:
        fill(broker)
        for pipeline in ("exact", "cover", "backwards", "killed", "events", "asks", "broken"):
            write_pipeline(folder, broker, pipeline)
        broken = folder / "broken.yaml"
        broken.rename(folder / "broken.yaml.right")
        broken.write_text("name: broken")
        environment = {
            **Shop(folder, {"bootstrap.servers": broker.bootstrap}).env(),
            "PIPELINES": str(folder),
            "FIRST": START.isoformat(),
            "LAST": last(),
            "SHOP_PIPELINE": str(folder / "events.yaml"),
            "DDL_PIPELINE": str(folder / "asks.yaml"),
            "AIRFLOW_CONN_SHOP_KAFKA": connection({"bootstrap.servers": broker.bootstrap}),
        }
        with LiveAirflow(postgres.new_database(), folder, environment) as running:
            yield running


def _copy_examples(dags: Path) -> None:
    """Copy the examples that need a scheduler; a question goes unanswered for a second only."""
    start = f"datetime({END.year}, {END.month}, {END.day}, {END.hour})"
    events, approval = (
        (ROOT / "example_dags" / f"{name}.py").read_text().replace("datetime(2026, 1, 1)", start)
        for name in ("shop_events", "shop_approval")
    )
    (dags / "events.py").write_text(events)
    once = approval.replace('CronDataIntervalTimetable("@hourly", timezone="UTC")', '"@once"')
    (dags / "asks.py").write_text(once.replace("hours=8", "seconds=1").replace("SHOP_PIPELINE", "DDL_PIPELINE"))


def last() -> str:
    return (END - HOUR).isoformat()


@pytest.fixture(scope="module")
def done(live: LiveAirflow) -> LiveAirflow:
    """Run all backfills at once, and kill the worker of one run."""
    os.kill(_parent(_engine_of(live, "killed")), signal.SIGKILL)
    for name in COVERING:
        live.backfill(name, START.isoformat(), last(), *(["--run-backwards"] if name == "backwards" else []))
    for name in ("exact", "broken"):
        live.backfill(name, START.isoformat(), last())
    return live


def test_a_retry_takes_over_from_its_own_killed_try_at_once(done: LiveAirflow, folder: Path) -> None:
    """With one retry after a second; the dead try's lease would last a minute."""
    (task,) = done.wait_for_tasks("killed", 1)
    assert task[1:] == ("success", 2), done.log
    assert things(folder, "killed") == list(range(WINDOWS))
    (batch,) = batches(folder, "killed")
    assert batch.task is not None and batch.task.try_number == 2


def test_exact_windows_get_one_batch_each_in_order_although_three_run_at_a_time(
    done: LiveAirflow, folder: Path
) -> None:
    tasks = done.wait_for_tasks("exact", WINDOWS)
    assert [(state, tries) for _, state, tries in tasks] == [("success", 1)] * WINDOWS, done.log
    made = batches(folder, "exact")
    assert [batch.until for batch in made] == [START + number * HOUR for number in range(1, WINDOWS + 1)]
    assert [(batch.result or {})["changes"] for batch in made] == [{"insert": 1}] * WINDOWS
    assert [batch.task.run_id for batch in made if batch.task] == [run for run, _, _ in tasks]
    assert things(folder, "exact") == list(range(WINDOWS))


@pytest.mark.parametrize("name", COVERING)
def test_covering_windows_are_green_in_any_order_without_a_second_try(
    done: LiveAirflow, folder: Path, name: str
) -> None:
    tasks = done.wait_for_tasks(name, WINDOWS)
    assert [(state, tries) for _, state, tries in tasks] == [("success", 1)] * WINDOWS, done.log
    assert things(folder, name) == list(range(WINDOWS))


def test_an_asset_event_starts_a_report_of_the_versions(done: LiveAirflow) -> None:
    done.wait_for_tasks("shop_report", 1)
    assert done.named_tasks("shop_report") == {"versions": "success"}, done.log
    assert done.value("shop_report", "versions") == {"shop.things": 0}


def test_a_destructive_batch_without_an_answer_is_not_run(done: LiveAirflow, folder: Path) -> None:
    done.wait_for_tasks("shop_approval", 4)
    expected = {"plan": "success", "is_destructive": "success", "approve": "success", "sync": "skipped"}
    assert done.named_tasks("shop_approval") == expected, done.log
    assert done.value("shop_approval", "plan")["ddl_kinds"] == ["destructive"]
    assert batches(folder, "asks") == []


def test_windows_that_were_done_are_done_again_without_a_new_batch(done: LiveAirflow, folder: Path) -> None:
    before = batches(folder, "exact")
    done.backfill("exact", START.isoformat(), last(), "--reprocess-behavior", "completed")
    tasks = done.wait_for_tasks("exact", WINDOWS, since=1)
    assert [(state, tries) for _, state, tries in tasks] == [("success", 2)] * WINDOWS, done.log
    assert batches(folder, "exact") == before


def test_windows_that_failed_are_run_again_in_order(done: LiveAirflow, folder: Path) -> None:
    failed = done.wait_for_tasks("broken", WINDOWS)
    assert {state for _, state, _ in failed} == {"failed"}, done.log
    (folder / "broken.yaml.right").rename(folder / "broken.yaml")
    done.backfill("broken", START.isoformat(), last(), "--reprocess-behavior", "failed")
    tasks = done.wait_for_tasks("broken", WINDOWS, since=1)
    assert [(state, tries) for _, state, tries in tasks] == [("success", 2)] * WINDOWS, done.log
    assert [batch.until for batch in batches(folder, "broken")] == [
        START + hour * HOUR for hour in range(1, WINDOWS + 1)
    ]
    assert things(folder, "broken") == list(range(WINDOWS))


def _engine_of(live: LiveAirflow, pipeline: str) -> int:
    """Wait for the engine of a pipeline's batch, and return its process."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        for name in filter(str.isdigit, os.listdir("/proc")):
            words = processes.command(int(name))
            if "launch/run.py" in words and f"/{live.folder.name}/{pipeline}/" in words:
                return int(name)
        time.sleep(0.002)
    raise AssertionError(live.log)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
