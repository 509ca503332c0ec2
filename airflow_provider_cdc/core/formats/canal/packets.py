# SPDX-License-Identifier: Apache-2.0
"""Read the entries of Canal's packets as columns (docs/wire/canal.md 1, 2, 4, 5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.formats.common.epoch_times import MAX_MILLIS
from airflow_provider_cdc.core.formats.common.protobuf_columns import MessageReader, emptied
from airflow_provider_cdc.core.formats.generated.canal_entry_pb2 import ROWDATA, TRANSACTIONEND, UPDATE
from airflow_provider_cdc.core.formats.generated.canal_packet_pb2 import (
    ACK,
    COMPRESSIONCOMPATIBLEPROTO2,
    MESSAGES,
    NONE,
    Ack,
    Messages,
    Packet,
)
from airflow_provider_cdc.core.formats.generated.canal_record_pb2 import Ends, Pair, Record

_BODY = Packet.DESCRIPTOR.fields_by_name["body"].number << 3 | 2  # what stands before a body's length
_MAX_ACK_TEXT = 300  # an Ack may hold a stack trace (docs/wire/canal.md 10.1)


@dataclass(slots=True)
class Entries:
    """The entries of some records, in order; arrays have one element an entry.

    :param problems: by index of the record, why it is not a packet of entries: code and sentence. Its entries, if any,
        mean nothing.
    :param record: index of the entry's record.
    :param kind: ``entryType``.
    :param files: ``logfileName``; with ``offsets`` where the event starts.
    :param millis: ``executeTime``, 0 where absent.
    :param event: ``eventType`` of a ROWDATA entry, -1 for others.
    :param session: database of the session that ran a statement.
    :param transactions: id of the transaction where the entry states one.
    :param rows: RowData of all entries; ``counts`` says how many are an entry's.
    """

    problems: dict[int, tuple[str, str]]
    record: IntArray
    kind: IntArray
    files: pa.StringArray
    offsets: IntArray
    millis: IntArray
    schemas: pa.StringArray
    tables: pa.StringArray
    event: IntArray
    is_ddl: BoolArray
    sql: pa.StringArray
    session: pa.StringArray
    transactions: pa.StringArray
    rows: pa.StructArray
    counts: IntArray

    def of_rows(self) -> IntArray:
        """Return the index of each row's entry."""
        indices: IntArray = np.repeat(np.arange(len(self.kind)), self.counts)
        return indices

    def tables_of_rows(self) -> IntArray:
        """Return for each row a number of its table."""
        schemas, tables = self.schemas.dictionary_encode(), self.tables.dictionary_encode()
        numbers = schemas.indices.to_numpy().astype(np.int64) * len(tables.dictionary) + tables.indices.to_numpy()
        table_numbers: IntArray = np.repeat(numbers, self.counts)
        return table_numbers

    def refuse(self, values: Sequence[bytes | None], selected: IntArray) -> None:
        """Mark the records of some entries as unreadable."""
        for index in np.unique(self.record[selected]).tolist():
            self.problems[index] = refusal(values[index] or b"")


class _Own(NamedTuple):
    """Names that entries state for their own transaction: the entries, and the names."""

    entries: IntArray
    names: pa.StringArray


