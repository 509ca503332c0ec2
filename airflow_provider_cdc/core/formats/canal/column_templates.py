# SPDX-License-Identifier: Apache-2.0
"""Compare Canal's column messages with those of an example row: only values differ (docs/wire/canal.md 1.1).

The columns of a table's rows are the same bytes but for ``updated``, ``isNull`` and ``value``. Those are found by a
handful of operations on whole arrays. A column that is written otherwise is not found: it is to be read field by field.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from airflow_provider_cdc.core.arrays import BoolArray, ByteArray, IntArray, UInt64Array
from airflow_provider_cdc.core.formats.common.byte_windows import windows
from airflow_provider_cdc.core.formats.generated.canal_record_pb2 import Column

PADDING = 2048  # zeros wanted behind the messages: a comparison may read so far beyond the last one
_LONGEST = 512  # bytes before or after a value: what is longer, as an enum of hundreds of labels, is not compared
_UPDATED, _IS_NULL, _VALUE = 5, 6, 8
_FLAG_TAGS = (bytes([_UPDATED << 3]), bytes([_IS_NULL << 3]))
_VARINT, _EIGHT, _DELIMITED, _FOUR = 0, 1, 2, 5
_FLAG = 0xFEFF  # a tag and a bool whose value does not matter


class Found(NamedTuple):
    """Result of a comparison of rows with as many columns as the example; arrays are rows by columns.

    :param usual: which rows have the example's columns; what stands here of the others means nothing.
    :param begins: where values begin; ``ends`` is where they end.
    :param nulls: ``isNull``.
    """

    usual: BoolArray
    begins: IntArray
    ends: IntArray
    nulls: BoolArray


class Template:
    """Hold the column messages of one row without the values.

    :ivar columns: what they say.
    """

    def __init__(self, parts: Sequence[tuple[bytes, bytes, Column]]) -> None:
        heads, tails, self.columns = (list(members) for members in zip(*parts, strict=True))
        self._heads: list[bytes] = heads
        self._tails: list[bytes] = tails
        self._head_sizes: IntArray = np.array([len(head) for head in heads], np.int64)
        self._tail_sizes: IntArray = np.array([len(tail) for tail in tails], np.int64)
        self._first = _Pieces(heads[:1])
        # a column's message follows the one before: what ends one and begins the next is compared in one go
        self._joints = _Pieces([tail + head for tail, head in zip(tails, [*heads[1:], b""], strict=True)])

    def resembles(self, messages: Sequence[bytes]) -> bool:
        """Say whether a row may be one of these."""
        return all(
            message.startswith(head) and message.endswith(tail) and message[len(head) : len(head) + 1] in _FLAG_TAGS
            for message, head, tail in zip(messages, self._heads, self._tails, strict=True)
        )

    def find(self, data: ByteArray, starts: IntArray, ends: IntArray) -> Found:
        """Return which rows have these columns, and where their values are.

        :param data: messages, one behind the other, and :data:`PADDING` zeros.
        :param starts: where messages begin, rows by columns; ``ends`` is where they end.
        """
        tails = ends - self._tail_sizes
        wrong = self._joints.differences(data, tails) | self._first.differences(data, starts[:, :1])
        # 28 xx (updated) or nothing, 30 xx (isNull), then 42, a length and the value, or nothing
        offsets = starts + self._head_sizes
        words = windows(data, 8)[offsets].view("<u8")
        updated = (words & _FLAG) == (_UPDATED << 3)
        words >>= updated * np.uint64(16)
        different = (words & _FLAG) ^ (_IS_NULL << 3)
        nulls = (words & 0x0100) != 0
        offsets += updated * np.int64(2)
        offsets += 2
        # a negative size becomes a huge one
        sizes = np.minimum((tails - offsets).view(np.uint64), np.uint64(len(_VALUES.sizes) - 1)).view(np.int64)
        words >>= np.uint64(16)
        words &= _VALUES.masks[sizes]
        words ^= _VALUES.words[sizes]
        different |= words
        offsets += _VALUES.sizes[sizes]
        # a value that is there and null is seldom, and is to be a text too
        different |= nulls & (offsets != tails)
        return Found((wrong | np.bitwise_or.reduce(different, axis=1)) == 0, offsets, tails, nulls)


class _Pieces:
    """Hold the bytes expected in each column of a row, as words of eight bytes."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._size = 8 * max(1, -(-max(map(len, pieces)) // 8))
        self._words = self._padded(pieces)
        self._masks = self._padded([b"\xff" * len(piece) for piece in pieces])

    def _padded(self, pieces: Sequence[bytes]) -> UInt64Array:
        words: UInt64Array = np.frombuffer(b"".join(piece.ljust(self._size, b"\0") for piece in pieces), "<u8")
        return words

    def differences(self, data: ByteArray, offsets: IntArray) -> UInt64Array:
        """Return for each row what is 0 where these bytes stand at the places."""
        words = windows(data, self._size)[offsets].view("<u8")
        words ^= self._words
        words &= self._masks
        different: UInt64Array = np.bitwise_or.reduce(words, axis=1)
        return different


