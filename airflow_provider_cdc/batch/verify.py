# SPDX-License-Identifier: Apache-2.0
"""Compare tables with the change log, without the source: resolve all that the log has of them, and commit nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from airflow_provider_cdc.batch.explain import demand_known_batches
from airflow_provider_cdc.batch.job import JobMaker
from airflow_provider_cdc.batch.lake_question import ask
from airflow_provider_cdc.batch.orders import demand_tables
from airflow_provider_cdc.batch.source_log import open_log
from airflow_provider_cdc.connections.lookup import ledger_url
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import Difference, Rebuild, TableLine, TableState
from airflow_provider_cdc.core.model.status import BatchStatus, TableStatus
from airflow_provider_cdc.core.plain_data import Document
from airflow_provider_cdc.ledger import SYNC, Batch, Ledger
from airflow_provider_cdc.ledger.proofs import TableProofs


@dataclass(slots=True)
class TableVerdict(Document):
    """Say whether a table has the rows that the change log says.

    :param equal: None where that cannot be known; ``reason`` says why.
    :param rows: equal rows.
    :param counts: rows that differ, by kind: ``row_missing`` from the table, ``row_unexpected`` in it, ``row_differs``;
        ``columns_differ``.
    :param differences: the first of them, at most 1,000; they have values of the rows.
    """

    table: str
    equal: bool | None
    rows: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    reason: str = ""
    differences: list[Difference] = field(default_factory=list)


@dataclass(slots=True)
class Verdict(Document):
    """Hold the outcome of comparing the tables of a pipeline.

    :param seq: batch up to which the change log was read, 0 before the first.
    :param position: newest position that all compared tables hold.
    """

    pipeline: str
    seq: int
    position: str = ""
    tables: list[TableVerdict] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        """Return whether all tables are known to be equal."""
        return all(table.equal for table in self.tables)


def verify(pipeline: CdcPipeline, tables: Sequence[str] = (), *, say: Callable[[str], None] = print) -> Verdict:
    """Compare tables, as readers see them now, with all that the change log has of them.

    It runs in a process of this machine, whatever engine the pipeline has, and holds one table at a time in memory.
    That a table is equal goes into the ledger, unless a batch of it came in between.

    :param tables: ``database.table`` of each; all that are ``ok`` if empty.
    :param say: takes one line of progress.
    :raises ConfigurationError: it names a table that the pipeline does not have.
    :raises UnavailableError: the lake holds batches that the ledger does not know.
    """
    ledger = Ledger(ledger_url(pipeline.ledger))
    documents = ledger.tables(pipeline.name)
    states = {table_id: TableState.from_document(document) for table_id, document in documents.items()}
    there = {f"{s.database}.{s.table}": s for s in states.values() if s.state != TableStatus.DROPPED and s.location}
    demand_tables(tables, there.values())
    names = list(tables) or sorted(name for name, state in there.items() if state.state == TableStatus.OK)
    last = ledger.last(pipeline.name, abandoned=True)
    verdict = Verdict(pipeline.name, 0 if last is None else last.seq)
    if last is None or not names:
        return verdict
    batch = Batch(pipeline.name, last.seq + 1, SYNC, BatchStatus.PLANNED, last.end, last.end, None, datetime.now(UTC))
    order = Rebuild(names, compared=True)
    job, secrets = JobMaker(pipeline, ledger, batch, open_log(pipeline).client_config(), states, order=order).make()
    with tempfile.TemporaryDirectory(prefix="airflow-cdc-verify-") as scratch:
        job.scratch = scratch
        result = ask(job, secrets, f"verification of {pipeline.name}", say=say)
    demand_known_batches(pipeline, result)
    if result.error is not None:
        raise result.error
    lines = {f"{line.database}.{line.table}": line for line in result.tables}
    verdict.tables = [_verdict(name, lines.get(name), there[name]) for name in names]
    verdict.position = min(there[name].applied_position for name in names)
    equal = [there[table.table] for table in verdict.tables if table.equal]
    proofs = [(documents[s.table_id], s.proof.of_whole_table(s.applied_position).document()) for s in equal]
    TableProofs(ledger_url(pipeline.ledger)).record(pipeline.name, proofs)
    return verdict


def _verdict(name: str, line: TableLine | None, state: TableState) -> TableVerdict:
    if line is None or not line.action:
        reason = state.reason if line is None else line.reason
        return TableVerdict(name, None, reason=reason or "the change log does not have all of its rows")
    equal = not line.contradictions
    return TableVerdict(name, equal, line.agreed, line.contradictions, differences=line.differences)
