# SPDX-License-Identifier: Apache-2.0
"""Define the task of applying one table, and its report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from airflow_provider_cdc.core.apply.contradictions import Findings
from airflow_provider_cdc.core.documents import Difference, TableState
from airflow_provider_cdc.core.errors import CdcError, Transient
from airflow_provider_cdc.core.model.status import ApplyStatus
from spark_jobs.lake.manifest import RowGroup, Settled
from spark_jobs.sinks.commits import Choice
from spark_jobs.sinks.contract import WrittenRows


@dataclass(slots=True)
class Span:
    """Row groups of one name and the positions in them that mean this table: half-open, ``end`` None is open.

    :param others: spans in which the name meant other tables, if they begin or end in one instant with this one.
    :param older: other row groups of the name that the rows may repeat, where no position shows that.
    :param late: the same, but not applied yet, while the rows are: they may have been applied as new ones.
    """

    groups: list[RowGroup]
    start: str
    end: str | None
    others: list[tuple[str, str | None]] = field(default_factory=list)
    older: list[RowGroup] = field(default_factory=list)
    late: list[RowGroup] = field(default_factory=list)


@dataclass(slots=True)
class ParentTable:
    """A table that a foreign key refers to, and its changes that may have changed rows by it without row events.

    :param reference: the foreign key, as on the timeline.
    :param timeline: the parent's.
    :param spans: the parent's changes that the table was not compared with yet.
    :param earlier: those that it was compared with, and that rows arriving late have to be compared with again.
    """

    reference: list[Any]
    timeline: dict[str, Any]
    spans: list[Span]
    earlier: list[Span]


@dataclass(slots=True)
class ApplyTask:
    """Everything that applying one table needs.

    :param base: state whose rows the result starts from, None to start from nothing.
    :param expected: version that the target location has if nobody else wrote, None when nothing of ours lies there.
    :param spans: the changes to resolve.
    :param context: changes applied before that rows arriving late have to be compared with.
    :param late_from: oldest position among the late rows, None without any.
    :param snapshot_position: where the snapshot stands that the content begins with, empty if it begins with the table.
    :param snapshot_sent: rows of that snapshot that Kafka got before this time, in milliseconds, are of one that broke
        off at the same position.
    :param snapshots: position and Kafka's time, as ``snapshot_position`` and ``snapshot_sent``, of later full snapshots
        among the changes, of a table that keeps what they lack.
    :param snapshot_again: whether a snapshot began several times at the position of some rows (``Start.again``).
    :param rewind_to: position that the table had to go back behind, None without a late schema change.
    :param parents: tables whose deletes may have changed rows of this one without row events.
    :param settled: records of which operators decided that what was landed of them counts no more.
    :param left_out: rows that the base lacks because they do not fit.
    :param unread: records that could not be decoded, wait for a decision and may be of the table.
    :param discarded: records of the table that operators discarded.
    :param rebuilt_seq: batch that last rebuilt the table, this one included, 0 for none.
    :param applied_seq: newest batch that the table holds as far as the driver knows; the table itself knows better.
    :param whole: whether the table cannot be split by key.
    :param provided: state (document) of the operator's files that the content begins with, None without.
    :param made_with: options that rows are made with now (``stored_layout.MadeWith``).
    """

    table_id: str
    database: str
    table: str
    location: str
    timeline: dict[str, Any]
    base: TableState | None
    expected: int | None
    spans: list[Span]
    context: list[Span] = field(default_factory=list)
    late_from: str | None = None
    rewind_to: str | None = None
    parents: list[ParentTable] = field(default_factory=list)
    applied_seq: int = 0
    snapshot_position: str = ""
    snapshot_sent: int = 0
    settled: list[Settled] = field(default_factory=list)
    rebuilt_seq: int = 0
    whole: bool = False
    provided: dict[str, Any] | None = None
    made_with: dict[str, str] | None = None
    left_out: int = 0
    unread: int = 0
    discarded: int = 0
    snapshot_again: str = ""
    snapshots: list[tuple[str, int]] = field(default_factory=list)

    @property
    def every_snapshot(self) -> list[tuple[str, int]]:
        """Return the full snapshots that count: first the one that the content begins with."""
        return [(self.snapshot_position, self.snapshot_sent), *self.snapshots]

    @property
    def has_moved(self) -> bool:
        """Return whether the rows that the result starts from are not those that lie at the location now."""
        base = self.base
        return base is not None and (base.location, base.version) != (self.location, self.expected)

    @property
    def begins_with_files(self) -> bool:
        """Return whether the rows that the result starts from are those of the operator's files."""
        return self.base is not None and self.provided is not None and self.base.location == self.provided["location"]

    def replayed(self, *kinds: str) -> set[str]:
        """Return the files with what operators replayed from the quarantine since the base was made.

        :param kinds: as of ``QuarantineEntry``.
        """
        base = self.base
        since = [] if base is None else [one for one in self.settled if one.seq > base.applied_seq]
        return {file for one in since if one.kind in kinds for file in one.files}

    @property
    def lacking(self) -> int:
        """Records that the base may lack: they wait in the quarantine, or were discarded."""
        return self.left_out + self.unread + self.discarded

    @property
    def rows(self) -> int:
        """Rows to resolve, for balancing."""
        return sum(group.rows for span in (*self.spans, *self.context) for group in span.groups)

    @property
    def image_bytes(self) -> int:
        """Bytes of the images of the changes to resolve."""
        return sum(group.image_bytes for span in self.spans for group in span.groups)


