# SPDX-License-Identifier: Apache-2.0
"""Read from a table's log whose commits it has, and which of them may have changed rows."""

from __future__ import annotations

import json
from itertools import takewhile
from typing import Any

from deltalake import DeltaTable

from spark_jobs.sinks.commits import MAINTENANCE, Owner
from spark_jobs.sinks.delta.commit_marks import COMPACTION

# commits that leave a table's rows as they are
_MAINTENANCE = frozenset(
    {"OPTIMIZE", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES", "CHECKPOINT", "REORG", "ADD FEATURE"}
    | {"UPDATE FIELD METADATA", "UPDATE TABLE METADATA"}  # comments, by delta-rs
)


class CommitHistory:
    """The commits up to the version of an opened table."""

    def __init__(self, table: DeltaTable) -> None:
        self._table, self._version = table, int(table.version())

    def newest_app(self, *, of_anybody: bool = True) -> str | None:
        """Return the application of the newest commit that may have changed rows.

        Empty where that names none, so it is not of a pipeline; None where the log no longer has such a commit.

        :param of_anybody: whether it may name none; else the newest that names one.
        """
        for limit in (1, 50, None):
            for entry in self._table.history(limit):
                app = str(self._facts(entry).get("app", ""))
                if app or (of_anybody and not self._keeps_rows(entry)):
                    return app
        return None

    def newest_rows_version(self) -> int | None:
        """Return the version of the newest commit that may have changed rows, None where the log no longer has it."""
        for limit in (50, None):
            for entry in self._table.history(limit):
                if not self._keeps_rows(entry):
                    return int(entry["version"])
        return None

    def facts(self, app: str) -> dict[str, Any] | None:
        """Return the facts of an application's newest commit, None where the log no longer has it."""
        for limit in (50, None):
            history = (self._facts(entry) for entry in self._table.history(limit))
            facts = next((facts for facts in history if facts.get("app") == app), None)
            if facts is not None:
                return facts
        return None

    def is_written_by(self, app: str) -> bool:
        """Return whether no other application of ours wrote after an application's newest commit.

        True also where the log no longer has such a commit.
        """
        for limit in (50, None):
            every = (facts for entry in self._table.history(limit) if (facts := self._facts(entry)))
            newest = next((facts for facts in every if facts != COMPACTION), None)
            if newest is not None:
                return bool(newest.get("app") == app)
        return True

    @staticmethod
    def _facts(entry: dict[str, Any]) -> dict[str, Any]:
        try:
            content = json.loads(entry.get("cdc") or entry.get("userMetadata") or "{}")  # delta-rs' and Spark's place
        except ValueError:
            return {}
        return content if isinstance(content, dict) else {}

    def foreign_commit(self, since: int, owner: Owner | None = None) -> str | None:
        """Return the operation of a commit after version ``since`` that may have changed rows and is not ours.

        :param owner: whose commits are ours, None for those of any pipeline.
        """
        behind = (self._version) - since
        for entry in self._table.history(behind) if behind > 0 else ():
            facts = self._facts(entry)
            ours = bool(facts) if owner is None else owner.wrote(facts.get("app"))
            if not ours and not self._keeps_rows(entry):
                return str(entry.get("operation"))
        return None

    def last_maintained(self, since: int) -> int:
        """Return the newest version up to which all commits after ``since`` are known to leave the rows alone."""
        entries = self._table.history(behind) if (behind := self._version - since) > 0 else []
        return since + len(list(takewhile(self._keeps_rows, reversed(entries)))) if len(entries) == behind else since

    def _keeps_rows(self, entry: dict[str, Any]) -> bool:
        """Return whether a commit is known to leave a table's rows as they are."""
        facts = self._facts(entry)
        return MAINTENANCE in facts or (entry.get("operation") in _MAINTENANCE and not facts)
