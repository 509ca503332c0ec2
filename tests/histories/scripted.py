# SPDX-License-Identifier: Apache-2.0
"""A log written record by record, synced batch by batch: for cases that one connector alone does not write."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from airflow_provider_cdc.core.config import RunPolicy, TableRules, TargetRule
from airflow_provider_cdc.core.documents import (
    Approval,
    Decision,
    JobDocument,
    Look,
    QuarantineEntry,
    Rebuild,
    Result,
    TableState,
)
from airflow_provider_cdc.core.lake.own_lake import LakeIdentity
from airflow_provider_cdc.core.model.offsets import OffsetRange
from airflow_provider_cdc.core.timeline.asked_changes import Answer, AskedChange, newest_answers
from spark_jobs.driver.quarantine_entries import look
from spark_jobs.driver.run_batch import sync
from spark_jobs.lake.identity import adopt
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.run import inline
from tests.locations import table_location

Partition = tuple[str, int]


@dataclass
class Script:
    """A pipeline over the log in memory, with what the ledger would remember between batches.

    :param policy: what differs from the default policy.
    :param tables: ``tables`` of the pipeline.
    :ivar held: partitions that the next batches do not read further.
    :ivar refused: up to where a batch reads that was not carried out.
    """

    log: Log
    root: Path
    name: str = field(default="scripted", kw_only=True)
    lake_root: str = field(default="", kw_only=True)
    sink_options: dict[str, str] | None = field(default=None, kw_only=True)
    sink_type: str = field(default="delta", kw_only=True)
    registry: dict[str, str] = field(default_factory=dict, kw_only=True)
    secrets: dict[str, dict[str, str]] = field(default_factory=dict, kw_only=True)
    target: tuple[TargetRule, ...] = field(default=(), kw_only=True)
    format: str = "debezium-json"
    schema_topic: str | None = "src"
    options: dict[str, str] = field(default_factory=dict)
    policy: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, Any] = field(default_factory=dict)
    held: set[Partition] = field(default_factory=set)
    ends: dict[Partition, int] = field(default_factory=dict)
    states: dict[str, TableState] = field(default_factory=dict)
    schema_changes: list[dict[str, Any]] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)
    minutes: int = 0
    identity: LakeIdentity | None = None
    asked: list[dict[str, Any]] = field(default_factory=list)
    refused: dict[Partition, int] = field(default_factory=dict)

    def send(self, *records: Record) -> None:
        """Append records to their partitions."""
        for record in records:
            self.log.partitions.setdefault((record.topic, record.partition), []).append(record)

    def sync(
        self,
        ends: dict[Partition, int] | None = None,
        *,
        new_generation: str = "",
        rebuild: Rebuild | None = None,
        approval: AskedChange | None = None,
        decision: Decision | None = None,
    ) -> Result:
        """Carry out one batch: up to these offsets, or everything that is not held.

        A rebuild and a decision, about a schema change or quarantined records, read nothing new.
        """
        if rebuild is not None or approval is not None or decision is not None:
            ends = self.refused or self.ends
        if ends is None:
            ends = {where: len(records) for where, records in self.log.partitions.items() if where not in self.held}
        self.minutes += 1
        order = rebuild or decision or (None if approval is None else Approval(approval.document()))
        job = replace(self._job(ends), new_generation=new_generation, order=order)
        self.refused = ends  # until it is carried out
        job = JobDocument.from_document(json.loads(json.dumps(job.document())))
        result = sync(job, self.secrets, inline, lambda line: None)
        self.refused = {}
        self.identity = result.lake
        self.ends.update(ends)
        self.seqs.append(result.seq)
        self.schema_changes = self.schema_changes + result.new_schema_changes
        self.states.update({state.table_id: state for state in result.states})
        self.asked += result.asked_changes
        return result

    def _job(self, ends: dict[Partition, int]) -> JobDocument:
        """Return the job of the next batch, which reads up to these offsets."""
        chunks = [OffsetRange(*where, self.ends.get(where, 0), end) for where, end in ends.items()]
        known: dict[str, dict[str, int]] = {}
        for topic, part in self.log.partitions:
            known.setdefault(topic, {})[str(part)] = ends.get((topic, part), self.ends.get((topic, part), 0))
        return JobDocument(
            self.name,
            (self.seqs or [0])[-1] + 1,
            f"2026-01-01T00:{self.minutes:02d}:00+00:00",
            str(self.root),
            self.format,
            self.options,
            self.schema_topic,
            {},
            [chunk for chunk in chunks if chunk.start < chunk.end],
            RunPolicy(**self.policy),
            TableRules.from_document(self.tables),
            list(self.seqs),
            self.schema_changes,
            list(self.states.values()),
            end=known,
            fingerprint=json.dumps([self.format, self.options, self.policy, self.tables], sort_keys=True)
            + "".join(f"{rule.pattern} {rule.to}" for rule in self.target),
            target=self.target,
            lake=self.identity,
            sink_type=self.sink_type,
            sink_options=self.sink_options,
            lake_root=self.lake_root,
            registry=self.registry,
        )

    def adopt(self) -> None:
        """Let the lake at the root be the pipeline's."""
        self.identity = adopt(self._job({}), {}).lake

    def open_records(self) -> list[QuarantineEntry]:
        """Return what waits in the quarantine, also of a batch that was refused."""
        earlier = self.seqs + ([(self.seqs or [0])[-1] + 1] if self.refused else [])
        entries = look(replace(self._job(self.ends), earlier=earlier, order=Look()), {}).entries
        return [entry for entry in entries if entry.decision is None]

    def waiting(self, table: str) -> list[AskedChange]:
        """Return the schema changes of a table of ``shop`` that wait for a decision, by position."""
        return [i for i in newest_answers(self.asked) if i.table == table and i.answer == Answer.OPEN]

    def decide(self, table: str, answer: Answer, by: str = "ann") -> Result:
        """Decide about the oldest change that a table waits for."""
        return self.sync(approval=replace(self.waiting(table)[0], answer=answer, by=by, at="2026-01-02T00:00:00+00:00"))

    def rows(self, database: str, table: str) -> Counter[tuple[Any, ...]] | None:
        """Return what lies at a table's location, None when nothing does."""
        location = Path(table_location(str(self.root), database, table))
        if not (location / "_delta_log").is_dir():
            return None
        content = DeltaTable(str(location)).to_pyarrow_table()
        return Counter(zip(*(column.to_pylist() for column in content.columns), strict=True))

    def states_of(self, database: str, table: str) -> list[str]:
        """Return the states of all tables that have or had this name."""
        return [s.state for s in self.states.values() if (s.database, s.table) == (database, table)]
