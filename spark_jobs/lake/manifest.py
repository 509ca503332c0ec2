# SPDX-License-Identifier: Apache-2.0
"""Documents of the change log: what a land task reports, and the manifest that makes a batch of the log visible."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_provider_cdc.core.plain_data import Document
from spark_jobs.lake.layout import batch_of


@dataclass(slots=True)
class RowGroup(Document):
    """One table's rows in one file: a row group, or a part of one, and the span of positions in it.

    :param start: first of its rows in the row group, which small tables share.
    """

    file: str
    row_group: int
    database: str
    table: str
    rows: int
    min_position: str
    max_position: str
    max_source_time: int | None
    clears: list[str] = field(default_factory=list)  # positions of truncates
    removals: int = 0  # deletes and updates: what may take a value away that other tables refer to
    # where rows of a snapshot share a position: that, and Kafka's time of the newest of them, in milliseconds
    snapshots: list[tuple[str, int]] = field(default_factory=list)
    changes_from: str | None = ""  # there: position of the first row that is of no snapshot, None without any
    image_bytes: int = 0  # of the rows' images in memory
    before_bytes: int = 0  # of those before the changes
    # by operation which images its rows have, None where that is not known: then the images have to be read
    images_of: dict[str, list[str]] | None = None
    min_source_time: int | None = None
    start: int = 0
    loaded_until: int = 0  # Kafka's time of the newest row of a full load without a place in the log, milliseconds
    unlogged: list[str] = field(default_factory=list)  # patterns of columns that its rows have no values of

    @property
    def origin(self) -> tuple[str, int, int]:
        """Identify the rows: file, row group, and the first row in it."""
        return self.file, self.row_group, self.start


@dataclass(slots=True)
class Unreadable(Document):
    """Records of one table that could not be decoded; without names those of a partition whose table is unknown.

    :param count: how many there are; names, place and error are those of the first.
    :param seq: batch that has them; 0 in that batch's own manifest.
    :param sent: Kafka's times of the first and the last one, in milliseconds; empty where that is not known.
    :param between: positions that they stand between; empty in that manifest, and where nothing shows that.
    :param behind_rows: whether a row stands before them in their partition; False in that manifest.
    """

    database: str
    table: str
    topic: str
    partition: int
    offset: int
    error_code: str
    error: str
    count: int = 1
    seq: int = 0
    sent: list[int] = field(default_factory=list)
    between: list[str] = field(default_factory=list)
    behind_rows: bool = False

    @property
    def counted_with(self) -> tuple[Any, ...]:
        """Return what records count together by."""
        return _counted_with(self)


@dataclass(slots=True)
class Settled(Document):
    """A quarantined record that an operator replayed or discarded: what was landed of it counts no more.

    :param kind: ``record`` or ``row``, as of ``QuarantineEntry``.
    :param of: batch that has it.
    :param seq: batch that carried the decision out.
    :param files: files with what was decoded of it again.
    :param rows_stay: whether what was landed of it still counts: only lost records before it were discarded.
    """

    kind: str
    of: int
    seq: int
    topic: str
    partition: int
    offset: int
    database: str
    table: str
    action: str
    by: str
    why: str
    at: str
    files: list[str] = field(default_factory=list)
    rows_stay: bool = False

    @property
    def record(self) -> tuple[str, int, int]:
        """Topic, partition and offset."""
        return self.topic, self.partition, self.offset

    @property
    def counted_with(self) -> tuple[Any, ...]:
        """Return ``Unreadable.counted_with`` of the record."""
        return _counted_with(self)

    def counts_no_more(self, file: str) -> bool:
        """Return whether what a file of the change log has of the record is replaced; a later batch may have another.

        A topic that is made again has other records at the same offsets.
        """
        return not self.rows_stay and batch_of(file) <= self.seq and file not in self.files


def _counted_with(item: Unreadable | Settled) -> tuple[Any, ...]:
    """Return the names of a record's table, or its partition where the table is unknown."""
    return (item.database, item.table) if item.table else ("", "", item.topic, item.partition)


