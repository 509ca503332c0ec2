# SPDX-License-Identifier: Apache-2.0
"""Walk through many Avro values of one type at once: numpy moves one cursor for each (docs/design/performance.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_PAD = bytes(16)  # a number at the end is read as eight bytes, and perhaps two more
_HIGH = np.uint64(0x8080_8080_8080_8080)
_ONES = np.uint64(0x0101_0101_0101_0101)
ONE, _LAST = np.uint64(1), np.uint64(56)
# how two numbers of 7, 14 and 28 bits become one of 14, 28 and 56: bits that stay, bits that move, and by how many
_STEPS = tuple(
    (np.uint64(stay), np.uint64(move), np.uint64(by))
    for stay, move, by in (
        (0x007F_007F_007F_007F, 0x7F00_7F00_7F00_7F00, 1),
        (0x0000_3FFF_0000_3FFF, 0x3FFF_0000_3FFF_0000, 2),
        (0x0000_0000_0FFF_FFFF, 0x0FFF_FFFF_0000_0000, 4),
    )
)
_MOST_BYTES = 1 << 30  # indexes into them are numbers of 32 bits
_SHORT = 64  # bytes of a text of which it is looked whether all values have it


class Unfit(ValueError):
    """Raise for values of which one is not what it should be; reading them one by one shows which."""


class _Joined:
    """Hold bytes one behind the other, from each of which eight can be read as one number."""

    def __init__(self, data: bytes) -> None:
        self.data, self.end = data, len(data) - len(_PAD)
        self.each = np.frombuffer(data, np.uint8)
        self.eight = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))
        self.buffer = pa.py_buffer(data)


class Cursor:
    """Read values that begin at ``at``, in rising order; it moves behind what was read."""

    def __init__(self, data: _Joined, at: NDArray[np.int64]) -> None:
        self._data, self.at = data, at

    @classmethod
    def behind_heads(cls, frames: Sequence[bytes], head: int) -> tuple[Self, NDArray[np.int64]]:
        """Return what reads frames, each behind so many bytes, and where each has to end.

        :raises Unfit: they are too many bytes.
        """
        sizes = np.fromiter(map(len, frames), np.int64, len(frames))
        ends = sizes.cumsum()
        if ends[-1] > _MOST_BYTES:
            raise Unfit
        return cls(_Joined(b"".join((*frames, _PAD))), ends - sizes + head), ends

    def _there(self, null: int) -> NDArray[np.bool_] | bool:
        """Return which values of a union are not null; one answer, if it is that of all."""
        branch = self._one()
        least, most = branch.min(), branch.max()
        if most > 2 or (branch & 1).any():
            raise Unfit
        if least == most:
            return bool(least != 2 * null)
        there: NDArray[np.bool_] = branch != 2 * null
        return there

    def _move(self, by: Any) -> None:
        self.at += by
        if self.at.max() > self._data.end:
            raise Unfit

    def _one(self) -> NDArray[np.uint8]:
        value: NDArray[np.uint8] = self._data.each.take(self.at)
        self._move(1)
        return value

    def _eight(self, size: int) -> NDArray[np.uint64]:
        values: NDArray[np.uint64] = self._data.eight[self.at]
        self._move(size)
        return values

    def _sizes(self) -> NDArray[np.int64]:
        """Return the lengths of texts."""
        number = self._number()
        if (number & ONE).any():
            raise Unfit
        sizes: NDArray[np.int64] = (number >> ONE).view(np.int64)
        if sizes.max() > self._data.end:
            raise Unfit
        return sizes

    def _signed(self) -> NDArray[np.int64]:
        """Return numbers."""
        number = self._number()
        return (number >> ONE).view(np.int64) ^ -(number & ONE).view(np.int64)

    def _number(self) -> NDArray[np.uint64]:
        """Return numbers in zigzag."""
        first = self._data.each.take(self.at)
        if first.max() < 128:
            self._move(1)
            return first.astype(np.uint64)
        word = self._data.eight[self.at]
        low = _HIGH & ~word
        low &= -low  # highest bit of the last byte
        if not low.all():
            return self._long_number(word, low)
        self._move(_count(low))
        return _compact(word, low)

    def _long_number(self, word: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return numbers of which some have more than eight bytes."""
        long = low == 0
        more = self._data.each.take(self.at + 8), self._data.each.take(self.at + 9)
        two = long & (more[0] > 127)
        if (more[1][two] > 1).any():
            raise Unfit
        number = _compact(word, low)
        rest = (more[0] & 127).astype(np.uint64) | (np.where(two, more[1], 0).astype(np.uint64) << np.uint64(7))
        number |= np.where(long, rest, 0).astype(np.uint64) << _LAST
        self._move(np.where(long, 9 + two, _count(low)))
        return number

    def _skip_number(self) -> None:
        low = _HIGH & ~self._data.eight[self.at]
        low &= -low
        if low.all():
            self._move(_count(low))
        else:
            self._number()

    def _text(self) -> str | pa.StringArray:
        """Return texts; one, if it is that of all."""
        sizes, at = self._sizes(), self.at
        size = int(sizes[0])
        if 0 < size <= _SHORT and (sizes == size).all() and int(at.max()) + size <= self._data.end:
            first = self._data.data[at[0] : at[0] + size]
            # the last eight bytes of a longer text are looked at again
            begins = range(0, size - 7, 8) if size % 8 == 0 else (*range(0, size - 7, 8), max(0, size - 8))
            mask = np.uint64((1 << 8 * min(size, 8)) - 1)
            if all(not ((self._data.eight[at + n] ^ self._data.eight[at[0] + n]) & mask).any() for n in begins):
                self._move(sizes)
                return first.decode()
        return self._bytes(sizes).cast(pa.string())

    def _slices(self, sizes: Any) -> list[bytes]:
        """Return so many bytes of each value, as objects."""
        begins = self.at.tolist()
        self._move(sizes)
        data = self._data.data
        return [data[begin:end] for begin, end in zip(begins, self.at.tolist(), strict=True)]

    def _bytes(self, sizes: NDArray[np.int64]) -> pa.BinaryArray:
        """Return so many bytes of each value."""
        bounds = np.empty(2 * len(sizes), np.int32)
        bounds[0::2] = self.at
        self._move(sizes)
        bounds[1::2] = self.at
        return every_second(bounds, self._data.buffer)


def _count(low: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the number of bytes up to the one with this highest bit."""
    return (((low - ONE) & _ONES) * _ONES >> _LAST).view(np.int64)


def _compact(word: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the low seven bits of each byte up to the one with this highest bit; of all eight bytes for none."""
    word = word & (low - ONE) & ~_HIGH
    for stay, move, by in _STEPS:
        word = (word & stay) | ((word & move) >> by)
    return word


def every_second(bounds: NDArray[np.int32], data: pa.Buffer) -> pa.BinaryArray:
    """Return the bytes between the first and the second bound, the third and the fourth."""
    count = len(bounds) - 1
    whole = pa.BinaryArray.from_buffers(pa.binary(), count, [None, pa.py_buffer(bounds), data])
    return whole.take(pa.array(np.arange(0, count, 2, dtype=np.int32)))
