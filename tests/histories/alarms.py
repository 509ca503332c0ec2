# SPDX-License-Identifier: Apache-2.0
"""Contradictions that a right history must not show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_PARKED_FOR_IT = "apply.contradicted"


class Alarms:
    """Collects contradictions, but for those that statements explain which came after them.

    A TRUNCATE or RENAME on another topic may be read after the rows that follow it. They contradict the table until
    then: it waits, nothing of them is in it, and it goes on by itself in the batch that has the statement.
    """

    def __init__(self) -> None:
        self._counted: list[dict[str, Any]] = []
        self._waiting: dict[str, list[dict[str, Any]]] = {}

    def take(self, result: Mapping[str, Any]) -> None:
        """Take what came of a batch."""
        states = {f"{state['database']}.{state['table']}": state for state in result["states"]}
        for table in [table for table in self._waiting if table in states and states[table]["state"] == "ok"]:
            self._counted += [] if result["new_schema_changes"] else self._waiting[table]
            del self._waiting[table]
        for one in result.get("contradictions", ()):
            waits = _PARKED_FOR_IT in states.get(one["table"], {}).get("reason", "")
            (self._waiting.setdefault(one["table"], []) if waits else self._counted).append(one)

    def false(self) -> Iterator[str]:
        """Yield what is left of them, in words."""
        for one in [*self._counted, *(one for some in self._waiting.values() for one in some)]:
            yield f"a false contradiction: {one}"
