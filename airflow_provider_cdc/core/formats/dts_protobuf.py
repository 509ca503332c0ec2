"""Tencent Cloud DTS, data subscription in Kafka, protobuf: slices, entries and all their events.

Messages, headers and rules: specs/tencent-dts.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats import dts_columns
from airflow_provider_cdc.core.formats.change_columns import RAW_LIMIT, ChangeColumns
from airflow_provider_cdc.core.formats.contract import Description, Headers, Part, Progress, Records
from airflow_provider_cdc.core.formats.dts_changes import Changes
from airflow_provider_cdc.core.formats.dts_columns import ColumnLists
from airflow_provider_cdc.core.formats.generated.dts_pb2 import Entries, Envelope, MessageType
from airflow_provider_cdc.core.formats.groups import Group, Groups
from airflow_provider_cdc.core.formats.protobuf_reader import MessageReader
from airflow_provider_cdc.core.model.encoding import Encoded
from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema
from airflow_provider_cdc.core.values.zones import is_zone

_VERSION = 1
_UTC = ("UTC", "Etc/UTC", "+00:00")
_FIELDS = {
    "Header": ("messageType", "timestamp", "gtid", "schemaName", "tableName", "seqId"),
    "RowChange": ("oldColumns", "newColumns"),
}


class WireFormat:
    """``dts-protobuf``: rows, DDL, checkpoints, heartbeats and transaction marks of a DTS subscription."""

    name = "dts-protobuf"
    summary = "Tencent Cloud DTS data subscription, protobuf (MySQL, TDSQL-C, MariaDB, Percona, TDSQL MySQL)"
    order = "exact"
    carries = frozenset({"rows", "ddl", "progress", "transactions", "types"})
    updates_move_keys = True
    ddl_among_rows = True
    splits_partitions = False  # slices of a group, and numbers that are to follow each other
    partial_images = True  # NA: the row event does not have the column, an update did not change it (sheet 3)
    options: Mapping[str, str] = {
        "timezone": "time zone of TIMESTAMP values: a name or an offset (default UTC, as DTS was seen to write)"
    }

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        zone = (options or {}).get("timezone", "UTC")
        if not is_zone(zone):
            raise ConfigurationError([f"source.options.timezone: {zone!r} is no time zone"])
        self._zone = None if zone in _UTC else zone
        self._lists = ColumnLists()
        self._envelopes, self._entries = MessageReader(Envelope), MessageReader(Entries, _FIELDS)

    def part_of(self, value: bytes | None, headers: Headers) -> Part | None:
        """Return which slice of which sender's group a record is."""
        try:
            envelope = Envelope.FromString(value or b"")
        except DecodeError:
            return None
        part = _part(envelope.version, envelope.index, envelope.total, _sender(headers))
        return part if isinstance(part, Part) else None

    def decode(self, records: Records) -> pa.RecordBatch:
        """Return the changes of these records; those of a group of slices stand with its last one."""
        out = ChangeColumns(self._lists.texts)
        slices = _Slices(records, self._envelopes, out)
        entries, malformed = self._entries.read(slices.joined())
        changes = Changes(entries.column("items"), self._lists, utc=self._zone is None)
        sizes = changes.sizes(len(slices.wholes))
        for group in np.flatnonzero(sizes == 0).tolist():
            text = "no DTS entries" if malformed[group] else "an envelope without entries"
            slices.refuse(group, 0, "record.malformed", text)
        for group, number, problem in changes.problems():
            slices.refuse(group, number, *problem)
        slices.tell_lost(np.maximum(sizes, 1))
        batch = changes.batch(records, slices.wholes)
        return _merged(batch, out.batch(records)) if out.changes else batch

    def progress_of(self, topic: str, key: bytes | None, value: bytes | None) -> Progress | None:
        """Return the oldest time of a record's events, or that of a heartbeat or checkpoint; nothing for a slice.

        What is older than the oldest event was sent before the record, while the newest may come after others in it.
        """
        try:
            envelope = Envelope.FromString(value or b"")
            if envelope.version != _VERSION or envelope.total > 1:
                return None
            headers = [item.header for item in Entries.FromString(envelope.data).items]
        except DecodeError:
            return None
        times: dict[bool, list[int]] = {True: [], False: []}
        for header in headers:
            if header.timestamp:
                beat = header.messageType in (MessageType.HEARTBEAT, MessageType.CHECKPOINT)
                times[beat].append(header.timestamp * 1000)
        if times[False]:
            return Progress(min(times[False]), heartbeat=False)
        return Progress(max(times[True]), heartbeat=True) if times[True] else None

    def describe(self, columns: str) -> Description:
        """Read the ``columns`` text of a change."""
        return dts_columns.describe(columns)

    def encoding_of(self, name: str, column: ColumnType, description: Description | None) -> Encoded:
        """Return how a column stands in the images, by the type that the record states or the source's."""
        return dts_columns.encoding_of(name, column, description, self._zone)

    def structure(self, table_changes: str) -> list[tuple[str, str, TableSchema | None]]:
        """Return nothing: DDL comes as statements only."""
        return []

    def infer(self, description: Description) -> TableSchema | None:
        """Return a schema made from the types that the record states."""
        return dts_columns.infer(description)


