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
        self._waiting: dict[str, list[dict[str, Any]]] = {}  # by table_id: a statement may rename the table

    def take(self, result: Mapping[str, Any]) -> None:
        """Take what came of a batch."""
        for state in result["states"]:
            if state["state"] in ("ok", "dropped"):
                explained = self._waiting.pop(state["table_id"], [])
                self._counted += [] if result["new_schema_changes"] else explained
        parked = [state for state in result["states"] if _PARKED_FOR_IT in state["reason"]]
        table_ids = {f"{state['database']}.{state['table']}": state["table_id"] for state in parked}
        for one in result.get("contradictions", ()):
            waits = table_ids.get(one["table"])
            (self._waiting.setdefault(waits, []) if waits else self._counted).append(one)

    def false(self) -> Iterator[str]:
        """Yield what is left of them, in words."""
        for one in [*self._counted, *(one for some in self._waiting.values() for one in some)]:
            yield f"a false contradiction: {one}"
