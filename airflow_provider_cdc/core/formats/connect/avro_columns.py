# SPDX-License-Identifier: Apache-2.0
"""Write many Avro values of one type as JSON at once, member by member (docs/design/performance.md)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from airflow_provider_cdc.core.formats.connect.avro_code import Needed, Read, compiled, point, short
from airflow_provider_cdc.core.formats.connect.avro_types import AvroType

Pieces = list[str | pa.StringArray]
"""Texts that stand one behind the other: those of all values, and one for each value."""

_PAD = bytes(16)  # a number at the end is read as eight bytes, and perhaps two more
_HIGH = np.uint64(0x8080_8080_8080_8080)
_ONES = np.uint64(0x0101_0101_0101_0101)
_ONE, _LAST = np.uint64(1), np.uint64(56)
# how two numbers of 7, 14 and 28 bits become one of 14, 28 and 56: bits that stay, bits that move, and by how many
_STEPS = tuple(
    (np.uint64(stay), np.uint64(move), np.uint64(by))
    for stay, move, by in (
        (0x007F_007F_007F_007F, 0x7F00_7F00_7F00_7F00, 1),
        (0x0000_3FFF_0000_3FFF, 0x3FFF_0000_3FFF_0000, 2),
        (0x0000_0000_0FFF_FFFF, 0x0FFF_FFFF_0000_0000, 4),
    )
)
_BOOLEANS = ["false", "true"]
_MOST_BYTES = 1 << 30  # indexes into them are numbers of 32 bits
_SHORT = 64  # bytes of a text of which it is looked whether all values have it
_encode: Any = msgspec.json.Encoder().encode


class Unfit(ValueError):
    """Raise for values of which one is not what it should be; reading them one by one shows which."""


def read_together(
    kind: AvroType, frames: Sequence[bytes], head: int, needed: Needed, apart: Collection[str] = ()
) -> tuple[bytes, dict[str, list[bytes]]]:
    """Return a list of records in JSON as Connect's converter writes it, and some of their members by name.

    :param frames: records that take all bytes of a frame behind its first ones.
    :param head: number of those.
    :param needed: members that are returned.
    :param apart: those that are not in the list, but returned next to it, each in JSON.
    :raises ValueError: one of the records is none of this type.
    """
    sizes = np.fromiter(map(len, frames), np.int64, len(frames))
    ends = sizes.cumsum()
    if ends[-1] > _MOST_BYTES:
        raise Unfit
    values = _Values(_Bytes(b"".join((*frames, _PAD))), ends - sizes + head)
    pieces: Pieces = ["{"]
    members: dict[str, list[bytes]] = {}
    for name, part in kind.fields:
        if name in apart:
            members[name] = values.texts(part)
        elif name in needed:
            pieces += [f"{_encode(name).decode()}:", *values.pieces(part, needed[name]), ","]
        else:
            values.skip(part)
    if (values.at != ends).any():
        raise Unfit
    if len(pieces) > 1:
        pieces.pop()
    texts = _joined([*pieces, "},"])
    if isinstance(texts, str):
        return f"[{(texts * len(frames))[:-1]}]".encode(), members
    bounds, data = _bounds(texts)
    return b"".join((b"[", data[: bounds[-1] - 1], b"]")), members


def _joined(pieces: Pieces) -> pa.StringArray | str:
    """Return the text of each value, or the one that all have."""
    merged: Pieces = []
    for piece in pieces:
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    if len(merged) == 1:
        return merged[0]
    texts = [pa.scalar(piece) if isinstance(piece, str) else piece for piece in merged]
    return pc.binary_join_element_wise(*texts, "", null_handling="replace", null_replacement="null")


def _bounds(texts: pa.StringArray) -> tuple[NDArray[np.int32], memoryview]:
    """Return where texts begin in their bytes, and where the last ends."""
    _, offsets, data = texts.buffers()
    return np.frombuffer(offsets, np.int32, len(texts) + 1), memoryview(data or b"")


def _split(texts: pa.StringArray | str, count: int) -> list[bytes]:
    """Return each of so many texts."""
    if isinstance(texts, str):
        return [texts.encode()] * count
    bounds, data = _bounds(texts)
    ends, whole = bounds.tolist(), data.tobytes()
    return [whole[begin:end] for begin, end in pairwise(ends)]


class _Bytes:
    """Bytes, from each of which eight can be read as one number."""

    def __init__(self, data: bytes) -> None:
        self.data, self.end = data, len(data) - len(_PAD)
        self.each = np.frombuffer(data, np.uint8)
        self.eight = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))
        self.buffer = pa.py_buffer(data)


class _Values:
    """Read values that begin at ``at``, in rising order; it moves behind what was read."""

    def __init__(self, data: _Bytes, at: NDArray[np.int64]) -> None:
        self._data, self.at = data, at

    def pieces(self, kind: AvroType, needed: Needed | None = None) -> Pieces:
        """Return values in JSON."""
        if kind.null is None:
            return self._some(kind, needed)
        there = self._there(kind.null)
        if isinstance(there, bool):
            return self._some(kind, needed) if there else ["null"]
        rows = _Values(self._data, self.at[there])
        texts = _joined(rows._some(kind, needed))
        self.at[there] = rows.at
        if isinstance(texts, str):
            texts = pa.repeat(texts, len(rows.at))
        return [texts.take(pa.array(there.cumsum() - 1, pa.int64(), mask=~there))]

    def texts(self, kind: AvroType) -> list[bytes]:
        """Return each value in JSON."""
        count = len(self.at)
        there = True if kind.null is None else self._there(kind.null)
        if isinstance(there, bool):
            return _split(_joined(self._some(kind, None) if there else ["null"]), count)
        rows = _Values(self._data, self.at[there])
        some = _split(_joined(rows._some(kind, None)), len(rows.at))
        self.at[there] = rows.at
        result = [b"null"] * count
        for row, text in zip(there.nonzero()[0].tolist(), some, strict=True):
            result[row] = text
        return result

    def skip(self, kind: AvroType) -> None:
        """Pass over values."""
        there = True if kind.null is None else self._there(kind.null)
        if isinstance(there, bool):
            if there:
                self._skip_some(kind)
            return
        rows = _Values(self._data, self.at[there])
        rows._skip_some(kind)
        self.at[there] = rows.at

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

    def _some(self, kind: AvroType, needed: Needed | None) -> Pieces:
        """Return values that are not null."""
        match kind.kind:
            case "record":
                return self._record(kind, needed)
            case "string":
                return ['"', self._text(), '"']
            case "int" | "long":
                number = self._number()
                signed = (number >> _ONE).view(np.int64) ^ -(number & _ONE).view(np.int64)
                return [str(signed[0]) if (signed == signed[0]).all() else pa.array(signed).cast(pa.string())]
            case "bytes":
                return [_items(self._slices(self._sizes()))]
            case "fixed":
                return [_items(self._slices(kind.size))]
            case "double":
                doubles = self._eight(8).view(np.float64)
                values = doubles.tolist()
                return [_items(values if np.isfinite(doubles).all() else list(map(point, values)))]
            case "float":
                return [_items(list(map(short, self._eight(4).astype(np.uint32).view(np.float32).tolist())))]
            case "boolean":
                return [self._choice(self._one(), _BOOLEANS)]
            case "enum":
                symbols = [_encode(symbol).decode() for symbol in kind.symbols]
                return [self._choice(self._number() >> _ONE, symbols)]
            case "null":
                return ["null"]
        return [self._one_by_one(compiled(replace(kind, null=None)))]

    def _one_by_one(self, read: Read) -> pa.StringArray:
        """Return values that have parts without a fixed number."""
        texts: list[bytes] = []
        ends: list[int] = []
        for at in self.at.tolist():
            try:
                value, end = read(self._data.data, at)
                texts.append(_encode(value))
            except Exception:  # what reading bytes that do not fit stumbles on
                raise Unfit from None
            ends.append(end)
        self._move(np.array(ends) - self.at)
        return pa.array(texts, pa.binary()).cast(pa.string())

    def _record(self, kind: AvroType, needed: Needed | None) -> Pieces:
        pieces: Pieces = []
        for name, part in kind.fields:
            if needed is not None and name not in needed:
                self.skip(part)
                continue
            below = None if needed is None else needed[name]
            pieces += [f"{',' if pieces else '{'}{_encode(name).decode()}:", *self.pieces(part, below)]
        return [*pieces, "}"] if pieces else ["{}"]

    def _skip_some(self, kind: AvroType) -> None:
        match kind.kind:
            case "record":
                for _, part in kind.fields:
                    self.skip(part)
            case "string" | "bytes":
                self._move(self._sizes())
            case "int" | "long" | "enum":
                self._skip_number()
            case "double" | "float" | "fixed":
                self._move({"double": 8, "float": 4}.get(kind.kind, kind.size))
            case _:
                self._some(kind, None)

    # ---- bytes

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
        if (number & _ONE).any():
            raise Unfit
        sizes: NDArray[np.int64] = (number >> _ONE).view(np.int64)
        if sizes.max() > self._data.end:
            raise Unfit
        return sizes

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
        """Return texts as they stand between quotes in JSON; one, if it is that of all."""
        sizes, at = self._sizes(), self.at
        size = int(sizes[0])
        if 0 < size <= _SHORT and (sizes == size).all() and int(at.max()) + size <= self._data.end:
            first = self._data.data[at[0] : at[0] + size]
            # the last eight bytes of a longer text are looked at again
            begins = range(0, size - 7, 8) if size % 8 == 0 else (*range(0, size - 7, 8), max(0, size - 8))
            mask = np.uint64((1 << 8 * min(size, 8)) - 1)
            if all(not ((self._data.eight[at + n] ^ self._data.eight[at[0] + n]) & mask).any() for n in begins):
                self._move(sizes)
                text: str = _encode(first.decode())[1:-1].decode()
                return text
        return _escaped(self._bytes(sizes).cast(pa.string()))

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
        return _every_second(bounds, self._data.buffer)

    @staticmethod
    def _choice(number: NDArray[Any], texts: list[str]) -> pa.StringArray:
        if number.max() >= len(texts):
            raise Unfit
        return pa.array(texts, pa.string()).take(pa.array(number.astype(np.int32)))


def _count(low: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the number of bytes up to the one with this highest bit."""
    return (((low - _ONE) & _ONES) * _ONES >> _LAST).view(np.int64)


