# SPDX-License-Identifier: Apache-2.0
"""Old batches of the change log become one: nothing is missing, nothing counts twice, and old rows stay refused."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.documents import ExpiredLog, JobDocument, Maintenance, Replay
from airflow_provider_cdc.core.errors import BusyError
from airflow_provider_cdc.core.model.schema import Column, TableSchema
from spark_jobs.driver.batch_history import history_of
from spark_jobs.driver.maintenance import maintain
from spark_jobs.driver.run_batch import sync
from spark_jobs.lake.batch_log import BatchLog
from spark_jobs.lake.layout import pending_deletes_file
from spark_jobs.lake.storage import Storage
from tests.airflow.shop import rows
from tests.cross_format.events import Ddl, Row
from tests.services.broker import Broker
from tests.system.course import INT, NARROW, TABLES, Course
from tests.system.jobs import SECRETS, inline, job_of

pytestmark = pytest.mark.system

NEWEST = 5
KEYLESS = TableSchema((Column(1, "a", INT),), ())
BATCHES = range(1, NEWEST + 1)


@pytest.fixture
def course(broker: Broker, tmp_path: Path, request: pytest.FixtureRequest) -> Course:
    """Return a pipeline of three tables after five batches; ``sick`` has rows in the first two alone."""
    events = Course(broker, "".join(c for c in request.node.name if c.isalnum())[-60:], tmp_path)
    events.create(100, *TABLES)
    for key in BATCHES:
        events.insert(100 + 100 * key, key, *(TABLES if key < 3 else ("t0", "t1")))
        events.sync()
    return events


def expire(course: Course, through: int) -> ExpiredLog:
    order = Maintenance(1 << 20, 24, expire_through=through)
    return maintain(job_of(course), order, SECRETS, inline).expired


def lost(course: Course) -> list[dict[str, Any]]:
    """Return what the lake says to a ledger that knows no batch."""
    job = replace(job_of(course), seq=1, earlier=[], states=[], schema_changes=[])
    return [batch.document() for batch in BatchLog(Storage(str(course.folder)), "capture").unknown_to(job)]


def facts_of(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a ledger learns of all batches, however many documents they are."""
    states: dict[str, Any] = {}
    changes: list[Any] = []
    counts: Counter[str] = Counter()
    for document in documents:
        result, folded = document["result"], document.get("folded", {})
        seqs = folded.get("states", {})
        states |= {s["table_id"]: (seqs.get(s["table_id"], document["seq"]), s) for s in result["states"]}
        seen = folded.get("schema_changes", [document["seq"]] * len(result["new_schema_changes"]))
        changes += zip(seen, result["new_schema_changes"], strict=True)
        counts += Counter(result["changes"]) + Counter(records=result["records"], batches=folded.get("batches", 1))
        counts += Counter({line["table"]: line["upserts"] for line in result["tables"]})
    start, end = documents[0]["claim"]["start"], documents[-1]["claim"]["end"]
    return {"states": states, "changes": changes, "counts": counts, "start": start, "end": end}


def log_folders(course: Course) -> list[int]:
    return sorted(int(folder.name) for folder in course.log(1).parent.iterdir())


