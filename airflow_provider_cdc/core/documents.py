# SPDX-License-Identifier: Apache-2.0
"""The plain documents in which the two sides meet: job in, result out, table states between batches."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from airflow_provider_cdc.core.config import RunPolicy, TableRules
from airflow_provider_cdc.core.errors import (
    CASCADED,
    CASCADED_ABOVE,
    CdcError,
    ConfigurationError,
    DataError,
    Transient,
    UnavailableError,
)
from airflow_provider_cdc.core.lake.roots import canonical_root, located, named_roots, place_of
from airflow_provider_cdc.core.model.offsets import OffsetRange
from airflow_provider_cdc.core.model.status import ApplyStatus, ResultStatus, TableStatus

DOCUMENT_VERSION = 1

SECRETS_VARIABLE = "AIRFLOW_CDC_SECRETS"
"""Environment variable of the engine's process with the secrets: no argument, document or log holds one."""

# how the reasons of parked tables begin in states that were written before these had a code of their own
_CASCADED_BEFORE_CODES = f"needs rebuild: [{CASCADED}]"
_CASCADED_ABOVE_BEFORE_CODES = f"needs rebuild: [{CASCADED_ABOVE}]"


@dataclass(frozen=True, slots=True)
class LakeIdentity:
    """State which lake a pipeline has: made with its first batch, kept in the lake and in the ledger.

    :param root: at which it was made or adopted, in the canonical spelling.
    :param resolved: the same without symlinks, as the machine saw it.
    """

    id: str
    pipeline: str
    root: str
    resolved: str

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return shallow_document(self)

    @staticmethod
    def from_document(data: Mapping[str, Any]) -> LakeIdentity:
        """Rebuild from :meth:`document`; other members are left out."""
        return LakeIdentity(**known_members(LakeIdentity, data))


@dataclass(slots=True)
class TableState:
    """State of one table after a batch.

    :param location: place of its rows below the root of the lake, empty where it has none.
    :param version: the table's own version after our last commit, None before the first.
    :param applied_seq: newest batch whose changes the rows hold.
    :param applied_position: newest source position among them, empty before the first row.
    :param source_time: newest source time among them, microseconds since the epoch.
    :param schema: schema that the rows lie under.
    :param debts_seq: batch that left removals which found no row yet (tables without key), None without any.
    :param pending_until: position of the newest of them, empty where that is not known.
    :param rewind_to: position of a late schema change that the rows do not know yet (the table waits or is parked).
    :param timeline_mark: digest of the schema changes that the rows went through.
    :param snapshot_position: where the snapshot stands that the rows begin with, empty if they begin with the table.
    :param snapshot_sent: Kafka's time of that snapshot's first statement in milliseconds, where a table without key
        needs it to tell snapshots at one position apart.
    :param code: stable error code behind ``reason``, where an error is the reason.
    :param tried_with: digest of the configuration that a parked table was last tried with.
    :param seen_version: version that the location of a parked table had when it was last tried.
    :param rebuilt_seq: batch that last rebuilt the table, 0 for none: versions of the table before it mean nothing now.
    :param provided: state (document) of the copy of the files that an operator provided and the rows begin with, None
        if they begin with the table or a snapshot. In the state of the copy itself: ``path`` and ``since`` as stated.
    :param made_with: options that the rows were made with (``stored_layout.MadeWith``), None before there are any.
    :param spark_may_write: a merge into the table may be large enough for the Spark writer (``writer: auto``): batches
        start Spark with it.
    :param resolved_since: batch whose rows the newest commit went on from, 0 where it began with nothing: rows of later
        batches that did not fit then, and do now, are in the table. None before the first commit.
    """

    table_id: str
    database: str
    table: str
    location: str
    version: int | None = None
    applied_seq: int = 0
    applied_position: str = ""
    source_time: int | None = None
    schema: dict[str, Any] | None = None
    state: TableStatus = TableStatus.OK
    reason: str = ""
    waiting_since: str | None = None
    debts_seq: int | None = None
    pending_until: str = ""
    rewind_to: str | None = None
    timeline_mark: str = ""
    snapshot_position: str = ""
    snapshot_sent: int = 0
    notes: list[str] = field(default_factory=list)
    code: str = ""
    tried_with: str = ""
    seen_version: int | None = None
    rebuilt_seq: int = 0
    provided: dict[str, Any] | None = None
    spark_may_write: bool = False
    made_with: dict[str, str] | None = None
    resolved_since: int | None = None

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return shallow_document(self)

    @staticmethod
    def from_document(data: Mapping[str, Any]) -> TableState:
        """Rebuild from :meth:`document`, also of earlier versions, which lack members."""
        state = TableState(**{**data, "state": TableStatus(data.get("state", TableStatus.OK))})
        state.location = place_of(state.location)
        if state.provided is not None and "location" in state.provided:
            state.provided = {**state.provided, "location": place_of(state.provided["location"])}
        if state.reason.startswith(_CASCADED_ABOVE_BEFORE_CODES):
            state.code = CASCADED_ABOVE
        elif not state.code and state.reason.startswith(_CASCADED_BEFORE_CODES):
            state.code = CASCADED
        return state


