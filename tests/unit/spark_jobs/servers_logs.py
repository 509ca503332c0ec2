# SPDX-License-Identifier: Apache-2.0
"""Land rows of the logs of several servers, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA
from spark_jobs.driver.generations import Generations
from spark_jobs.driver.new_begins import new_begins
from spark_jobs.lake.begins import Begin
from spark_jobs.lake.change_log import LogWriter
from spark_jobs.lake.manifest import LandReport
from spark_jobs.lake.storage import Storage
from spark_jobs.lake.stretches import Stretches
from tests.locations import binlog_position

A, B = "861d4b0d-e67c-11f1-beee-02fc00000001", "8900a153-e67c-11f1-9de0-02fc00000001"


class At(NamedTuple):
    """One row of a log: where the server wrote it, and when in seconds."""

    file: int
    pos: int
    gtid: str | None = None
    time: int | None = None
    kind: str = "row"
    op: str | None = "update"


class Pipeline:
    """Lands batches of one topic and asks after each what it shows."""

    def __init__(self, root: Path) -> None:
        self.storage, self.log, self.seq = Storage(str(root), {}), Generations(), 0
        self.offsets: dict[int, int] = {}

    def batch(self, partitions: dict[int, Sequence[At]], pieces: int = 1) -> list[Begin]:
        """Land records behind those before, each partition in so many tasks; return what shows another log."""
        landed = self.landed(partitions, pieces)
        seen = new_begins(landed, self.log, self.storage)
        self.log = Generations.from_document(self.log.after(landed).document())
        return seen

    def landed(self, partitions: dict[int, Sequence[At]], pieces: int) -> LandReport:
        """Land records behind those before, each partition in so many tasks."""
        self.seq += 1
        landed = LandReport()
        for partition, records in partitions.items():
            size = -(-len(records) // pieces)
            for start in range(0, len(records), size or 1):
                self._land(landed, partition, records[start : start + size])
        return landed

    def _land(self, landed: LandReport, partition: int, records: Sequence[At]) -> None:
        writer = LogWriter(self.storage, f"log/{self.seq}")
        stretches = Stretches()
        for some in (records[: len(records) // 2], records[len(records) // 2 :]):
            if some:
                changes = self._changes(partition, some)
                stretches.add(changes)
                writer.add(changes.filter(pa.compute.equal(changes.column("kind").cast("string"), "row")))
        landed.groups += writer.close()
        landed.stretches += stretches.documents()
        landed.statements += stretches.statements

    def _changes(self, partition: int, records: Sequence[At]) -> pa.RecordBatch:
        first = self.offsets.get(partition, 0)
        self.offsets[partition] = first + len(records)
        count = len(records)
        columns: dict[str, list[Any]] = {
            "topic": ["t"] * count,
            "partition": [partition] * count,
            "offset": list(range(first, first + count)),
            "index": [0] * count,
            "kind": [record.kind for record in records],
            "op": [record.op for record in records],
            "database": ["shop"] * count,
            "table": ["t"] * count,
            "position": [binlog_position(record.file, record.pos) for record in records],
            "source_time": [None if record.time is None else record.time * 1_000_000 for record in records],
            "transaction_id": [record.gtid for record in records],
        }
        arrays = [pa.array(columns.get(field.name, [None] * count), field.type) for field in CHANGE_SCHEMA]
        return pa.RecordBatch.from_arrays(arrays, schema=CHANGE_SCHEMA)


def log(server: str, first: int, count: int, file: int = 7, pos: int = 100, time: int = 1_000) -> list[At]:
    """Return transactions that a server wrote one after the other, two a second."""
    return [At(file, pos + 50 * i, f"{server}:{first + i}", time + i // 2) for i in range(count)]


def untimed(records: Sequence[At]) -> list[At]:
    return [record._replace(time=None) for record in records]


def without_gtid(records: Sequence[At]) -> list[At]:
    return [record._replace(gtid=None) for record in records]
