# SPDX-License-Identifier: Apache-2.0
"""The result of a batch as the lake has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from airflow_provider_cdc.core.documents import Result
from airflow_provider_cdc.core.plain_data import Document, from_plain, to_plain


@dataclass(slots=True)
class UnfitRow(Document):
    """A row that does not fit its columns.

    :param reason: why, as ``core/values`` names it.
    :param parked: the table is parked for it; else the row was left out.
    """

    table_id: str
    database: str
    table: str
    topic: str
    partition: int
    offset: int
    column: str
    reason: str
    parked: bool

    def entry(self) -> dict[str, Any]:
        """Return what a batch's result names of it: place, table, column and reason."""
        return {name: value for name, value in self.document().items() if name not in ("table_id", "parked")}

    @property
    def record(self) -> tuple[str, int, int]:
        """Topic, partition and offset."""
        return self.topic, self.partition, self.offset


@dataclass(slots=True)
class StoredResult(Document):
    """The result of a batch in the lake, with facts that only later batches need.

    :param newest_source_time: of the rows of this batch and all before, microseconds since the epoch.
    :param max_position: newest position of this batch and all before.
    :param clocks: clocks of partitions at their ends.
    :param source_log: the source's log after the batch (document of ``SourceLog``).
    :param unfit: rows of this batch that do not fit their columns.
    :param settled: documents of the quarantined records that this batch and all before settled (``Settled``).
    :param asked: documents of the schema changes that this batch and all before asked about (``AskedChange``).
    :param unreadable: documents of the undecodable records of this batch and all before that no operator settled
        (``Unreadable``).
    :param log_names: names of the logs that records of this batch and all before are of -> first record.
    :param last_records: of this batch and all before (``LandReport``).
    :param left_out: batch and row of the rows that tables lack because they do not fit, without those that an operator
        settled.
    :param topics: database and table of the tables whose rows this batch and all before had, by ``topic/partition``.
    :param name_options: options of the source that decided names of tables.
    :param commits: document of ``OpenCommits``: transactions that lack changes so far.
    :param target_rules: rules of ``target`` of this batch.
    :param formats: number of each batch from which on ``source.format`` was another one, with it.
    """

    result: Result
    newest_source_time: int | None = None
    max_position: str = ""
    clocks: list[list[Any]] = field(default_factory=list)
    source_log: list[dict[str, Any]] = field(default_factory=list)
    unfit: list[UnfitRow] = field(default_factory=list)
    settled: list[dict[str, Any]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    unreadable: list[dict[str, Any]] = field(default_factory=list)
    log_names: dict[str, str] = field(default_factory=dict)
    last_records: dict[str, list[Any]] = field(default_factory=dict)
    left_out: list[tuple[int, UnfitRow]] = field(default_factory=list)
    topics: dict[str, list[list[str]]] = field(default_factory=dict)
    name_options: dict[str, str] = field(default_factory=dict)
    formats: list[list[Any]] = field(default_factory=list)
    commits: dict[str, Any] = field(default_factory=dict)
    target_rules: list[dict[str, str]] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """Return plain JSON data: the members of the result, and next to them its own."""
        own = to_plain(self)
        return {**own.pop("result"), **own}

    @classmethod
    def from_document(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from :meth:`document`."""
        return from_plain(cls, {**data, "result": data})
