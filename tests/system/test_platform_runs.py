# SPDX-License-Identifier: Apache-2.0
"""Batches that a platform runs: equal and once, however the request and the run end."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, AirflowTaskTimeout, TaskDeferred

from airflow_provider_cdc import CdcSyncOperator
from airflow_provider_cdc.batch import planned_batch, staged_job
from airflow_provider_cdc.batch.runner import run_batch
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.config.platform_kinds import PLATFORMS
from airflow_provider_cdc.core.documents import Progress, StagedPlace
from airflow_provider_cdc.core.errors import BusyError, ConfigurationError, UnavailableError
from airflow_provider_cdc.engine.stopper import Stopper
from airflow_provider_cdc.ledger import Ledger
from tests.airflow.shop import demand_data
from tests.services import process_platform
from tests.system.page import shown
from tests.system.recorded_files import FilesSite
from tests.system.verdict import doubled_commits, ledger_faults, unequal

pytestmark = pytest.mark.system


@dataclass
class Away:
    """A pipeline whose batches run on a platform."""

    site: FilesSite

    @property
    def ledger(self) -> Ledger:
        return Ledger(f"sqlite:///{self.site.ledger}")

    @property
    def runs(self) -> list[str]:
        """Return the tokens of all runs, oldest first."""
        folders = [entry for entry in self.folder.iterdir() if entry.is_dir()]
        return [entry.name for entry in sorted(folders, key=lambda entry: entry.stat().st_mtime_ns)]

    @property
    def folder(self) -> Path:
        return self.site.folder / "platform"

    @property
    def platform(self) -> process_platform.ProcessPlatform:
        return process_platform.ProcessPlatform(self.folder)

    @property
    def pipeline(self) -> CdcPipeline:
        return CdcPipeline.from_dict(self.site.document())

    def hold(self) -> None:
        """Keep runs that start from now on from beginning."""
        (self.folder / "hold").touch()

    def go(self) -> None:
        """Let them begin."""
        (self.folder / "hold").unlink()

    def task(self, try_number: int, **more: Any) -> Task:
        """Return a try of a task; each process of a try has an operator of its own."""
        return Task({"pipeline": self.site.document(), "until": "now", **more}, try_number)

    def check(self, batches: int = 1) -> None:
        assert unequal(self.site, 0) == {} and doubled_commits(self.site.lake) == []
        assert ledger_faults(self.site, batches) == []


class Ti:
    """A task instance."""

    dag_id, run_id, task_id, map_index = "shop", "run 1", "sync", -1

    def __init__(self, try_number: int) -> None:
        self.try_number = try_number

    def xcom_push(self, key: str, value: object) -> None:
        """Take what is pushed."""


class Task:
    """One try of a deferrable task, as Airflow runs it."""

    def __init__(self, arguments: dict[str, Any], try_number: int) -> None:
        self._arguments, self._context = arguments, {"ti": Ti(try_number)}

    def _operator(self) -> CdcSyncOperator:
        return CdcSyncOperator(task_id="sync", deferrable=True, poll_interval=0.1, **self._arguments)

    def start(self) -> TaskDeferred:
        """Run the task until it is deferred."""
        with pytest.raises(TaskDeferred) as deferred:
            self._operator().execute(self._context)
        return deferred.value

    def resume(self, deferred: TaskDeferred) -> Any:
        """Wait as the triggerer does, and go on."""
        event = asyncio.run(event_of(deferred))
        return self._operator().resume(self._context, **(deferred.kwargs or {}), event=event)

    def finish(self) -> Any:
        """Run the task to its end, deferring as often as it asks to; return its result and how often that was."""
        deferred, times = self.start(), 1
        while True:
            try:
                return self.resume(deferred), times
            except TaskDeferred as again:
                deferred, times = again, times + 1


def trigger_of(deferred: TaskDeferred) -> Any:
    """Return the trigger, after a journey through JSON."""
    _, arguments = deferred.trigger.serialize()
    return type(deferred.trigger)(**json.loads(json.dumps(arguments)))


async def event_of(deferred: TaskDeferred) -> dict[str, Any]:
    """Return the payload of the trigger's one event."""
    (event,) = [event async for event in trigger_of(deferred).run()]
    return dict(event.payload)


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Away]:
    demand_data()
    monkeypatch.setitem(PLATFORMS, "process", process_platform.__name__)
    site = FilesSite(tmp_path, {})
    (tmp_path / "platform").mkdir()
    site.changes = {"policy": {"engine": "auto"}, "spark": {"submit": "process", "connection": "platform"}}
    connection = {"conn_type": "process", "host": str(tmp_path / "platform")}
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM", json.dumps(connection))
    site.feed(0)
    made = Away(site)
    yield made
    made.platform.stop()


