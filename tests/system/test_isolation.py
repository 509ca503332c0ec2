# SPDX-License-Identifier: Apache-2.0
"""Whatever goes wrong with one table, in the driver, in its task or in its store: the other tables are committed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable

from airflow_provider_cdc.core.errors import UnavailableError
from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema
from airflow_provider_cdc.core.model.status import ApplyStatus
from spark_jobs.driver import applied_rows, table_tasks
from spark_jobs.sinks.delta.table_commits import TableCommits
from spark_jobs.tasks import apply
from spark_jobs.tasks.table_task import ApplyReport
from tests.cross_format.events import Ddl
from tests.services.broker import Broker
from tests.system.course import INT, TABLES, Course

pytestmark = pytest.mark.system

WIDE = TableSchema((Column(1, "id", INT, False), Column(2, "v", ColumnType("varchar", 40))), (1,))


@pytest.fixture
def course(broker: Broker, tmp_path: Path, request: pytest.FixtureRequest) -> Course:
    created = Course(broker, "".join(c for c in request.node.name if c.isalnum())[-60:], tmp_path)
    created.create(100, *TABLES)
    created.insert(200, 1, *TABLES)
    assert {state for state, _ in created.sync().values()} == {"ok"}
    return created


def only_sick(course: Course, **values: Any) -> str:
    """Sync; demand that the sick table is parked and the others hold what is new. Return the reason."""
    states = course.sync()
    assert {table: state for table, (state, _) in states.items()} == {"sick": "parked", "t0": "ok", "t1": "ok"}
    for table in ("t0", "t1"):
        assert 2 in course.values(table)
    return states["sick"][1]


def test_a_table_whose_older_version_was_vacuumed_is_resolved_from_nothing(course: Course) -> None:
    course.update(400, 1, *TABLES)
    course.insert(410, 2, *TABLES)
    course.sync()
    for table in TABLES:
        assert DeltaTable(str(course.folder / "shop" / table)).vacuum(
            0, dry_run=False, enforce_retention_duration=False
        )
    course.at(300, Ddl("ALTER TABLE sick MODIFY v VARCHAR(40)", "shop", "sick", WIDE))  # late: rows went on without it
    course.insert(500, 3, "t0")
    assert {state for state, _ in course.sync().values()} == {"ok"}
    assert course.values("sick") == {1: "400", 2: "410"}
    assert course.values("t0") == {1: "400", 2: "410", 3: "500"}


def test_a_missing_file_of_the_change_log_concerns_the_tables_that_need_it(course: Course) -> None:
    for pos in (300, 400):
        course.update(pos, 1, *TABLES)
        course.sync()
    for name in ("manifest.json", "result.json"):
        (course.log(2) / name).rename(course.log(2) / f"away.{name}")
    course.insert(500, 2, "t0", "t1")
    course.insert(250, 2, "sick")  # late: what was applied since then has to be compared
    reason = only_sick(course)
    assert "[log.missing]" in reason and "batch 2" in reason
    assert course.values("sick") == {1: "400"}

    for name in ("manifest.json", "result.json"):
        (course.log(2) / f"away.{name}").rename(course.log(2) / name)
    assert {state for state, _ in course.sync().values()} == {"ok"}
    assert course.values("sick") == {1: "400", 2: "250"}


def test_missing_rows_of_the_change_log_park_the_tables_that_need_them(course: Course) -> None:
    course.update(400, 1, *TABLES)
    course.sync()
    for file in course.log(2).glob("*.parquet"):
        file.unlink()
    course.insert(500, 2, "t0", "t1")
    course.insert(250, 2, "sick")
    assert only_sick(course)
    assert course.values("sick") == {1: "400"}


def test_a_lost_data_file_parks_its_table(course: Course) -> None:
    for file in (course.folder / "shop" / "sick").glob("*.parquet"):
        file.unlink()
    course.update(300, 1, *TABLES)
    course.insert(310, 2, *TABLES)
    reason = only_sick(course)
    assert "[sink." in reason and str(course.folder / "shop" / "sick") in reason
    assert "topic=" in reason and "offset=" in reason


class PanicException(BaseException):
    """Stands for pyo3's."""


def _in_resolving(error: BaseException, patch: pytest.MonkeyPatch) -> None:
    whole = apply.resolve

    def failing(changes: Any, timeline: Any, *rest: Any, **more: Any) -> Any:
        if timeline.last_name.table == "sick":
            raise error
        return whole(changes, timeline, *rest, **more)

    patch.setattr(apply, "resolve", failing)


def _in_planning(error: BaseException, patch: pytest.MonkeyPatch) -> None:
    whole = applied_rows.AppliedRows.context

    def failing(self: Any, timeline: Any, *rest: Any) -> Any:
        if timeline.last_name.table == "sick":
            raise error
        return whole(self, timeline, *rest)

    patch.setattr(applied_rows.AppliedRows, "context", failing)


@pytest.mark.parametrize(
    ("inject", "error"),
    [
        (_in_resolving, Exception("4711")),
        (_in_resolving, AssertionError("4711")),
        (_in_resolving, IndexError("4711")),
        (_in_resolving, RecursionError("4711")),
        (_in_resolving, MemoryError("4711")),
        (_in_resolving, PanicException("4711")),
        (_in_planning, Exception("4711")),
        (_in_planning, IndexError("4711")),
    ],
)
def test_a_fault_of_ours_parks_the_table_and_says_no_values(
    course: Course, inject: Callable[..., None], error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        inject(error, patch)
        course.insert(300, 2, *TABLES)
        reason = only_sick(course)
    assert "4711" not in reason
    assert "[apply." in reason and "table=shop.sick" in reason
    assert {state for state, _ in course.sync().values()} == {"ok"}
    assert course.values("sick") == {1: "200", 2: "300"}


def test_a_passing_fault_of_the_store_is_reported_after_the_others_are_committed(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = str(course.folder / "shop" / "sick")
    whole = TableCommits.commit_files

    def full(self: Any, *rest: Any) -> None:
        if self._target.location == location:
            self._target.guarded(lambda: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        whole(self, *rest)

    course.update(300, 1, *TABLES)
    with monkeypatch.context() as patch:
        patch.setattr(TableCommits, "commit_files", full)
        with pytest.raises(UnavailableError) as caught:
            course.sync()
    error = caught.value
    assert error.code == "sink.write_failed"
    assert (error.where["table"], error.where["location"]) == ("shop.sick", location)
    assert "run again" in error.hint
    assert (course.values("sick"), course.values("t0"), course.values("t1")) == ({1: "200"}, {1: "300"}, {1: "300"})

    course.lake.seq -= 1  # the same batch again
    assert {state for state, _ in course.sync().values()} == {"ok"}
    assert (course.values("sick"), course.values("t0")) == ({1: "300"}, {1: "300"})


def test_a_store_that_is_away_is_not_asked_for_every_table(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def away(job: Any, task: Any, secrets: Any, resolved: Any) -> ApplyReport:
        asked.append(task.table_id)
        return ApplyReport(task.table_id, ApplyStatus.UNAVAILABLE)

    monkeypatch.setattr(table_tasks, "apply", away)
    monkeypatch.setattr(table_tasks, "TablesTogether", lambda *_: SimpleNamespace(resolved=lambda number: None))
    tasks = [SimpleNamespace(table_id=name, rows=1) for name in "abcdef"]
    reports = table_tasks._apply_tasks(None, {}, tasks)  # type: ignore[arg-type]
    assert asked == ["a", "b", "c"]
    assert [report.table_id for report in reports] == list("abcdef")
