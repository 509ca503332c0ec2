# SPDX-License-Identifier: Apache-2.0
"""Hold the schema changes that the policy of a table asks about (``on_…: ask``), and what was decided about each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

from airflow_provider_cdc.core.model.schema import TableName

ON_DROP_TABLE, ON_TRUNCATE = "on_drop_table", "on_truncate"


class Answer(StrEnum):
    """Say what was decided about a schema change."""

    OPEN = "open"
    APPLY = "apply"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class AskedChange:
    """A schema change of one table that waits for a decision, or the decision about it.

    :param position: its position in the source's log.
    :param database: database of the table then; ``table`` its name.
    :param policy: key of the policy that asks.
    :param statement: its text, or the kind of the change where rows show it.
    :param by: who decided; empty while the change waits.
    :param at: when, ISO time.
    """

    position: str
    database: str
    table: str
    policy: str
    statement: str
    answer: Answer = Answer.OPEN
    by: str = ""
    at: str = ""

    @property
    def name(self) -> TableName:
        """The name that the table had."""
        return TableName(self.database, self.table)

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Identify the change: a statement may concern several tables, and of one table several policies."""
        return self.position, self.database, self.table, self.policy

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @staticmethod
    def from_document(data: Mapping[str, Any]) -> AskedChange:
        """Rebuild from :meth:`document`."""
        return AskedChange(**{**data, "answer": Answer(data["answer"])})


def newest_answers(documents: Iterable[Mapping[str, Any]]) -> list[AskedChange]:
    """Return each change once, with its newest answer, by position.

    :param documents: in the order in which batches wrote them.
    """
    newest = {item.key: item for item in map(AskedChange.from_document, documents)}
    return sorted(newest.values(), key=lambda item: item.key)


class AskedChanges:
    """The changes that were asked about, which a batch adds to and answers.

    :param known: those of the batches before.
    :param asks: returns whether the policy of a table asks about a change; None where nothing new is asked.
    :param fresh: positions of the changes that are new in the batch: what an earlier batch took is not asked about.
    """

    def __init__(
        self,
        known: Iterable[AskedChange] = (),
        asks: Callable[[TableName, str], bool] | None = None,
        fresh: Collection[str] = (),
    ) -> None:
        self._known = {item.key: item for item in known}
        self._items = dict(self._known)
        self._asks, self._fresh = asks, fresh

    def answer(self, position: str, name: TableName, policy: str, statement: str) -> Answer:
        """Return what was decided about a change; ask about a new one where the policy of its table says so."""
        item = AskedChange(position, *name, policy, statement)
        if item.key not in self._items and (
            self._asks is None or position not in self._fresh or not self._asks(name, policy)
        ):
            return Answer.APPLY
        return self._items.setdefault(item.key, item).answer

    def ask(self, item: AskedChange) -> None:
        """Add a change that waits for a decision, unless it is known."""
        self._items.setdefault(item.key, item)

    def decide(self, decision: AskedChange) -> None:
        """Take a decision about a known change: about one that waits, or the approval of one that was denied."""
        item = self._items.get(decision.key)
        if item is not None and item.answer != Answer.APPLY:
            self._items[item.key] = replace(item, answer=decision.answer, by=decision.by, at=decision.at)

    def settle(self, value_of: Callable[[TableName, str], str], at: str) -> None:
        """Let changes that wait be decided by a policy that does not ask about them any more.

        :param value_of: returns the value of a table's policy; empty where the pipeline does not select the table.
        """
        for item in list(self._items.values()):
            value = value_of(item.name, item.policy)
            if item.answer == Answer.OPEN and value not in ("", "ask"):
                self.decide(replace(item, answer=Answer.APPLY, by=f"policy {item.policy}: {value}", at=at))

    def every(self) -> list[AskedChange]:
        """Return all changes by position."""
        return sorted(self._items.values(), key=lambda item: item.key)

    def news(self) -> list[AskedChange]:
        """Return the changes that the batch asks about or decides."""
        return [item for item in self.every() if self._known.get(item.key) != item]

    def is_approved(self, position: str, name: TableName, policy: str) -> bool:
        """Return whether a change was asked about and is approved."""
        item = self._items.get((position, *name, policy))
        return item is not None and item.answer == Answer.APPLY