def test_a_stop_cancels_the_run_and_the_next_request_starts_another(away: Away) -> None:
    away.hold()
    stopper, failures = Stopper(), []

    def work() -> None:
        with pytest.raises(UnavailableError) as stopped:
            run_batch(away.pipeline, kill=stopper)
        failures.append(stopped.value.code)

    worker = threading.Thread(target=work)
    worker.start()
    wait_until(lambda: [batch for batch in away.ledger.batches("shop") if batch.application_id])
    stopper("the task was killed")
    worker.join()
    (first,) = away.runs
    assert failures == ["engine.stopped"] and away.platform.state(first).text == "killed"
    away.go()
    result = run_batch(away.pipeline)
    assert (result.status, away.runs[0], len(away.runs)) == ("done", first, 2)
    (batch,) = away.ledger.batches("shop")
    assert (batch.engine, batch.application_id) == ("process", away.runs[1])
    assert run_batch(away.pipeline).status == "nothing_to_do" and len(away.runs) == 2
    away.check()


def test_a_retry_adopts_the_run_and_one_that_crashed_is_replaced_by_the_try_after_it(away: Away) -> None:
    away.hold()
    first, second = away.task(1), away.task(2)
    left = first.start()
    with pytest.raises(BusyError, match="try 1"):
        run_batch(away.pipeline)
    adopted = second.start()
    assert len(away.runs) == 1 and trigger_of(adopted).away["run"] == away.runs[0]
    asyncio.run(trigger_of(left).on_kill())  # a cleared task's triggerer may notice later than its next try
    assert away.platform.state(away.runs[0]).text == "running", "the run is that of the later try"
    assert asyncio.run(event_of(left))["status"] == "lost"
    away.platform.cancel(away.runs[0])
    with pytest.raises(AirflowException, match=r"engine\.crashed.*ended without a result: killed"):
        second.resume(adopted)
    assert len(away.runs) == 1, "the end of a run is reported before another one starts"
    away.go()
    answer, times = away.task(3).finish()
    assert (answer["status"], answer["seq"], times, len(away.runs)) == ("done", 1, 1, 2)
    away.check()


def test_a_request_of_several_batches_is_away_once_for_each_and_its_result_is_of_all(away: Away) -> None:
    away.site.changes["policy"]["batch_records"] = 490
    answer, times = away.task(1).finish()
    batches = [batch for batch in away.ledger.batches("shop") if batch.records]
    assert times == answer["batches"] == len(batches) == len(away.runs) > 1
    assert answer["records"] == sum((batch.result or {})["records"] for batch in batches)
    away.check(len(batches))


def test_whoever_ends_the_task_ends_the_run_and_frees_the_pipeline(away: Away, monkeypatch: pytest.MonkeyPatch) -> None:
    away.hold()
    first = away.task(1)
    left = first.start()
    with monkeypatch.context() as without:
        without.setenv("AIRFLOW_CONN_PLATFORM", "kafka://elsewhere")
        with pytest.raises(AirflowFailException, match=r"goes on, but nobody can look at it.*expected 'process'"):
            first.resume(left)
    asyncio.run(trigger_of(left).on_kill())
    assert away.platform.state(away.runs[0]).text == "killed" and away.ledger.holder("shop") is None
    late = away.task(2, execution_timeout=timedelta(seconds=1))
    with pytest.raises(AirflowTaskTimeout, match=r"execution_timeout.*is cancelled"):
        late.resume(late.start())
    assert len(away.runs) == 2 and away.platform.state(away.runs[1]).text == "killed"
    assert away.ledger.holder("shop") is None


@pytest.mark.parametrize("deferred", [False, True])
def test_the_page_shows_how_far_a_run_is(away: Away, deferred: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planned_batch, "_FIRST_RECORD", 0.0)
    away.hold()
    task = away.task(1)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lambda: task.resume(task.start()) if deferred else run_batch(away.pipeline))
        try:
            wait_until(lambda: away.runs)
            (job,) = away.site.lake.glob("_cdc/*/jobs/*/*/job.json")
            StagedPlace(str(job.parent), {}).show({"progress": Progress("land", 7.0, 300, 3401).document()})
            wait_until(lambda: shown(away.pipeline))
            assert shown(away.pipeline)["text"] == "land: 300 of 3401 records, 7 s, about 72 s left"
        finally:
            away.go()
        running.result(60)
    assert shown(away.pipeline) is None
    away.check()


def test_a_deferred_batch_ends_well_although_nobody_can_read_how_far_it_is(
    away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    away.hold()
    task = away.task(1)
    deferred = task.start()
    asked: list[str] = []

    def unread(pipeline: CdcPipeline, address: str) -> StagedPlace:
        if not asked:
            away.go()
        asked.append(address)
        raise ConfigurationError(["no connection to the lake here"])

    with monkeypatch.context() as without:
        without.setattr(staged_job, "place_of", unread)
        event = asyncio.run(event_of(deferred))
    assert (event["status"], len(asked) > 0) == ("ended", True)
    assert task.resume(deferred)["status"] == "done"
    away.check()


def wait_until(seen: Callable[[], Any]) -> None:
    """Wait until there is something."""
    deadline = time.monotonic() + 60
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.02)
