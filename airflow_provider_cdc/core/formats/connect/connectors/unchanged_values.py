# SPDX-License-Identifier: Apache-2.0
"""Find values that are not in a record: what an update left as it was, and keys of deleted rows.

Sources: docs/wire/debezium-postgres.md.

PostgreSQL keeps long values outside of the row, and its log lacks those that an update leaves as they are. Debezium
writes a placeholder in their place, in a shape for each type.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Mapping

import msgspec

from airflow_provider_cdc.core.formats.common.row_images import members_of

PLACEHOLDER = "unavailable.value.placeholder"
_DEFAULT = "__debezium_unavailable_value"
PLACEHOLDER_MEANING = f"what stands for a long value that did not change (default {_DEFAULT}); hex: before bytes"
_HEX = "hex:"
# what Debezium puts into a column that may not be NULL, where the log lacks its value
_FILLERS = frozenset({b"0", b"0.0", b"false", b'""', b'"AA=="', b'"0"', b'"00000000-0000-0000-0000-000000000000"'})


class UnchangedValues:
    """Recognise the placeholder in all its shapes.

    :param placeholder: the connector's setting, None for its default.
    """

    def __init__(self, placeholder: str | None) -> None:
        raw = _bytes(placeholder or _DEFAULT)
        text = raw.decode("utf-8", "replace")
        digest = bytearray(hashlib.md5(raw, usedforsecurity=False).digest())
        shapes = [
            text,
            base64.b64encode(raw).decode(),
            base64.urlsafe_b64encode(raw).decode(),
            raw.hex(),
            [text],
            list(raw),
            [str(uuid.UUID(bytes=bytes(digest), version=3))],
            {text: text},
            msgspec.json.encode({text: text}).decode(),
        ]
        self._shapes = {msgspec.json.encode(shape) for shape in shapes}
        # a part of each shape, so that most rows are passed over unparsed
        marks = sorted({_inner(shape) for shape in self._shapes}, key=len)
        self._marks = [mark for n, mark in enumerate(marks) if not any(other in mark for other in marks[:n])]

    def may_be_in(self, image: bytes) -> bool:
        """Return whether an image may have such a value; it never misses one."""
        return any(mark in image for mark in self._marks)

    def are_in(self, image: bytes) -> bool:
        """Return whether a value of an image is the placeholder."""
        return any(bytes(value) in self._shapes for value in members_of(image).values())

    def without(self, after: bytes, before: bytes | None) -> bytes:
        """Return an image without such values, or with those that the row had before, where it is there."""
        members = members_of(after)
        had = {} if before is None else members_of(before)
        result = {}
        for name, value in members.items():
            if bytes(value) not in self._shapes:
                result[name] = value
            elif name in had and bytes(had[name]) not in self._shapes:
                result[name] = had[name]
        return msgspec.json.encode(result)


class _Column(msgspec.Struct):
    field: str
    optional: bool = False


_read_column = msgspec.json.Decoder(_Column).decode


def is_key_made_up(
    deleted: Mapping[str, msgspec.Raw], key: tuple[str, ...], columns: tuple[str, ...] | None = None
) -> bool:
    """Return whether a deleted row has values, but none in its key: then others identify it (USING INDEX).

    Such an index is over columns that may not be NULL. So a value in one that may comes with the whole row
    (FULL), whose key is truly 0 or empty.

    :param deleted: members of its image.
    :param columns: of the record's schema, as JSON texts, None without one: then nothing shows which may be NULL.
    """
    if any(bytes(deleted.get(name, b"")) not in _FILLERS for name in key):
        return False
    others = {name: bytes(value) for name, value in deleted.items() if name not in key}
    others = {name: value for name, value in others.items() if value != b"null"}
    if all(value in _FILLERS for value in others.values()):
        return False
    return not any(column.optional and column.field in others for column in map(_read_column, columns or ()))


def _bytes(placeholder: str) -> bytes:
    if placeholder.startswith(_HEX):
        return bytes.fromhex(placeholder.removeprefix(_HEX))
    return placeholder.encode()


def _inner(shape: bytes) -> bytes:
    return shape.strip(b'[]"')
