# SPDX-License-Identifier: Apache-2.0
"""Result of a batch or a request, for people, XCom and the ledger."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Self, TypeVar

from airflow_provider_cdc.core.documents import Proof, Result, TableLine, TableState
from airflow_provider_cdc.core.errors import CdcError, DataError, error_in, error_members
from airflow_provider_cdc.core.model.status import ResultStatus, TableStatus
from airflow_provider_cdc.core.plain_data import Document, from_plain, to_plain
from airflow_provider_cdc.ledger import Batch, Ledger

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHOWN = 20
_SHOWN_TEXT = 200
_Number = TypeVar("_Number", int, float)


@dataclass(slots=True)
class TableResult(Document):
    """One table that a batch touched.

    :param action: kind of commit, empty where the rows did not change.
    :param state: status after the batch; None where the table has no state of its own.
    :param version: version of the target, None before the first commit.
    :param writer: who committed, ``task`` or ``spark``, empty without a commit; ``writer_reason`` says why.
    :param contradictions: changes that did not find what the log says, by kind.
    :param agreed: rows before changes that had all values that the log says.
    :param proof: how far the log has proved the table's rows since they began, None where nothing was compared.
    :param added_bytes: of the files that the commit added.
    """

    database: str
    table: str
    action: str = ""
    upserts: int = 0
    deletes: int = 0
    state: TableStatus | None = None
    version: int | None = None
    reason: str = ""
    writer: str = ""
    writer_reason: str = ""
    contradictions: dict[str, int] = field(default_factory=dict)
    agreed: int = 0
    proof: Proof | None = None
    added_bytes: int = 0

    @property
    def name(self) -> str:
        """``database.table``."""
        return f"{self.database}.{self.table}"

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        left_out = {"state", "version"} if self.state is None else set()
        left_out |= {
            name
            for name in ("reason", "writer", "writer_reason", "contradictions", "agreed", "proof", "added_bytes")
            if not getattr(self, name)
        }
        return {name: value for name, value in to_plain(self).items() if name not in left_out}


@dataclass(frozen=True, slots=True)
class UnsettledTable(Document):
    """A table that is parked or waits, and why."""

    database: str
    table: str
    reason: str

    @property
    def name(self) -> str:
        """``database.table``."""
        return f"{self.database}.{self.table}"


@dataclass(slots=True)
class BatchResult(Document):
    """Result of a request for a batch; members that are None are not part of its document.

    :param seq: number of the batch, None where there is none.
    :param changes: row changes by operation.
    :param schema_changes: number of DDL records that were new.
    :param quarantined: records and rows that could not be carried.
    :param seconds: duration of the whole request; ``phases`` of the engine's parts.
    :param cpu_seconds: of the engine (:class:`~airflow_provider_cdc.core.documents.Result`); None of batches that
        older releases carried out, as ``added_bytes``, those of the files that the commits added.
    :param cut: position and time that the tables have reached, whether all of them have, and whether at once.
    :param parked: tables that are parked now; ``waiting`` those that wait for a schema change.
    :param asked_changes: schema changes that the batch asks about or decides.
    :param contradictions: the first changes that did not find what the log says.
    :param lost: records that Kafka deleted before they were read.
    :param error: why the batch failed; ``Transient`` where the same batch may succeed later.
    :param repeated: the batch was committed by an earlier request.
    :param batches: number of batches that the request became; the other members are of all of them.
    :param more: the batch is committed, and the request that was staged needs further ones.
    :param warnings: what a catalog that tables are registered in did not do; it is tried again with the next batch.
    """

    pipeline: str
    seq: int | None
    status: ResultStatus
    records: int = 0
    changes: dict[str, int] = field(default_factory=dict)
    schema_changes: int = 0
    quarantined: int = 0
    tables: list[TableResult] = field(default_factory=list)
    seconds: float = 0.0
    phases: dict[str, float] | None = None
    cpu_seconds: float | None = None
    added_bytes: int | None = None
    cut: dict[str, Any] | None = None
    statements: list[str] | None = None
    parked: list[UnsettledTable] | None = None
    waiting: list[UnsettledTable] | None = None
    new_generations: list[str] | None = None
    asked_changes: list[dict[str, Any]] | None = None
    lossy: dict[str, int] | None = None
    quarantine: list[dict[str, Any]] | None = None
    contradictions: list[dict[str, Any]] | None = None
    lost: list[dict[str, Any]] | None = None
    error: CdcError | None = None
    repeated: bool | None = None
    batches: int | None = None
    more: bool | None = None
    warnings: list[str] | None = None

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        data = {name: value for name, value in to_plain(self).items() if value is not None}
        if self.error is not None:
            data |= error_members(self.error)
        return data

    @classmethod
    def from_document(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from :meth:`document`."""
        return from_plain(cls, {**data, "error": error_in(data)})


