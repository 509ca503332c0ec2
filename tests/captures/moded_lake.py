# SPDX-License-Identifier: Apache-2.0
"""Read the rows that a source's table has from tables that keep more than a mirror."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tests.captures.replaying import Lake
from tests.histories.moded_table import OWN_COLUMNS


@dataclass
class ModedLake(Lake):
    """A lake whose tables have one mode.

    :param keys: columns of the source's key by (database, table), to put a feed of changes together with.
    """

    mode: str = "soft_delete"
    keys: dict[tuple[str, str], tuple[str, ...]] | None = None

    def __post_init__(self) -> None:
        self.tables = {"*.*": {"mode": self.mode}}

    def rows(self, database: str, table: str) -> pa.Table:
        """Return the rows that the source's table has, without the columns of the mode."""
        stored = super().rows(database, table)
        if self.mode == "soft_delete":
            stored = stored.filter(pc.invert(stored["_cdc_deleted"]))
        elif self.mode == "history":
            stored = stored.filter(stored["_cdc_current"])
        else:
            stored = _put_together(stored, (self.keys or {}).get((database, table), ()))
        return stored.drop_columns(OWN_COLUMNS[self.mode])


def _put_together(feed: pa.Table, key: tuple[str, ...]) -> pa.Table:
    """Return the rows that are left after the changes of a feed, one after the other."""
    feed = feed.take(pc.sort_indices(feed, [("_cdc_position", "ascending")]))
    left: dict[str, int] = {}
    columns = [feed.column(name).to_pylist() for name in key]
    for number, op in enumerate(feed["_cdc_op"].to_pylist()):
        if op == "truncate":
            left.clear()
            continue
        mine = repr([column[number] for column in columns])
        left.pop(mine, None)
        if op != "delete":
            left[mine] = number
    return feed.take(pa.array(sorted(left.values()), pa.int64()))
