# SPDX-License-Identifier: Apache-2.0
"""A table that is written again for its new layout obeys the limits of any other commit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.config import RunPolicy, TableRules
from airflow_provider_cdc.core.documents import JobDocument, Result, TableState
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.model.offsets import OffsetRange
from spark_jobs.driver.run_batch import sync
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.tasks import land

CREATE = "CREATE TABLE shop.t (id INT PRIMARY KEY, n INT)"


def change(position: int, row: dict[str, Any]) -> bytes:
    source = {"db": "shop", "table": "t", "file": "b.000001", "pos": position, "row": 0, "ts_ms": 1000}
    return json.dumps({"before": None, "after": row, "source": source, "op": "c", "ts_ms": 1}).encode()


def statement(position: int, ddl: str) -> bytes:
    source = {"db": "shop", "table": "t", "file": "b.000001", "pos": position, "row": 0, "ts_ms": 1000}
    return json.dumps({"ts_ms": 1000, "databaseName": "shop", "ddl": ddl, "source": source}).encode()


def carry_out(
    root: Path, batches: Sequence[dict[str, list[bytes]]], policy: RunPolicy, monkeypatch: pytest.MonkeyPatch
) -> list[Result]:
    """Land and apply batches, each with the records of topics."""
    states: list[TableState] = []
    results = []
    for seq, topics in enumerate(batches, 1):

        def records(chunks: Sequence[OffsetRange], *_: Any, topics: Any = topics, **__: Any) -> Iterator[Records]:
            for chunk in chunks:
                values = topics[chunk.topic]
                count = len(values)
                offsets = list(range(chunk.start, chunk.end))
                yield Records(chunk.topic, 0, offsets, [None] * count, [None] * count, values, [])

        monkeypatch.setattr(land, "read_chunks", records)
        chunks = [OffsetRange(topic, 0, 100 * seq, 100 * seq + len(values)) for topic, values in topics.items()]
        span = {
            "start": {chunk.topic: {"0": chunk.start} for chunk in chunks},
            "end": {chunk.topic: {"0": chunk.end} for chunk in chunks},
        }
        rules, time = TableRules.from_document({"shop.t": {"create": CREATE}}), "2026-01-01T00:00:00+00:00"
        earlier = list(range(1, seq))
        job = JobDocument(
            "p", seq, time, str(root), "debezium-json", {}, "schema", {}, chunks, policy, rules, earlier, [], states,
            **span,
        )  # fmt: skip
        results.append(sync(job, {}, lambda function, items: [function(item) for item in items], lambda line: None))
        states = results[-1].states
    return results


@pytest.mark.parametrize("apply_bytes", [1, 1 << 27], ids=["in pieces", "at once"])
def test_rows_that_do_not_fit_park_a_table_whose_layout_changes(
    apply_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = {"t": [change(10, {"id": 1, "n": 1})]}
    altered = {
        "schema": [statement(20, "ALTER TABLE shop.t ADD COLUMN m INT DEFAULT 5")],
        "t": [change(30, {"id": 2, "n": 2, "m": 2}), change(40, {"id": 3, "n": "no number", "m": 3})],
    }
    _, result = carry_out(tmp_path, [first, altered], RunPolicy(apply_bytes=apply_bytes), monkeypatch)
    (table,) = result.tables
    assert (table.status, "apply.quarantine_exceeded" in table.reason) == ("parked", True), table
    assert DeltaLocation(f"{tmp_path}/shop/t", {}).rows().to_pylist() == [{"id": 1, "n": 1}]


def test_rows_that_may_be_left_out_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = {"t": [change(10, {"id": 1, "n": 1})]}
    altered = {
        "schema": [statement(20, "ALTER TABLE shop.t ADD COLUMN m INT DEFAULT 5")],
        "t": [change(30, {"id": 2, "n": 2, "m": 2}), change(40, {"id": 3, "n": "no number", "m": 3})],
    }
    policy = RunPolicy(apply_bytes=1, quarantine_limit=1)
    _, result = carry_out(tmp_path, [first, altered], policy, monkeypatch)
    assert [table.status for table in result.tables] == ["committed"]
    table = DeltaLocation(f"{tmp_path}/shop/t", {})
    assert table.rows().sort_by("id").to_pylist() == [{"id": 1, "n": 1, "m": 5}, {"id": 2, "n": 2, "m": 2}]
    facts = json.loads(table.table.history(1)[0]["cdc"])
    assert (facts["upserts"], [failure["column"] for failure in facts["failures"]]) == (1, ["n"])
