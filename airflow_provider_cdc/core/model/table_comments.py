# SPDX-License-Identifier: Apache-2.0
"""Hold what a source says of a table and of its columns, as the stored table is to say it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_provider_cdc.core.json_documents import json_bytes


@dataclass(frozen=True, slots=True)
class TableComments:
    """The comments of a stored table; an empty one goes, and what has none here stays as it is.

    :param table: None where the source never said anything of it.
    :param columns: by names of the stored table.
    """

    table: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict, hash=False)

    def of_table(self, stored: str) -> str:
        """Return the table's comment after a commit, empty for none.

        :param stored: before it.
        """
        return stored if self.table is None else self.table

    def of_columns(self, names: list[str], stored: Mapping[str, str]) -> dict[str, str]:
        """Return the comments that columns have after a commit.

        :param names: of all columns then.
        :param stored: before it.
        """
        known = {name: self.columns.get(name, stored.get(name, "")) for name in names}
        return {name: text for name, text in known.items() if text}

    @property
    def mark(self) -> str:
        """Return a digest, empty where the source never said anything."""
        if self.table is None and not self.columns:
            return ""
        return hashlib.blake2b(json_bytes([self.table, dict(self.columns)]), digest_size=8).hexdigest()


NO_COMMENTS = TableComments()
"""Of a table of which the source never said anything."""