@dataclass(slots=True)
class Replay:
    """Rows of the change log that a batch takes again.

    :param tables: ``database.table`` of each; all tables if empty.
    :param since: source time of the first rows in microseconds since the epoch, None from the first on.
    :param until: source time behind the last rows, exclusive, None up to the last.
    """

    tables: list[str] = field(default_factory=list)
    since: int | None = None
    until: int | None = None

    def selects(self, database: str, table: str, oldest: int | None, newest: int | None) -> bool:
        """Return whether rows of a table between two source times are asked for; times that are unknown are."""
        if self.tables and f"{database}.{table}" not in self.tables:
            return False
        late = self.since is not None and newest is not None and newest < self.since
        return not late and not (self.until is not None and oldest is not None and oldest >= self.until)


class RebuildSource(StrEnum):
    """Say where the rows of a rebuilt table begin.

    With the table, or its last full snapshot; with an ad hoc snapshot; or with files that an operator provides.
    """

    CHANGE_LOG = "change_log"
    SNAPSHOT = "snapshot"
    FILES = "files"


@dataclass(slots=True)
class Rebuild:
    """Tables that a batch resolves from the change log alone, whatever lies at their locations.

    :param tables: ``database.table`` of each.
    :param source: where their rows begin.
    :param since: source time at which the ad hoc snapshot was asked for, in microseconds since the epoch; None for the
        one that came after the rows became unknown. Of files a time up to which they hold every change.
    :param path: of files the Delta table, folder of parquet files or parquet file.
    """

    tables: list[str]
    source: RebuildSource = RebuildSource.CHANGE_LOG
    since: int | None = None
    path: str = ""

    @staticmethod
    def of(tables: Sequence[str], source: str, since: int | None) -> Rebuild:
        """Return what an operator asks for.

        :param source: ``change_log``, ``snapshot``, or a path or URL of files; a relative one is below the present
            folder.
        :raises ConfigurationError: files without their time, or for several tables.
        """
        if source in (RebuildSource.CHANGE_LOG, RebuildSource.SNAPSHOT):
            return Rebuild(list(tables), RebuildSource(source), since)
        problems = [] if source else ["a rebuild from files needs their path"]
        if since is None:
            problems.append("a rebuild from files needs since: a time up to which they hold every change")
        if len(tables) != 1:
            problems.append("a rebuild from files is of one table")
        if problems:
            raise ConfigurationError(problems)
        path = source if "://" in source else os.path.abspath(source)
        return Rebuild(list(tables), RebuildSource.FILES, since, path.rstrip("/"))

    @staticmethod
    def from_document(data: Mapping[str, Any]) -> Rebuild:
        """Return the dataclass that a document describes."""
        return Rebuild(**{**data, "source": RebuildSource(data["source"])})


class DecisionAction(StrEnum):
    """Say what an operator decided: to decode quarantined records again, or to do without them for good."""

    REPLAY = "replay"
    DISCARD = "discard"


