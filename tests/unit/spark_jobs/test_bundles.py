# SPDX-License-Identifier: Apache-2.0
"""Tables are spread over tasks: evenly, and not too many for one task."""

from __future__ import annotations

import pytest

from spark_jobs.driver.table_tasks import _bundles
from spark_jobs.lake.manifest import RowGroup
from spark_jobs.tasks.table_task import ApplyTask, Span
from spark_jobs.workers.task_transport import sent
from tests.unit.spark_jobs.batches import DATABASE, applied, position, statement, table_of

COLUMNS = ", ".join(f"column_{n} VARCHAR({n + 1}) NOT NULL DEFAULT 'x'" for n in range(20))


def task(number: int, rows: int) -> ApplyTask:
    """Return the task of a table of 20 columns that has rows in a row group with other tables."""
    name = f"table_{number:05d}"
    created = [statement(100, f"CREATE TABLE {name} (id INT PRIMARY KEY, {COLUMNS})")]
    timeline = table_of(created, name)
    file = "_cdc/shop/log/00000002/0123456789abcdef0123456789abcdef.parquet"
    group = RowGroup(
        file, number // 10, DATABASE, name, rows, position(200), position(300), None, start=number % 10 * rows
    )
    state = applied(created, name, seq=1, pos=150)
    spans = [Span([group], position(100), None)]
    location = f"{DATABASE}/{name}"
    return ApplyTask(timeline.table_id, DATABASE, name, location, timeline.document(), state, 0, spans)


@pytest.fixture(scope="module")
def many() -> list[ApplyTask]:
    return [task(number, 50) for number in range(2000)]


@pytest.mark.every(2)
@pytest.mark.parametrize("parallelism", [1, 4])
def test_what_a_task_is_sent_stays_small_with_many_tables(many: list[ApplyTask], parallelism: int) -> None:
    tasks = many
    bundles = _bundles(tasks, parallelism)
    assert sorted(one.table for bundle in bundles for one in bundle) == [one.table for one in tasks]
    assert max(len(sent(bundle)) for bundle in bundles) < 100_000
    assert len(bundles) <= 12, "a task costs more than a small table"


def test_a_large_table_has_a_task_of_its_own() -> None:
    tasks = [task(0, 5_000_000), *(task(number, 50) for number in range(1, 40))]
    large = next(bundle for bundle in _bundles(tasks, 2) if tasks[0] in bundle)
    assert large == [tasks[0]]


def test_neighbours_in_the_change_log_stay_together() -> None:
    tasks = [task(number, 50) for number in range(400)]
    bundles = _bundles(tasks, 1)
    read = sum(len({group.row_group for one in bundle for group in one.spans[0].groups}) for bundle in bundles)
    assert read <= 2 * 40, "few of the 40 row groups are read by more than two tasks"


def test_little_work_has_no_more_tasks_than_run_at_a_time() -> None:
    small = [task(number, 50) for number in range(20)]
    assert [len(_bundles(small, parallelism)) for parallelism in (1, 2, 100)] == [1, 2, 20]
    large = [task(number, 50_000) for number in range(20)]
    assert len(_bundles(large, 2)) == 6, "the last ones of unequal tasks end together"
