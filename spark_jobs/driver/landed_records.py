# SPDX-License-Identifier: Apache-2.0
"""Read what tells the logs of landed records apart: a few columns, a row group at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA
from spark_jobs.lake.manifest import LandReport, RowGroup
from spark_jobs.lake.row_groups import SharedRowGroups, read_groups
from spark_jobs.lake.storage import Storage
from spark_jobs.lake.stretches import RECORD_COLUMNS, Stretch, record_documents

_RECORDS = pa.schema([CHANGE_SCHEMA.field(name) for name in RECORD_COLUMNS])
_AT_ONCE = 10_000  # records as objects


class LandedRecords:
    """Read landed records in offset order, some at a time: as objects they are far larger than their rows.

    :param reports: what was landed.
    """

    def __init__(self, reports: Sequence[LandReport], storage: Storage) -> None:
        self._reports = reports
        self._storage = storage
        # rows of a file -> partition -> its first and last offset: nothing is read twice that has none of a partition
        self._spans: dict[tuple[str, int, int], dict[str, tuple[int, int]]] = {}
        self._latest = SharedRowGroups()  # stretches that follow each other lie in the same row groups

    def between(self, partition_key: str, start: int, end: int, low: str, below: str) -> Iterator[dict[str, Any]]:
        """Yield the records of a partition.

        :param start: first offset, ``end`` the last.
        :param low: row groups whose positions are all lower are left out.
        :param below: records with a higher position are left out.
        """
        topic, _, partition = partition_key.rpartition("/")
        mine = (pc.field("topic") == topic) & (pc.field("partition") == int(partition))
        mine &= (pc.field("offset") >= start) & (pc.field("offset") <= end) & (pc.field("position") <= below)
        groups = self._groups(partition_key, start, end, low, below)
        tables = [table for one in chain([self._statements], groups) if (table := one.filter(mine)).num_rows]
        if tables:
            records = pa.concat_tables(tables).sort_by([("offset", "ascending"), ("index", "ascending")])
            for batch in records.to_batches(max_chunksize=_AT_ONCE):
                yield from record_documents(pa.Table.from_batches([batch]))

    @cached_property
    def _statements(self) -> pa.Table:
        statements = [one for report in self._reports for one in report.statements if not one["describes"]]
        return pa.Table.from_pylist(statements, _RECORDS)

    def _groups(self, partition_key: str, start: int, end: int, low: str, below: str) -> Iterator[pa.Table]:
        for group in (group for report in self._reports for group in report.groups):
            if not group.database or group.min_position > below or group.max_position < low:
                continue
            spans = self._spans.get(group.origin)
            first, last = (start, end) if spans is None else spans.get(partition_key, (end + 1, end + 1))
            if first <= end and last >= start:
                yield self._rows(group)

    def _rows(self, group: RowGroup) -> pa.Table:
        rows = self._latest.rows(group.origin)
        if rows is None:
            rows = read_groups(self._storage, [group], RECORD_COLUMNS).cast(_RECORDS)
            self._latest.add(group.origin, rows)
            self._spans.setdefault(group.origin, _offsets(rows))
        return rows


def _offsets(records: pa.Table) -> dict[str, tuple[int, int]]:
    """Return the first and the last offset of each partition."""
    grouped = records.group_by(["topic", "partition"], use_threads=False)
    spans = grouped.aggregate([("offset", "min"), ("offset", "max")]).to_pylist()
    return {f"{one['topic']}/{one['partition']}": (one["offset_min"], one["offset_max"]) for one in spans}


def windows_of(stretches: Iterable[Stretch], start: int) -> list[tuple[int, int]]:
    """Return the offsets from which to which stretches reach, those that overlap as one.

    :param start: first offset that is asked for.
    """
    windows: list[tuple[int, int]] = []
    for stretch in sorted(stretches, key=lambda stretch: stretch.start):
        first, last = max(stretch.start, start), stretch.end
        if windows and first <= windows[-1][1]:
            windows[-1] = windows[-1][0], max(windows[-1][1], last)
        elif first <= last:
            windows.append((first, last))
    return windows


def columns_between(landed: LandReport, storage: Storage, low: str, high: str) -> Iterator[pa.Table]:
    """Yield :data:`RECORD_COLUMNS` of a batch, a row group at a time, those without records in a span left out.

    :param low: lowest position of the span, ``high`` the highest.
    """
    streamed = [record for record in landed.statements if not record["describes"]]
    if streamed:
        yield pa.Table.from_pylist(streamed, _RECORDS)
    for _, groups in groupby(landed.groups, key=lambda group: (group.file, group.row_group)):
        there = [one for one in groups if one.database and one.min_position <= high and one.max_position >= low]
        if there:
            yield read_groups(storage, there, RECORD_COLUMNS).cast(_RECORDS)


def each_partition(records: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Yield the records of each partition."""
    keys = records.group_by(["topic", "partition"], use_threads=False).aggregate([]).to_pylist()
    for key in keys:
        mine = records
        if len(keys) > 1:
            mine = records.filter((pc.field("topic") == key["topic"]) & (pc.field("partition") == key["partition"]))
        yield f"{key['topic']}/{key['partition']}", mine


def records_inside(records: pa.Table, stretch: Stretch) -> pa.Table:
    """Return the records of a stretch's partition that lie in it."""
    return records.filter((pc.field("offset") >= stretch.start) & (pc.field("offset") <= stretch.end))