@dataclass(slots=True)
class Decision:
    """Hold what an operator decided about quarantined records.

    :param records: topic, partition and offset of each.
    :param repaired: of a replay the records to decode: topic, partition, offset, timestamp (milliseconds), and key,
        value and the headers' values in base64.
    :param by: who decided.
    :param at: when, ISO time.
    """

    action: DecisionAction
    records: list[list[Any]]
    repaired: list[dict[str, Any]] = field(default_factory=list)
    by: str = ""
    why: str = ""
    at: str = ""

    @staticmethod
    def from_document(data: Mapping[str, Any]) -> Decision:
        """Rebuild from a plain document."""
        return Decision(**{**data, "action": DecisionAction(data["action"])})


@dataclass(slots=True)
class QuarantineEntry:
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
class Look:
    """Ask for the quarantine instead of a batch.

    :param contents: whether bytes and row images are asked for.
    """

    contents: bool = False


@dataclass(slots=True)
class Maintenance:
    """Ask for maintenance instead of a batch: of the tables, or of the change log.

    :param target_file_bytes: size up to which small files are put together.
    :param keep_hours: files that a table no longer has are removed after so many hours.
    :param expire_through: newest batch that is old enough for its rows to be removed from the change log; 0 maintains
        the tables.
    """

    target_file_bytes: int
    keep_hours: int
    expire_through: int = 0


@dataclass(slots=True)
class TableMaintenance:
    """Hold what maintenance did to one table.

    :param compacted: small files that were put together.
    :param written: files that they became.
    :param vacuumed: files that were removed.
    :param checkpoint: whether a checkpoint of the table's log was written.
    :param version: of the table then.
    :param error: why it could not be done, None if it was.
    """

    database: str
    table: str
    compacted: int = 0
    written: int = 0
    vacuumed: int = 0
    checkpoint: bool = False
    version: int | None = None
    error: dict[str, Any] | None = None
    transient: bool = False


