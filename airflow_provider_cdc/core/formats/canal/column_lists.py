# SPDX-License-Identifier: Apache-2.0
"""Read Canal's lists of column messages: descriptions of the columns, and values (docs/wire/canal.md 1.1, 4.4)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.arrays import BoolArray, ByteArray, Int32Array, IntArray
from airflow_provider_cdc.core.formats.canal import columns as canal_columns
from airflow_provider_cdc.core.formats.canal.column_templates import PADDING, Template, template_of
from airflow_provider_cdc.core.formats.common.interning import Interner
from airflow_provider_cdc.core.formats.common.json_writer import Room, text_offsets
from airflow_provider_cdc.core.formats.common.protobuf_columns import MessageReader
from airflow_provider_cdc.core.formats.generated import canal_record_pb2 as record_pb2

KEY, AS_BYTES = 1, 2  # flags of a column, next to name and type
_FEW = 64  # rows that are sooner read field by field than compared with an example
_EXAMPLES = 4  # for rows of one table: a column's sqlType depends on its value (docs/wire/canal.md 4.4)
_KNOWN = 50  # examples remembered, for each number of columns
_TOGETHER = 8_192  # columns compared at once: what is computed of them stays in the processor's cache
_ROOM = 32 << 20  # bytes: more than what is read at once, but for a record of that size


class ColumnInfo(NamedTuple):
    """Describe a column."""

    ordinal: int
    name: str
    type: str
    flags: int


@dataclass(slots=True)
class Lists:
    """The columns of some images, in order.

    :param offsets: where each list begins in the columns of all, and where the last one ends.
    :param infos: number of the descriptions of each list's columns, in :attr:`ListReader.infos`.
    :param unreadable: lists with a column that cannot be read.
    :param room: has the values; ``bounds`` are begin and end of each, ``nulls`` says which are null.
    """

    offsets: IntArray
    infos: IntArray
    unreadable: BoolArray
    room: Room
    bounds: Int32Array
    nulls: BoolArray

    @property
    def sizes(self) -> IntArray:
        """Columns of each list."""
        sizes: IntArray = np.diff(self.offsets)
        return sizes

    def beginning(self, text: bytes, columns: IntArray) -> BoolArray:
        """Return whether the values of some columns begin with a text."""
        begins, ends = self.bounds[columns].T
        offsets = np.minimum(begins, self.room.used - len(text))[:, np.newaxis] + np.arange(len(text))
        same: BoolArray = (self.room.data[offsets] == np.frombuffer(text, np.uint8)).all(axis=1)
        same &= ends - begins >= len(text)
        return same


class ListReader:
    """Read lists of columns and remember the descriptions of columns.

    :ivar infos: distinct descriptions of a row's columns, by number.
    """

    def __init__(self) -> None:
        self._lists = Interner[tuple[ColumnInfo, ...]]()
        self.infos = self._lists.values
        self._templates: dict[int, deque[Template]] = {}
        self._columns = MessageReader(record_pb2.Column)
        # kept: memory that is given back and fetched again for each stretch costs a tenth of the time
        self._rooms: list[ByteArray] = []

    @contextmanager
    def room(self) -> Iterator[Room]:
        """Lend memory for values, to one at a time."""
        data = self._rooms.pop() if self._rooms else np.empty(_ROOM, np.uint8)
        yield Room(data)
        self._rooms.append(data)

    def read(self, parts: Sequence[pa.ListArray], tables: IntArray | None, room: Room) -> Lists:
        """Return what lists of column messages carry.

        :param parts: the lists, one part behind the other.
        :param tables: per list a number of its table; without it all are read field by field, which finds columns whose
            value is not UTF-8.
        :param room: takes the values.
        """
        sizes: IntArray = np.concatenate([np.diff(part.offsets.to_numpy()) for part in parts])
        offsets: IntArray = np.append(0, np.cumsum(sizes, dtype=np.int64))
        infos: IntArray = np.where(sizes > 0, -1, self._lists.id_of(()))
        messages = _Messages([part.flatten() for part in parts], room)
        for rows in () if tables is None else _alike(tables, sizes):
            self._compare(messages, offsets, rows, infos)
        return self._rest(messages, offsets, infos)

    def _compare(self, messages: _Messages, offsets: IntArray, rows: IntArray, infos: IntArray) -> None:
        """Read those of some rows that are like an example, then those of the others that are like another one."""
        width = int(offsets[rows[0] + 1] - offsets[rows[0]])
        for _ in range(_EXAMPLES):
            if len(rows) < _FEW:
                return
            template = self._template(messages.data[int(offsets[rows[0]]) :][:width].to_pylist())
            usual: BoolArray = np.zeros(len(rows), bool)
            if template is not None:
                usual = messages.compare(template, offsets[rows], width)
                infos[rows[usual]] = self._lists.id_of(tuple(map(_info_of, template.columns)))
            usual[0] = True  # no example again, even if it is not as usual itself
            rows = rows[~usual]

    def _template(self, messages: list[bytes]) -> Template | None:
        """Return the template of a row, one made before if it may be that."""
        known = self._templates.setdefault(len(messages), deque(maxlen=_KNOWN))
        for template in known:
            if template.resembles(messages):
                return template
        made = template_of(messages)
        if made is not None:
            known.appendleft(made)
        return made

    def _rest(self, messages: _Messages, offsets: IntArray, infos: IntArray) -> Lists:
        """Read the rows that are like no example field by field."""
        unreadable: BoolArray = np.zeros(len(infos), bool)
        rows = np.flatnonzero(infos < 0)
        if len(rows):
            sizes = np.diff(offsets)[rows]
            ends = np.cumsum(sizes)
            members = np.arange(ends[-1]) + np.repeat(offsets[rows] - ends + sizes, sizes)
            columns, malformed = self._columns.read(messages.data.take(pa.array(members)))
            unreadable[np.repeat(rows, sizes)[malformed]] = True
            infos[rows] = self._number_lists(columns, np.append(0, ends))
            messages.put(members, columns)
        return Lists(offsets, infos, unreadable, messages.room, messages.bounds, messages.nulls)

    def _number_lists(self, columns: pa.RecordBatch, offsets: IntArray) -> IntArray:
        """Return the numbers of the descriptions of some rows' columns."""
        flags = _flags(columns)
        codes: IntArray = np.zeros(len(offsets) - 1, np.int64)
        for part in _signature(columns, flags, offsets):
            distinct = part.dictionary_encode()
            codes = codes * len(distinct.dictionary) + distinct.indices.to_numpy()
            # numbered again each time, so that they stay small
            codes = pa.array(codes).dictionary_encode().indices.to_numpy().astype(np.int64)
        numbers = []
        for row in np.unique(codes, return_index=True)[1].tolist():
            part = slice(int(offsets[row]), int(offsets[row + 1]))
            lists = [columns[name][part].to_pylist() for name in ("index", "name", "mysqlType")]
            numbers.append(self._lists.id_of(tuple(map(ColumnInfo, *lists, flags[part].tolist()))))
        list_numbers: IntArray = np.array(numbers, np.int64)[codes]
        return list_numbers