class _Slices:
    """The slices of some records, put together; what is no part of a whole group is told at once.

    :param envelopes: reads envelopes.
    :param out: takes what is told.
    :ivar wholes: the last record of each whole group.
    """

    def __init__(self, records: Records, envelopes: MessageReader, out: ChangeColumns) -> None:
        self._records, self._out = records, out
        self._lost: dict[int, int] = {}
        self._explained: set[int] = set()
        self._groups: dict[int, list[int]] = {}  # by last record all records, of whole groups of several
        batch, malformed = envelopes.read(pa.array([value or b"" for value in records.values], pa.binary()))
        self._contents = batch.column("data")
        self._numbers = [batch.column(name).to_numpy() for name in ("version", "index", "total")]
        self._malformed = malformed
        self._senders = list(map(_sender, records.headers or [None] * len(records)))
        self.wholes: Any = np.array(sorted(self._follow()), np.int64)

    def _follow(self) -> list[int]:
        """Return the last record of each whole group."""
        groups, ended, wholes = Groups(self._records.heard), list[Group](), list[int]()
        version, index, total = self._numbers
        alone = ~self._malformed & (version == _VERSION) & (index == 0) & (total <= 1)
        for record, (is_alone, sender) in enumerate(zip(alone.tolist(), self._senders, strict=True)):
            if is_alone and type(sender) is tuple and groups.follows(*sender):
                wholes.append(record)
            else:
                ended += self._add(groups, record)
        ended += groups.rest()
        for group in ended:
            self._tell(group)
            if group.state == "whole":
                wholes.append(group.records[-1])
                if len(group.records) > 1:
                    self._groups[group.records[-1]] = group.records
        return wholes

    def _add(self, groups: Groups, record: int) -> Sequence[Group]:
        """Tell of a record what is to be told; return the groups that end with it."""
        value, part = self._records.values[record], self._part(record)
        if value is None:
            self._out.add(record, "ignored")
            return ()
        if isinstance(part, str):
            self._out.error(record, "record.malformed", part, None, value)
            return ()
        repeated, missing, ended = groups.add(record, part)
        if repeated:
            self._out.add(record, "ignored")
        if missing:
            self._lost[record] = missing
        return ended

    def _part(self, record: int) -> Part | str:
        """Return which part of a group a record is, or why it is none."""
        if self._malformed[record]:
            return "no DTS envelope"
        version, index, total = (int(numbers[record]) for numbers in self._numbers)
        return _part(version, index, total, self._senders[record])

    def _tell(self, group: Group) -> None:
        """Tell what a group is besides the changes of a whole one's last record."""
        *others, last = group.records
        for record in others:
            self._out.add(record, "ignored")
        if group.state == "torn" and not self._sent_again(group):
            text = f"only {len(group.records)} of a group's {group.total} slices are there"
            self._out.error(last, "record.slices_missing", text, None, self._records.values[last])
        elif group.state != "whole":
            self._out.add(last, "ignored")

    def _sent_again(self, group: Group) -> bool:
        """Return whether the group that came in place of a torn one begins as it did."""
        if group.replaced_by is None:
            return False
        one, other = self._part(group.records[0]), self._part(group.replaced_by)
        alike = isinstance(one, Part) and isinstance(other, Part) and one[2:] == other[2:] and one.place == 0
        return alike and bool(self._contents[group.records[0]] == self._contents[group.replaced_by])

    def joined(self) -> pa.Array:
        """Return the content of each whole group."""
        if len(self.wholes) == len(self._contents):
            return self._contents
        contents = self._contents.take(pa.array(self.wholes))
        several = pa.array(np.isin(self.wholes, list(self._groups)))
        joined = [self._content(last) for last in self.wholes.tolist() if last in self._groups]
        return pc.replace_with_mask(contents, several, pa.array(joined, pa.binary())) if joined else contents

    def _content(self, last: int) -> bytes:
        return b"".join(self._contents[record].as_py() for record in self._groups[last])

    def refuse(self, group: int, number: int, code: str, text: str) -> None:
        """Tell of a change that could not be carried; the first one of a group has the bytes."""
        last = int(self.wholes[group])
        raw = None
        if group not in self._explained:
            self._explained.add(group)
            raw = self._content(last) if last in self._groups else (self._records.values[last] or b"")
            raw = bytes(raw[:RAW_LIMIT])
        self._out.add(last, "error", number=number, error_code=code, error=text, raw=raw)

    def tell_lost(self, sizes: Any) -> None:
        """Tell of numbers that were left out, after the changes of the record behind them.

        :param sizes: changes of each whole group.
        """
        if not self._lost:
            return
        changes = dict(zip(self.wholes.tolist(), sizes.tolist(), strict=True))
        for record, missing in self._lost.items():
            text = f"{missing} records before this one are missing: the numbers in header ps have a gap"
            self._out.add(record, "error", number=changes.get(record, 1), error_code="record.lost", error=text)


def _part(version: int, index: int, total: int, sender: tuple[str, int | None] | str) -> Part | str:
    """Return which part of a group an envelope is, or why it is none."""
    total = total or 1
    if version != _VERSION:
        return f"envelope version {version} is not known"
    if index >= total:
        return "a slice's index is beyond its group's total"
    return sender if isinstance(sender, str) else Part(*sender, index, total)


def _sender(headers: Headers) -> tuple[str, int | None] | str:
    """Return the sender of a record and its running number, or why they cannot be told."""
    sender, number = "", None
    for name, given in headers or ():
        if given is None:
            continue
        if name == "ShardId":
            sender = given.decode("latin-1")
        elif name == "ps":
            if not given.isdigit() or len(given) > 20:
                return "header ps is no number"
            number = int(given)
    return sender, number


def _merged(one: pa.RecordBatch, other: pa.RecordBatch) -> pa.RecordBatch:
    """Return the changes of both by record and number."""
    table = pa.Table.from_batches([one, other]).unify_dictionaries()
    order = pc.sort_indices(table, sort_keys=[("offset", "ascending"), ("index", "ascending")])
    return table.take(order).combine_chunks().to_batches()[0]
