# SPDX-License-Identifier: Apache-2.0
"""Define what each commit of the project carries, whose commits are ours, and which writer makes one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

MAINTENANCE = "maintenance"
"""Key of the facts of commits that no batch made: to batches the rows are as they were."""

ADDED_BYTES = "added_bytes"
"""Key of the facts of commits that a task makes: bytes of the files that they add."""

WriterName = Literal["task", "spark"]


@dataclass(frozen=True, slots=True)
class Commit:
    """Metadata that each commit of the project carries.

    :param app: application id of the table's transactions.
    :param seq: the batch; a table never takes the same or an older one again.
    :param facts: small JSON data for people and for repeats.
    """

    app: str
    seq: int
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a table has to be.

    :param prefix: of the applications of a pipeline, ``cdc/<pipeline>/``.
    :param table_ids: the tables of it that may have written last; None for any: names pass from table to table.
    """

    prefix: str
    table_ids: Collection[str] | None = None

    @staticmethod
    def of(app: str) -> Owner:
        """Return the pipeline whose application this is."""
        return Owner(app.rsplit("/", 2)[0] + "/")

    def wrote(self, app: str | None) -> bool:
        """Return whether an application, None for an unknown one, is of this owner."""
        if app is None or not app.startswith(self.prefix):
            return False
        return self.table_ids is None or app.removeprefix(self.prefix).rsplit("/", 1)[0] in self.table_ids


@dataclass(frozen=True, slots=True)
class Choice:
    """A commit's writer, and why it is that one, for people."""

    writer: WriterName
    reason: str

    def document(self) -> dict[str, str]:
        """Return plain JSON data, which the commit states."""
        return {"name": self.writer, "reason": self.reason}

    @staticmethod
    def from_document(data: Mapping[str, Any] | None) -> Choice | None:
        """Rebuild from :meth:`document`; None for commits that nothing chose a writer for."""
        return None if data is None else Choice(data["name"], data["reason"])
