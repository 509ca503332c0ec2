# SPDX-License-Identifier: Apache-2.0
"""Result of one batch, as the Spark side hands it back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from airflow_provider_cdc.core.documents.job import DOCUMENT_VERSION
from airflow_provider_cdc.core.documents.table_state import TableState
from airflow_provider_cdc.core.errors import CdcError, error_in, error_members
from airflow_provider_cdc.core.lake.own_lake import LakeIdentity
from airflow_provider_cdc.core.model.status import ApplyStatus, ResultStatus
from airflow_provider_cdc.core.plain_data import Document, from_plain, to_plain


@dataclass(slots=True)
class QuarantineEntry(Document):
    """A record that could not be decoded, or a row that does not fit its columns.

    :param kind: ``record`` or ``row``.
    :param seq: batch that has it.
    :param database: empty where the table is not known; so is ``table``.
    :param code: why.
    :param text: the same as a sentence; of a row the column.
    :param position: where it stands in the source's log, as far as that is known.
    :param size: bytes of the record's value, as far as they are stored.
    :param raw: the value of a record in base64, where it was asked for.
    :param before: the row images, where they were asked for; so is ``after``.
    :param decision: what an operator decided about it (``action``, ``by``, ``why``, ``at``), None without.
    """

    kind: str
    seq: int
    topic: str
    partition: int
    offset: int
    database: str
    table: str
    code: str
    text: str
    position: str | None = None
    size: int | None = None
    raw: str | None = None
    before: str | None = None
    after: str | None = None
    decision: dict[str, Any] | None = None

    @property
    def record(self) -> tuple[str, int, int]:
        """Topic, partition and offset."""
        return self.topic, self.partition, self.offset


@dataclass(slots=True)
class TableMaintenance(Document):
    """Hold what maintenance did to one table.

    :param expired: rows that were removed because the table keeps such rows for some days only.
    :param compacted: small files that were put together.
    :param written: files that they became.
    :param vacuumed: files that were removed.
    :param checkpoint: whether a checkpoint of the table's log was written.
    :param version: of the table then.
    :param error: why it could not be done, None if it was.
    """

    database: str
    table: str
    expired: int = 0
    compacted: int = 0
    written: int = 0
    vacuumed: int = 0
    checkpoint: bool = False
    version: int | None = None
    error: dict[str, Any] | None = None
    transient: bool = False


@dataclass(slots=True)
class ExpiredLog(Document):
    """Hold what was removed from the change log.

    :param through: newest batch whose rows are removed: older than all that a table, the quarantine or a replay needs.
    :param files: files that were removed, with ``file_bytes``.
    :param jobs: batches whose job documents were removed.
    :param folded: batches whose documents became part of the one of all old batches.
    """

    through: int = 0
    files: int = 0
    file_bytes: int = 0
    jobs: int = 0
    folded: int = 0


@dataclass(slots=True)
class ProbeStep(Document):
    """Hold what came of one step of a probe.

    :param name: ``create``, ``merge`` or ``remove``.
    :param error: what failed, with a hint of what to do; None if nothing did.
    """

    name: str
    error: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Difference(Document):
    """A row that a table and the change log do not have alike.

    :param row: values of its key, of a table without key all of its values; or the columns that differ.
    """

    kind: str
    row: list[str]


@dataclass(slots=True)
class TableLine(Document):
    """One table's part in a batch, for people.

    :param status: how its task ended.
    :param action: kind of commit, empty where the rows did not change.
    :param files: of a preview the files of the table that the commit would write again, with ``file_bytes``.
    :param writer: who commits, ``task`` or ``spark``; empty without a commit.
    :param writer_reason: why it is that writer.
    :param contradictions: changes that did not find what the log says, by kind.
    :param agreed: rows before changes that had all values that the log says; of a comparison the equal rows.
    :param differences: of a comparison the first rows that differ.
    :param added_bytes: of the files that the commit added.
    """

    database: str
    table: str
    status: ApplyStatus
    action: str = ""
    upserts: int = 0
    deletes: int = 0
    reason: str = ""
    seconds: float = 0.0
    files: int = 0
    file_bytes: int = 0
    writer: str = ""
    writer_reason: str = ""
    contradictions: dict[str, int] = field(default_factory=dict)
    agreed: int = 0
    differences: list[Difference] = field(default_factory=list)
    added_bytes: int = 0


@dataclass(slots=True)
class Result(Document):
    """Result of a batch.

    :param status: of ``behind`` the ledger has to take over ``lake_batches`` first.
    :param changes: row changes by operation.
    :param schema_changes: number of DDL records that were new.
    :param quarantined: records and rows that could not be carried.
    :param contradictions: the first changes that did not find what the log says: table, kind, record, key's digest.
    :param states: of the tables this batch touched.
    :param error: why the batch failed; ``Transient`` where the same batch may succeed later.
    :param new_schema_changes: documents for the ledger.
    :param deferred: schema changes that were read already but are later than the request.
    :param new_generations: ``topic/partition:offset`` of the first record of each generation that was approved with
        this batch.
    :param asked_changes: schema changes that the batch asks about or decides (documents of ``AskedChange``).
    :param together: all tables were committed at once.
    :param replayed: the batch took the rows again that its job names, rebuilt its tables, or carried out its decision
        or approval.
    :param fingerprint: digest of the configuration that the batch was carried out with.
    :param row_changes: of a preview the row changes by ``database.table`` and operation.
    :param unfit: of a preview the rows that do not fit: table, topic, partition, offset, column, reason.
    :param maintained: of a job that only maintains the tables: each of them.
    :param probed: of a job that only probes the sink: the steps that were tried.
    :param expired: of a job that only removes rows from the change log: what it removed.
    :param entries: of a job that only reads the quarantine: all of it.
    :param lake: the lake that the batch was written to, or that was adopted; None for jobs that write to none.
    :param lake_batches: batches of the lake that the ledger does not know: ``seq``, ``claim`` and ``result`` of each;
        ``folded`` where one stands for all batches up to it. Of a job that shortens the change log only that one.
    :param cpu_seconds: of the engine's process and the processes that it waited for: on Spark those of the driver's
        Python, not of the JVM and of executors. None where nobody measured.
    """

    pipeline: str
    seq: int
    status: ResultStatus
    records: int = 0
    changes: dict[str, int] = field(default_factory=dict)
    schema_changes: int = 0
    quarantined: int = 0
    quarantine: list[dict[str, Any]] = field(default_factory=list)
    lossy: dict[str, int] = field(default_factory=dict)
    contradictions: list[dict[str, Any]] = field(default_factory=list)
    states: list[TableState] = field(default_factory=list)
    new_schema_changes: list[dict[str, Any]] = field(default_factory=list)
    deferred: list[dict[str, Any]] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)
    tables: list[TableLine] = field(default_factory=list)
    error: CdcError | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    new_generations: list[str] = field(default_factory=list)
    lake_batches: list[dict[str, Any]] = field(default_factory=list)
    asked_changes: list[dict[str, Any]] = field(default_factory=list)
    replayed: bool = False
    together: bool = False
    entries: list[QuarantineEntry] = field(default_factory=list)
    row_changes: dict[str, dict[str, int]] = field(default_factory=dict)
    unfit: list[dict[str, Any]] = field(default_factory=list)
    maintained: list[TableMaintenance] = field(default_factory=list)
    probed: list[ProbeStep] = field(default_factory=list)
    expired: ExpiredLog = field(default_factory=ExpiredLog)
    fingerprint: str = ""
    lake: LakeIdentity | None = None
    cpu_seconds: float | None = None
    version: int = DOCUMENT_VERSION

    @property
    def is_final(self) -> bool:
        """Return whether the same job need not run again."""
        return self.error is None and self.status != ResultStatus.BEHIND

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        error = {"transient": False} if self.error is None else error_members(self.error)
        return {**to_plain(self), **error}

    @classmethod
    def from_document(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from :meth:`document`; other members are left out."""
        return from_plain(cls, {**data, "error": error_in(data)})
