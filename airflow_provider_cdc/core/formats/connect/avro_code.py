# SPDX-License-Identifier: Apache-2.0
"""Compile an Avro schema into a Python function that reads its records.

A record of Debezium has about fifty members, half of them not needed. fastavro makes an object of each, for twice the
cost (tests compare the two). Compiled code skips what nobody needs, and takes the others apart in place.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from types import CodeType
from typing import Any

import msgspec
import numpy as np

from airflow_provider_cdc.core.formats.connect.avro_types import AvroType

Needed = Mapping[str, "Needed | None"]
"""Members of a record that are needed: of each its own, or None for all of it."""

Field = tuple[str, AvroType]
"""A member of a record: its name and type."""

Read = Callable[[bytes, int], tuple[Any, int]]
"""Reads a value that begins at an index; returns it with the index behind it."""

# by the number of null's branch
_NUMBER = {
    None: rb"[\x80-\xff]{0,9}[\0-\x7f]",
    0: rb"(?:\0|\x02[\x80-\xff]{0,9}[\0-\x7f])",
    1: rb"(?:\x02|\0[\x80-\xff]{0,9}[\0-\x7f])",
}
_MOST_BYTES = 10  # of a number with 64 bits
_encode: Any = msgspec.json.Encoder().encode
_double: Any = struct.Struct("<d").unpack_from
_single: Any = struct.Struct("<f").unpack_from


def compiled(kind: AvroType, needed: Needed | None = None, raw: frozenset[str] = frozenset()) -> Read:
    """Return what reads values of a type as Connect's JSON converter would write them, bytes as bytes.

    It raises ValueError or IndexError for bytes that are no such value.

    :param needed: of a record the members that are returned; all for None.
    :param raw: members of it that are returned as their JSON (``msgspec.Raw``).
    """
    code = _Code()
    result = code.value(kind, 1, needed, raw)
    text = "\n".join(["def read(b, p):", *code.lines, f" return {result}, p"])
    exec(_compiled(text), code.names)  # of a schema only quoted names are in it
    read: Read = code.names["read"]
    return read


@lru_cache(1024)  # each task of a process opens its format, with the same schemas
def _compiled(text: str) -> CodeType:
    return compile(text, "<avro>", "exec")


def _unrolled() -> Callable[[bytes, int], tuple[int, int]]:
    """Return what reads a zigzag number, without decoding it; byte by byte, for a loop takes twice as long."""
    lines = ["def number(b, p):", " n = b[p]", " if n < 128:", "  return n, p + 1"]
    marks = 128  # the highest bits of the bytes before the last
    for index in range(1, _MOST_BYTES):
        shift = 7 * index
        lines += [f" c = b[p + {index}]", " if c < 128:", f"  return n + (c << {shift}) - {marks}, p + {index + 1}"]
        lines += [f" n += c << {shift}"]
        marks += 128 << shift
    lines += [" raise ValueError('a number of more than 64 bits')"]
    names: dict[str, Any] = {}
    exec("\n".join(lines), names)
    read: Callable[[bytes, int], tuple[int, int]] = names["number"]
    return read


number = _unrolled()
"""Return the zigzag number at an index, not decoded, and the index behind it; ValueError where it has no end."""


def point(value: float) -> float | str:
    """Return a number with a point in JSON: NaN and the infinities are texts there."""
    if value - value == 0:
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def short(value: float) -> float | str:
    """Return a FLOAT with the fewest digits that distinguish it from others."""
    return float(str(np.float32(value))) if value - value == 0 else point(value)


def _items(b: bytes, p: int, read: Read) -> tuple[list[Any], int]:
    """Return the items of an array, or of a map, and the index behind them."""
    items: list[Any] = []
    while True:
        count, p = number(b, p)
        if count & 1:  # negative: the size of the block follows
            count += 1
            _, p = number(b, p)
        if not count:
            return items, p
        for _ in range(count >> 1):
            item, p = read(b, p)
            items.append(item)


def _entry(read: Read) -> Read:
    """Return what reads one entry of a map."""

    def entry(b: bytes, p: int) -> tuple[tuple[str, Any], int]:
        size, p = number(b, p)
        end = p + (size >> 1)
        value, after = read(b, end)
        return (b[p:end].decode(), value), after

    return entry


class _Code:
    """Write the body of a function that reads ``b`` from index ``p`` on."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "number": number, "double": _double, "single": _single, "point": point, "short": short, "items": _items,
            "encode": _encode, "Raw": msgspec.Raw, "NULL": msgspec.Raw(b"null"),
        }  # fmt: skip
        self._count = 0

    def value(self, kind: AvroType, depth: int, needed: Needed | None = None, raw: frozenset[str] = frozenset()) -> str:
        """Write what reads a value; return the variable that holds it.

        :param depth: of the indentation.
        """
        name = self._new()
        if kind.null is None:
            self._branch(kind, depth, name, needed, raw)
            return name
        self._say(depth, "u = b[p]", "p += 1", f"if u == {2 * kind.null}:", f" {name} = None", "elif u < 3:")
        self._branch(kind, depth + 1, name, needed, raw)
        self._say(depth, "else:", " raise ValueError('no branch of a union')")
        return name

    def skip(self, kind: AvroType, depth: int) -> None:
        """Write what passes over a value."""
        if kind.null is not None:
            self._say(depth, "u = b[p]", "p += 1", f"if u == {2 - 2 * kind.null}:")
            self._skipped(kind, depth + 1)
            self._say(depth, f"elif u != {2 * kind.null}:", " raise ValueError('no branch of a union')")
        else:
            self._skipped(kind, depth)

    def _skipped(self, kind: AvroType, depth: int) -> None:
        match kind.kind:
            case "int" | "long" | "enum":
                self._say(depth, "while b[p] > 127:", " p += 1", "p += 1")
            case "string" | "bytes":
                self._length(depth)
                self._say(depth, "p += n >> 1")
            case "record":
                for _, part in kind.fields:
                    self.skip(part, depth)
                self._say(depth, "pass")
            case _:
                self._branch(kind, depth, "_", None, frozenset())

    def _branch(self, kind: AvroType, depth: int, name: str, needed: Needed | None, raw: frozenset[str]) -> None:
        """Write what reads a value that is not null."""
        match kind.kind:
            case "null":
                self._say(depth, f"{name} = None")
            case "boolean":
                self._say(depth, f"{name} = b[p] == 1", "if b[p] > 1:", " raise ValueError('no boolean')", "p += 1")
            case "int" | "long":
                self._say(depth, "n = b[p]", "if n > 127:", " n, p = number(b, p)", "else:", " p += 1")
                self._say(depth, f"{name} = (n >> 1) ^ -(n & 1)")
            case "float":
                self._say(depth, f"{name} = short(single(b, p)[0])", "p += 4")
            case "double":
                self._say(depth, f"{name} = point(double(b, p)[0])", "p += 8")
            case "string" | "bytes":
                self._length(depth)
                decoded = ".decode()" if kind.kind == "string" else ""
                self._say(depth, "e = p + (n >> 1)", f"{name} = b[p:e]{decoded}", "p = e")
            case "fixed":
                # what lies behind the end would be an empty value, and an array of those would have no end
                self._say(depth, f"{name} = b[p:p + {kind.size}]", f"p += {kind.size}", "if p > len(b):")
                self._say(depth, " raise ValueError('the end of the bytes')")
            case "enum":
                self._say(depth, "n, p = number(b, p)", f"{name} = {self._known(kind.symbols)}[n >> 1]")
            case "record":
                self._record(kind, depth, name, needed, raw)
            case _:
                self._collection(kind, depth, name)

    def _record(self, kind: AvroType, depth: int, name: str, needed: Needed | None, raw: frozenset[str]) -> None:
        members: list[str] = []
        for texts, some in groupby(kind.fields, lambda field: needed is not None and field[1].kind == "string"):
            if texts:
                self._remembered(list(some), depth, members, needed, raw)
            else:
                self._members(some, depth, members, needed, raw)
        self._say(depth, f"{name} = {{{', '.join(members)}}}")

    def _remembered(
        self, fields: Sequence[Field], depth: int, members: list[str], needed: Needed | None, raw: frozenset[str]
    ) -> None:
        """Write what reads texts that stand one behind the other, and mostly are those of the record before.

        :param members: takes what the record is made of.
        """
        before = self._known([b"", (), 0])  # their bytes, what they are, and how many bytes
        self._say(depth, f"if {before}[2] and b.startswith({before}[0], p):")
        hit = len(self.lines)
        self._say(depth, "else:", " q = p")
        mine: list[str] = []
        self._members(fields, depth + 1, mine, needed, raw)
        values = "".join(f"{member.rpartition(': ')[2]}, " for member in mine)
        self._say(depth + 1, f"{before}[:] = b[q:p], ({values}), p - q")
        taken = [f"{values}= {before}[1]"] if values else []
        self.lines[hit:hit] = [" " * (depth + 1) + line for line in (*taken, f"p += {before}[2]")]
        members += mine

    def _members(
        self, fields: Iterable[Field], depth: int, members: list[str], needed: Needed | None, raw: frozenset[str]
    ) -> None:
        """Write what reads the members of a record that are needed.

        :param members: takes what the record is made of.
        """
        passed: list[AvroType] = []
        for member, part in fields:
            if needed is not None and member not in needed:
                passed.append(part)
                continue
            self._pass(passed, depth)
            passed = []
            below = None if needed is None else needed[member]
            value = self.value(part, depth, below, _raw_below(member, raw))
            if member in raw:
                self._say(depth, f"{value} = NULL if {value} is None else Raw(encode({value}))")
            members.append(f"{member!r}: {value}")
        self._pass(passed, depth)

    def _pass(self, kinds: Sequence[AvroType], depth: int) -> None:
        """Write what passes over values that stand one behind the other: over numbers all at once."""
        for numeric, some in groupby(kinds, lambda kind: kind.kind in ("int", "long")):
            if numeric:
                pattern = b"".join(_NUMBER[kind.null] for kind in some)
                self._say(depth, f"p = {self._known(re.compile(pattern).match)}(b, p).end()")
            else:
                for kind in some:
                    self.skip(kind, depth)

    def _collection(self, kind: AvroType, depth: int, name: str) -> None:
        """Write what reads an array or a map, whose items have a function of their own."""
        assert kind.item is not None
        read = compiled(kind.item)
        if kind.kind == "map":
            self._say(depth, f"{name}, p = items(b, p, {self._known(_entry(read))})", f"{name} = dict({name})")
        else:
            self._say(depth, f"{name}, p = items(b, p, {self._known(read)})")

    def _length(self, depth: int) -> None:
        """Write what reads the length of a text into ``n``, twice as large."""
        self._say(depth, "n = b[p]", "if n > 127:", " n, p = number(b, p)", "else:", " p += 1")
        self._say(depth, "if n & 1:", " raise ValueError('a negative length')")

    def _say(self, depth: int, *lines: str) -> None:
        self.lines += [" " * depth + line for line in lines]

    def _new(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def _known(self, thing: Any) -> str:
        """Return a name for an object that the code uses."""
        self._count += 1
        self.names[f"k{self._count}"] = thing
        return f"k{self._count}"


def _raw_below(member: str, raw: frozenset[str]) -> frozenset[str]:
    """Return the members of a record inside another that are returned as JSON, by their paths."""
    return frozenset(path[len(member) + 1 :] for path in raw if path.startswith(f"{member}."))
