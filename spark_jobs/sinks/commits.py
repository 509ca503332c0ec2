# SPDX-License-Identifier: Apache-2.0
"""Define what each commit of the project carries, and which writer makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

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
