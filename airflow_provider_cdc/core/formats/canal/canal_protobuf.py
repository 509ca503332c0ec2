# SPDX-License-Identifier: Apache-2.0
"""Decode Canal's protobuf records (``flatMessage=false``) of every server version (docs/wire/canal.md 1, 2, 4, 5.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError

from airflow_provider_cdc.core.arrays import IntArray
from airflow_provider_cdc.core.formats.canal import columns as canal_columns
from airflow_provider_cdc.core.formats.canal.changes import changes_of
from airflow_provider_cdc.core.formats.canal.entries import meanings
from airflow_provider_cdc.core.formats.canal.packets import PacketReader
from airflow_provider_cdc.core.formats.canal.rows import RowReader
from airflow_provider_cdc.core.formats.common.change_batch import change_batch
from airflow_provider_cdc.core.formats.common.row_image_option import (
    ROW_IMAGE,
    ROW_IMAGE_MEANING,
    inserts_lack_defaults,
)
from airflow_provider_cdc.core.formats.common.timezone_option import timezone_of
from airflow_provider_cdc.core.formats.contract import Progress, Records
from airflow_provider_cdc.core.formats.generated.canal_entry_pb2 import HEARTBEAT, Entry
from airflow_provider_cdc.core.formats.generated.canal_packet_pb2 import Messages, Packet

_TOGETHER = 12 << 20  # bytes of records decoded at once: what is computed of them stays in the processor's cache


class WireFormat(canal_columns.CanalFormat):
    """``canal-protobuf``: rows, DDL and transaction marks in the data topics, all with their position in the binlog."""

    name = "canal-protobuf"
    summary = "Canal protobuf packets (MySQL, MariaDB)"
    order = "exact"
    carries = frozenset({"rows", "ddl", "transactions", "types"})
    updates_move_keys = True
    updates_name_changes = False
    ddl_among_rows = True
    splits_partitions = True
    partial_images = True  # row images MINIMAL and NOBLOB (docs/wire/canal.md 4.3)
    inserts_lack_defaults: bool | None = None
    chosen_keys = False
    row_numbers = "record"
    snapshot_rows = "unnumbered"
    options: Mapping[str, str] = {
        "timezone": "time zone of Canal's JVM, in which it writes TIMESTAMP: a name or an offset (default UTC)",
        ROW_IMAGE: ROW_IMAGE_MEANING,
    }

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self.inserts_lack_defaults = inserts_lack_defaults(options)
        self._zone = timezone_of(options)
        self._packets = PacketReader()
        self._rows = RowReader()

    def decode(self, records: Records) -> pa.RecordBatch:
        """Return the changes of these records, in their order; bytes that are not a packet become ``error`` changes."""
        parts = [self._part(records, begin, end) for begin, end in _spans(records)]
        table = pa.concat_tables(parts, promote_options="default").unify_dictionaries()
        columns = {name: table.column(name).combine_chunks() for name in table.column_names}
        return change_batch(records, columns.pop("record").to_numpy(), columns)

    def _part(self, records: Records, begin: int, end: int) -> pa.Table:
        values = records.values[begin:end]
        entries = self._packets.read(values)
        rows = self._rows.read(entries.rows, entries.tables_of_rows())
        entries.refuse(values, entries.of_rows()[rows.unreadable])
        changes = changes_of(values, entries, rows, meanings(entries, rows), self._rows.texts)
        column_index = changes.schema.get_field_index("record")
        return changes.set_column(column_index, "record", pa.array(changes.column(column_index).to_numpy() + begin))

    def progress_of(self, topic: str, key: bytes | None, value: bytes | None) -> Progress | None:
        """Return the oldest source time in a record."""
        if not value:
            return None
        try:
            messages = Messages.FromString(Packet.FromString(value).body).messages
            entries = [Entry.FromString(message) for message in messages]
        except DecodeError:
            return None
        timed = [entry for entry in entries if entry.header.executeTime > 0]
        oldest = min(timed, key=lambda entry: entry.header.executeTime, default=None)
        if oldest is None:
            return None
        return Progress(oldest.header.executeTime, heartbeat=oldest.entryType == HEARTBEAT)


def _spans(records: Records) -> Iterator[tuple[int, int]]:
    """Cut records into stretches of about :data:`_TOGETHER` bytes, at least one record each."""
    ends = np.cumsum(np.array([len(value or b"") for value in records.values], np.int64))
    cuts: IntArray = np.flatnonzero(np.diff(ends // _TOGETHER)) + 1
    yield from pairwise([0, *cuts.tolist(), len(ends)])
