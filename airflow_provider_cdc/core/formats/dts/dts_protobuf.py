# SPDX-License-Identifier: Apache-2.0
"""Decode Tencent Cloud DTS, data subscription in Kafka, protobuf: slices, entries and all their events.

Messages, headers and rules: docs/wire/tencent-dts.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError

from airflow_provider_cdc.core.formats.common.protobuf_columns import MessageReader
from airflow_provider_cdc.core.formats.common.record_groups import piece
from airflow_provider_cdc.core.formats.common.row_image_option import (
    ROW_IMAGE,
    ROW_IMAGE_MEANING,
    inserts_lack_defaults,
)
from airflow_provider_cdc.core.formats.common.timezone_option import timezone_of
from airflow_provider_cdc.core.formats.contract import Description, Headers, Progress, Records, SliceInfo
from airflow_provider_cdc.core.formats.dts import columns as dts_columns
from airflow_provider_cdc.core.formats.dts.changes import Changes
from airflow_provider_cdc.core.formats.dts.columns import ColumnLists
from airflow_provider_cdc.core.formats.dts.fast_rows import NotPlain
from airflow_provider_cdc.core.formats.dts.notices import Notices
from airflow_provider_cdc.core.formats.dts.producers import sender_of
from airflow_provider_cdc.core.formats.dts.slices import VERSION, Slices, part_of
from airflow_provider_cdc.core.formats.generated.dts_pb2 import Entries, Envelope, MessageType
from airflow_provider_cdc.core.model.encoding import Encoded
from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema

_UTC = ("UTC", "Etc/UTC", "+00:00")
_TOGETHER = (
    8 << 20
)  # bytes of records decoded at once, up to twice: what is computed of them stays in the processor's cache
_PASSED = 8  # times that rows are read field by field before the fast path is tried again
_FIELDS = {
    "Header": ("sourceType", "messageType", "timestamp", "gtid", "schemaName", "tableName", "seqId"),
    "RowChange": ("oldColumns", "newColumns"),
}


class WireFormat:
    """``dts-protobuf``: rows, DDL, checkpoints, heartbeats and transaction marks of a DTS subscription."""

    name = "dts-protobuf"
    summary = "Tencent Cloud DTS data subscription, protobuf (MySQL, TDSQL-C, MariaDB, Percona, TDSQL MySQL)"
    order = "exact"
    carries = frozenset({"rows", "ddl", "progress", "transactions", "types"})
    updates_move_keys = True
    updates_name_changes = False
    ddl_among_rows = True
    splits_partitions = False  # slices of a group, and numbers that are to follow each other
    partial_images = True  # NA: the row event lacks the column, it did not change (docs/wire/tencent-dts.md 3)
    inserts_lack_defaults: bool | None = None
    chosen_keys = False
    row_numbers = "record"
    snapshot_rows = "unnumbered"
    options: Mapping[str, str] = {
        "timezone": "time zone of TIMESTAMP values: a name or an offset (default UTC, as DTS was seen to write)",
        ROW_IMAGE: ROW_IMAGE_MEANING,
    }

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self.inserts_lack_defaults = inserts_lack_defaults(options)
        zone = timezone_of(options) or "UTC"
        self._zone = None if zone in _UTC else zone
        self._lists = ColumnLists()
        self._envelopes, self._entries = MessageReader(Envelope), MessageReader(Entries, _FIELDS)
        self._plain = MessageReader(Entries, _FIELDS, {"RowChange": _FIELDS["RowChange"]})
        self._passed = 0  # how often plain rows need not be expected

    def part_of(self, value: bytes | None, headers: Headers) -> SliceInfo | None:
        """Return which slice of which sender's group a record is."""
        try:
            envelope = Envelope.FromString(value or b"")
        except DecodeError:
            return None
        part = part_of(envelope.version, envelope.index, envelope.total, sender_of(headers))
        return part if isinstance(part, SliceInfo) else None

    def decode(self, records: Records) -> pa.RecordBatch:
        """Return the changes of these records; those of a group of slices stand with its last one."""
        ends = np.cumsum([len(value or b"") for value in records.values])
        size = int(ends[-1]) if len(ends) else 0
        together = max(1, size // max(1, size // _TOGETHER))
        parts, begin = list[pa.RecordBatch](), 0
        while begin < len(records) or not parts:
            before = int(ends[begin - 1]) if begin else 0
            end = min(int(np.searchsorted(ends, before + together)) + 1, len(records))
            part, notices = piece(records, begin, end), Notices()
            slices = Slices(part, self._envelopes, notices)
            while slices.open and end < len(records):
                # no group may be cut
                end = min(end + (end - begin) // 8 + 1, len(records))
                part, notices = piece(records, begin, end), Notices()
                slices = Slices(part, self._envelopes, notices)
            parts.append(self._part(part, slices, notices))
            records, begin = replace(records, heard=slices.heard), end
        if len(parts) == 1:
            return parts[0]
        return pa.Table.from_batches(parts).unify_dictionaries().combine_chunks().to_batches()[0]

    def _part(self, records: Records, slices: Slices, notices: Notices) -> pa.RecordBatch:
        """Return the changes of records that cut no group."""
        changes, malformed = self._changes(slices.joined())
        sizes = changes.sizes(len(slices.wholes))
        for group in np.flatnonzero(sizes == 0).tolist():
            text = "no DTS entries" if malformed[group] else "an envelope without entries"
            slices.refuse(group, 0, ("record.malformed", text))
        for group, number, problem, table in changes.problems():
            slices.refuse(group, number, problem, table)
        slices.note_lost(np.maximum(sizes, 1))
        return changes.batch(records, slices.wholes, notices)

    def _changes(self, contents: pa.Array) -> tuple[Changes, Any]:
        """Return the changes of groups, and which groups are malformed."""
        utc = self._zone is None
        if not self._passed:
            entries, malformed = self._plain.read(contents)
            try:
                return Changes(entries.column("items"), self._lists, utc=utc), malformed
            except NotPlain:
                self._passed = _PASSED
        self._passed -= 1
        entries, malformed = self._entries.read(contents)
        return Changes(entries.column("items"), self._lists, utc=utc), malformed

    def progress_of(self, topic: str, key: bytes | None, value: bytes | None) -> Progress | None:
        """Return the oldest time of a record's events, or that of a heartbeat or checkpoint; nothing for a slice.

        What is older than the oldest event was sent before the record, while the newest may come after others in it.
        """
        try:
            envelope = Envelope.FromString(value or b"")
            if envelope.version != VERSION or envelope.total > 1:
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
        """Return the encoding of a column in the images, by the type that the record states or the source's."""
        return dts_columns.encoding_of(name, column, description, self._zone)

    def structure(self, table_changes: str) -> list[tuple[str, str, TableSchema | None]]:
        """Return nothing: DDL comes as statements only."""
        return []

    def infer(self, description: Description) -> TableSchema | None:
        """Return a schema made from the types that the record states."""
        return dts_columns.infer(description)
