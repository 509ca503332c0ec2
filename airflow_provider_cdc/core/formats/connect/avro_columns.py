# SPDX-License-Identifier: Apache-2.0
"""Read many Avro records of one type at once, member by member (docs/design/performance.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise, repeat
from typing import Any, NamedTuple, TypeVar, get_args

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from airflow_provider_cdc.core.formats.connect.avro_code import Read, compiled, point, short
from airflow_provider_cdc.core.formats.connect.avro_cursor import ONE, Cursor, Unfit, every_second
from airflow_provider_cdc.core.formats.connect.avro_types import AvroType

Pieces = list[str | pa.StringArray]
"""Texts that stand one behind the other: those of all values, and one for each value."""

M = TypeVar("M", bound=msgspec.Struct)

_NULL = msgspec.Raw(b"null")
_BOOLEANS = ["false", "true"]
_encode: Any = msgspec.json.Encoder().encode


def read_together(kind: AvroType, frames: Sequence[bytes], head: int, message: type[M]) -> list[M]:
    """Return records as structs: only members that these have are read.

    Members of the type ``msgspec.Raw`` are JSON as Connect's converter writes it; others what msgspec makes of that.

    :param frames: records that take all bytes of a frame behind its first ones.
    :param head: number of those.
    :raises ValueError: one of the records is none of this type, or does not fit the struct.
    """
    values, ends = _Values.behind_heads(frames, head)
    messages: list[M] = values.structs(kind, message)
    if (values.at != ends).any():
        raise Unfit
    return messages


class Member(NamedTuple):
    """Hold a member of a struct.

    :param struct: that it is in turn, None where it is none.
    """

    type: Any
    struct: type[msgspec.Struct] | None
    default: Any


@cache
def members_of(message: type[msgspec.Struct]) -> dict[str, Member]:
    """Return the members of a struct by their names in JSON, in its order."""
    members = {}
    for field in msgspec.structs.fields(message):
        kinds = [kind for kind in (field.type, *get_args(field.type)) if isinstance(kind, type)]
        struct = next((kind for kind in kinds if issubclass(kind, msgspec.Struct)), None)
        members[field.encode_name] = Member(field.type, struct, field.default)
    return members


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


def _split(texts: pa.StringArray | str, count: int) -> list[msgspec.Raw]:
    """Return each of so many texts in JSON."""
    if isinstance(texts, str):
        return [msgspec.Raw(texts.encode())] * count
    bounds, data = _bounds(texts)
    ends, whole = bounds.tolist(), data.tobytes()
    return [msgspec.Raw(whole[begin:end]) for begin, end in pairwise(ends)]


class _Values(Cursor):
    """Read values as structs and as JSON."""

    def pieces(self, kind: AvroType) -> Pieces:
        """Return values in JSON."""
        if kind.null is None:
            return self._some(kind)
        there = self._there(kind.null)
        if isinstance(there, bool):
            return self._some(kind) if there else ["null"]
        rows = _Values(self._data, self.at[there])
        texts = _joined(rows._some(kind))
        self.at[there] = rows.at
        if isinstance(texts, str):
            texts = pa.repeat(texts, len(rows.at))
        return [texts.take(pa.array(there.cumsum() - 1, pa.int64(), mask=~there))]

    def structs(self, kind: AvroType, message: type[M]) -> list[Any]:
        """Return records as structs, None for null."""
        return self._each(kind, lambda rows: rows._structs(kind, message), None)

    def _structs(self, kind: AvroType, message: type[M]) -> list[M]:
        members, read = members_of(message), dict[str, list[Any]]()
        for name, part in kind.fields:
            if name in members:
                read[name] = self._member(part, members[name])
            else:
                self.skip(part)
        absent = [members[name].default for name in members if name not in read]
        if msgspec.NODEFAULT in absent or not read:
            raise Unfit
        return list(map(message, *(read.get(name) or repeat(member.default) for name, member in members.items())))

    def _member(self, kind: AvroType, member: Member) -> list[Any]:
        """Return a member of each record."""
        if member.type is msgspec.Raw:
            return self._each(kind, lambda rows: _split(_joined(rows._some(kind)), len(rows.at)), _NULL)
        if member.struct is not None and kind.kind == "record":
            return self.structs(kind, member.struct)
        if kind.null is not None:
            msgspec.convert(None, member.type)
        return self._each(kind, lambda rows: rows._objects(kind, member.type), None)

    def _objects(self, kind: AvroType, demanded: Any) -> list[Any]:
        """Return values that are not null as Python has them, if they are of a type."""
        count = len(self.at)
        match kind.kind:
            case "string":
                text = self._text()
                if isinstance(text, str):
                    return [msgspec.convert(text, demanded)] * count
                texts: list[str] = text.to_pylist()
                return texts if demanded == (str | None) else msgspec.convert(texts, list[demanded])
            case "int" | "long":
                signed = self._signed()
                bounds = msgspec.convert([int(signed.min()), int(signed.max())], list[demanded])
                return [bounds[0]] * count if bounds[0] == bounds[1] else signed.tolist()
        raise Unfit

    def _each(self, kind: AvroType, read: Callable[[_Values], list[Any]], null: Any) -> list[Any]:
        """Return what is read of each value that is not null, and something else for the others."""
        there = True if kind.null is None else self._there(kind.null)
        if isinstance(there, bool):
            return read(self) if there else [null] * len(self.at)
        rows = _Values(self._data, self.at[there])
        some = iter(read(rows))
        self.at[there] = rows.at
        return [next(some) if one else null for one in there.tolist()]

    def _some(self, kind: AvroType) -> Pieces:
        """Return values that are not null in JSON."""
        match kind.kind:
            case "record":
                return self._record(kind)
            case "string":
                text = self._text()
                return ['"', _encode(text)[1:-1].decode() if isinstance(text, str) else _escaped(text), '"']
            case "int" | "long":
                signed = self._signed()
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
                return [self._choice(self._number() >> ONE, symbols)]
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

    def _record(self, kind: AvroType) -> Pieces:
        pieces: Pieces = []
        for name, part in kind.fields:
            pieces += [f"{',' if pieces else '{'}{_encode(name).decode()}:", *self.pieces(part)]
        return [*pieces, "}"] if pieces else ["{}"]

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
                self._some(kind)

    @staticmethod
    def _choice(number: NDArray[Any], texts: list[str]) -> pa.StringArray:
        if number.max() >= len(texts):
            raise Unfit
        return pa.array(texts, pa.string()).take(pa.array(number.astype(np.int32)))


def _items(values: list[Any]) -> pa.StringArray:
    """Return values in JSON that has no comma inside."""
    text = _encode(values)
    commas = np.flatnonzero(np.frombuffer(text, np.uint8) == ord(","))
    bounds = np.empty(2 * len(values), np.int32)
    bounds[0], bounds[-1] = 1, len(text) - 1
    bounds[1:-1:2], bounds[2::2] = commas, commas + 1
    return every_second(bounds, pa.py_buffer(text)).cast(pa.string())


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
