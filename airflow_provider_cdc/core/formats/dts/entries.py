# SPDX-License-Identifier: Apache-2.0
"""Read entries of Tencent DTS in columns: type, position, and rows of each one.

Messages and their traps: docs/wire/tencent-dts.md 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError

from airflow_provider_cdc.core.formats.dts.columns import ColumnLists
from airflow_provider_cdc.core.formats.dts.fast_rows import FastRows, NotPlain
from airflow_provider_cdc.core.formats.dts.images import Problem
from airflow_provider_cdc.core.formats.dts.rows import Rows
from airflow_provider_cdc.core.formats.dts.values import offsets_of
from airflow_provider_cdc.core.formats.generated.dts_pb2 import Column, DMLType, MessageType, SourceType

# what must be there for each type of message: the events are no oneof, and an absent type reads as BEGIN
_EVENTS = {
    MessageType.BEGIN: "beginEvent",
    MessageType.COMMIT: "commitEvent",
    MessageType.DML: "dmlEvent",
    MessageType.DDL: "ddlEvent",
    MessageType.ROLLBACK: "rollbackEvent",
    MessageType.HEARTBEAT: "heartbeatEvent",
    MessageType.CHECKPOINT: "checkpointEvent",
}
_STRETCH = 4_096  # rows whose values, in columns, stay in the processor's cache
_UNKNOWN = Problem("record.unknown_entry", "a message or a row change of a type that is not known")
_SOURCE = Problem(
    "record.source_unknown", "an entry of PostgreSQL or of an unknown source, whose values would be read as MySQL's"
)
_SOURCES = [SourceType.ORACLE, SourceType.MYSQL, SourceType.MARIADB]  # ORACLE is what an absent type reads as
_EMPTY = Problem("record.malformed", "an entry without the event that it announces")
_NO_PLACE = Problem(
    "record.without_position", "a row or DDL event without seqId, or a row event without its table's name"
)
_NO_COLUMN = Problem("record.malformed", "what a DML event says of its columns cannot be read")
_NO_ROWS = Problem("record.malformed", "a DML event without rows")
_NO_STATEMENT = Problem("record.malformed", "a DDL event without its statement")
_NOT_UTF8 = Problem("record.not_utf8", "the text of a DDL statement or of a column's type is not UTF-8")
_ROLLED_BACK = Problem(
    "record.rolled_back", "a transaction that may have changed rows was rolled back: which of them hold is not known"
)


class Entries:
    """The entries of many groups of slices.

    :param items: list of ``Entry`` of each group.
    :param lists: takes the lists of columns.
    """

    def __init__(self, items: pa.ListArray, lists: ColumnLists) -> None:
        entries = items.flatten()
        self._header, self._event = entries.field("header"), entries.field("event")
        self._dml, self._lists = self._event.field("dmlEvent"), lists
        self._there = _valid(self._header) & _valid(self._event)
        self.group: Any = pc.list_parent_indices(items).to_numpy()
        self.type: Any = self._header.field("messageType").to_numpy()
        self.time: Any = self._header.field("timestamp").to_numpy().astype(np.int64)  # seconds, 0 unknown
        self.sequence: Any = self._header.field("seqId").to_numpy()
        self.database, self.table = (_named(self._header.field(name)) for name in ("schemaName", "tableName"))
        self.op: Any = self._dml.field("dmlEventType").to_numpy()
        self.list: Any = np.zeros(len(entries), np.int64)  # number of a DML event's list of columns
        self.has_ddl = bool((self.type == MessageType.DDL).any())
        self.statement: list[str | None] = [None] * len(entries)
        self.default_database: list[str | None] = [None] * len(entries)
        self.problems: dict[int, Problem] = {}
        self._check()
        self._read_ddl()
        self._read_dml()

    def __len__(self) -> int:
        return len(self.type)

    @property
    def rows(self) -> Any:
        """The number of rows of each DML event, 0 for other entries and those with a problem."""
        counts: Any = np.diff(self._dml.field("rows").offsets.to_numpy())
        counts[self.type != MessageType.DML] = 0
        counts[list(self.problems)] = 0
        return counts

    def row_changes(self) -> Iterator[Rows | FastRows]:
        """Yield the rows of the DML events, one event's after the other's.

        :raises NotPlain: the fast path cannot read all values.
        """
        counts, starts = self.rows, self._dml.field("rows").offsets.to_numpy()[:-1]
        entry: Any = np.repeat(np.arange(len(self)), counts)
        rows = starts[entry] + counted(counts)
        messages, ops, lists = self._dml.field("rows").values, self.op[entry], self.list[entry]
        kind = FastRows if pa.types.is_binary(messages.type.field("oldColumns").type.value_type) else Rows
        if kind is FastRows and len(messages) != len(entry):
            raise NotPlain  # values that belong to no change may be no messages
        for begin in range(0, len(entry), _STRETCH):
            some = slice(begin, begin + _STRETCH)
            yield kind(messages, rows[some], ops[some], lists[some], self._lists.tables)

    def transaction(self) -> pa.Array:
        """Return what names each entry's transaction."""
        ends = [self._event.field(name).field("transactionId") for name in ("beginEvent", "commitEvent")]
        return pc.coalesce(*map(_named, [self._header.field("gtid"), *ends]))

    def _refuse(self, entries: Iterable[int], problem: Problem) -> None:
        for entry in entries:
            self.problems.setdefault(entry, problem)

    def _check(self) -> None:
        known: Any = np.zeros(len(self), bool)
        for kind, name in _EVENTS.items():
            of_kind = self.type == kind
            known |= of_kind
            self._refuse(np.flatnonzero(of_kind & ~(self._there & _valid(self._event.field(name)))).tolist(), _EMPTY)
        self._refuse(np.flatnonzero(~known).tolist(), _UNKNOWN)
        changing = np.isin(self.type, (MessageType.DML, MessageType.DDL))
        foreign = ~np.isin(self._header.field("sourceType").to_numpy(), _SOURCES)
        self._refuse(np.flatnonzero(changing & foreign).tolist(), _SOURCE)
        placed = (self.sequence > 0) & (self.sequence < 2**63)
        named = _valid(self.database) & _valid(self.table)
        is_dml, is_ddl = self.type == MessageType.DML, self.type == MessageType.DDL
        self._refuse(np.flatnonzero((is_dml & ~(placed & named)) | (is_ddl & ~placed)).tolist(), _NO_PLACE)
        # documented as unused; without anything between it and its beginning it can only be harmless
        for entry in np.flatnonzero(self.type == MessageType.ROLLBACK).tolist():
            if not entry or self.group[entry - 1] != self.group[entry] or self.type[entry - 1] != MessageType.BEGIN:
                self._refuse([entry], _ROLLED_BACK)

    def _read_ddl(self) -> None:
        if not self.has_ddl:
            return
        entries = np.flatnonzero(self.type == MessageType.DDL)
        ddl = self._event.field("ddlEvent")
        texts = [ddl.field(name).take(pa.array(entries)).to_pylist() for name in ("sql", "schemaName")]
        for entry, statement, database in zip(entries.tolist(), *texts, strict=True):
            if entry in self.problems:
                continue
            try:
                self.statement[entry] = statement.decode()
                self.default_database[entry] = database.decode() or self.database[entry].as_py() or ""
            except UnicodeDecodeError:
                self._refuse([entry], _NOT_UTF8)
            if not statement:
                self._refuse([entry], _NO_STATEMENT)

    def _read_dml(self) -> None:
        is_dml = self.type == MessageType.DML
        self._refuse(np.flatnonzero(is_dml & ~np.isin(self.op, DMLType.values())).tolist(), _UNKNOWN)
        rows = np.diff(self._dml.field("rows").offsets.to_numpy())
        self._refuse(np.flatnonzero(is_dml & (rows == 0)).tolist(), _NO_ROWS)
        entries = np.flatnonzero(is_dml)
        if not len(entries):
            return
        _, firsts, likes = np.unique(self._likeness()[entries], return_index=True, return_inverse=True)
        columns = self._dml.field("columns")
        numbered = [self._number(columns[int(entry)].as_py()) for entry in entries[firsts]]
        self.list[entries] = np.array([number for number, _ in numbered], np.int64)[likes]
        for like, (_, problem) in enumerate(numbered):
            if problem is not None:
                self._refuse(entries[likes == like].tolist(), problem)

    def _number(self, messages: list[bytes]) -> tuple[int, Problem | None]:
        try:
            columns = [Column.FromString(message) for message in messages]
            described = tuple((column.name, column.originalType.decode(), column.isKey) for column in columns)
        except DecodeError:
            return 0, _NO_COLUMN
        except UnicodeDecodeError:
            return 0, _NOT_UTF8
        number = self._lists.number(described)
        wrong = self._lists.problems[number]
        return number, Problem("record.malformed", f"what a DML event says of its columns: {wrong}") if wrong else None

    def _likeness(self) -> Any:
        """Return a number for each entry, the same where the lists of columns are the same."""
        columns = self._dml.field("columns")
        starts, messages = columns.offsets.to_numpy(), columns.values
        offsets = offsets_of(messages)
        # all of a list's messages together, and how long each of them is
        contents = _pieces(messages.buffers()[2], offsets[starts]).dictionary_encode()
        lengths = _pieces(pa.py_buffer(np.diff(offsets)), starts * offsets.itemsize).dictionary_encode()
        return contents.indices.to_numpy().astype(np.int64) * len(lengths.dictionary) + lengths.indices.to_numpy()


def _pieces(data: pa.Buffer | None, offsets: Any) -> pa.Array:
    """Return the bytes between offsets."""
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets, np.int32)), data or pa.py_buffer(b"")]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def _valid(array: pa.Array) -> Any:
    return array.is_valid().to_numpy(zero_copy_only=False)


def _named(texts: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(texts, ""), None, texts)


def counted(counts: Any) -> Any:
    """Return 0, 1, 2 ... for each of so many, one after the other."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