class _Headers:
    """Hold tag and length of a value by the bytes that all three take: their word, its mask, and their size."""

    def __init__(self) -> None:
        sizes: UInt64Array = np.arange(1 << 14, dtype=np.uint64)
        short = sizes < 128
        lengths = np.where(short, sizes, (sizes & 127) | 128 | (sizes >> np.uint64(7) << np.uint64(8)))
        offsets = sizes + np.where(short, np.uint64(2), np.uint64(3))
        count = int(offsets[-1]) + 2
        # no value takes one byte, or 130, or, here, more than a length of two bytes can say: no word has these bits
        self.words: UInt64Array = np.full(count, 1 << 63, np.uint64)
        self.masks: UInt64Array = np.zeros(count, np.uint64)
        self.sizes: IntArray = np.zeros(count, np.int64)
        self.words[offsets] = lengths << np.uint64(8) | np.uint64(_VALUE << 3 | _DELIMITED)
        self.masks[offsets] = np.where(short, np.uint64(0xFFFF), np.uint64(0xFFFFFF))
        self.sizes[offsets] = np.where(short, 2, 3)
        self.words[0] = 0


_VALUES = _Headers()


def template_of(messages: Sequence[bytes]) -> Template | None:
    """Return the template of a row, None if its columns are written in another way than this module knows."""
    parts = [_part_of(message) for message in messages]
    known = [part for part in parts if part is not None]
    return Template(known) if known and len(known) == len(parts) else None


def _part_of(message: bytes) -> tuple[bytes, bytes, Column] | None:
    """Return what stands before and after the fields that differ, and what it says."""
    begin, end = len(message), 0
    tail = 0
    for number, start, stop in _fields(message):
        if start < 0:
            return None
        if number in (_UPDATED, _IS_NULL, _VALUE):
            begin, end = min(begin, start), stop
        tail = stop
    head, rest = message[:begin], message[end:] if end else b""
    if tail != len(message) or not end or max(len(head), len(rest)) > _LONGEST:
        return None
    try:
        column = Column.FromString(head + rest)
    except DecodeError:
        return None
    # protobuf itself must see no such field outside of the part that is compared on its own
    return None if column.value or column.HasField("isNull") else (head, rest, column)


def _fields(message: bytes) -> Iterator[tuple[int, int, int]]:
    """Give out the fields of a message, number, begin and end; a begin of -1 where one is not as usual."""
    offset = 0
    while offset < len(message):
        start, tag = offset, message[offset]
        kind, size, offset = tag & 7, 0, offset + 1
        if kind in (_VARINT, _DELIMITED):
            shift = 0
            while offset < len(message) and message[offset] > 127:
                size |= (message[offset] & 127) << shift
                shift, offset = shift + 7, offset + 1
            if offset < len(message):
                size |= message[offset] << shift
            offset += 1
        if tag > 127 or kind not in (_VARINT, _EIGHT, _DELIMITED, _FOUR):
            yield 0, -1, offset
            return
        offset += {_VARINT: 0, _EIGHT: 8, _DELIMITED: size, _FOUR: 4}[kind]
        yield tag >> 3, start, offset