class PacketReader:
    """Read records."""

    def __init__(self) -> None:
        self._records = MessageReader(Record)
        self._ends = MessageReader(Ends)
        self._pairs = MessageReader(Pair)

    def read(self, values: Sequence[bytes | None]) -> Entries:
        """Return the entries of these records."""
        batch, ends, malformed = self._messages(
            _with_one_body(pa.array([value or b"" for value in values], pa.binary()))
        )
        compression = _numbers(batch.to_struct_array(), "compression", NONE)
        usual = np.isin(compression, (COMPRESSIONCOMPATIBLEPROTO2, NONE))
        refused: BoolArray = malformed | ~usual | (batch.column("type").to_numpy() != MESSAGES)
        problems = {
            index: refusal(value) for index in np.flatnonzero(refused).tolist() if (value := values[index]) is not None
        }
        messages = pc.struct_field(batch.column("body"), "messages")
        entries = messages.flatten()
        header, change = pc.struct_field(entries, "header"), pc.struct_field(entries, "storeValue")
        own, unreadable = self._own_transactions(pc.struct_field(header, "props"))
        kind = _numbers(entries, "entryType", ROWDATA)
        event = _numbers(change, "eventType", UPDATE)
        rows = pc.struct_field(change, "rowDatas")
        result = Entries(
            problems,
            pc.list_parent_indices(messages).to_numpy().astype(np.int64),
            kind,
            _member(header, "logfileName", ""),
            _numbers(header, "logfileOffset", 0),
            _numbers(header, "executeTime", 0),
            _member(header, "schemaName", ""),
            _member(header, "tableName", ""),
            np.where(kind == ROWDATA, event, -1),
            _member(change, "isDdl", False).to_numpy(zero_copy_only=False),
            _member(change, "sql", ""),
            _member(change, "ddlSchemaName", ""),
            _transactions(header, ends, own),
            rows.flatten(),
            pc.fill_null(pc.list_value_length(rows), 0).to_numpy().astype(np.int64),
        )
        result.refuse(values, unreadable)
        for index in np.unique(result.record[(result.millis < 0) | (result.millis > MAX_MILLIS)]).tolist():
            problems.setdefault(index, ("record.malformed", "not a Canal packet: an entry has an impossible time"))
        return result

    def _messages(self, data: pa.BinaryArray) -> tuple[pa.RecordBatch, pa.StringArray | None, BoolArray]:
        """Return what was read, ids of transactions that end if any does, and which records are malformed."""
        batch, malformed = self._records.read(data)
        kinds = pc.struct_field(pc.struct_field(batch.column("body"), "messages").flatten(), "entryType")
        if not pc.any(pc.equal(kinds, TRANSACTIONEND)).as_py():
            return batch, None, malformed
        ends, more = self._ends.read(emptied(data, malformed))
        if more.any():
            batch, ends, _ = self._messages(emptied(data, malformed | more))
            return batch, ends, malformed | more
        stored = pc.struct_field(pc.struct_field(ends.column("body"), "messages").flatten(), "storeValue")
        return batch, _member(stored, "transactionId", ""), malformed

    def _own_transactions(self, props: pa.ListArray) -> tuple[_Own | None, IntArray]:
        """Return the transactions that entries state themselves, if any, and entries with an unreadable property."""
        distinct = props.flatten().dictionary_encode()
        pairs, malformed = self._pairs.read(distinct.dictionary)
        own = pc.equal(pairs["key"], "curtGtid").to_numpy(zero_copy_only=False)
        if not malformed.any() and not own.any():
            return None, np.zeros(0, np.int64)
        entries, numbers = pc.list_parent_indices(props).to_numpy(), distinct.indices.to_numpy()
        selected = own[numbers]
        return _Own(entries[selected], pairs["value"].take(pa.array(numbers[selected]))), entries[malformed[numbers]]


def _with_one_body(data: pa.BinaryArray) -> pa.BinaryArray:
    """Return packets that have at most one body each: of several the last counts, as for every field of bytes.

    ``Record`` declares the body as a message, of which a reader would join several.
    """
    unusual = np.flatnonzero(~_end_with_their_body(data))
    doubled = [(int(index), data[int(index)].as_py()) for index in unusual]
    doubled = [(index, value) for index, value in doubled if _bodies(value) > 1]
    if not doubled:
        return data
    mask: BoolArray = np.zeros(len(data), bool)
    mask[[index for index, _ in doubled]] = True
    single = [_read_again(value) for _, value in doubled]
    return pc.replace_with_mask(data, pa.array(mask), pa.array(single, data.type))


def _read_again(packet: bytes) -> bytes:
    """Return a packet as protobuf reads it; as it is where that reads none, as protobuf 7 does more often than 6."""
    try:
        return Packet.FromString(packet).SerializeToString()
    except DecodeError:
        return packet