def _compact(word: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the low seven bits of each byte up to the one with this highest bit; of all eight bytes for none."""
    word = word & (low - _ONE) & ~_HIGH
    for stay, move, by in _STEPS:
        word = (word & stay) | ((word & move) >> by)
    return word


def _every_second(bounds: NDArray[np.int32], data: pa.Buffer) -> pa.BinaryArray:
    """Return the bytes between the first and the second bound, the third and the fourth."""
    count = len(bounds) - 1
    whole = pa.BinaryArray.from_buffers(pa.binary(), count, [None, pa.py_buffer(bounds), data])
    return whole.take(pa.array(np.arange(0, count, 2, dtype=np.int32)))


def _items(values: list[Any]) -> pa.StringArray:
    """Return values in JSON that has no comma inside."""
    text = _encode(values)
    commas = np.flatnonzero(np.frombuffer(text, np.uint8) == ord(","))
    bounds = np.empty(2 * len(values), np.int32)
    bounds[0], bounds[-1] = 1, len(text) - 1
    bounds[1:-1:2], bounds[2::2] = commas, commas + 1
    return _every_second(bounds, pa.py_buffer(text)).cast(pa.string())


def _escaped(texts: pa.StringArray) -> pa.StringArray:
    """Return texts as they stand between quotes in JSON."""
    bounds, data = _bounds(texts)
    result, letters = texts, np.frombuffer(data, np.uint8, bounds[-1])
    for letter in ("\\", '"'):
        if (letters == ord(letter)).any():
            result = pc.replace_substring(result, letter, f"\\{letter}")
    control = np.flatnonzero(letters < ord(" "))
    if len(control):
        rows = np.unique(np.searchsorted(bounds[1:], control, "right"))
        escaped = [_encode(texts[row].as_py())[1:-1].decode() for row in rows.tolist()]
        mask = np.zeros(len(texts), np.bool_)
        mask[rows] = True
        result = pc.replace_with_mask(result, mask, pa.array(escaped, pa.string()))
    return result