class _Messages:
    """Column messages of all rows, and what is known of their values.

    :param room: takes their bytes.
    """

    def __init__(self, parts: Sequence[pa.BinaryArray], room: Room) -> None:
        self.room, shifted = room, list[Int32Array]()
        for part in parts:
            ends = text_offsets(part)
            data = np.frombuffer(part.buffers()[2] or b"", np.uint8)[ends[0] : ends[-1]]
            shifted.append(ends[:-1] + (room.put(data) - int(ends[0])))
        self._offsets: IntArray = np.concatenate([*shifted, [room.used]], dtype=np.int64)
        room.put(np.zeros(PADDING, np.uint8))
        self._bytes = room.data
        self.data = _slices(self._offsets, pa.py_buffer(self._bytes))
        self.bounds: Int32Array = np.stack([self._offsets[:-1], self._offsets[:-1]], axis=1, dtype=np.int32)
        self._begins, self._ends = self.bounds.T
        self.nulls: BoolArray = np.zeros(len(self.data), bool)

    def compare(self, template: Template, firsts: IntArray, width: int) -> BoolArray:
        """Find the values of rows that are like an example; return which are.

        :param firsts: the place of each row's first message.
        :param width: columns of each row.
        """
        usual: BoolArray = np.zeros(len(firsts), bool)
        step = max(1, _TOGETHER // width)
        for begin in range(0, len(firsts), step):
            part = slice(begin, begin + step)
            members = firsts[part, np.newaxis] + np.arange(width)
            comparison = template.find(self._bytes, self._offsets[members], self._offsets[members + 1])
            usual[part] = comparison.usual
            selected = slice(None) if comparison.usual.all() else comparison.usual
            members = members[selected]
            self._begins[members], self._ends[members] = comparison.begins[selected], comparison.ends[selected]
            self.nulls[members] = comparison.nulls[selected]
        return usual

    def put(self, members: IntArray, columns: pa.RecordBatch) -> None:
        """Note what was read of some messages field by field."""
        self.nulls[members] = pc.fill_null(columns["isNull"], False).to_numpy(zero_copy_only=False)
        ends = text_offsets(columns["value"])
        values = np.frombuffer(columns["value"].buffers()[2] or b"", np.uint8)[ends[0] : ends[-1]]
        ends = ends + np.int32(self.room.put(values) - int(ends[0]))
        self._begins[members], self._ends[members] = ends[:-1], ends[1:]


def _alike(tables: IntArray, sizes: IntArray) -> Iterator[IntArray]:
    """Give out rows of one table with as many columns, but for few of them and for those without columns."""
    codes = tables * (int(sizes.max(initial=0)) + 1) + sizes
    numbers = pa.array(codes).dictionary_encode().indices.to_numpy()
    for number in np.flatnonzero(np.bincount(numbers) >= _FEW).tolist():
        rows = np.flatnonzero(numbers == number)
        if sizes[rows[0]]:
            yield rows


def _info_of(column: record_pb2.Column) -> ColumnInfo:
    flags = KEY * column.isKey
    if column.sqlType in canal_columns.BYTES and canal_columns.is_json(column.mysqlType):
        flags |= AS_BYTES
    return ColumnInfo(column.index, column.name, column.mysqlType, flags)


def _flags(columns: pa.RecordBatch) -> IntArray:
    flags: IntArray = columns["isKey"].to_numpy(zero_copy_only=False) * KEY
    sql_types = columns["sqlType"].to_numpy()
    indices = np.flatnonzero(np.logical_or.reduce([sql_types == number for number in canal_columns.BYTES]))
    if len(indices):
        types = pc.utf8_lower(columns["mysqlType"].take(pa.array(indices)))
        flags[indices[pc.equal(types, "json").to_numpy(zero_copy_only=False)]] |= AS_BYTES
    return flags


def _signature(columns: pa.RecordBatch, flags: IntArray, offsets: IntArray) -> list[pa.BinaryArray]:
    """Return what distinguishes the columns of a row: the bytes of their names and types, and all numbers."""
    names, types = columns["name"], columns["mysqlType"]
    lengths = [np.diff(text_offsets(texts)) for texts in (names, types)]
    numbers = np.stack([*lengths, columns["index"].to_numpy(), flags], axis=1, dtype=np.int32)
    ends = [text_offsets(names)[offsets], text_offsets(types)[offsets]]
    data = [names.buffers()[2], types.buffers()[2], pa.py_buffer(numbers)]
    return list(map(_slices, [*ends, offsets * numbers.itemsize * numbers.shape[1]], data))


def _slices(ends: IntArray, data: pa.Buffer | None) -> pa.BinaryArray:
    """Return stretches of bytes, without a copy."""
    buffers = [None, pa.py_buffer(ends.astype(np.int32)), data or pa.py_buffer(b"")]
    return pa.BinaryArray.from_buffers(pa.binary(), len(ends) - 1, buffers)