def quarantine_line(entry: Mapping[str, Any]) -> str:
    """Return place, table and code or reason of a record or row that could not be carried, never its values.

    :param entry: as results have it; of a record whose table nobody knows it names none.
    """
    record = f"{entry.get('topic')}/{entry.get('partition')}:{entry.get('offset')}"
    table = f" of {entry.get('database')}.{entry['table']}" if entry.get("table") else ", whose table is not known"
    column = f", column {entry['column']}" if entry.get("column") else ""
    return f"{record}{table}{column}: {entry.get('error_code') or entry.get('reason') or ''}"


def table_states(ledger: Ledger, pipeline: str) -> dict[str, TableState]:
    """Return the ledger's states of a pipeline's tables, by table id."""
    return {table_id: TableState.from_document(document) for table_id, document in ledger.tables(pipeline).items()}


def published(
    pipeline: str, result: Result, before: Mapping[str, TableState], seconds: float, batch: Batch | None = None
) -> BatchResult:
    """Return the result of a batch as it is reported and stored.

    :param before: table states before the batch, by table id.
    :param seconds: duration of the whole request.
    :param batch: gives what Kafka lost before it; None where the batch is taken over from the lake.
    """
    report = BatchResult(
        pipeline,
        result.seq,
        result.status,
        result.records,
        result.changes,
        result.schema_changes,
        result.quarantined,
        seconds=seconds,
        cpu_seconds=result.cpu_seconds,
        lost=None if batch is None else batch.lost or None,
    )
    if result.status == ResultStatus.FAILED:
        report.error = result.error
        return report
    after = {**before, **{state.table_id: state for state in result.states}}
    by_name = {**_by_name(before.values()), **_by_name(result.states)}
    report.tables = [_table(line, by_name.get((line.database, line.table))) for line in result.tables]
    report.added_bytes = sum(line.added_bytes for line in result.tables)
    report.phases, report.cut = result.seconds, {**_cut(after.values()), "atomic": result.together}
    report.statements = [text[:_SHOWN_TEXT] for text in result.statements[:_SHOWN]]
    report.parked, report.waiting = _unsettled(after.values())
    if report.status == ResultStatus.DONE and report.waiting:
        report.status = ResultStatus.WAITING
    report.new_generations = result.new_generations or None
    report.asked_changes = result.asked_changes or None
    report.lossy = result.lossy or None
    report.quarantine = result.quarantine[:_SHOWN] or None
    report.contradictions = result.contradictions[:_SHOWN] or None
    return report


def joined(parts: Sequence[BatchResult]) -> BatchResult:
    """Return the result of a request that became several batches: numbers are sums, the rest is the last one's.

    :param parts: results of its batches, in order; one is returned as it is.
    """
    last = parts[-1]
    if len(parts) == 1:
        return last
    tables: dict[str, TableResult] = {}
    for line in (line for part in parts for line in part.tables):
        before = tables.get(line.name)
        if before is not None:
            sums = before.upserts + line.upserts, before.deletes + line.deletes
            line = replace(line, action=line.action or before.action, upserts=sums[0], deletes=sums[1])
            line.contradictions = _sums([before.contradictions, line.contradictions])
            line.agreed += before.agreed
            line.added_bytes += before.added_bytes
            if not line.writer:
                line = replace(line, writer=before.writer, writer_reason=before.writer_reason)
        tables[line.name] = line
    statements = [text for part in parts for text in part.statements or ()]
    quarantine = [item for part in parts for item in part.quarantine or ()]
    return replace(
        last,
        records=sum(part.records for part in parts),
        changes=_sums(part.changes for part in parts),
        schema_changes=sum(part.schema_changes for part in parts),
        quarantined=sum(part.quarantined for part in parts),
        tables=list(tables.values()),
        phases={name: round(value, 3) for name, value in _sums(part.phases or {} for part in parts).items()},
        statements=statements[:_SHOWN],
        new_generations=[name for part in parts for name in part.new_generations or ()] or None,
        asked_changes=[change for part in parts for change in part.asked_changes or ()] or None,
        lossy=_sums(part.lossy or {} for part in parts) or None,
        quarantine=quarantine[:_SHOWN] or None,
        contradictions=[item for part in parts for item in part.contradictions or ()][:_SHOWN] or None,
        lost=[loss for part in parts for loss in part.lost or ()] or None,
        cpu_seconds=_sum(part.cpu_seconds for part in parts),
        added_bytes=_sum(part.added_bytes for part in parts),
        batches=len(parts),
    )


