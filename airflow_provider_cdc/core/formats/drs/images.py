# SPDX-License-Identifier: Apache-2.0
"""Read images in DRS's messages; fast path: an image has exactly the columns that its message names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from airflow_provider_cdc.core.formats.common.exact_structs import exact_struct
from airflow_provider_cdc.core.formats.common.row_images import Images, members_of

_types = msgspec.json.Decoder(dict[str, str | None] | None)
_names = msgspec.json.Decoder(list[str] | None)


class Table:
    """Hold what messages with the same description state about their table's columns.

    :param types: per column the source's type name.
    :param key: names of the key's columns, None where messages do not say.

    columns: number of the ``columns`` text of images that have all of them.
    """

    def __init__(self, types: Mapping[str, str | None], key: Sequence[str] | None) -> None:
        self.types, self.key = types, key
        self.columns = 0
        self._full = exact_struct(tuple(types)).decode

    @classmethod
    def described(cls, types: bytes, key: bytes) -> Table:
        """Return the table that the texts of ``mysqlType`` and ``pkNames`` describe."""
        return cls((_types.decode(types) if types else None) or {}, _names.decode(key) if key else None)

    def full(self, before: msgspec.Raw | None, after: msgspec.Raw | None) -> Images | None:
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


def uneven(before: msgspec.Raw | None, after: msgspec.Raw | None) -> tuple[Images, Mapping[str, msgspec.Raw]]:
    """Return the images of a row that have other columns than its message names, and what they have together."""
    was, now = (None if image is None else members_of(image) for image in (before, after))
    together = {**(was or {}), **(now or {})}
    if not together:
        raise ValueError("a row without columns")
    if was is not None and now is not None and was.keys() != now.keys():
        # a column that one of them lacks did not change (docs/wire/huawei-drs.md 3.1)
        return (msgspec.json.encode({**now, **was}), msgspec.json.encode(together)), together
    return (None if before is None else bytes(before), None if after is None else bytes(after)), together
