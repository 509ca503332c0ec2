# SPDX-License-Identifier: Apache-2.0
"""Remember tables by how messages describe them; usually a message describes the same table as the one before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

_ABSENT = msgspec.Raw()
_LIMIT = 4096  # distinct descriptions by their bytes; TiCDC's order of members is random (docs/wire/canal.md 9.1)

T = TypeVar("T")


class DescribedTables(Generic[T]):
    """Make an object for each distinct description, one or two JSON texts such as ``mysqlType`` and ``pkNames``.

    :param make: makes it; both texts are empty where a message lacks the members.
    """

    def __init__(self, make: Callable[[bytes, bytes], T]) -> None:
        self._make = make
        self._tables: dict[tuple[bytes, bytes], T] = {}
        self._columns = self._key = _ABSENT  # of the latest table
        self._latest = make(b"", b"")

    def find(self, columns: msgspec.Raw, key: msgspec.Raw = _ABSENT) -> T:
        """Return the table with this description.

        :raises msgspec.MsgspecError: ``make`` cannot read the description.
        """
        # most often it is the latest, and to compare the texts is cheaper than to copy and hash them
        if columns == self._columns and key == self._key:
            return self._latest
        texts = (bytes(columns), bytes(key))
        table = self._tables.get(texts)
        if table is None:
            table = self._make(*texts)
            if len(self._tables) >= _LIMIT:
                self._tables.clear()
            self._tables[texts] = table
        self._latest, self._columns, self._key = table, columns, key
        return table
