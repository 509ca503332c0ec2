# SPDX-License-Identifier: Apache-2.0
"""Read rows of Tencent DTS on the fast path: nulls, numbers and texts in UTF-8, written as DTS writes them.

Their values are found in the messages' own bytes by a handful of operations on whole arrays. Where one value is
anything else, all is to be read field by field (:mod:`core.formats.dts.rows`). Values: docs/wire/tencent-dts.md 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError

from airflow_provider_cdc.core.formats.common.byte_windows import windows
from airflow_provider_cdc.core.formats.common.json_writer import Room, object_texts
from airflow_provider_cdc.core.formats.dts.columns import Carrier, ColumnTables
from airflow_provider_cdc.core.formats.dts.images import ACTIONS, NULL, NUMERAL, TEXT, Problem, is_plain, no_numeral
from airflow_provider_cdc.core.formats.dts.values import data_of, offsets_of
from airflow_provider_cdc.core.formats.generated.dts_pb2 import Data, DataType, DMLType

_PADDING = 32  # zeros behind the messages: what is looked at of one may reach so far beyond its end
_ROOM = 16 << 20  # bytes: more than most stretches of rows have
_NUMBER = 0x1A_00_08  # tag of the type, the type, tag of a numeral; its length is behind them
_NUMBER_MASK = 0xFF_FF_00_FF


class NotPlain(Exception):
    """Raise for rows that the fast path cannot read."""


class FastRows:
    """Some rows of DML events.

    :param messages: ``RowChange`` of all rows, with values as bytes.
    :param rows: the rows to take, one at least.
    :param ops: ``DMLType`` of each chosen row.
    :param lists: number of each chosen row's list of columns, in ``tables``.
    :raises NotPlain: the fast path cannot read a row or a value.
    """

    problems: ClassVar[Mapping[int, Problem]] = {}  # rows with one are not read on this path

    def __init__(self, messages: pa.StructArray, rows: Any, ops: Any, lists: Any, tables: ColumnTables) -> None:
        self._room = Room(np.empty(_ROOM, np.uint8))
        counts: list[Any] = []
        offsets_of_side: list[Any] = []
        for name, without in (("oldColumns", DMLType.INSERT), ("newColumns", DMLType.DELETE)):
            values = messages.field(name)
            offsets = values.offsets.to_numpy()
            count = offsets[rows + 1] - offsets[rows]
            if (count != np.where(ops == without, 0, tables.count[lists])).any() or (np.diff(rows) != 1).any():
                raise NotPlain
            counts.append(count)
            offsets_of_side.append(self._taken(values.values.slice(offsets[rows[0]], int(count.sum()))))
        self._room.put(np.zeros(_PADDING, np.uint8))
        # first all images before the rows' changes, then all after
        self._counts: Any = np.concatenate(counts)
        self._starts: Any = np.concatenate([part[:-1] for part in offsets_of_side])
        self._ends: Any = np.concatenate([part[1:] for part in offsets_of_side])
        # columns of the lists that are there
        used, which = np.unique(lists, return_inverse=True)
        columns = [np.arange(tables.first[each], tables.first[each] + tables.count[each]) for each in used.tolist()]
        self._names = [tables.names[column] for column in np.concatenate(columns).tolist()]
        firsts = (np.cumsum(tables.count[used]) - tables.count[used])[np.r_[which, which]]
        firsts = firsts - np.cumsum(self._counts) + self._counts
        self._columns: Any = np.arange(len(self._starts)) + np.repeat(firsts, self._counts)
        self._carriers: Any = tables.carriers[np.concatenate(columns)][self._columns]

    def _taken(self, messages: pa.BinaryArray) -> Any:
        """Put messages into the room; return where each begins, and where the last one ends."""
        offsets = offsets_of(messages)
        data = np.frombuffer(messages.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
        return offsets.astype(np.int64) + (self._room.put(data) - int(offsets[0]))

    def images(self, *, utc: bool) -> tuple[pa.Array, pa.Array]:
        """Return the images before and after.

        :param utc: whether TIMESTAMP texts are in UTC.
        :raises NotPlain: the fast path cannot read a value.
        """
        nulls = self._ends == self._starts
        begins = self._begins(nulls)
        if utc:
            self._check_zones(begins)
        bounds = np.stack([begins, self._ends], axis=1, dtype=np.int32)
        try:
            texts = object_texts(self._counts, self._names, self._columns, self._room, bounds, nulls)
        except pa.ArrowInvalid:
            raise NotPlain from None
        count = len(self._counts) // 2
        return texts[:count], texts[count:]

    def _begins(self, nulls: Any) -> Any:
        """Return where values begin in their messages."""
        heads = windows(self._room.data, 4)[self._starts].view("<u4")
        kinds = np.where(nulls, np.uint8(DataType.NIL), heads.view(np.uint8)[1::4])
        # a type decides what is done with a value of its column, and that what the message must look like
        cells = np.minimum(kinds, np.uint8(len(ACTIONS) - 1)) * np.uint8(len(Carrier)) + self._carriers
        actions = ACTIONS.ravel()[cells]
        texts, numerals = np.flatnonzero(actions == TEXT), np.flatnonzero(actions == NUMERAL)
        if not np.array_equal(actions == NULL, nulls) or np.count_nonzero(~nulls) != len(texts) + len(numerals):
            raise NotPlain
        begins = self._starts.copy()
        begins[texts] = self._text_begins(texts)
        begins[numerals] += 4
        sizes = self._ends[numerals] - begins[numerals]
        different = (heads[numerals] ^ (_NUMBER + (sizes << 24))) & _NUMBER_MASK
        if (different.astype(bool) | (sizes < 1) | (sizes > 127)).any():
            raise NotPlain
        self._check_numerals(begins, numerals)
        return begins

    def _text_begins(self, texts: Any) -> Any:
        """Return where texts begin in their messages; all are in the first one's character set."""
        if not len(texts):
            return texts
        starts, ends = self._starts[texts], self._ends[texts]
        head = _text_head(self._room.data[starts[0] : ends[0]].tobytes())
        text_begins, left = starts + (len(head) + 2), ends - starts - len(head)
        # after what is alike come tag, length of one byte or two, and the text, or nothing
        words = -(-(len(head) + 3) // 8)
        read = windows(self._room.data, 8 * words)[starts].view("<u8").reshape(-1, words)
        tag, low, high = read.view(np.uint8)[:, len(head) : len(head) + 3].T
        short = (tag == _CONTENT) & (low == left - 2) & (low < 128)
        others = np.flatnonzero(~short)
        sizes = (low[others] & 127) + (high[others].astype(np.int64) << 7)
        long = (tag[others] == _CONTENT) & (low[others] > 127) & (high[others] < 128) & (sizes == left[others] - 3)
        alike, mask = (np.frombuffer(part.ljust(8 * words, b"\0"), "<u8") for part in (head, b"\xff" * len(head)))
        if ((read ^ alike) & mask).any() or not (long | (left[others] == 0)).all():
            raise NotPlain
        text_begins[others] += np.where(long, 1, -2)
        return text_begins

    def _check_numerals(self, begins: Any, numbers: Any) -> None:
        if not len(numbers):
            return
        bounds = np.stack([begins[numbers], self._ends[numbers]], axis=1, dtype=np.int32)
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(self._room.data)]
        slices = pa.Array.from_buffers(pa.binary(), 2 * len(numbers) - 1, buffers)
        if len(no_numeral(data_of(slices.take(pa.array(np.arange(0, 2 * len(numbers), 2)))))):
            raise NotPlain
        unsigned = numbers[self._carriers[numbers] == Carrier.UNSIGNED]
        if (self._room.data[begins[unsigned]] == ord("-")).any():
            raise NotPlain

    def _check_zones(self, begins: Any) -> None:
        """See that no TIMESTAMP says that it is in UTC."""
        stamps = np.flatnonzero(self._carriers == Carrier.TIMESTAMP)
        signs = self._ends[stamps] - len("+00:00")
        if ((signs >= begins[stamps]) & (self._room.data[np.maximum(signs, 0)] == ord("+"))).any():
            raise NotPlain


_CONTENT = Data.DESCRIPTOR.fields_by_name["bv"].number << 3 | 2


def _text_head(message: bytes) -> bytes:
    """Return what stands before a text: its type and its character set, which is to be UTF-8."""
    try:
        charset = Data.FromString(message).charset
    except DecodeError:
        raise NotPlain from None
    head = Data(dataType=DataType.STRING, charset=charset).SerializeToString()
    if len(head) > _PADDING - 12 or not is_plain(charset):
        raise NotPlain
    return head
