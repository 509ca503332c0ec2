# SPDX-License-Identifier: Apache-2.0
"""A whole Airflow whose batches run elsewhere: killed in the middle, and equal all the same.

It takes a minute and needs a machine with room for a scheduler, so it runs with ``CDC_SEEDS=2``.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_cdc.ledger import Ledger
from tests.sample import ALL
from tests.services.process_platform import LOCAL_SETTINGS, ProcessPlatform
from tests.system import processes
from tests.system.recorded_files import FilesSite
from tests.system.verdict import doubled_commits, ledger_faults, unequal, versions

from .live import LiveAirflow
from .shop import demand_data

if TYPE_CHECKING:
    from tests.services.postgres import Postgres

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(600)]
longer = pytest.mark.skipif(not ALL, reason="set CDC_SEEDS=2 to run a whole Airflow")

DAGS = """
import os
from datetime import timedelta
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG
from airflow_provider_cdc import CdcPlanOperator, CdcPublishOperator, CdcSyncOperator

narrow = dict(schedule=None, default_args={"pool": "narrow"})
with DAG("away", **narrow):
    CdcSyncOperator(task_id="sync", pipeline=os.environ["AWAY_PIPELINE"], until="now", deferrable=True, poll_interval=4)
with DAG("other", **narrow):
    BashOperator(task_id="echo", bash_command="echo")
with DAG("staged", schedule=None, default_args={"retry_delay": timedelta(0)}):
    pipeline = os.environ["STAGED_PIPELINE"]
    stage = CdcPlanOperator(task_id="stage", pipeline=pipeline, stage=True)
    run = BashOperator(task_id="run", retries=1, append_env=True, bash_command='''
        exec "$PYTHON" -m airflow_provider_cdc.job {{ ti.xcom_pull("stage")["arguments"] | join(" ") }}''')
    publish = CdcPublishOperator(task_id="publish", pipeline=pipeline, plan=stage.output, deferrable=True,
                                 poll_interval=4)
    stage >> run >> publish
"""


def site_of(folder: Path, name: str) -> FilesSite:
    """Return a pipeline over the first phase of the shop's log."""
    (folder / name).mkdir()
    site = FilesSite(folder / name, {})
    site.feed(0)
    return site


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    demand_data()
    return tmp_path_factory.mktemp("elsewhere")


@pytest.fixture(scope="module")
def staged(folder: Path) -> FilesSite:
    return site_of(folder, "staged")


@pytest.fixture(scope="module")
def away(folder: Path) -> FilesSite:
    site = site_of(folder, "away")
    site.changes = {"policy": {"engine": "auto"}, "spark": {"submit": "process", "connection": "platform"}}
    return site


@pytest.fixture(scope="module")
def live(postgres: Postgres, folder: Path, staged: FilesSite, away: FilesSite) -> Iterator[LiveAirflow]:
    home = folder / "airflow"
    (home / "dags").mkdir(parents=True)
    (home / "dags" / "elsewhere.py").write_text(DAGS)
    (home / "config").mkdir()
    (home / "config" / "airflow_local_settings.py").write_text(LOCAL_SETTINGS)
    pipelines = {f"{site.folder.name.upper()}_PIPELINE": str(site.file()) for site in (staged, away)}
    environment = {**staged.env(), **pipelines, "PYTHON": sys.executable}
    (folder / "platform").mkdir()
    (folder / "platform" / "hold").touch()
    with LiveAirflow(postgres.new_database(), home, environment) as running:
        connection = {"connection_id": "platform", "conn_type": "process", "host": str(folder / "platform")}
        running.call("POST", "/connections", connection)  # the triggerer has to ask for it
        running.call("POST", "/pools", {"name": "narrow", "slots": 1})
        for dag in ("staged", "away"):
            running.trigger(dag)
        yield running
    ProcessPlatform(folder / "platform").stop()


def until(holds: Callable[[], object], live: LiveAirflow) -> None:
    """Wait for a moment that does not last."""
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline, live.log
        time.sleep(0.002)


