# SPDX-License-Identifier: Apache-2.0
"""Batches of a pipeline for tests of planning: statements, row groups and table states, without Kafka or a lake.

A place in the source's log is a number here: ``statement(100, ...)`` and ``rows("t", 110, 120)`` are of one log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.config import RunPolicy, TableRules
from airflow_provider_cdc.core.documents import JobDocument, Result, TableState
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.model.status import ResultStatus
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import SchemaChange, TableTimeline, Timeline
from spark_jobs.driver.batch_history import History
from spark_jobs.lake.manifest import Manifest, RowGroup, Unreadable
from spark_jobs.lake.stored_result import StoredResult
from tests.locations import table_place

DATABASE = "shop"
ROOT = "lake"
CREATED_AT = "2026-01-01T12:00:00+00:00"


def position(pos: int) -> str:
    """Return a place in the source's log as positions are written."""
    return f"{pos:08d}"


def statement(pos: int, text: str) -> SchemaChange:
    """Return a DDL statement that the source carried out at a place."""
    return SchemaChange(position(pos), pos, DATABASE, text)


def snapshot(pos: int, text: str, *, sent: int) -> SchemaChange:
    """Return a DDL statement that a snapshot wrote: it describes what was there at a place.

    :param sent: Kafka's time of the record.
    """
    return SchemaChange(position(pos), pos, DATABASE, text, snapshot=sent)


def rows(
    table: str,
    first: int,
    last: int,
    *,
    truncates: Sequence[int] = (),
    removals: int = 0,
    snapshots: Sequence[tuple[int, int]] = (),
    changes_from: int | None = 0,
) -> RowGroup:
    """Return the changes of one table between two places, both of them included.

    :param truncates: places of the TRUNCATEs among them.
    :param removals: number of deletes and updates.
    :param snapshots: place and Kafka's time of the snapshots that rows are of.
    :param changes_from: place of the first row that is of no snapshot, None without any.
    """
    return RowGroup(
        f"{table}-{first}.parquet",
        0,
        DATABASE,
        table,
        1 + (last > first),
        position(first),
        position(last),
        None,
        [position(pos) for pos in truncates],
        removals,
        [(position(pos), sent) for pos, sent in snapshots],
        changes_from=None if changes_from is None else position(changes_from),
    )


def unreadable(table: str, count: int) -> Unreadable:
    """Return records of a table that could not be decoded."""
    return Unreadable(DATABASE, table, "topic", 0, 7, "record.malformed", "not JSON", count)


def table_of(changes: Sequence[SchemaChange], table: str) -> TableTimeline:
    """Return the timeline of the table that has a name in the end."""
    timeline = build_timeline(changes)
    owner = timeline.owner(TableName(DATABASE, table), "~")
    assert owner is not None, f"no table has the name {table}"
    return timeline.tables[owner]


def applied(changes: Sequence[SchemaChange], table: str, *, seq: int, pos: int, version: int = 0) -> TableState:
    """Return the state of a table after a batch.

    :param changes: the statements that were known then.
    :param seq: the batch.
    :param pos: newest position in the source's log that the rows hold.
    :param version: version of the target.
    """
    timeline = table_of(changes, table)
    schema = timeline.versions[timeline.version_at(position(pos))].schema
    return TableState(
        timeline.table_id,
        DATABASE,
        table,
        table_place(DATABASE, table),
        version,
        seq,
        position(pos),
        schema=schema.document(),
        timeline_mark=timeline.mark(position(pos)),
    )


@dataclass(slots=True)
class Batch:
    """A batch that was committed before.

    :param groups: its row changes.
    :param states: the states that it left.
    """

    groups: Sequence[RowGroup] = ()
    states: Sequence[TableState] = field(default_factory=list)


def history_of(batches: Sequence[Batch], contents: Mapping[str, pa.Table] | None = None) -> History:
    """Return batches numbered from 1.

    :param contents: rows of files.
    """
    newest, reached = "", []
    for batch in batches:
        newest = max([newest, *(group.max_position for group in batch.groups)])
        reached.append(newest)

    def result(seq: int) -> StoredResult:
        left = Result("pipeline", seq, ResultStatus.DONE, states=list(batches[seq - 1].states))
        return StoredResult(left, max_position=reached[seq - 1])

    def rows_of(groups: Sequence[RowGroup], columns: Sequence[str]) -> pa.Table:
        return pa.concat_tables([(contents or {})[group.file] for group in groups]).select(list(columns))

    return History(
        range(1, len(batches) + 1), lambda seq: Manifest(list(batches[seq - 1].groups), seq=seq), result, rows_of
    )


def job_of(
    *,
    seq: int = 1,
    known: Sequence[SchemaChange] = (),
    states: Sequence[TableState] = (),
    policy: Mapping[str, Any] | None = None,
    tables: Mapping[str, Any] | None = None,
    fingerprint: str = "",
    created_at: str = CREATED_AT,
) -> JobDocument:
    """Return the job of a batch of a Debezium pipeline with a schema topic."""
    return JobDocument(
        "pipeline",
        seq,
        created_at,
        ROOT,
        "debezium-json",
        {},
        "schema-changes",
        {},
        [],
        RunPolicy(**(policy or {})),
        TableRules.from_document(tables or {}),
        list(range(1, seq)),
        [change.document() for change in known],
        list(states),
        fingerprint=fingerprint,
    )


def timelines(known: Sequence[SchemaChange], read: Sequence[SchemaChange] = ()) -> tuple[Timeline, Timeline]:
    """Return all tables before a batch that reads some statements, and with them."""
    return build_timeline(known), build_timeline([*known, *read])


def parked(state: TableState, reason: str = "parked here", **fields: Any) -> TableState:
    """Return the state of a table that was parked."""
    return replace(state, state="parked", reason=reason, **fields)
