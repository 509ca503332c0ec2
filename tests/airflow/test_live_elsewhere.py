# SPDX-License-Identifier: Apache-2.0
"""A whole Airflow whose batches run elsewhere: killed in the middle, and equal all the same.

It takes a minute and needs a machine with room for a scheduler, so it runs with ``CDC_SEEDS=2``.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

from airflow_provider_cdc.ledger import Ledger
from tests.sample import ALL
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
from airflow_provider_cdc import CdcPlanOperator, CdcPublishOperator

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
def live(postgres: Postgres, folder: Path, staged: FilesSite) -> Iterator[LiveAirflow]:
    name = f"airflow_{uuid.uuid4().hex}"
    with psycopg.connect(postgres.conninfo, autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    home = folder / "airflow"
    (home / "dags").mkdir(parents=True)
    (home / "dags" / "elsewhere.py").write_text(DAGS)
    environment = {**staged.env(), "STAGED_PIPELINE": str(staged.file()), "PYTHON": sys.executable}
    with LiveAirflow(f"{postgres.conninfo.rpartition('/')[0]}/{name}", home, environment) as running:
        yield running


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
        if "-m airflow_provider_cdc.job" in words and str(site.lake) in words:
            return int(name)
    return None


@longer
def test_a_staged_batch_is_equal_although_its_job_was_killed_while_it_applied(
    live: LiveAirflow, staged: FilesSite
) -> None:
    live.trigger("staged")
    until(lambda: versions(staged.lake), live)
    job = job_of(staged)
    assert job is not None and processes.kill(job, signal.SIGSTOP), live.log
    committed = versions(staged.lake)
    processes.kill(job)
    held = Ledger(f"sqlite:///{staged.ledger}").lease("shop", "somebody")
    live.wait(lambda: live.named_tasks("staged").get("publish") == "deferred", 120)
    held.release()
    assert [state for _, state, _ in live.wait_for_tasks("staged", 3)] == ["success"] * 3, live.log
    assert unequal(staged, 0) == {} and doubled_commits(staged.lake) == [] and ledger_faults(staged, 1) == []
    assert 0 < len(committed) < len(versions(staged.lake)), "the job was not killed in the middle of what it applies"