@dataclass(slots=True)
class ExpiredLog:
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
class JobDocument:
    """Everything a batch needs but secrets.

    :param sink_root: the root of the lake, in its canonical spelling.
    :param chunks: what land reads; its tasks may read pieces of them (``tasks.land.chunks_of``).
    :param earlier: numbers of the batches committed before, ascending.
    :param kafka: librdkafka configuration without secrets.
    :param schema_changes: documents of the schema changes known before this batch.
    :param tables: per-table rules by ``database.table``.
    :param created_at: ISO time of planning, the batch's only clock.
    :param parallelism: tasks that run at a time.
    :param until: ISO time of the request: later schema changes stay for later batches; None takes all there are.
    :param cut_at: ISO time at which a larger request was cut, in place of ``until``: other batches of it follow.
    :param session: Spark was started with the jars that the Spark reader and the Spark writer need.
    :param spark_reaches_sink: Spark is known to reach the tables, so that ``writer: auto`` may choose its writer.
    :param start: first offsets of the batch's range by topic and partition (``offsets_document``).
    :param end: offsets after the last, exclusive.
    :param topics: Kafka's id of each topic in the range, as far as the brokers give one.
    :param ledger: id of the ledger that planned the batch; empty where there is none.
    :param fingerprint: digest of the configuration that decides what tables become.
    :param recreated: topics that were deleted and made again since the batch was planned; they cannot be landed.
    :param clocks: of formats without positions the clocks of partitions after the batch before (topic, partition, tool
        time, source time); the Spark side takes them from the lake.
    :param begins: where generations of the source's log began in the batches before (``generations.Begin``); the Spark
        side takes them from the lake.
    :param marks: of formats with positions the newest position that each ``topic/partition`` has shown, this batch
        included; the Spark side takes them from the lake.
    :param last_records: ``topic/partition`` -> last record of the batches before (``LandReport``); the Spark side takes
        them from the lake.
    :param new_generation: ``topic/partition:offset`` of the record with which a generation may begin; empty for none.
    :param reader: where tasks read records: ``kafka``, or ``segments`` of the lake.
    :param replay: rows that the batch takes again, in addition to its records.
    :param rebuild: tables that the batch rebuilds.
    :param decision: what an operator decided about quarantined records; the batch carries it out.
    :param approval: what an operator decided about a schema change (document of ``AskedChange``).
    :param scratch: local folder that takes all that the job writes: it only shows what the batch would do.
    :param maintenance: the job only maintains the tables in ``states``.
    :param look: the job only reads the quarantine of the batches ``earlier``.
    :param lake: the lake that the ledger remembers, None for none; the Spark side takes it from the lake.
    :param adopts: the job only lets the lake at the root be the pipeline's.
    :param named_roots: roots that table states of earlier releases name; now they name places below the root.
    """

    pipeline: str
    seq: int
    created_at: str
    sink_root: str
    format: str
    format_options: dict[str, str]
    schema_topic: str | None
    kafka: dict[str, Any]
    chunks: list[OffsetRange]
    policy: RunPolicy
    tables: TableRules
    earlier: list[int]
    schema_changes: list[dict[str, Any]]
    states: list[TableState]
    storage: dict[str, str] = field(default_factory=dict)
    parallelism: int = 2
    session: bool = False
    spark_reaches_sink: bool = False
    until: str | None = None
    cut_at: str | None = None
    start: dict[str, dict[str, int]] = field(default_factory=dict)
    end: dict[str, dict[str, int]] = field(default_factory=dict)
    topics: dict[str, str] = field(default_factory=dict)
    ledger: str = ""
    fingerprint: str = ""
    recreated: list[str] = field(default_factory=list)
    clocks: list[list[Any]] = field(default_factory=list)
    begins: list[list[Any]] = field(default_factory=list)
    marks: dict[str, str] = field(default_factory=dict)
    last_records: dict[str, list[Any]] = field(default_factory=dict)
    new_generation: str = ""
    reader: str = "kafka"
    replay: Replay | None = None
    rebuild: Rebuild | None = None
    decision: Decision | None = None
    approval: dict[str, Any] | None = None
    look: Look | None = None
    maintenance: Maintenance | None = None
    scratch: str = ""
    named_roots: list[str] = field(default_factory=list)
    lake: LakeIdentity | None = None
    adopts: bool = False
    version: int = DOCUMENT_VERSION

    def __post_init__(self) -> None:
        self.sink_root = canonical_root(self.sink_root)

    @property
    def on_s3(self) -> bool:
        """True when the tables are on S3."""
        return self.sink_root.startswith("s3://")

    def at(self, path: str) -> str:
        """Return where a place of the lake lies, empty for no place."""
        return located(self.sink_root, path)

    def for_tasks(self) -> JobDocument:
        """Return the job as tasks get it: what only the driver reads grows with the tables and batches there are."""
        return replace(self, states=[], schema_changes=[], earlier=[])

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            **shallow_document(self),
            "chunks": [shallow_document(chunk) for chunk in self.chunks],
            "policy": self.policy.document(),
            "tables": self.tables.document(),
            "states": [state.document() for state in self.states],
            **{name: None if item is None else shallow_document(item) for name, item in self._orders()},
        }

    def _orders(self) -> list[tuple[str, Any]]:
        """Return what the job is to do instead of, or in addition to, reading records."""
        names = ("replay", "rebuild", "decision", "look", "maintenance", "lake")
        return [(name, getattr(self, name)) for name in names]

    @staticmethod
    def from_document(data: dict[str, Any]) -> JobDocument:
        """Rebuild from :meth:`document`.

        :raises ValueError: written by another version of this package.
        """
        if data.get("version") != DOCUMENT_VERSION:
            raise ValueError(f"job document version {data.get('version')}, this side knows {DOCUMENT_VERSION}")
        typed: dict[str, Any] = {
            "chunks": [OffsetRange(**chunk) for chunk in data["chunks"]],
            "policy": RunPolicy(**data["policy"]),
            "tables": TableRules.from_document(data["tables"]),
            "states": [TableState.from_document(state) for state in data["states"]],
            "named_roots": sorted({*data.get("named_roots", ()), *named_roots(data["states"])}),
            "replay": Replay(**data["replay"]) if data.get("replay") is not None else None,
            "rebuild": Rebuild.from_document(data["rebuild"]) if data.get("rebuild") is not None else None,
            "decision": Decision.from_document(data["decision"]) if data.get("decision") is not None else None,
            "look": Look(**data["look"]) if data.get("look") is not None else None,
            "maintenance": Maintenance(**data["maintenance"]) if data.get("maintenance") is not None else None,
            "lake": LakeIdentity.from_document(data["lake"]) if data.get("lake") is not None else None,
        }
        return JobDocument(**{**data, **typed})


