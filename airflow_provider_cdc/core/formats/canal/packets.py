"""Canal's packets to the entries in them, column by column (docs/wire/canal.md 1, 2, 4, 5.1)."""

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
from airflow_provider_cdc.core.formats.protobuf_reader import MessageReader, emptied

_MAX_MILLIS = 253_402_300_799_999  # the year 9999: what a timestamp column can hold
_BODY = Packet.DESCRIPTOR.fields_by_name["body"].number << 3 | 2  # what stands before a body's length
_MAX_ACK_TEXT = 300  # an Ack may hold a stack trace (docs/wire/canal.md 10.1)

Numbers = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(slots=True)
class Entries:
    """The entries of some records, in order; arrays have one element an entry.

    :param problems: by place of the record why it is no packet of entries: code and sentence. What stands here of its
        entries means nothing.
    :param record: place of the entry's record.
    :param kind: ``entryType``.
    :param files: ``logfileName``; with ``offsets`` where the event starts.
    :param millis: ``executeTime``, 0 where absent.
    :param event: ``eventType`` of a ROWDATA entry, -1 for others.
    :param session: database of the session that ran a statement.
    :param transactions: id of the transaction where the entry tells one.
    :param rows: RowData of all entries; ``counts`` says how many are an entry's.
    """

    problems: dict[int, tuple[str, str]]
    record: Numbers
    kind: Numbers
    files: pa.StringArray
    offsets: Numbers
    millis: Numbers
    schemas: pa.StringArray
    tables: pa.StringArray
    event: Numbers
    is_ddl: Flags
    sql: pa.StringArray
    session: pa.StringArray
    transactions: pa.StringArray
    rows: pa.StructArray
    counts: Numbers

    def of_rows(self) -> Numbers:
        """Return for each row the place of its entry."""
        places: Numbers = np.repeat(np.arange(len(self.kind)), self.counts)
        return places

    def tables_of_rows(self) -> Numbers:
        """Return for each row a number of its table."""
        schemas, tables = self.schemas.dictionary_encode(), self.tables.dictionary_encode()
        numbers = schemas.indices.to_numpy().astype(np.int64) * len(tables.dictionary) + tables.indices.to_numpy()
        found: Numbers = np.repeat(numbers, self.counts)
        return found

    def refuse(self, values: Sequence[bytes | None], chosen: Numbers) -> None:
        """Say of the records of some entries that they cannot be read."""
        for place in np.unique(self.record[chosen]).tolist():
            self.problems[place] = refusal(values[place] or b"")


class _Own(NamedTuple):
    """Properties that name an entry's own transaction: the entries, and the names."""

    entries: Numbers
    names: pa.StringArray


