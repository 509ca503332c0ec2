"""Images in DRS's messages: nearly all have just the columns that their message names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from airflow_provider_cdc.core.formats.exact_members import exact_members

Sides = tuple[bytes | None, bytes | None]
"""A row's image before a change, and that after it."""

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Table:
    """What messages with the same description say of their table's columns.

    :param types: per column the source's type name.
    :param key: names of the key's columns, None where messages do not say.

    columns: number of the ``columns`` text of images that have all of them.
    """

    def __init__(self, types: Mapping[str, str | None], key: Sequence[str] | None) -> None:
        self.types, self.key = types, key
        self.columns = 0
        exact = exact_members(tuple(types)) if types else None
        self._full: Any = _refuse if exact is None else exact[0]

    def full(self, before: msgspec.Raw | None, after: msgspec.Raw | None) -> Sides | None:
        """Return the images of a row that have each of the columns and no other, None where one has not."""
        try:
            if before is None:
                self._full(after)
                return None, bytes(after or b"")
            self._full(before)
            if after is None:
                return bytes(before), None
            self._full(after)
        except (ValueError, RecursionError):
            return None
        return bytes(before), bytes(after)


def _refuse(image: msgspec.Raw) -> None:
    raise ValueError("no image is known to be full")


def uneven(before: msgspec.Raw | None, after: msgspec.Raw | None) -> tuple[Sides, Mapping[str, msgspec.Raw]]:
    """Return the images of a row that have other columns than its message names, and what they have together."""
    was, now = (None if image is None else _members(image) for image in (before, after))
    together = {**(was or {}), **(now or {})}
    if not together:
        raise ValueError("a row without columns")
    if was is not None and now is not None and was.keys() != now.keys():
        # a column that one of them lacks did not change (docs/wire/huawei-drs.md 3.1)
        return (msgspec.json.encode({**now, **was}), msgspec.json.encode(together)), together
    return (None if before is None else bytes(before), None if after is None else bytes(after)), together