@dataclass(slots=True)
class TablePart:
    """A part of the changes of a table that is split by key.

    :param task: of the table, with the part's spans alone.
    :param number: of the part, from 0.
    :param buckets: number of key buckets.
    :param cleared: position of the newest TRUNCATE, None without any: older changes count no more.
    """

    task: ApplyTask
    number: int
    buckets: int
    cleared: str | None


@dataclass(slots=True)
class PartResult:
    """Name the files a task of a split table wrote for the tasks that follow.

    :param events: file of key events, a batch for each bucket.
    :param changes: changes by operation.
    :param newest: file with the numbers of the rows to write, a batch for each part.
    :param doubtful: file with the changes of keys in doubt, where a clock orders them, a batch for each part.
    :param doubtful_rows: their number.
    :param released: of a table without key the same of the changes that take a stored row away.
    :param removed: file with the keys whose row is gone, of a table without key with the rows.
    :param removed_until: of a table without key the position of the newest change that removed one of them.
    :param cancelled: rows of a table without key that were added and removed by these changes.
    :param rows: rows that were written.
    """

    events: str = ""
    changes: dict[str, int] = field(default_factory=dict)
    newest: str = ""
    doubtful: str = ""
    doubtful_rows: int = 0
    released: str = ""
    removed: str = ""
    removed_until: str = ""
    cancelled: int = 0
    rows: WrittenRows = field(default_factory=WrittenRows)


@dataclass(slots=True)
class ApplyReport:
    """Result of applying one table.

    :param failures: rows that were left out.
    :param refused: rows that do not fit and park the table, the first of them.
    :param rewind_to: position that the table has to go back behind first, where the status is ``rewind``.
    :param files: of a preview the files of the table that the commit would write again, with ``file_bytes``.
    :param added_bytes: of the files that the commit added.
    :param choice: writer of the commit; what the driver commits is only staged. None without a commit.
    :param part: of a task that has a part or a bucket of a table, if nothing went wrong.
    :param state: of the table after it; of ``ahead`` the state that the table's own commit states.
    :param together: the commit was made with those of the other tables.
    :param findings: what comparing the changes with the rows that they found gave.
    :param differences: of a comparison the first rows that differ.
    """

    table_id: str
    status: ApplyStatus
    version: int | None = None
    upserts: int = 0
    deletes: int = 0
    reason: str = ""
    error: CdcError | None = None
    failures: list[dict[str, Any]] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)
    lossy: dict[str, int] = field(default_factory=dict)
    action: str = ""
    seconds: float = 0.0
    rewind_to: str | None = None
    state: TableState | None = None
    files: int = 0
    file_bytes: int = 0
    choice: Choice | None = None
    part: PartResult | None = None
    together: bool = False
    findings: Findings = field(default_factory=Findings)
    differences: list[Difference] = field(default_factory=list)
    added_bytes: int = 0

    @property
    def is_staged(self) -> bool:
        """Return whether the driver is to commit what the task staged."""
        return self.status == ApplyStatus.COMMITTED and self.choice is not None and self.version is None

    def fail(self, error: CdcError) -> None:
        """Report an error: the batch should run again if it is ``Transient``, else the table is parked."""
        self.status = ApplyStatus.UNAVAILABLE if isinstance(error, Transient) else ApplyStatus.PARKED
        self.reason, self.error = str(error), error
