# SPDX-License-Identifier: Apache-2.0
"""Small tables of one layout in one batch: resolved together, while each keeps its own trouble."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.config import RunPolicy
from airflow_provider_cdc.core.documents import Result
from airflow_provider_cdc.core.errors import SinkError
from airflow_provider_cdc.core.model.status import ApplyStatus, TableStatus
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.tasks import apply, tables_together
from tests.unit.spark_jobs.debezium_batches import carry_out, change, statement

TABLES = [f"t{number}" for number in range(6)]
CREATES = [statement(10 + n, f"CREATE TABLE shop.{t} (id INT PRIMARY KEY, n INT)") for n, t in enumerate(TABLES)]


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Note the tables that were resolved alone; all tables are one task's."""
    seen: list[str] = []
    resolve = apply.TableApply._resolve

    def noted(self: apply.TableApply, *arguments: Any, **named: Any) -> Any:
        if self.task.table in TABLES:  # not the table without changes that each of these batches has
            seen.append(self.task.table)
        return resolve(self, *arguments, **named)

    monkeypatch.setattr(apply.TableApply, "_resolve", noted)
    monkeypatch.setattr("spark_jobs.driver.table_tasks._bundles", lambda tasks, _: [list(tasks)])
    yield seen


def inserted(first: int, n: Any = 1) -> list[bytes]:
    """Return two inserted rows of each table."""
    return [
        change(first + 10 * number + key, {"id": key, "n": n}, table=table)
        for key in (1, 2)
        for number, table in enumerate(TABLES)
    ]


def lines(result: Result) -> list[tuple[Any, ...]]:
    named = [line for line in result.tables if line.table in TABLES]
    return [(line.table, line.status, line.action, line.upserts, line.deletes) for line in named]


def content(root: Path, table: str) -> list[tuple[int, int | None]]:
    rows = DeltaLocation(f"{root}/shop/{table}", {}).rows().to_pylist()
    return sorted((row["id"], row["n"]) for row in rows)


def test_tables_of_one_layout_are_resolved_together_batch_by_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: list[str]
) -> None:
    later = [change(500 + number, {"id": 1, "n": 7 + number}, {"id": 1, "n": 1}, t) for number, t in enumerate(TABLES)]
    later.append(change(600, None, {"id": 2, "n": 1}, "t3"))
    batches = [{"schema": CREATES, "rows": inserted(100)}, {"rows": later}]
    first, second = carry_out(tmp_path, batches, RunPolicy(), monkeypatch)
    assert not alone
    assert lines(first) == [(table, ApplyStatus.COMMITTED, "create", 2, 0) for table in TABLES]
    assert lines(second) == [(table, ApplyStatus.COMMITTED, "merge", 1, int(table == "t3")) for table in TABLES]
    for number, table in enumerate(TABLES):
        assert content(tmp_path, table) == [(1, 7 + number), *([(2, 1)] if table != "t3" else [])]


def test_a_row_that_does_not_fit_parks_its_own_table_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: list[str]
) -> None:
    rows = [*inserted(100), change(400, {"id": 3, "n": "x"}, table="t2")]
    (result,) = carry_out(tmp_path, [{"schema": CREATES, "rows": rows}], RunPolicy(quarantine_limit=0), monkeypatch)
    states = {state.table: (state.state, state.code) for state in result.states if state.table in TABLES}
    parked = (TableStatus.PARKED, "apply.quarantine_exceeded")
    assert states == {table: parked if table == "t2" else (TableStatus.OK, "") for table in TABLES}
    assert all(content(tmp_path, table) == [(1, 1), (2, 1)] for table in TABLES if table != "t2")
    assert sorted(alone) == TABLES


def test_a_table_of_another_layout_among_them_is_resolved_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: list[str]
) -> None:
    creates = [*CREATES[:-1], statement(90, "CREATE TABLE shop.t5 (id BIGINT PRIMARY KEY, n INT)")]
    (result,) = carry_out(tmp_path, [{"schema": creates, "rows": inserted(100)}], RunPolicy(), monkeypatch)
    assert alone == ["t5"]
    assert [line[3] for line in lines(result)] == [2] * len(TABLES)


def test_tables_are_resolved_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: list[str]) -> None:
    taken: list[int] = []
    resolve = tables_together.resolve_together

    def noted(rows: Any, owners: Any, timelines: Any, *more: Any) -> Any:
        taken.append(len(timelines))
        return resolve(rows, owners, timelines, *more)

    monkeypatch.setattr(tables_together, "resolve_together", noted)
    monkeypatch.setattr(tables_together, "_FEW", 2)
    monkeypatch.setattr(tables_together, "_TOGETHER", 4)
    carry_out(tmp_path, [{"schema": CREATES, "rows": inserted(100)}], RunPolicy(), monkeypatch)
    assert (taken, alone) == ([3, 3], [])  # the first four are with the table without changes
    assert all(content(tmp_path, table) == [(1, 1), (2, 1)] for table in TABLES)


@pytest.mark.parametrize("name", ["resolve_together", "read_together", "layout_of"])
@pytest.mark.parametrize("error", [ZeroDivisionError("secret"), SinkError("log.missing", "gone")], ids=["bug", "store"])
def test_whatever_goes_wrong_together_is_met_by_the_single_tables(
    name: str,
    error: Exception,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    alone: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    def failing(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(tables_together, name, failing)
    carry_out(tmp_path, [{"schema": CREATES, "rows": inserted(100)}], RunPolicy(), monkeypatch)
    assert sorted(alone) == TABLES
    assert all(content(tmp_path, table) == [(1, 1), (2, 1)] for table in TABLES)
    complaint = capsys.readouterr().err
    assert ("tables are resolved one by one: ZeroDivisionError in " in complaint) == (not isinstance(error, SinkError))
    assert "secret" not in complaint
