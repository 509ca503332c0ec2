# SPDX-License-Identifier: Apache-2.0
"""Kills and outages in a whole Airflow: with one retry every run ends green, with one engine of a pipeline at a time.

It takes minutes and needs a machine with room for a scheduler, so it runs only on demand: ``CDC_WINDOWS=4``; with
``CDC_SPARK=1`` also what needs Spark.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_cdc.ledger import Ledger
from tests.services.postgres import Postgres
from tests.system import processes

from .live import PATIENCE, LiveAirflow
from .live_windows import WINDOWS, batches, fill, things, write_pipeline
from .shop import Shop

if TYPE_CHECKING:
    from tests.services.broker import OwnBroker

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.timeout(2 * PATIENCE),
    pytest.mark.skipif("CDC_WINDOWS" not in os.environ, reason="set CDC_WINDOWS to run a whole Airflow"),
]

AWAY_SECONDS = 30
NAMES = ["worker", "engine", "triggerer", "api-server", "kafka", "ledger"] + ["jvm"] * ("CDC_SPARK" in os.environ)

DAGS = """
import os
from datetime import datetime, timedelta
from pathlib import Path
from airflow.sdk import DAG
from airflow_provider_cdc import CdcReceivedSensor, CdcRetryPolicy, CdcSyncOperator

now = datetime.now().astimezone()
for file in Path(os.environ["PIPELINES"]).glob("*.yaml"):
    with DAG(file.stem, schedule=None, start_date=datetime(2026, 1, 1)):
        retrying = dict(retries=1, retry_delay=timedelta(seconds=5), retry_policy=CdcRetryPolicy(), deferrable=True)
        received = CdcReceivedSensor(task_id="received", pipeline=file, until=os.environ["FIRST"], poke_interval=2,
                                     timeout=600, **retrying)
        received >> CdcSyncOperator(task_id="sync", pipeline=file, until="now", poll_interval=2, **retrying)
"""


class Engines:
    """Watch how many engines of one pipeline run at a time.

    :param mark: part of the paths of all pipelines.
    """

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self.most: dict[str, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def of(self, pipeline: str) -> list[int]:
        """Return the engines of a pipeline, parents first: their command names its folder.

        The script and the launcher that spark-submit begins with are left out: they turn into the driver's JVM.
        """
        pids = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            words = processes.command(int(name))
            folder = f"/{self._mark}/{pipeline}/"
            started = not words.startswith("bash") and "org.apache.spark.launcher.Main" not in words
            if "launch/run.py" in words and folder in words and started:
                pids.append(int(name))
        return sorted(pids)

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            for name in NAMES:
                running = self.of(name)
                below = {pid for one in running for pid in processes.descendants(one)}
                self.most[name] = max(self.most.get(name, 0), len(set(running) - below))

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("outages")


@pytest.fixture(scope="module")
def broker() -> Iterator[OwnBroker]:
    from tests.services.broker import OwnBroker

    with OwnBroker() as running:
        fill(running)
        yield running


@pytest.fixture(scope="module")
def ledger() -> Iterator[Postgres]:
    """Return a server of the ledger's own, which may go away."""
    server = Postgres()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def live(postgres: Postgres, folder: Path, broker: OwnBroker, ledger: Postgres) -> Iterator[LiveAirflow]:
    (folder / "dags").mkdir()
    (folder / "dags" / "dags.py").write_text(DAGS)
    for pipeline in NAMES:
        more = {"policy": {"engine": "spark"}} if pipeline == "jvm" else {}
        more |= {"ledger": "own_ledger"} if pipeline == "ledger" else {}
        write_pipeline(folder, broker, pipeline, more)
    environment = {
        **Shop(folder, {"bootstrap.servers": broker.bootstrap}).env(),
        "PIPELINES": str(folder),
        "FIRST": "2026-01-01T00:00:00+00:00",
        "AIRFLOW_CONN_OWN_LEDGER": ledger.conninfo.replace("postgresql://", "postgres://"),
    }
    with LiveAirflow(postgres.new_database(), folder, environment) as running:
        yield running


@pytest.fixture(scope="module")
def engines(live: LiveAirflow, folder: Path) -> Iterator[Engines]:
    watch = Engines(folder.name)
    yield watch
    watch.stop()


def engine_of(live: LiveAirflow, engines: Engines, pipeline: str) -> int:
    """Wait for the engine of a pipeline's batch, and return its process."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        for pid in engines.of(pipeline):
            return pid
        time.sleep(0.002)
    raise AssertionError(live.log)


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def away(pids: list[int]) -> None:
    """Stop processes for a while."""
    for pid in pids:
        processes.kill(pid, signal.SIGSTOP)
    time.sleep(AWAY_SECONDS)
    for pid in pids:
        processes.kill(pid, signal.SIGCONT)


def disturb(name: str, live: LiveAirflow, engines: Engines, broker: OwnBroker, ledger: Postgres) -> None:
    """Do what the pipeline is named after, while its batch runs."""
    if name == "triggerer":
        live.wait(lambda: "deferred" in [state for _, state, _ in live.tasks(name)], 300)
        live.replace("triggerer")
        return
    pid = engine_of(live, engines, name)
    disturbances: dict[str, Callable[[], object]] = {
        "worker": lambda: os.kill(parent(pid), signal.SIGKILL),
        "engine": lambda: os.kill(pid, signal.SIGKILL),
        "jvm": lambda: os.kill(pid, signal.SIGKILL),
        "api-server": lambda: live.replace("api-server"),
        "kafka": lambda: away(broker.pids()),
        "ledger": lambda: away(ledger.pids()),
    }
    disturbances[name]()


@pytest.mark.parametrize("name", NAMES)
def test_a_run_ends_well_with_one_retry(
    live: LiveAirflow, engines: Engines, broker: OwnBroker, ledger: Postgres, folder: Path, name: str
) -> None:
    # The triggerer has something to do only while somebody else holds the pipeline.
    held = Ledger(f"sqlite:///{folder / name / 'ledger.db'}").lease(name, "somebody") if name == "triggerer" else None
    # The command takes so long to end that the batch may be done by then.
    trigger = threading.Thread(target=live.trigger, args=[name])
    trigger.start()
    disturb(name, live, engines, broker, ledger)
    trigger.join()
    if held is not None:
        held.release()
    tasks = live.wait_for_tasks(name, 2)
    assert [state for _, state, _ in tasks] == ["success"] * 2, live.log
    assert max(tries for _, _, tries in tasks) <= 2
    assert things(folder, name) == list(range(WINDOWS))
    if name != "ledger":
        assert len(batches(folder, name)) == 1
    if name == "jvm":
        (batch,) = batches(folder, name)
        assert batch.application_id is not None
        assert batch.application_id == live.value(name, "sync", "spark_application_id")
    assert engines.most[name] == 1, "two engines of one pipeline ran at a time"
