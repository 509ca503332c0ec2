# SPDX-License-Identifier: Apache-2.0
"""Carry out batches whose records are stated in a test, without a broker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.config import RunPolicy, TableRules
from airflow_provider_cdc.core.documents import JobDocument, Result, TableState
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.model.offsets import OffsetRange
from spark_jobs.driver.run_batch import sync
from spark_jobs.tasks import land

CREATE = "CREATE TABLE shop.t (id INT PRIMARY KEY, n INT)"


def change(
    position: int, after: dict[str, Any] | None, before: dict[str, Any] | None = None, table: str = "t"
) -> bytes:
    """Return a row's record: an insert, or an update or delete of the row before."""
    source = {"db": "shop", "table": table, "file": "b.000001", "pos": position, "row": 0, "ts_ms": 1000}
    op = "c" if before is None else "d" if after is None else "u"
    return json.dumps({"before": before, "after": after, "source": source, "op": op, "ts_ms": 1}).encode()


def statement(position: int, ddl: str) -> bytes:
    """Return the record of a statement."""
    source = {"db": "shop", "table": "t", "file": "b.000001", "pos": position, "row": 0, "ts_ms": 1000}
    return json.dumps({"ts_ms": 1000, "databaseName": "shop", "ddl": ddl, "source": source}).encode()


def carry_out(
    root: Path,
    batches: Sequence[dict[str, list[bytes]]],
    policy: RunPolicy,
    monkeypatch: pytest.MonkeyPatch,
    session: Any = None,
    rule: Mapping[str, Any] | None = None,
) -> list[Result]:
    """Land and apply batches, each with the records of topics.

    :param session: of Spark, with the jars of the Spark writer.
    :param rule: of the table.
    """
    states: list[TableState] = []
    results, known = list[Result](), list[dict[str, Any]]()
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
        rules = TableRules.from_document({"shop.t": {"create": CREATE, **(rule or {})}})
        time = "2026-01-01T00:00:00+00:00"
        earlier = list(range(1, seq))
        job = JobDocument(
            "p", seq, time, str(root), "debezium-json", {}, "schema", {}, chunks, policy, rules, earlier, known, states,
            session=session is not None, spark_reaches_sink=True, **span,
        )  # fmt: skip
        results.append(sync(job, {}, _here, _silent, session))
        states, known = results[-1].states, [*known, *results[-1].new_schema_changes]
    return results


def _here(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Run tasks in this process."""
    return [function(item) for item in items]


def _silent(line: str) -> None:
    """Take a line of progress."""