def merged(first: Iterable[Unreadable], second: Iterable[Unreadable]) -> list[Unreadable]:
    """Return unreadable records by table; of each table the first one stays the first."""
    by_mark: dict[tuple[Any, ...], Unreadable] = {}
    for item in (*first, *second):
        known = by_mark.get(item.counted_with)
        if known is None:
            by_mark[item.counted_with] = replace(item)
            continue
        if (item.topic, item.partition) == (known.topic, known.partition):
            known.offset = min(known.offset, item.offset)
        known.count += item.count
        known.sent = _span(known.sent, item.sent)
    return list(by_mark.values())


def _span(one: list[int], other: list[int]) -> list[int]:
    """Return the first and the last of two spans; empty where one is not known."""
    return [min(one[0], other[0]), max(one[1], other[1])] if one and other else []


@dataclass(slots=True)
class LandReport(Document):
    """Rows, schema changes and other facts that landing read: of one task, or of a whole batch.

    :param groups: row groups of the change log.
    :param unreadable: undecodable records by table.
    :param changes: number of changes by kind, rows by ``row.<op>``.
    :param schema_changes: documents of the DDL records.
    :param progress: newest progress mark, microseconds since the epoch.
    :param errors: code, table and offset of the first undecodable records.
    :param descriptions: column descriptions that rows carry, with the first and last position of each, if nothing else
        gives the tables' structure.
    :param clocks: clocks of partitions at their ends, in formats without positions (topic, partition, tool time, source
        time).
    :param stretches: facts about the source's log (documents of ``Stretch``); ``statements`` its DDL records.
    :param log_names: names of the logs that records are of -> first record (``topic/partition:offset``).
    :param last_records: ``topic/partition`` -> offset of the last record, and the marks of deletes among the last.
    :param commits: of formats that count the changes of transactions: id, first number of the positions behind it, and
        changes by table. None where a task has too many.
    :param topics: by ``topic/partition`` database and table of the first tables whose rows it had, and the offset of
        the first row of each.
    """

    groups: list[RowGroup] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    records: int = 0
    changes: dict[str, int] = field(default_factory=dict)
    schema_changes: list[dict[str, Any]] = field(default_factory=list)
    progress: int | None = None
    errors: list[dict[str, Any]] = field(default_factory=list)
    descriptions: list[dict[str, Any]] = field(default_factory=list)
    clocks: list[list[Any]] = field(default_factory=list)
    stretches: list[dict[str, Any]] = field(default_factory=list)
    statements: list[dict[str, Any]] = field(default_factory=list)
    log_names: dict[str, str] = field(default_factory=dict)
    last_records: dict[str, list[Any]] = field(default_factory=dict)
    topics: dict[str, list[tuple[str, str, int]]] = field(default_factory=dict)
    commits: list[tuple[str, int, dict[str, int]]] | None = field(default_factory=list)


@dataclass(slots=True)
class Manifest(LandReport):
    """Make a batch of the change log visible: all that the batch landed.

    :param begins: generations of the source's log that begin in the batch (``generations.Begin``).
    :param restated: schema changes of earlier batches that belong to a generation which begins in this one.
    :param new_generations: ``topic/partition:offset`` of the first record of each generation that was approved.
    :param settled: quarantined records that the batch replays or discards.
    :param approvals: what operators decided with the batch about schema changes (documents of ``AskedChange``).
    :param landed_with: digest of what decides how records are decoded.
    :param course: of a batch with records of unknown tables: ``refused``, nothing of it was applied yet, or ``begun``.
    :param target_rules: rules of ``target`` with which attempts at the batch were made, in their order; none for one
        without any.
    """

    seq: int = 0
    begins: list[list[Any]] = field(default_factory=list)
    restated: list[dict[str, Any]] = field(default_factory=list)
    new_generations: list[str] = field(default_factory=list)
    settled: list[Settled] = field(default_factory=list)
    approvals: list[dict[str, Any]] = field(default_factory=list)
    landed_with: str = ""
    course: str = ""
    target_rules: list[list[dict[str, str]]] = field(default_factory=list)