def job_of(site: FilesSite) -> int | None:
    """Return the process that runs a job of a pipeline."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        words = processes.command(int(name))
        if words.startswith(f"{sys.executable} -m airflow_provider_cdc.job") and str(site.lake) in words:
            return int(name)
    return None


def halted_job(site: FilesSite, live: LiveAirflow, before: dict[str, int]) -> int:
    """Stop the job of a pipeline in the middle of what it applies, and return its process."""
    until(lambda: versions(site.lake) != before, live)
    job = job_of(site)
    assert job is not None and processes.kill(job, signal.SIGSTOP), live.log
    return job


@longer
def test_a_staged_batch_is_equal_although_its_job_was_killed_while_it_applied(
    live: LiveAirflow, staged: FilesSite
) -> None:
    job = halted_job(staged, live, {})
    committed = versions(staged.lake)
    processes.kill(job)
    held = Ledger(f"sqlite:///{staged.ledger}").lease("shop", "somebody")
    live.wait(lambda: live.named_tasks("staged").get("publish") == "deferred", 120)
    held.release()
    assert [state for _, state, _ in live.wait_for_tasks("staged", 3)] == ["success"] * 3, live.log
    assert unequal(staged, 0) == {} and doubled_commits(staged.lake) == [] and ledger_faults(staged, 1) == []
    assert 0 < len(committed) < len(versions(staged.lake)), "the job was not killed in the middle of what it applies"


@longer
def test_a_batch_of_a_platform_holds_no_worker_and_its_lease_outlives_the_triggerer(
    live: LiveAirflow, away: FilesSite, folder: Path
) -> None:
    ledger = Ledger(f"sqlite:///{away.ledger}")
    (folder / "platform" / "hold").unlink()
    job = halted_job(away, live, {})
    committed = versions(away.lake)
    live.wait(lambda: live.named_tasks("away").get("sync") == "deferred", 120)
    live.trigger("other")
    assert [state for _, state, _ in live.wait_for_tasks("other", 1)] == ["success"], live.log
    live.replace("triggerer")
    held = ledger.holder("shop")
    assert held is not None and live.named_tasks("away") == {"sync": "deferred"}
    live.wait(lambda: (ledger.holder("shop") or held)["until"] > held["until"], 120)
    assert (ledger.holder("shop") or {}) | {"until": ""} == {**held, "until": ""}, "somebody else has it"
    assert versions(away.lake) == committed
    processes.kill(job, signal.SIGCONT)
    assert [task[1:] for task in live.wait_for_tasks("away", 1)] == [("success", 1)], live.log
    assert unequal(away, 0) == {} and doubled_commits(away.lake) == [] and ledger_faults(away, 1) == []
    (batch,) = ledger.batches("shop")
    assert batch.application_id is not None and batch.engine == "process"
    assert [run.name for run in (folder / "platform").iterdir()] == [batch.application_id], "it ran more than once"
    assert 0 < len(committed) < len(versions(away.lake)), "the job did not stop in the middle of what it applies"


@longer
def test_a_deferred_batch_that_is_marked_as_failed_ends_on_the_platform_and_is_equal_when_it_is_cleared(
    live: LiveAirflow, away: FilesSite, folder: Path
) -> None:
    away.feed(1)
    before, runs = versions(away.lake), set((folder / "platform").iterdir())
    live.trigger("away")
    job = halted_job(away, live, before)
    live.wait(lambda: [run for run, state, _ in live.tasks("away") if state == "deferred"], 120)
    (run,) = [run for run, state, _ in live.tasks("away") if state == "deferred"]
    live.call("PATCH", f"/dags/away/dagRuns/{run}/taskInstances/sync", {"new_state": "failed"})
    live.wait(lambda: processes.state(job) in "ZX", 120)
    live.call("POST", "/dags/away/clearTaskInstances", {"dry_run": False, "only_failed": False, "dag_run_id": run})
    live.wait(lambda: (run, "success", 2) in live.tasks("away"), 120)
    killed, other = sorted((run.name, (run / "code").exists()) for run in {*(folder / "platform").iterdir()} - runs)
    assert (killed[1], other[1]) == (False, True), "the run was not cancelled"
    assert unequal(away, 1) == {} and doubled_commits(away.lake) == [] and ledger_faults(away, 2) == []