def _sum(values: Iterable[_Number | None]) -> _Number | None:
    """Return the sum of what is known, None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known else None


def _sums(parts: Iterable[Mapping[str, _Number]]) -> dict[str, _Number]:
    sums: dict[str, _Number] = {}
    for part in parts:
        for name, value in part.items():
            sums[name] = sums[name] + value if name in sums else value
    return sums


def _unsettled(states: Iterable[TableState]) -> tuple[list[UnsettledTable], list[UnsettledTable]]:
    """Return the tables that are parked, and those that wait."""
    parked, waiting = [], []
    for state in states:
        if state.state == TableStatus.PARKED:
            parked.append(UnsettledTable(state.database, state.table, state.reason))
        elif state.state == TableStatus.WAITING:
            waiting.append(UnsettledTable(state.database, state.table, state.reason))
    return parked, waiting


def ran_engine(batch: Batch) -> bool:
    """Return whether a batch wrote to the change log: one without records starts no engine."""
    return batch.committed and (batch.result or {}).get("status") != ResultStatus.EMPTY


def newest_by_name(states: Iterable[TableState]) -> dict[str, TableState]:
    """Return states by ``database.table``; of tables with the same name, that of the present one."""
    return {f"{database}.{table}": state for (database, table), state in _by_name(states).items()}


def _by_name(states: Iterable[TableState]) -> dict[tuple[str, str], TableState]:
    """Return states by name; of tables with the same name, that of the present one."""
    ordered = sorted(states, key=lambda state: (state.state != TableStatus.DROPPED, state.applied_position))
    return {(state.database, state.table): state for state in ordered}


def _cut(states: Iterable[TableState]) -> dict[str, Any]:
    """Return position and time of the tables; with a parked or waiting table they have no common one."""
    present = [state for state in states if state.state != TableStatus.DROPPED]
    position = max((state.applied_position for state in present), default="")
    times = [state.source_time for state in present if state.source_time is not None]
    newest = max(times, default=None)
    return {
        "consistent": all(state.state == TableStatus.OK for state in present),
        "position": position or None,
        "source_time": None if newest is None else (_EPOCH + timedelta(microseconds=newest)).isoformat(),
    }


def _table(line: TableLine, state: TableState | None) -> TableResult:
    result = TableResult(line.database, line.table, line.action, line.upserts, line.deletes)
    result.writer, result.writer_reason = line.writer, line.writer_reason
    result.contradictions, result.agreed, result.added_bytes = line.contradictions, line.agreed, line.added_bytes
    if state is not None:
        result.state, result.version, result.reason = state.state, state.version, line.reason or state.reason
        result.proof = None if state.proof == Proof() else state.proof
    return result


def from_ledger(batch: Batch, states: Iterable[TableState], seconds: float) -> BatchResult:
    """Return the answer to a request whose batch is committed already.

    :param states: present states of the tables: one that was parked then may be ok now.
    :param seconds: duration of this request.
    """
    parked, waiting = _unsettled(states)
    now = ResultStatus.PARKED if parked else ResultStatus.WAITING if waiting else None
    seconds = round(seconds, 3)
    stored = stored_result(batch)
    if stored is not None:
        status = now or ResultStatus.DONE
        return replace(stored, parked=parked, waiting=waiting, status=status, repeated=True, seconds=seconds)
    answer = BatchResult(batch.pipeline, batch.seq, now or ResultStatus.NOTHING_TO_DO, seconds=seconds)
    answer.lost = batch.lost or None
    if now is not None:
        answer.parked, answer.waiting = parked, waiting
    return answer


def refusal(batch: Batch) -> CdcError | None:
    """Return the error of a planned batch that needs an approval, None of other batches."""
    note = batch.result or {}
    return DataError.from_document(note["error"]) if note.get("status") == ResultStatus.REFUSED else None


def stored_result(batch: Batch) -> BatchResult | None:
    """Return the result of a committed batch that ran an engine."""
    return BatchResult.from_document({**_of(batch), **(batch.result or {})}) if ran_engine(batch) else None


def _of(batch: Batch) -> dict[str, Any]:
    return {"pipeline": batch.pipeline, "seq": batch.seq, "status": ResultStatus.DONE}


def newest_results(ledger: Ledger, pipeline: str) -> list[BatchResult]:
    """Return the results of the committed batches that the newest request became, newest first, without empty ones."""
    results = list[BatchResult]()
    batch = ledger.last_committed(pipeline)
    while batch is not None:
        stored = stored_result(batch)
        results += [] if stored is None else [stored]
        earlier = ledger.batch(pipeline, batch.seq - 1)
        batch = earlier if earlier is not None and earlier.cut_at is not None and earlier.committed else None
    return results


def empty_result(pipeline: str, seq: int) -> dict[str, Any]:
    """Return what the ledger stores of a batch without records, which starts no engine."""
    return {"pipeline": pipeline, "seq": seq, "status": ResultStatus.EMPTY, "records": 0}


def schema_change_id(change: Mapping[str, Any]) -> str:
    """Return what makes a schema change the same one when it comes again."""
    what = change["statement"] or json.dumps(change["structure"], sort_keys=True)
    if change.get("snapshot") is not None:
        what = f"{change['snapshot']} {what}"  # the same snapshot may begin several times
    return f"{change['position']}:{hashlib.sha256(what.encode()).hexdigest()[:16]}"
