# SPDX-License-Identifier: Apache-2.0
"""Records with something wrong in them: bytes anywhere, members and fields that come twice, values of another kind."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from typing import Any

# what may stand where something else should
_LEAVES: list[Any] = [
    None,
    True,
    "",
    "x",
    "\0",
    "\ud800",
    -1,
    2**63,
    10**30,
    1.5,
    "1e999999",
    "9" * 40,
    "int(99999999999)",
    "decimal(5,10)",
    [],
    {},
    [[]],
    {"field": "x"},
]


def damaged(value: bytes, chance: random.Random) -> bytes:
    """Return a record with one to four bytes or stretches changed, whatever it is."""
    data = bytearray(value)
    for _ in range(chance.randint(1, 4)):
        index = chance.randrange(len(data))
        match chance.randrange(4):
            case 0:
                data[index] = chance.randrange(256)
            case 1:
                del data[index : index + chance.randint(1, 30)]
            case 2:
                data[index:index] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 5)))
            case _:
                data[index:index] = data[: chance.randint(1, 50)]
        if not data:
            break
    return bytes(data)


def restructured(value: bytes, chance: random.Random) -> bytes:
    """Return a record that is still JSON, or protobuf, with parts that come twice, lack or are of another kind."""
    try:
        tree = json.loads(value, object_pairs_hook=_Members)
    except (ValueError, RecursionError):
        return _protobuf(value, chance)
    for _ in range(chance.randint(1, 3)):
        _change(tree, chance)
    return _text(tree).encode("utf-8", "surrogatepass")


class _Members(list[tuple[str, Any]]):
    """Members of a JSON object in their order, of which some may have the same name."""


def _change(tree: Any, chance: random.Random) -> None:
    """Change one place of a tree: deep ones, a schema's parameters say, as often as the members at the top."""
    containers = [container for container in _containers(tree) if container]
    if not containers:
        return
    inside = chance.choice(containers)
    number = chance.randrange(len(inside))
    leaf = deepcopy(chance.choice(_LEAVES))
    other = (inside[number][0], leaf) if isinstance(inside, _Members) else leaf
    match chance.randrange(5):
        case 0:
            inside.insert(number, deepcopy(inside[number]))
        case 1:
            inside.insert(chance.randint(0, len(inside)), other)
        case 2:
            del inside[number]
        case _:
            inside[number] = other


def _containers(tree: Any) -> list[Any]:
    result = [tree] if isinstance(tree, list) else []
    for item in tree if isinstance(tree, list) else ():
        result += _containers(item[1] if isinstance(tree, _Members) else item)
    return result


def _text(tree: Any) -> str:
    if isinstance(tree, _Members):
        return "{" + ",".join(f"{json.dumps(name)}:{_text(value)}" for name, value in tree) + "}"
    if isinstance(tree, list):
        return "[" + ",".join(map(_text, tree)) + "]"
    return json.dumps(tree)


def _protobuf(value: bytes, chance: random.Random) -> bytes:
    """Return a message with a field that comes twice or lacks, at any depth; other bytes are changed anywhere."""
    fields = _fields(value)
    if not fields:
        return damaged(value, chance) if value else value
    number = chance.randrange(len(fields))
    head, content = fields[number]
    if content is not None and chance.random() < 0.7:  # most of what matters lies deep
        changed = _protobuf(content, chance)
        fields[number] = (head, changed)
        return _joined(fields)
    match chance.randrange(4):
        case 0 | 1:
            fields.insert(chance.randint(0, len(fields)), fields[number])
        case 2 if content is not None:
            fields.insert(chance.randint(0, len(fields)), (head, damaged(content, chance) if content else b"x"))
        case _:
            del fields[number]
    return _joined(fields)


def _fields(value: bytes) -> list[tuple[bytes, bytes | None]]:
    """Return the fields of a message: tag with number, or tag and content; nothing where it is not a message."""
    result: list[tuple[bytes, bytes | None]] = []
    offset = 0
    while offset < len(value):
        start = offset
        tag, offset = _varint(value, offset)
        if offset < 0 or not 0 < tag >> 3 < 200:
            return []
        kind = tag & 7
        if kind == 0:
            _, offset = _varint(value, offset)
        elif kind in (1, 5):
            offset += 8 if kind == 1 else 4
        elif kind == 2:
            head = value[start:offset]
            size, offset = _varint(value, offset)
            if offset < 0 or offset + size > len(value):
                return []
            result.append((head, value[offset : offset + size]))
            offset += size
            continue
        else:
            return []
        if offset < 0 or offset > len(value):
            return []
        result.append((value[start:offset], None))
    return result


def _varint(value: bytes, offset: int) -> tuple[int, int]:
    number = shift = 0
    while offset < len(value) and shift < 70:
        byte = value[offset]
        number |= (byte & 127) << shift
        offset, shift = offset + 1, shift + 7
        if byte < 128:
            return number, offset
    return 0, -1


def _joined(fields: list[tuple[bytes, bytes | None]]) -> bytes:
    return b"".join(head if content is None else head + _size(len(content)) + content for head, content in fields)


def _size(number: int) -> bytes:
    result = bytearray()
    while number > 127:
        result.append(number & 127 | 128)
        number >>= 7
    return bytes([*result, number])
