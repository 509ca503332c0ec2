# SPDX-License-Identifier: Apache-2.0
"""Carry out batches of one table with records of 8 MB, in a process of their own that reports how much memory it took.

Two batches bring rows, a third renames a column.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from airflow_provider_cdc.core.config import RunPolicy, TableRules
from airflow_provider_cdc.core.documents import JobDocument, TableState
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.model.offsets import OffsetRange
from spark_jobs.driver.run_batch import sync
from spark_jobs.tasks import land

RECORDS, SIZE = 20, 8_000_000


def text(batch: int, number: int) -> str:
    """Return the large value of a row."""
    return random.Random(f"{batch} {number}").randbytes(SIZE // 2).hex()


def records(keyed: bool, chunks: Sequence[OffsetRange], *_: Any, **__: Any) -> Iterator[Records]:
    """Give the records of a batch one by one; later batches change the rows of the first if they have keys."""
    (chunk,) = chunks
    if chunk.topic == "schema":
        rename = {"ts_ms": 2000, "databaseName": "shop", "ddl": "ALTER TABLE shop.t RENAME COLUMN v TO w"}
        rename["source"] = {"db": "shop", "table": "t", "file": "b.000002", "pos": 4, "row": 0, "ts_ms": 2000}
        yield Records("schema", 0, [0], [None], [None], [json.dumps(rename).encode()], [])
        return
    for offset in range(chunk.start, chunk.end):
        batch, number = divmod(offset, RECORDS)
        source = {"db": "shop", "table": "t", "file": "b.000001", "pos": offset + 4, "row": 0, "ts_ms": 1000}
        after = {"id": number, "v": text(batch, number)}
        op = "u" if batch and keyed else "c"
        value = json.dumps({"before": None, "after": after, "source": source, "op": op, "ts_ms": 1})
        yield Records("t", 0, [offset], [None], [None], [value.encode()], [])


def carry_out(root: str, key: str) -> None:
    """Land and apply all batches."""
    land.read_chunks = partial(records, bool(key))
    rules = TableRules.from_document({"shop.t": {"create": f"CREATE TABLE shop.t (id INT {key}, v LONGTEXT)"}})
    states: list[TableState] = []
    rows = [OffsetRange("t", 0, 0, RECORDS), OffsetRange("t", 0, RECORDS, 2 * RECORDS)]
    for seq, chunk in enumerate([*rows, OffsetRange("schema", 0, 0, 1)], 1):
        span = {"start": {chunk.topic: {"0": chunk.start}}, "end": {chunk.topic: {"0": chunk.end}}}
        time, policy, earlier = "2026-01-01T00:00:00+00:00", RunPolicy(), list(range(1, seq))
        job = JobDocument(
            "p", seq, time, root, "debezium-json", {}, "schema", {}, [chunk], policy, rules, earlier, [], states, **span
        )
        result = sync(job, {}, lambda function, items: [function(item) for item in items], lambda line: None)
        assert result.status == "done", result.tables
        states = result.states


if __name__ == "__main__":
    carry_out(*sys.argv[1:])
    # not getrusage: its peak is also that of the process which started this one
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    print(int(peak) >> 10)
