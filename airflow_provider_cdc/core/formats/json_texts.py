"""JSON texts made from Arrow columns, without Python per value."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

_Numbers = np.ndarray[Any, np.dtype[np.int64]]
_Offsets = np.ndarray[Any, np.dtype[np.int32]]
_Flags = np.ndarray[Any, np.dtype[np.bool_]]

_encode = msgspec.json.Encoder().encode
_ENDS = ('"}', "}", "")  # of an object: after a string, after a bare value, without members
_VARIANTS = 6  # of a name: see _variants
_ESCAPES = [_encode(chr(byte))[1:-1] for byte in range(128)]
_GROWTH = np.array([len(escape) - 1 for escape in _ESCAPES])


def escaped(texts: pa.StringArray) -> pa.StringArray:
    """Return texts as they stand in JSON strings, without the quotes; bytes that are no UTF-8 stay as they are.

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
    whole = data.tobytes()
    # the backslash first: escapes begin with one; few are there, and each goes several times as quick as encoding
    for byte in sorted(np.flatnonzero(np.bincount(data[special])).tolist(), key=ord("\\").__ne__):
        whole = whole.replace(bytes([byte]), _ESCAPES[byte])
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends), pa.py_buffer(whole))


def special_places(data: np.ndarray) -> _Numbers:
    """Return the places of bytes that cannot stand in a JSON string as they are."""
    places: _Numbers = np.flatnonzero((data < 0x20) | (data == ord('"')) | (data == ord("\\")))
    return places


def text_offsets(texts: pa.StringArray) -> _Offsets:
    """Return where each text begins in the array's bytes, and where the last one ends."""
    offsets: _Offsets = np.frombuffer(texts.buffers()[1] or b"\0\0\0\0", np.int32)
    return offsets[texts.offset : texts.offset + len(texts) + 1]


def object_texts(
    sizes: _Numbers,
    names: Sequence[str],
    name_places: _Numbers,
    values: Sequence[pa.StringArray],
    value_places: _Numbers,
    bare: _Flags,
) -> pa.StringArray:
    """Return JSON objects, null for those without members.

    :param sizes: how many members each object has; the other arguments have one element a member, in order.
    :param names: distinct names; ``name_places`` says which is a member's.
    :param values: JSON values as they shall stand there, strings escaped and without quotes; ``value_places`` says
        which is a member's, in all arrays taken as one.
    :param bare: whether a value is no string and stands without quotes.
    """
    pieces = [piece for name in names for piece in _variants(name)]
    ends = np.cumsum(sizes)
    first: _Flags = np.zeros(len(name_places), bool)
    first[(ends - sizes)[sizes > 0]] = True
    variants = np.where(first, 4, np.roll(bare, 1) * 2) + bare
    objects = np.arange(len(sizes))
    # an object's pieces: name and value of each member, then its end
    places: _Numbers = np.empty(2 * len(name_places) + len(sizes), np.int64)
    members = 2 * np.arange(len(name_places)) + np.repeat(objects, sizes)
    places[members] = name_places * _VARIANTS + variants
    places[members + 1] = len(pieces) + len(_ENDS) + value_places
    places[2 * ends + objects] = len(pieces) + np.where(sizes > 0, np.append(bare, False)[ends - 1], 2)
    pool = pa.concat_arrays([pa.array([*pieces, *_ENDS], pa.string()), *values]).take(pa.array(places))
    # the pieces lie one behind the other: an object is all bytes from its first to its last
    offsets = text_offsets(pool)[np.append(0, 2 * ends + objects + 1)]
    there = pa.array(sizes > 0).buffers()[1]
    return pa.StringArray.from_buffers(len(sizes), pa.py_buffer(offsets), pool.buffers()[2], there)


@lru_cache(maxsize=65_536)
def _variants(name: str) -> tuple[str, ...]:
    """Return a name as it stands before a string and before a bare value: after a string, after a bare value, first."""
    text = _encode(name).decode()
    return tuple(before + text + after for before in ('",', ",", "{") for after in (':"', ":"))
