# SPDX-License-Identifier: Apache-2.0
"""Write Arrow columns as JSON texts, without Python code for each value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec
import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.arrays import BoolArray, ByteArray, Int32Array, IntArray

_encode = msgspec.json.Encoder().encode
# stand for a quote of JSON itself and for what begins an object, until strings are escaped: no UTF-8 has these bytes
_QUOTE, _BEGIN = b"\xff", b"\xfe"
_TO_QUOTE = np.uint8(_QUOTE[0] - ord('"'))
_NULL, _ENDS = b"null", (_QUOTE + b"}", b"}")  # the end of an object: after a string, after null
_VARIANTS = 8  # of a name: see _variants
_BLOCK = 1 << 16  # bytes: what is computed of so many stays in the processor's cache
_ESCAPES = [_encode(chr(byte))[1:-1] for byte in range(128)]
_GROWTH = np.array([len(escape) - 1 for escape in _ESCAPES])


def escaped(texts: pa.StringArray) -> pa.StringArray:
    """Return texts as they stand in JSON strings, without the quotes; bytes that are not UTF-8 stay as they are.

    :param texts: without nulls.
    """
    offsets = text_offsets(texts)
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    # each character is escaped by itself: the texts may be one while that is done
    special = special_places(data)
    if not len(special):
        return texts
    holders = np.searchsorted(offsets[1:], special + offsets[0], "right")
    grown = np.bincount(holders, _GROWTH[data[special]], len(texts)).cumsum().astype(np.int32)
    ends = offsets - offsets[0]
    ends[1:] += grown
    whole = _replaced(data.tobytes(), _controls(data[special]))
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends), pa.py_buffer(whole))


def special_places(data: ByteArray) -> IntArray:
    """Return the places of bytes that cannot stand in a JSON string as they are."""
    indices: IntArray = np.flatnonzero((data < 0x20) | (data == ord('"')) | (data == ord("\\")))
    return indices


def text_offsets(texts: pa.StringArray) -> Int32Array:
    """Return where each text begins in the array's bytes, and where the last one ends."""
    offsets: Int32Array = np.frombuffer(texts.buffers()[1] or b"\0\0\0\0", np.int32)
    return offsets[texts.offset : texts.offset + len(texts) + 1]


class Room:
    """Hold texts one behind the other in memory that is used again.

    :param data: what is used of it first; more is taken where that is too little.
    """

    def __init__(self, data: ByteArray) -> None:
        self.data = data
        self.used = 0

    def put(self, texts: ByteArray) -> int:
        """Add texts; return where they begin."""
        begin, self.used = self.used, self.used + len(texts)
        if self.used > len(self.data):
            self.data = np.concatenate([self.data[:begin], np.empty(self.used, np.uint8)])
        self.data[begin : self.used] = texts
        return begin


def object_texts(
    sizes: IntArray, names: Sequence[str], name_places: IntArray, room: Room, bounds: Int32Array, nulls: BoolArray
) -> pa.StringArray:
    """Return JSON objects of strings and nulls; null for those without members.

    :param sizes: how many members each object has; the other arguments have one element a member, in order.
    :param names: distinct names; ``name_places`` says which is a member's.
    :param room: has the strings, as they are; ``bounds`` are begin and end of each.
    :param nulls: whether a value is null.
    :raises ArrowInvalid: a string is not UTF-8.
    """
    count, pieces = len(name_places), [_NULL, *_ENDS, *(piece for name in names for piece in _variants(name))]
    ends = np.cumsum([0, *map(len, pieces)]) + room.put(np.frombuffer(b"".join(pieces), np.uint8))
    # every second stretch between bounds is a piece: the strings, null, how the last object ends, names
    every = np.concatenate([bounds.ravel(), np.stack([ends[:-1], ends[1:]], axis=1).ravel()], dtype=np.int32)
    after_null: BoolArray = np.append(True, nulls)
    starts: IntArray = np.append(0, np.cumsum(sizes))
    variants: IntArray = 2 * (count + 3 + name_places * _VARIANTS) + 2 * nulls
    variants += 4 * after_null[:-1]
    variants[starts[:-1][sizes > 0]] += 8
    indices: IntArray = np.empty(2 * count + 1, np.int64)
    indices[:-1:2] = variants
    indices[1::2] = np.where(nulls, 2 * count, 2 * np.arange(count))
    indices[-1] = 2 * (count + 1 + after_null[-1])
    buffers = [None, pa.py_buffer(every), pa.py_buffer(room.data)]
    pool = pa.BinaryArray.from_buffers(pa.binary(), len(every) - 1, buffers).take(pa.array(indices))
    # the pieces lie one behind the other
    texts = np.frombuffer(pool.buffers()[2], np.uint8)[len(_ENDS[1]) : text_offsets(pool)[-1]]
    return _finished(texts, sizes > 0, 4 * count - 2 * int(np.count_nonzero(nulls)))


def _finished(texts: ByteArray, there: BoolArray, quotes: int) -> pa.StringArray:
    """Return objects with all escaped but the quotes that are wanted.

    :param texts: all objects, with :data:`_QUOTE` for these quotes and :data:`_BEGIN` where one begins.
    :param there: which objects there are; the others are null.
    :param quotes: how many quotes are wanted.
    """
    controls = _controls(texts)
    blocks = [_replaced(texts[begin : begin + _BLOCK].tobytes(), controls) for begin in range(0, len(texts), _BLOCK)]
    # Arrow's memory: of so much others would be given back and fetched again each time
    done = pa.allocate_buffer(sum(map(len, blocks)))
    data, begin, begins = np.frombuffer(done, np.uint8), 0, list[IntArray]()
    for block in (np.frombuffer(block, np.uint8) for block in blocks):
        part, marks = data[begin : begin + len(block)], block == _QUOTE[0]
        quotes -= int(np.count_nonzero(marks))
        np.subtract(block, marks.view(np.uint8) * _TO_QUOTE, out=part)
        starts = np.flatnonzero(block == _BEGIN[0])
        part[starts] = ord("{")
        begins.append(starts + begin)
        begin += len(block)
    ends: IntArray = np.concatenate([*begins, [begin]])
    if quotes or len(ends) != np.count_nonzero(there) + 1:
        raise pa.ArrowInvalid("a string has a byte that UTF-8 has not")
    offsets = ends[np.cumsum(np.append(0, there))].astype(np.int32)
    buffers = [pa.array(there).buffers()[1], pa.py_buffer(offsets), done]
    return pa.BinaryArray.from_buffers(pa.binary(), len(there), buffers).cast(pa.string())


def _controls(texts: ByteArray) -> list[int]:
    """Return which control characters there are."""
    return np.flatnonzero(np.bincount(texts[texts < 0x20])).tolist() if texts.min(initial=0xFF) < 0x20 else []


def _replaced(whole: bytes, controls: Iterable[int]) -> bytes:
    """Return texts with all that is special in them escaped."""
    # the backslash first: escapes begin with one; few are there, and each goes several times as quick as encoding
    for byte in (ord("\\"), ord('"'), *controls):
        whole = whole.replace(bytes([byte]), _ESCAPES[byte])
    return whole


@lru_cache(maxsize=65_536)
def _variants(name: str) -> tuple[bytes, ...]:
    """Return a name as it stands before a string and before null.

    First in an object that another is, after a string and after null; then where it is the first one, and ends another.
    """
    text = _QUOTE + name.encode() + _QUOTE + b":"
    befores = (_QUOTE + b",", b",", *(end + _BEGIN for end in _ENDS))
    return tuple(before + text + after for before in befores for after in (_QUOTE, b""))