@dataclass(slots=True)
class TableLine:
    """One table's part in a batch, for people.

    :param status: how its task ended.
    :param action: kind of commit, empty where the rows did not change.
    :param files: of a preview the files of the table that the commit would write again, with ``file_bytes``.
    :param writer: who commits, ``task`` or ``spark``; empty without a commit.
    :param writer_reason: why it is that writer.
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


@dataclass(slots=True)
class Result:
    """Result of a batch.

    :param status: of ``behind`` the ledger has to take over ``lake_batches`` first.
    :param changes: row changes by operation.
    :param schema_changes: number of DDL records that were new.
    :param quarantined: records and rows that could not be carried.
    :param states: of the tables this batch touched.
    :param error: why the batch failed; ``Transient`` where the same batch may succeed later.
    :param new_schema_changes: documents for the ledger.
    :param deferred: schema changes that were read already but are later than the request.
    :param new_generations: ``topic/partition:offset`` of the first record of each generation that was approved with
        this batch.
    :param asked_changes: schema changes that the batch asks about or decides (documents of ``AskedChange``).
    :param replayed: the batch took the rows again that its job names, rebuilt its tables, or carried out its decision
        or approval.
    :param fingerprint: digest of the configuration that the batch was carried out with.
    :param row_changes: of a preview the row changes by ``database.table`` and operation.
    :param unfit: of a preview the rows that do not fit: table, topic, partition, offset, column, reason.
    :param maintained: of a job that only maintains the tables: each of them.
    :param expired: of a job that only removes rows from the change log: what it removed.
    :param entries: of a job that only reads the quarantine: all of it.
    :param lake: the lake that the batch was written to, or that was adopted; None where an earlier release wrote it.
    :param lake_batches: batches of the lake that the ledger does not know: ``seq``, ``claim`` and ``result`` of each;
        ``folded`` where one stands for all batches up to it. Of a job that shortens the change log only that one.
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
    entries: list[QuarantineEntry] = field(default_factory=list)
    row_changes: dict[str, dict[str, int]] = field(default_factory=dict)
    unfit: list[dict[str, Any]] = field(default_factory=list)
    maintained: list[TableMaintenance] = field(default_factory=list)
    expired: ExpiredLog = field(default_factory=ExpiredLog)
    fingerprint: str = ""
    lake: LakeIdentity | None = None
    version: int = DOCUMENT_VERSION

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            **shallow_document(self),
            "states": [state.document() for state in self.states],
            "tables": [shallow_document(line) for line in self.tables],
            "entries": [shallow_document(entry) for entry in self.entries],
            "maintained": [shallow_document(table) for table in self.maintained],
            "expired": shallow_document(self.expired),
            "lake": None if self.lake is None else self.lake.document(),
            "error": None if self.error is None else self.error.document(),
            "transient": isinstance(self.error, Transient),
        }

    @staticmethod
    def from_document(data: Mapping[str, Any]) -> Result:
        """Rebuild from :meth:`document`; other members are left out."""
        typed: dict[str, Any] = {
            "status": ResultStatus(data["status"]),
            "states": [TableState.from_document(state) for state in data.get("states", ())],
            "tables": [TableLine(**line) for line in data.get("tables", ())],
            "entries": [QuarantineEntry(**entry) for entry in data.get("entries", ())],
            "maintained": [TableMaintenance(**table) for table in data.get("maintained", ())],
            "expired": ExpiredLog(**data.get("expired", {})),
            "lake": LakeIdentity.from_document(data["lake"]) if data.get("lake") is not None else None,
        }
        if data.get("error") is not None:
            kind = UnavailableError if data.get("transient") else DataError
            typed["error"] = kind.from_document(data["error"])
        return Result(**{**known_members(Result, data), **typed})


def shallow_document(item: Any) -> dict[str, Any]:
    """Return the fields of a dataclass whose values are plain JSON data; unlike ``asdict`` it copies none of them."""
    return {field.name: getattr(item, field.name) for field in fields(item)}


def known_members(kind: type[Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a document that are fields of a dataclass."""
    return {item.name: data[item.name] for item in fields(kind) if item.name in data}