def _end_with_their_body(data: pa.BinaryArray) -> BoolArray:
    """Return which packets begin like the first one and have nothing behind the body that follows there."""
    bounds: IntArray = np.frombuffer(data.buffers()[1], np.int32)[data.offset :][: len(data) + 1].astype(np.int64)
    usual: BoolArray = np.zeros(len(data), bool)
    head = _before_body(data[0].as_py()) if len(data) else b""
    if not head:
        return usual
    starts, ends = bounds[:-1], bounds[1:]
    every = np.frombuffer(data.buffers()[2], np.uint8)
    long = np.flatnonzero(ends - starts > len(head))
    alike = every[starts[long, None] + np.arange(len(head))] == np.frombuffer(head, np.uint8)
    selected = long[alike.all(axis=1)]
    offset, shift = starts[selected] + len(head), 0
    size: IntArray = np.zeros(len(selected), np.int64)
    going: BoolArray = np.ones(len(selected), bool)
    while going.any() and shift < 35:  # a length is a varint of at most five bytes
        byte = every[np.minimum(offset, len(every) - 1)].astype(np.int64)
        size += np.where(going, (byte & 127) << shift, 0)
        offset += going
        going, shift = going & (byte > 127), shift + 7
    usual[selected] = ~going & (offset + size == ends[selected])
    return usual


def _before_body(value: bytes) -> bytes:
    """Return what stands before the length of a packet's body, empty where the packet has other fields there."""
    offset = 0
    while offset < len(value) and value[offset] & 7 == 0:  # a number
        offset += 1
        while offset < len(value) and value[offset] > 127:
            offset += 1
        offset += 1
    return value[: offset + 1] if value[offset : offset + 1] == bytes([_BODY]) else b""


def _bodies(value: bytes) -> int:
    """Return how many bodies a packet has, 0 where it is none."""
    try:
        fields: Any = UnknownFieldSet(Empty.FromString(value))
        return sum(field.field_number == _BODY >> 3 for field in fields)
    except DecodeError:
        return 0


def refusal(value: bytes) -> tuple[str, str]:
    """Return why a record is not a packet of entries: code and sentence."""
    try:
        packet = Packet.FromString(value)
        if packet.HasField("compression") and packet.compression not in (COMPRESSIONCOMPATIBLEPROTO2, NONE):
            return "record.compressed", f"the packet is compressed, kind {packet.compression}: Canal never does"
        if packet.type == ACK:
            ack = Ack.FromString(packet.body)
            text = ack.error_message[:_MAX_ACK_TEXT]
            return "record.refused", f"Canal answered with error {ack.error_code}: {text}"
        if packet.type != MESSAGES:
            return "record.malformed", f"not a Canal packet of messages but of type {packet.type}"
    except DecodeError:
        if value.startswith(b"{"):
            return "record.malformed", "not a Canal packet: this is Canal's flat JSON (canal.mq.flatMessage=true)"
    return "record.malformed", "not a Canal packet: it cannot be read"


def entry_bytes(value: bytes, number: int) -> bytes:
    """Return one entry of a record."""
    return bytes(Messages.FromString(Packet.FromString(value).body).messages[number])


def _member(structs: pa.StructArray, name: str, default: Any) -> pa.Array:
    # a column whose parents are all there is had without a copy
    values = pc.struct_field(structs, name) if structs.null_count else structs.field(name)
    return pc.fill_null(values, default) if values.null_count else values


def _numbers(structs: pa.StructArray, name: str, default: int) -> IntArray:
    numbers: IntArray = _member(structs, name, default).to_numpy().astype(np.int64)
    return numbers


def _transactions(header: pa.StructArray, ends: pa.StringArray | None, own: _Own | None) -> pa.StringArray:
    """Return the GTID; without GTIDs, at the end of a transaction, its number (4: ``0`` stands for none).

    ``gtid`` is the whole executed set, a property ``curtGtid`` the transaction's own (4).
    """
    none = pa.scalar(None, pa.string())
    sets = pc.struct_field(header, "gtid")
    ids = pc.if_else(pc.equal(sets, ""), none, sets)
    if ends is not None:
        ids = pc.coalesce(ids, pc.if_else(pc.is_in(ends, pa.array(["", "0"])), none, ends))
    if own is None or not len(own.entries):
        return ids
    mask: BoolArray = np.zeros(len(ids), bool)
    mask[own.entries] = True
    last = len(own.entries) - 1 - np.unique(own.entries[::-1], return_index=True)[1]
    return pc.replace_with_mask(ids, pa.array(mask), own.names.take(pa.array(last)))
