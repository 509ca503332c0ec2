# SPDX-License-Identifier: Apache-2.0
"""Runs batches over a capture that lies in a broker, cut wherever a test wants."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.config import RunPolicy, TableRules
from airflow_provider_cdc.core.documents import JobDocument, Result, TableState
from airflow_provider_cdc.core.model.offsets import OffsetRange
from spark_jobs.driver.run_batch import sync
from tests.locations import table_location
from tests.services.capture import Record
from tests.sinks.kinds import options_of, sink_of, type_of

Partition = tuple[str, int]


@dataclass
class Lake:
    """A pipeline's tables and what the ledger would remember of them between batches."""

    root: Path | str
    bootstrap: str
    schema_topic: str | None = None
    format: str = "debezium-json"
    options: dict[str, str] = field(default_factory=dict)
    tables: dict[str, Any] = field(default_factory=dict)
    storage: dict[str, str] = field(default_factory=dict)
    ends: dict[Partition, int] = field(default_factory=dict)
    states: dict[str, TableState] = field(default_factory=dict)
    schema_changes: list[dict[str, Any]] = field(default_factory=list)
    quarantine_limit: int = 5
    verify: str = "touched"
    seq: int = 0
    quarantined: int = 0
    reader: str = "kafka"
    kind: str = "delta"
    registry: dict[str, str] = field(default_factory=dict)

    def sync_to(self, ends: Mapping[Partition, int]) -> Result:
        """Carry out one batch up to these offsets, inline, over the real task reader and task writer."""
        chunks = [
            OffsetRange(t, p, self.ends.get((t, p), 0), end)
            for (t, p), end in ends.items()
            if end > self.ends.get((t, p), 0)
        ]
        self.seq += 1
        every: dict[str, dict[str, int]] = {}
        for (topic, partition), end in ends.items():
            every.setdefault(topic, {})[str(partition)] = end
        job = JobDocument(
            "capture",
            self.seq,
            f"2026-01-01T00:00:{self.seq:02d}+00:00",
            str(self.root),
            self.format,
            {"explicit_defaults_for_timestamp": "true", **self.options},  # default of MySQL 8 and MariaDB 10.11
            self.schema_topic,
            {"bootstrap.servers": self.bootstrap},
            chunks,
            RunPolicy(quarantine_limit=self.quarantine_limit, verify=self.verify),
            TableRules.from_document(self.tables),
            list(range(1, self.seq)),
            self.schema_changes,
            list(self.states.values()),
            end=every,
            storage=self.storage,
            reader=self.reader,
            sink_type=type_of(self.kind),
            sink_options=options_of(self.kind, self.root) or None,
            registry=self.registry,
        )
        # through JSON, as it travels to Spark
        job = JobDocument.from_document(json.loads(json.dumps(job.document())))
        result = sync(job, {}, lambda function, items: [function(item) for item in items], lambda line: None)
        self.ends.update(ends)
        self.schema_changes = [*self.schema_changes, *result.new_schema_changes]
        self.states.update({state.table_id: state for state in result.states})
        self.quarantined += result.quarantined
        return result

    def rows(self, database: str, table: str) -> pa.Table:
        """Return the rows at a table's location."""
        return sink_of(self.kind, self.root).open(table_location(str(self.root), database, table)).rows()

    def state(self, database: str, table: str) -> TableState | None:
        """Return the state of the table that has this name now."""
        alive = [s for s in self.states.values() if s.state != "dropped" and (s.database, s.table) == (database, table)]
        return alive[0] if alive else None


def full_ends(records: Sequence[Record]) -> dict[Partition, int]:
    """Return the end offsets of everything recorded."""
    ends: dict[Partition, int] = {}
    for record in records:
        partition = (record.topic, record.partition)
        ends[partition] = max(ends.get(partition, 0), record.offset + 1)
    return ends


def random_cuts(ends: Mapping[Partition, int], batches: int, seed: int) -> list[dict[Partition, int]]:
    """Return rising end offsets, each partition cut for itself; the last are the full ends."""
    chance = random.Random(seed)
    cuts = {
        partition: [*sorted(chance.randint(0, end) for _ in range(batches - 1)), end] for partition, end in ends.items()
    }
    return [{partition: cuts[partition][batch] for partition in ends} for batch in range(batches)]


def cut_before(records: Sequence[Record], file: str, pos: int) -> dict[Partition, int]:
    """Return per partition the offset of the first record at or after a binlog place, so that all before it is in."""
    ends = full_ends(records)
    cuts: dict[Partition, int] = {}
    for record in sorted(records, key=lambda r: (r.topic, r.partition, r.offset)):
        partition = (record.topic, record.partition)
        if partition in cuts or record.value is None:
            continue
        data = json.loads(record.value)
        source = data.get("payload", data).get("source")
        snapshot = ("true", "first", "last", "first_in_data_collection", "last_in_data_collection")
        streamed = source is not None and source["snapshot"] not in snapshot
        if streamed and (source["file"], source["pos"]) >= (file, pos):
            cuts[partition] = record.offset
    return {partition: cuts.get(partition, end) for partition, end in ends.items()}
