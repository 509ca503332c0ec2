# SPDX-License-Identifier: Apache-2.0
"""A table that holds a batch goes on from its own commit, whatever was recorded of it."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.documents import JobDocument, Result
from airflow_provider_cdc.core.errors import SinkError, UnavailableError
from airflow_provider_cdc.core.model.offsets import OffsetRange
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.sinks.delta.task_writer import TaskWriter
from tests.histories.ddl_statements import Create
from tests.histories.log import Crash, CrashError, Log
from tests.histories.plain_tables import KEYED, KEYLESS, T, rows
from tests.histories.run import Case, Replay, described
from tests.histories.wire import Style


class _ParkedAfterCommit(Replay):
    """Lets batch 2 commit and die, and lets the table be unreadable when batch 2 runs again."""

    unreadable = False

    def _sync(self, job: JobDocument) -> Result:
        if job.seq != 2:
            return super()._sync(job)
        self.log.arm(Crash("result"))
        with pytest.raises(CrashError):
            super()._sync(job)
        self.log.arm(None)
        type(self).unreadable = True
        result = super()._sync(job)
        type(self).unreadable = False
        assert [state.state for state in result.states] == ["parked"]
        return result


@pytest.mark.parametrize("structure", [KEYED, KEYLESS], ids=["keyed", "keyless"])
def test_rows_of_a_batch_that_was_parked_after_its_commit_count_once(
    structure: Any, log: Log, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = DeltaLocation.__init__

    def fail(location: DeltaLocation, *arguments: Any, **named: Any) -> None:
        if _ParkedAfterCommit.unreadable:
            raise SinkError("sink.unreadable", "the table cannot be opened")
        opened(location, *arguments, **named)

    monkeypatch.setattr(DeltaLocation, "__init__", fail)
    statements = (Create(T, structure), rows(1), rows(2), rows(3), rows(4), rows(5))
    ends = ({"/0": 2, ".shop.t/0": 1}, {".shop.t/0": 3})
    replay = _ParkedAfterCommit(Case(0, statements, Style(partitions=1), ends=ends), log, lake)
    problems = replay.run()
    assert not problems, described(replay.case, replay.story, problems)


def test_a_store_that_fails_at_opening_fails_the_batch_for_now(
    log: Log, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay = Replay(Case(0, (Create(T, KEYED), rows(1)), Style(), batches=1), log, lake)
    monkeypatch.setattr("spark_jobs.sinks.delta.table.DeltaTable", _failing(OSError("connection reset by peer")))
    (problem,) = replay.run()
    assert "sink.unavailable" in problem and "location=" in problem and "run again" in problem


def _failing(error: Exception) -> Any:
    def fail(*arguments: Any, **named: Any) -> None:
        raise error

    return fail


def test_of_two_creators_of_a_document_one_succeeds(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    assert storage.create_json("a/claim.json", {"by": 1})
    assert not storage.create_json("a/claim.json", {"by": 2})
    assert storage.read_json("a/claim.json") == {"by": 1}
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["claim.json"]


def test_a_file_system_without_hard_links_has_one_creator_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.link", _failing(OSError(errno.EPERM, "Operation not permitted")))
    storage = Storage(str(tmp_path))
    assert storage.create_json("a/claim.json", {"by": 1})
    assert not storage.create_json("a/claim.json", {"by": 2})
    assert storage.read_json("a/claim.json") == {"by": 1}


def test_a_full_disk_is_an_error_with_place_and_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", _failing(OSError(28, "No space left on device")))
    with pytest.raises(UnavailableError) as caught:
        Storage(str(tmp_path)).write_json("a/b.json", {})
    assert (caught.value.code, caught.value.where) == ("log.unavailable", {"path": f"{tmp_path}/a/b.json"})
    assert "free space" in caught.value.hint


def test_a_lost_claim_of_another_range_is_refused(log: Log, lake: Path) -> None:
    """A number never stands for two ranges: the driver hands the lake's batches to the ledger instead."""
    replay = Replay(Case(0, (Create(T, KEYED), rows(1), rows(2)), Style(), batches=1), log, lake)
    assert not replay.run()
    job = replay._job(1, replay._chunks()[:0])
    job.earlier = []
    again = replay._sync(job)
    assert (again.status, [batch["seq"] for batch in again.lake_batches]) == ("behind", [1])
    assert json.dumps(again.document())


def test_an_error_after_a_commit_is_no_reason_to_park(log: Log, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [ValueError("after the commit")]
    commit = TaskWriter.commit

    def fail_once(writer: TaskWriter, target: DeltaLocation, action: Action) -> int | None:
        version = commit(writer, target, action)
        if failures:
            raise failures.pop()
        return version

    monkeypatch.setattr(TaskWriter, "commit", fail_once)
    replay = Replay(Case(0, (Create(T, KEYLESS), rows(1)), Style(), batches=1), log, lake)
    (problem,) = replay.run()
    assert "the batch failed" in problem and "apply.fault" in problem
    chunks = [OffsetRange(topic, part, 0, len(records)) for (topic, part), records in log.partitions.items()]
    assert replay._sync(replay._job(1, chunks)).status == "done"