class PacketReader:
    """Reads records."""

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
        refused: Flags = malformed | ~usual | (batch.column("type").to_numpy() != MESSAGES)
        problems = {
            place: refusal(value) for place in np.flatnonzero(refused).tolist() if (value := values[place]) is not None
        }
        messages = pc.struct_field(batch.column("body"), "messages")
        entries = messages.flatten()
        header, change = pc.struct_field(entries, "header"), pc.struct_field(entries, "storeValue")
        own, unreadable = self._own_transactions(pc.struct_field(header, "props"))
        kind = _numbers(entries, "entryType", ROWDATA)
        event = _numbers(change, "eventType", UPDATE)
        rows = pc.struct_field(change, "rowDatas")
        found = Entries(
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
        found.refuse(values, unreadable)
        for place in np.unique(found.record[(found.millis < 0) | (found.millis > _MAX_MILLIS)]).tolist():
            problems.setdefault(place, ("record.malformed", "no Canal packet: an entry has an impossible time"))
        return found

    def _messages(self, data: pa.BinaryArray) -> tuple[pa.RecordBatch, pa.StringArray | None, Flags]:
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

    def _own_transactions(self, props: pa.ListArray) -> tuple[_Own | None, Numbers]:
        """Return what entries say of their own transaction if any does, and which have a property that is none."""
        distinct = props.flatten().dictionary_encode()
        pairs, malformed = self._pairs.read(distinct.dictionary)
        own = pc.equal(pairs["key"], "curtGtid").to_numpy(zero_copy_only=False)
        if not malformed.any() and not own.any():
            return None, np.zeros(0, np.int64)
        entries, numbers = pc.list_parent_indices(props).to_numpy(), distinct.indices.to_numpy()
        chosen = own[numbers]
        return _Own(entries[chosen], pairs["value"].take(pa.array(numbers[chosen]))), entries[malformed[numbers]]


def _with_one_body(data: pa.BinaryArray) -> pa.BinaryArray:
    """Return packets that have at most one body each: of several the last counts, as for every field of bytes.

    ``Record`` declares the body as a message, of which a reader would join several.
    """
    unusual = np.flatnonzero(~_end_with_their_body(data))
    doubled = [(int(place), data[int(place)].as_py()) for place in unusual]
    doubled = [(place, value) for place, value in doubled if _bodies(value) > 1]
    if not doubled:
        return data
    mask: Flags = np.zeros(len(data), bool)
    mask[[place for place, _ in doubled]] = True
    single = [Packet.FromString(value).SerializeToString() for _, value in doubled]
    return pc.replace_with_mask(data, pa.array(mask), pa.array(single, data.type))


def _end_with_their_body(data: pa.BinaryArray) -> Flags:
    """Return which packets begin like the first one and have nothing behind the body that follows there."""
    bounds: Numbers = np.frombuffer(data.buffers()[1], np.int32)[data.offset :][: len(data) + 1].astype(np.int64)
    usual: Flags = np.zeros(len(data), bool)
    head = _before_body(data[0].as_py()) if len(data) else b""
    if not head:
        return usual
    starts, ends = bounds[:-1], bounds[1:]
    every = np.frombuffer(data.buffers()[2], np.uint8)
    long = np.flatnonzero(ends - starts > len(head))
    alike = every[starts[long, None] + np.arange(len(head))] == np.frombuffer(head, np.uint8)
    chosen = long[alike.all(axis=1)]
    place, shift = starts[chosen] + len(head), 0
    size: Numbers = np.zeros(len(chosen), np.int64)
    going: Flags = np.ones(len(chosen), bool)
    while going.any() and shift < 35:  # a length is a varint of at most five bytes
        byte = every[np.minimum(place, len(every) - 1)].astype(np.int64)
        size += np.where(going, (byte & 127) << shift, 0)
        place += going
        going, shift = going & (byte > 127), shift + 7
    usual[chosen] = ~going & (place + size == ends[chosen])
    return usual


def _before_body(value: bytes) -> bytes:
    """Return what stands before the length of a packet's body, empty where the packet has other fields there."""
    place = 0
    while place < len(value) and value[place] & 7 == 0:  # a number
        place += 1
        while place < len(value) and value[place] > 127:
            place += 1
        place += 1
    return value[: place + 1] if value[place : place + 1] == bytes([_BODY]) else b""


def _bodies(value: bytes) -> int:
    """Return how many bodies a packet has, 0 where it is none."""
    try:
        fields: Any = UnknownFieldSet(Empty.FromString(value))
        return sum(field.field_number == _BODY >> 3 for field in fields)
    except DecodeError:
        return 0


def refusal(value: bytes) -> tuple[str, str]:
    """Return why a record is no packet of entries: code and sentence."""
    try:
        packet = Packet.FromString(value)
        if packet.HasField("compression") and packet.compression not in (COMPRESSIONCOMPATIBLEPROTO2, NONE):
            return "record.compressed", f"the packet is compressed, kind {packet.compression}: Canal never does"
        if packet.type == ACK:
            ack = Ack.FromString(packet.body)
            text = ack.error_message[:_MAX_ACK_TEXT]
            return "record.refused", f"Canal answered with error {ack.error_code}: {text}"
        if packet.type != MESSAGES:
            return "record.malformed", f"no Canal packet of messages but of type {packet.type}"
    except DecodeError:
        if value.startswith(b"{"):
            return "record.malformed", "no Canal packet: this is Canal's flat JSON (canal.mq.flatMessage=true)"
    return "record.malformed", "no Canal packet: it cannot be read"


def entry_bytes(value: bytes, number: int) -> bytes:
    """Return one entry of a record."""
    return bytes(Messages.FromString(Packet.FromString(value).body).messages[number])


def _member(structs: pa.StructArray, name: str, default: Any) -> pa.Array:
    # a column whose parents are all there is had without a copy
    values = pc.struct_field(structs, name) if structs.null_count else structs.field(name)
    return pc.fill_null(values, default) if values.null_count else values


def _numbers(structs: pa.StructArray, name: str, default: int) -> Numbers:
    numbers: Numbers = _member(structs, name, default).to_numpy().astype(np.int64)
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
    mask: Flags = np.zeros(len(ids), bool)
    mask[own.entries] = True
    last = len(own.entries) - 1 - np.unique(own.entries[::-1], return_index=True)[1]
    return pc.replace_with_mask(ids, pa.array(mask), own.names.take(pa.array(last)))
