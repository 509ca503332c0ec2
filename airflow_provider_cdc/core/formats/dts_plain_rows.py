"""Rows of Tencent DTS that are as most are: nulls, numbers and texts in UTF-8, written as DTS writes them.

Their values are found in the messages' own bytes by a handful of operations on whole arrays. Where one value is
anything else, all is to be read field by field (:mod:`core.formats.dts_rows`). Values: specs/tencent-dts.md, section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError

from airflow_provider_cdc.core.formats.byte_windows import windows
from airflow_provider_cdc.core.formats.dts_columns import Carrier, ColumnTables
from airflow_provider_cdc.core.formats.dts_images import ACTIONS, NULL, NUMERAL, TEXT, Problem, is_plain, no_numeral
from airflow_provider_cdc.core.formats.dts_values import data_of, offsets_of
from airflow_provider_cdc.core.formats.generated.dts_pb2 import Data, DataType, DMLType
from airflow_provider_cdc.core.formats.json_texts import Room, object_texts

_PADDING = 32  # zeros behind the messages: what is looked at of one may reach so far beyond its end
_ROOM = 16 << 20  # bytes: more than most stretches of rows have
_NUMBER = 0x1A_00_08  # tag of the type, the type, tag of a numeral
_NUMBER_MASK = 0xFF_00_FF


class Unusual(Exception):
    """Rows are not all as most are."""


class PlainRows:
    """Some rows of DML events.

    :param messages: ``RowChange`` of all rows, with values as bytes.
    :param chosen: the rows to take, one at least.
    :param ops: ``DMLType`` of each chosen row.
    :param lists: number of each chosen row's list of columns, in ``tables``.
    :raises Unusual: a row, or a value, is not as most are.
    """

    problems: ClassVar[Mapping[int, Problem]] = {}  # what has one is not as most are

    def __init__(self, messages: pa.StructArray, chosen: Any, ops: Any, lists: Any, tables: ColumnTables) -> None:
        self._room = Room(np.empty(_ROOM, np.uint8))
        counts: list[Any] = []
        places: list[Any] = []
        for name, without in (("oldColumns", DMLType.INSERT), ("newColumns", DMLType.DELETE)):
            values = messages.field(name)
            offsets = values.offsets.to_numpy()
            count = offsets[chosen + 1] - offsets[chosen]
            if (count != np.where(ops == without, 0, tables.count[lists])).any() or (np.diff(chosen) != 1).any():
                raise Unusual
            counts.append(count)
            places.append(self._taken(values.values.slice(offsets[chosen[0]], int(count.sum()))))
        self._room.put(np.zeros(_PADDING, np.uint8))
        # first all images before the rows' changes, then all after
        self._counts: Any = np.concatenate(counts)
        self._starts: Any = np.concatenate([part[:-1] for part in places])
        self._ends: Any = np.concatenate([part[1:] for part in places])
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
        :raises Unusual: a value is not as most are.
        """
        nulls = self._ends == self._starts
        begins = self._begins(nulls)
        if utc:
            self._check_zones(begins)
        bounds = np.stack([begins, self._ends], axis=1, dtype=np.int32)
        try:
            texts = object_texts(self._counts, self._names, self._columns, self._room, bounds, nulls)
        except pa.ArrowInvalid:
            raise Unusual from None
        count = len(self._counts) // 2
        return texts[:count], texts[count:]

    def _begins(self, nulls: Any) -> Any:
        """Return where values begin in their messages."""
        words = self._words(self._starts)
        sizes = self._ends - self._starts
        kinds = np.where(nulls, DataType.NIL, (words >> np.uint64(8) & np.uint64(0xFF)).astype(np.int64))
        is_text = kinds == DataType.STRING
        actions = np.where(nulls, NULL, np.where(is_text, TEXT, NUMERAL))
        kinds = np.minimum(kinds, len(ACTIONS) - 1)
        numbers = ~(nulls | is_text)
        fits = ACTIONS.ravel()[kinds * len(Carrier) + self._carriers] == actions
        sound = (words & _NUMBER_MASK) == _NUMBER
        sound &= (words >> np.uint64(24) & np.uint64(0xFF)).view(np.int64) == sizes - 4
        sound &= (sizes > 4) & (sizes < 4 + 128)
        if not (fits & (sound | ~numbers)).all():
            raise Unusual
        begins = self._starts + 4
        begins[nulls] = self._starts[nulls]
        texts = np.flatnonzero(is_text)
        begins[texts] = self._text_begins(texts)
        self._check_numerals(begins, np.flatnonzero(numbers))
        return begins

    def _text_begins(self, texts: Any) -> Any:
        """Return where texts begin in their messages; all are in the first one's character set."""
        if not len(texts):
            return texts
        starts, ends = self._starts[texts], self._ends[texts]
        head = _text_head(self._room.data[starts[0] : ends[0]].tobytes())
        words, masks = (np.frombuffer(part.ljust(24, b"\0"), "<u8") for part in (head, b"\xff" * len(head)))
        different: Any = np.zeros(len(texts), np.uint64)
        for number in range(-(-len(head) // 8)):
            different |= (self._words(starts + 8 * number) ^ words[number]) & masks[number]
        tail = self._words(starts + len(head))  # tag, length of one byte or two
        left = ends - starts - len(head)
        low, high = ((tail >> np.uint64(shift) & np.uint64(0xFF)).view(np.int64) for shift in (8, 16))
        short = (low == left - 2) & (low < 128) & (low > 0)
        long = ((low & 127) + (high << 7) == left - 3) & (low > 127) & (high < 128) & (high > 0)
        sound = ((tail & np.uint64(0xFF)) == _CONTENT) & (short | long)
        empty = left == 0
        if not ((different == 0) & (sound | empty)).all():
            raise Unusual
        return starts + len(head) + np.where(empty, 0, np.where(short, 2, 3))

    def _words(self, places: Any) -> Any:
        """Return the eight bytes at each place."""
        return windows(self._room.data, 8)[places].view("<u8")

    def _check_numerals(self, begins: Any, numbers: Any) -> None:
        if not len(numbers):
            return
        bounds = np.stack([begins[numbers], self._ends[numbers]], axis=1, dtype=np.int32)
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(self._room.data)]
        slices = pa.Array.from_buffers(pa.binary(), 2 * len(numbers) - 1, buffers)
        if len(no_numeral(data_of(slices.take(pa.array(np.arange(0, 2 * len(numbers), 2)))))):
            raise Unusual
        unsigned = numbers[self._carriers[numbers] == Carrier.UNSIGNED]
        if (self._room.data[begins[unsigned]] == ord("-")).any():
            raise Unusual

    def _check_zones(self, begins: Any) -> None:
        """See that no TIMESTAMP says that it is in UTC."""
        stamps = np.flatnonzero(self._carriers == Carrier.TIMESTAMP)
        signs = self._ends[stamps] - len("+00:00")
        if ((signs >= begins[stamps]) & (self._room.data[np.maximum(signs, 0)] == ord("+"))).any():
            raise Unusual


_CONTENT = Data.DESCRIPTOR.fields_by_name["bv"].number << 3 | 2


def _text_head(message: bytes) -> bytes:
    """Return what stands before a text: its type and its character set, which is to be UTF-8."""
    try:
        charset = Data.FromString(message).charset
    except DecodeError:
        raise Unusual from None
    head = Data(dataType=DataType.STRING, charset=charset).SerializeToString()
    if len(head) > 24 or not is_plain(charset):
        raise Unusual
    return head
