# SPDX-License-Identifier: Apache-2.0
"""Read the rows that a source's table has from tables that keep more than a mirror."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tests.captures.replaying import Lake
from tests.captures.shaped_truth import of_source


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
        return of_source(super().rows(database, table), self.mode, (self.keys or {}).get((database, table), ()))
