# SPDX-License-Identifier: Apache-2.0
"""The verb ``maintain``: tables keep their rows in fewer files, next to batches, and a second run does nothing."""

from __future__ import annotations

from typing import Any

import pytest
from deltalake import DeltaTable

from airflow_provider_cdc.core.documents import Maintenance
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.delta.sink import open_sink
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.sinks.delta.table_commits import TableCommits
from spark_jobs.sinks.delta.task_writer import TaskWriter
from spark_jobs.tasks.maintain_table import maintain_table
from tests.services.broker import Broker
from tests.system.course import TABLES, Course
from tests.system.pipeline_site import PipelineSite
from tests.system.verdict import unequal

pytestmark = pytest.mark.system

NOTHING = {"pipeline": "shop", "tables": [], "log": None, "states": 0, "batches": 0, "busy": None}
DUE = Maintenance(target_file_bytes=1 << 20, keep_hours=0)


@pytest.fixture
def ground(request: pytest.FixtureRequest) -> PipelineSite:
    """Return a pipeline whose topics hold the shop's first phase."""
    topics: PipelineSite = request.getfixturevalue("shop")
    return topics


def lake_of(course: Course) -> tuple[str, str]:
    """Return root and pipeline of a course's lake."""
    return str(course.folder), "capture"


def files(ground: PipelineSite) -> dict[str, int]:
    """Return the number of files of each table."""
    tables = [name for name, table in ground.site.tables().items() if table["state"] == "ok"]
    return {name: len(DeltaTable(str(ground.site.location(name))).file_uris()) for name in tables}


def test_tables_stay_equal_in_fewer_files_and_a_second_run_does_nothing(ground: PipelineSite) -> None:
    assert ground.site.command("maintain").json == NOTHING
    assert ground.site.sync().code == 0
    ground.feed(1)
    assert ground.site.sync().code == 0
    before = files(ground)
    several = sorted(name for name, count in before.items() if count > 1)
    assert several
    done = ground.site.command("maintain")
    assert done.code == 0, done.err
    lines = {line["table"]: line for line in done.json["tables"]}
    for name in several:
        line = lines[f"shop.{name}"]
        assert (line["compacted"], line["written"]) == (before[name], 1)
    assert not any("error" in line for line in lines.values())
    assert max(files(ground).values()) == 1
    assert unequal(ground.site, 1) == {}
    again = ground.site.command("maintain").json["tables"]
    assert {(line["compacted"], line["written"], line["vacuumed"], line["checkpoint"]) for line in again} == {
        (0, 0, 0, False)
    }
    ground.feed(2)
    after = ground.site.sync()
    assert (after.code, after.json["parked"]) == (0, []), after.err
    assert unequal(ground.site, 2) == {}


def test_one_table_is_purged_and_the_others_stay(ground: PipelineSite) -> None:
    assert ground.site.sync().code == 0
    ground.feed(1)
    assert ground.site.sync().code == 0
    before = files(ground)
    name = max(before, key=lambda one: before[one])
    done = ground.site.command("maintain", "--purge", f"shop.{name}")
    assert done.code == 0, done.err
    assert "older versions go" in done.err
    (line,) = done.json["tables"]
    assert (line["table"], line["compacted"], done.json["log"]) == (f"shop.{name}", before[name], None)
    location = ground.site.location(name)
    assert len([*location.rglob("*.parquet")]) == 2  # one with rows, and the checkpoint
    assert files(ground) == {**before, name: 1}
    unknown = ground.site.command("maintain", "--purge", "shop.nothing")
    assert (unknown.code, "is not a table of the pipeline" in unknown.err) == (2, True)
    ground.feed(2)
    after = ground.site.sync()
    assert (after.code, after.json["parked"]) == (0, []), after.err
    assert unequal(ground.site, 2) == {}


@pytest.fixture
def course(broker: Broker, tmp_path: Any, request: pytest.FixtureRequest) -> Course:
    events = Course(broker, "".join(c for c in request.node.name if c.isalnum())[-60:], tmp_path)
    events.create(100, *TABLES)
    events.insert(200, 1, *TABLES)
    events.sync()
    for key in (2, 3):
        events.insert(200 + 10 * key, key, *TABLES)
        events.sync()
    return events


def test_a_batch_that_meets_maintenance_commits_behind_it(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, met = TaskWriter.commit, []
    state = course.lake.state("shop", "sick")
    assert state is not None

    def meet(self: TaskWriter, target: DeltaLocation, action: Action) -> int | None:
        if not met and target.location.endswith("/sick"):
            met.append(
                maintain_table(
                    open_sink({}), state, Maintenance(DUE.target_file_bytes, keep_hours=24), *lake_of(course)
                )
            )
        return commit(self, target, action)

    monkeypatch.setattr(TaskWriter, "commit", meet)
    course.update(500, 1, *TABLES)
    assert {state for state, _ in course.sync().values()} == {"ok"}
    assert (met[0].error, met[0].compacted) == (None, 3)
    assert course.values("sick") == course.values("t0") == {1: "500", 2: "220", 3: "230"}


def test_maintenance_that_meets_a_batch_is_done_again(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    replace, met = TableCommits.replace_files, []

    def meet(self: TableCommits, *files: Any) -> None:
        if not met:
            met.append(True)
            course.update(500, 1, *TABLES)
            course.sync()
        replace(self, *files)

    monkeypatch.setattr(TableCommits, "replace_files", meet)
    state = course.lake.state("shop", "sick")
    assert state is not None
    report = maintain_table(open_sink({}), state, DUE, *lake_of(course))
    assert (report.error, report.written) == (None, 1)
    assert course.values("sick") == {1: "500", 2: "220", 3: "230"}
    course.update(600, 2, *TABLES)
    assert {state for state, _ in course.sync().values()} == {"ok"}


def test_a_checkpoint_is_written_where_the_log_has_grown(course: Course) -> None:
    table = DeltaTable(str(course.folder / "shop" / "sick"))
    table.alter.set_table_properties({"delta.checkpointInterval": "1000"})  # so batches write none
    for number in range(10):
        course.update(1000 + 10 * number, 1, "sick")
        course.sync()
    state = course.lake.state("shop", "sick")
    assert state is not None
    report = maintain_table(open_sink({}), state, DUE, *lake_of(course))
    assert report.checkpoint and report.vacuumed > 0
    assert (course.folder / "shop" / "sick" / "_delta_log" / "_last_checkpoint").exists()
    assert course.values("sick")[1] == "1090"
    assert not maintain_table(open_sink({}), state, DUE, *lake_of(course)).checkpoint


def test_a_table_that_is_gone_is_reported_and_not_made(course: Course) -> None:
    state = course.lake.state("shop", "sick")
    assert state is not None
    state.location += "-elsewhere"
    report = maintain_table(open_sink({}), state, DUE, *lake_of(course))
    assert report.error is not None and report.error["code"].startswith("sink.")
