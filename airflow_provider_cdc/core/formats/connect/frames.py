# SPDX-License-Identifier: Apache-2.0
"""Frames of a schema registry: a zero, the id of a schema, and what is written by it (docs/wire/avro-registry.md 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from airflow_provider_cdc.core.formats.connect.envelope import Origin
from airflow_provider_cdc.core.formats.connect.messages import Payload

HEAD = 5  # bytes: a zero and the schema's id
MOST_ID = 2**31 - 1  # an id is an int of Java, never negative
_encode: Any = msgspec.json.Encoder().encode

M = TypeVar("M", bound=Payload)
Read = TypeVar("Read", bound=Payload, covariant=True)


def schema_id(frame: bytes | None) -> int | None:
    """Return the id of the schema that a frame begins with, None where it is not a frame."""
    if frame is None or len(frame) < HEAD or frame[0]:
        return None
    return int.from_bytes(frame[1:HEAD], "big")


def key_text(names: Sequence[str]) -> bytes:
    """Return a key with these members as Connect writes it in JSON, without its values; empty where it has none."""
    if not names:
        return b""
    schema: bytes = _encode({"type": "struct", "fields": [{"field": name} for name in names]})
    return b'{"schema":' + schema + b',"payload":null}'


class RegisteredSchema(Protocol[Read]):
    """A schema of one kind, ready to read its frames.

    :ivar columns: those that it gives a row, as Connect's JSON schema has them; None where it has none.
    :ivar key_text: a key of it, as :func:`key_text` gives it.
    """

    columns: tuple[str, ...] | None
    key_text: bytes

    def read(self, frame: bytes) -> Read:
        """Return the message that a frame holds.

        :raises ValueError: it is none of this schema.
        """
        ...

    def read_together(self, frames: Sequence[bytes]) -> Sequence[Read]:
        """Return the messages that frames hold.

        :raises ValueError: one of them is none of this schema, or they cannot be read together.
        """
        ...

    def op(self, frame: bytes) -> Any:
        """Return what was done with a row.

        :raises ValueError: as :meth:`read`.
        """
        ...

    def origin(self, frame: bytes) -> Origin:
        """Return the members that name a message's table.

        :raises ValueError: as :meth:`read`, or they have other types.
        """
        ...

    def json(self, frame: bytes) -> bytes:
        """Return all that a frame holds as Connect's JSON converter writes it.

        :raises ValueError: as :meth:`read`.
        """
        ...

    def enveloped(self, frame: bytes) -> bytes:
        """Return all that a frame holds as Connect's JSON converter writes it with embedded schemas.

        :raises ValueError: as :meth:`read`.
        """
        ...
