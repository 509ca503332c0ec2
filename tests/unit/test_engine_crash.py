# SPDX-License-Identifier: Apache-2.0
"""An engine that crashes: whether running it again may help."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.batch.planned_batch import PlannedBatch
from airflow_provider_cdc.core.documents import Result
from airflow_provider_cdc.core.errors import Terminal, Transient, UnavailableError
from airflow_provider_cdc.core.model.status import ResultStatus
from airflow_provider_cdc.engine.task import read_result
from airflow_provider_cdc.ledger import SYNC, Ledger

TRACEBACK = """\
land: up to 5 records
Traceback (most recent call last):
  File "/x/run.py", line 34, in main
    result = sync(job)
  File "/x/spark_jobs/driver/run_batch.py", line {line}, in _land
    raise IndexError("of 4711")
IndexError: of 4711
"""


class Task:
    name = "shop 1"

    def __init__(self, folder: Path) -> None:
        self.result = folder / "result.json"
        self.stopper = type("Calm", (), {"check": staticmethod(lambda: None)})()


def crash(folder: Path, said: str) -> UnavailableError:
    with pytest.raises(UnavailableError) as caught:
        read_result(Task(folder), said.splitlines(), 1)  # type: ignore[arg-type]
    return caught.value


def judged(ledger: Ledger, error: UnavailableError) -> Any:
    with ledger.lease("shop", "test", 60) as lease:
        batch = ledger.open("shop") or ledger.plan(lease, {}, {"t": {0: 5}}, None, SYNC)
        run = PlannedBatch.__new__(PlannedBatch)
        run._ledger, run._lease, run._batch = ledger, lease, batch
        return run._judged(error)


def test_a_second_crash_at_the_same_place_is_not_worth_another_try(tmp_path: Path) -> None:
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    here, there = crash(tmp_path, TRACEBACK.format(line=12)), crash(tmp_path, TRACEBACK.format(line=99))
    assert here.where == {"batch": "shop 1", "place": "run_batch.py:12 in _land, IndexError"}
    assert isinstance(judged(ledger, here), Transient)
    assert isinstance(judged(ledger, there), Transient)
    assert isinstance(judged(ledger, here), Transient)
    again = judged(ledger, here)
    assert isinstance(again, Terminal) and again.code == "engine.crashed"
    assert "twice at the same location" in str(again) and "does not help" in again.hint
    with ledger.lease("shop", "test", 60) as lease:
        assert ledger.commit(lease, 1, {"status": "done"}).result == {"status": "done"}


def test_a_process_that_was_killed_may_be_run_again(tmp_path: Path) -> None:
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    killed = crash(tmp_path, "land: up to 5 records")
    assert "place" not in killed.where
    assert all(isinstance(judged(ledger, killed), Transient) for _ in range(3))


def test_an_answer_is_no_crash(tmp_path: Path) -> None:
    result = Result("shop", 1, ResultStatus.DONE, records=5)
    (tmp_path / "result.json").write_text(json.dumps(result.document()))
    assert read_result(Task(tmp_path), [], 0) == result  # type: ignore[arg-type]
