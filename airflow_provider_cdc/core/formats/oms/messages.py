# SPDX-License-Identifier: Apache-2.0
"""Read OMS's messages as JSON; the separator of key values may be unescaped in their texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

M = TypeVar("M")


def reader_of(kind: type[M]) -> Callable[[bytes], M]:
    """Return what reads messages of a kind, also with a bare U+0001 (docs/wire/oceanbase-oms.md 10.25).

    :raises msgspec.DecodeError: (what is returned) it is no such message.
    """
    read = msgspec.json.Decoder(kind).decode

    def open_message(value: bytes) -> M:
        try:
            return read(value)
        except msgspec.DecodeError:
            if b"\x01" not in value:
                raise
            return read(value.replace(b"\x01", b"\\u0001"))

    return open_message