class Killed(BaseException):
    """The process ended."""


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Count the steps that change the lake; the process is killed before the one whose number is the first item."""
    last = [0]
    for name in ("write_json", "delete_file", "delete_folder"):
        monkeypatch.setattr(Storage, name, _counted(getattr(Storage, name), last))
    yield last


def _counted(do: Callable[..., None], last: list[int]) -> Callable[..., None]:
    def step(*args: Any) -> None:
        last[0] -= 1
        if last[0] == 0:
            raise Killed
        do(*args)

    return step


def expire_with_kills(course: Course, through: int, steps: list[int], check: Callable[[], bool]) -> int:
    """Shorten the change log, killed before each of its steps and then run to the end; return how many steps it has.

    :param check: what holds after each run.
    """
    log, before = course.log(1).parent, course.folder / "before"
    shutil.copytree(log, before)
    for step in range(1, 100):
        shutil.rmtree(log)
        shutil.copytree(before, log)
        steps[0] = step
        try:
            expire(course, through)
            return step - 1
        except Killed:
            steps[0] = 0
            assert check()
            expire(course, through)
            assert check()
    raise AssertionError("it never ends")


def test_a_lost_ledger_learns_the_same_of_folded_batches_whenever_folding_was_killed(
    course: Course, steps: list[int]
) -> None:
    storage, job = Storage(str(course.folder)), job_of(course)
    reader = history_of(job, storage)
    before = facts_of(lost(course))
    assert before["counts"]["batches"] == NEWEST
    assert expire(course, 2).folded == 2
    assert log_folders(course) == [0, 3, 4, 5]
    assert facts_of(lost(course)) == before
    kills = expire_with_kills(course, 4, steps, lambda: facts_of(lost(course)) == before)
    assert kills == 2 * 5 + 3 + 1  # per batch: two marks, a file, two folders; then the snapshot, and the old one
    assert [document["seq"] for document in lost(course)] == [4, 5]
    assert facts_of(lost(course)) == before
    assert expire(course, 4) == ExpiredLog(4)
    assert len(list(course.log(0).iterdir())) == 3
    with pytest.raises(BusyError) as caught:
        reader.manifest(3)
    assert caught.value.code == "log.folded"
    log, restored = BatchLog(storage, "capture"), replace(job, seq=3, earlier=[1, 2])
    assert [batch.seq for batch in log.unknown_to(restored)] == [4, 5]
    assert log.unknown_to(job) == []


def test_tables_go_on_from_folded_batches_go_back_to_them_and_are_not_replayed(course: Course) -> None:
    expire(course, 4)
    course.lake.seq += 1
    job: JobDocument = replace(job_of(course), seq=course.lake.seq, earlier=list(BATCHES), order=Replay())
    assert sync(job, SECRETS, inline, lambda line: None).changes == {"replayed": 2}
    course.update(900, 1, "sick", "t0")
    assert {state for state, _ in course.sync().values()} == {"ok"}
    course.insert(700, 7, "sick")  # late, but nothing that was removed is needed
    assert {state for state, _ in course.sync().values()} == {"ok"}
    assert course.values("sick") == {1: "900", 2: "300", 7: "700"}
    course.update(250, 1, "t1")
    states = course.sync()
    assert states["t1"][0] == "parked"
    assert "[retention.log_expired]" in states["t1"][1]
    assert {states[table][0] for table in ("sick", "t0")} == {"ok"}
    history = history_of(job_of(course), Storage(str(course.folder)))
    assert {state.table: seq for seq, state in history.folded_states()} == {"sick": 2, "t0": 4, "t1": 4}
    course.at(450, Ddl("TRUNCATE TABLE sick", "shop", "sick", NARROW))  # late: the rows at 700 and 900 are behind it
    assert course.sync()["sick"] == ("ok", "")
    assert course.values("sick") == {1: "900", 7: "700"}


def test_rows_that_a_deselected_table_missed_are_refused_and_not_passed_over(course: Course) -> None:
    course.lake.tables = {"exclude": ["shop.t1"]}
    course.update(800, 1, "t0", "t1")
    course.sync()
    course.update(900, 1, "t0")
    course.sync()
    assert expire(course, NEWEST + 1).folded == NEWEST + 1
    course.lake.tables = {}
    course.update(950, 2, "t0", "t1")
    states = course.sync()
    assert states["t0"][0] == "ok"
    assert states["t1"][0] == "parked"
    assert "[retention.log_expired]" in states["t1"][1]
    assert course.values("t1")[1] == "200"


def test_pending_deletes_go_but_those_that_a_table_may_go_on_from(broker: Broker, tmp_path: Path) -> None:
    course = Course(broker, "pendingdeletes", tmp_path, partitions=2)
    course.at(100, Ddl("CREATE TABLE notes (a INT)", "shop", "notes", KEYLESS))
    # the other partition is read less far, so that the rows of the deletes may be in it
    course.at(150, Row("insert", "shop", "notes", KEYLESS, None, {"a": 9}), partition=1)
    for number in (1, 2, 3):
        course.at(200 + number, Row("delete", "shop", "notes", KEYLESS, {"a": number}, None))
        course.sync()
    notes = next(iter(course.lake.states))
    stored = [tmp_path / pending_deletes_file("capture", notes, seq) for seq in (1, 2, 3)]
    assert [file.exists() for file in stored] == [True, True, True]
    assert expire(course, 2).folded == 2
    assert [file.exists() for file in stored] == [False, True, True]
    course.at(300, Row("insert", "shop", "notes", KEYLESS, None, {"a": 4}))
    course.sync()
    assert sorted(row["a"] for row in rows(tmp_path, "shop", "notes")) == [4, 9]
