# SPDX-License-Identifier: Apache-2.0
"""Running out of memory has a code of its own, names the place, and stops no other table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.config import RunPolicy, TableRules
from airflow_provider_cdc.core.documents import JobDocument, Result
from airflow_provider_cdc.core.errors import DataError, Terminal
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.model.offsets import OffsetRange
from spark_jobs.driver.run_batch import sync
from spark_jobs.tasks import apply as apply_module
from spark_jobs.tasks import land as land_module


def records(*tables: str) -> Records:
    """One insert for each table."""
    values = []
    for number, table in enumerate(tables):
        source = {"db": "shop", "table": table, "file": "b.000001", "pos": number + 4, "row": 0, "ts_ms": 1000}
        value = {"before": None, "after": {"id": number}, "source": source, "op": "c", "ts_ms": 1}
        values.append(json.dumps(value).encode())
    return Records("t", 0, list(range(len(values))), [None] * len(values), [None] * len(values), values, [])


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Result]:
    """Carry out a batch of two tables."""
    monkeypatch.setattr(land_module, "read_chunks", lambda *_, **__: iter([records("a", "b")]))
    create = {f"shop.{name}": {"create": f"CREATE TABLE shop.{name} (id INT PRIMARY KEY)"} for name in "ab"}
    time, chunks = "2026-01-01T00:00:00+00:00", [OffsetRange("t", 0, 0, 2)]
    rules, policy = TableRules.from_document(create), RunPolicy()
    job = JobDocument("p", 1, time, str(tmp_path), "debezium-json", {}, None, {}, chunks, policy, rules, [], [], [])
    return lambda: sync(job, {}, lambda function, items: [function(item) for item in items], lambda line: None)


@pytest.mark.parametrize("kind", [MemoryError, pa.ArrowMemoryError])
def test_a_table_that_does_not_fit_is_parked_and_the_others_are_committed(
    run: Callable[[], Result], monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    resolve = apply_module.resolve

    def full(fresh: pa.Table, timeline: Any, *rest: Any, **more: Any) -> Any:
        if str(timeline.last_name).endswith("a"):
            raise kind("malloc of size 8589934592 failed")
        return resolve(fresh, timeline, *rest, **more)

    monkeypatch.setattr(apply_module, "resolve", full)
    result = run()
    states = {state.table: state for state in result.states}
    assert (states["a"].state, states["b"].state, result.status) == ("parked", "ok", "parked")
    assert "[apply.memory]" in states["a"].reason and "shop.a" in states["a"].reason
    assert "--until" in states["a"].reason


@pytest.mark.parametrize("kind", [MemoryError, pa.ArrowMemoryError])
def test_records_that_do_not_fit_are_reported_with_their_partitions(
    run: Callable[[], Result], monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    def full(*_: object) -> None:
        raise kind("malloc of size 8589934592 failed")

    monkeypatch.setattr(land_module, "_take", full)
    with pytest.raises(DataError) as error:
        run()
    assert error.value.code == "land.memory" and error.value.where == {"partitions": "t/0"}
    assert isinstance(error.value, Terminal) and "memory" in error.value.hint
