# SPDX-License-Identifier: Apache-2.0
"""Hold the changes that the policy of a table asks about (``on_…: ask``), and what was decided about each.

They are schema changes of the source, and rules of the pipeline that are others now (``on_rule_change``).

What ``on_drop_column: keep``, ``on_rename_column: keep`` and ``on_truncate: ignore`` decide is held in the same way: a
change that is left out stays so whatever the policy is later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.plain_data import Document
from airflow_provider_cdc.core.timeline.rule_costs import RuleCost

ON_ADD_COLUMN, ON_CONVERT_COLUMN = "on_add_column", "on_convert_column"
ON_CREATE_TABLE, ON_DROP_COLUMN = "on_create_table", "on_drop_column"
ON_DROP_TABLE, ON_FAILOVER, ON_KEY_CHANGE = "on_drop_table", "on_failover", "on_key_change"
ON_MISSING_CREATE, ON_RENAME_COLUMN = "on_missing_create", "on_rename_column"
ON_RENAME_TABLE, ON_RULE_CHANGE, ON_TRUNCATE = "on_rename_table", "on_rule_change", "on_truncate"
ON_UNSEEN_DDL, ON_WIDEN_COLUMN = "on_unseen_ddl", "on_widen_column"

DENIABLE = (ON_DROP_COLUMN, ON_DROP_TABLE, ON_RENAME_COLUMN, ON_TRUNCATE)
"""Policies whose changes can be left out for good.

Without a change of another kind the table could not hold the rows after it. While such a change waits, the timeline has
it all the same, and only its table stays as it was: so later statements and rows are read as the source meant them.
"""

LEFT_OUT_BY: Mapping[str, str] = {ON_DROP_COLUMN: "keep", ON_RENAME_COLUMN: "keep", ON_TRUNCATE: "ignore"}
"""Policies with the value that leaves their change out, as a person does who denies it: for good."""

_WAITING = ("ask", "park")  # values with which a change waits for a decision; ``park`` is that of ON_MISSING_CREATE


class Answer(StrEnum):
    """Say what was decided about a change; one that is ``withdrawn`` is not to be decided about any more."""

    OPEN = "open"
    APPLY = "apply"
    DENY = "deny"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class AskedChange(Document):
    """A change of one table that waits for a decision, or the decision about it.

    :param position: its position in the source's log; empty for rules of the pipeline.
    :param database: database of the table then; ``table`` its name.
    :param policy: key of the policy that asks.
    :param statement: its text, or the kind of the change where rows show it; of rules what each was and is.
    :param by: who decided; empty while the change waits.
    :param at: when, ISO time.
    :param order: identifies what asked for the decision, where that may be repeated, as by a retry of a task.
    :param mark: of rules a digest that identifies the change, for the rows that the table has.
    :param cost: of rules what carrying the change out costs.
    """

    position: str
    database: str
    table: str
    policy: str
    statement: str
    answer: Answer = Answer.OPEN
    by: str = ""
    at: str = ""
    order: str = ""
    mark: str = ""
    cost: RuleCost | None = None

    @property
    def id(self) -> str:
        """Name the change in commands: a digest of :attr:`key`."""
        return hashlib.blake2b(repr(self.key).encode(), digest_size=4).hexdigest()

    @property
    def name(self) -> TableName:
        """The name that the table had."""
        return TableName(self.database, self.table)

    @property
    def key(self) -> tuple[str, ...]:
        """Identify the change: a statement may concern several tables, and of one table several policies."""
        return self.position, self.database, self.table, self.policy, *([self.mark] if self.mark else ())


def newest_answers(documents: Iterable[Mapping[str, Any]]) -> list[AskedChange]:
    """Return each change once, with its newest answer, by position.

    :param documents: in the order in which batches wrote them.
    """
    newest = {item.key: item for item in map(AskedChange.from_document, documents)}
    return sorted(newest.values(), key=lambda item: item.key)


class AskedChanges:
    """The changes that were asked about, which a batch adds to and answers.

    What an earlier batch took is not asked about.

    :param known: those of the batches before.
    :param value_of: returns the value of a table's policy, empty where the pipeline does not select the table; None
        where nothing new is asked.
    :param fresh: positions of the changes that are new in the batch; they decide about deniable changes.
    :param is_taken: returns whether an earlier batch took a change, by its position, table and policy; it decides about
        all others, because a statement behind one that waits may show only later what it does.
    :param at: time of what policies decide, ISO.
    """

    def __init__(
        self,
        known: Iterable[AskedChange] = (),
        value_of: Callable[[TableName, str], str] | None = None,
        fresh: Collection[str] = (),
        is_taken: Callable[[str, TableName, str], bool] | None = None,
        at: str = "",
    ) -> None:
        self._known: dict[tuple[str, ...], AskedChange] = {item.key: item for item in known}
        self._items = dict(self._known)
        self._asks, self._at = value_of is not None, at
        self._value_of = value_of or (lambda name, policy: "")
        self._fresh, self.is_taken = fresh, is_taken or (lambda position, name, policy: False)

    def known(self, item: AskedChange) -> AskedChange | None:
        """Return a change as it was decided about so far, None where nobody was asked."""
        return self._items.get(item.key)

    def answer(self, position: str, name: TableName, policy: str, statement: str) -> Answer:
        """Return what was decided about a change; ask about a new one where the policy of its table says so."""
        key = position, *name, policy
        if self._asks and key not in self._items:
            is_new = position in self._fresh if policy in DENIABLE else not self.is_taken(position, name, policy)
            if is_new:
                self.ask(AskedChange(position, *name, policy, statement))
        item = self._items.get(key)
        return Answer.APPLY if item is None else item.answer

    def ask(self, item: AskedChange) -> None:
        """Add a new change that waits for a decision, or stays undone, where the policy of its table says so."""
        value = self._value_of(item.name, item.policy)
        if value in _WAITING:
            self._items.setdefault(item.key, item)
        elif value and LEFT_OUT_BY.get(item.policy) == value:
            self._items.setdefault(item.key, self._by_policy(item, value))

    def decide(self, decision: AskedChange) -> None:
        """Take a decision about a known change: about one that waits, or the approval of one that was denied."""
        item = self._items.get(decision.key)
        if item is not None and item.answer not in (Answer.APPLY, Answer.WITHDRAWN):
            decided = {name: getattr(decision, name) for name in ("answer", "by", "at", "order")}
            self._items[item.key] = replace(item, **decided)

    def ask_about_rules(self, item: AskedChange) -> AskedChange | None:
        """Return rules that are others now as they were decided about, None where the policy of the table does not ask.

        They are asked about where nobody was asked, or where they were withdrawn and are there again.

        :param item: with a ``cost`` it takes the place of one that waits.
        """
        known = self._items.get(item.key)
        is_new = known is None or known.answer == Answer.WITHDRAWN
        if is_new and self._value_of(item.name, item.policy) not in _WAITING:
            return None
        if is_new or (known is not None and known.answer == Answer.OPEN and item.cost is not None):
            self._items[item.key] = item
        return self._items[item.key]

    def withdraw_rules(self, but: Collection[tuple[str, ...]]) -> None:
        """Note that nobody has to decide any more about rules: they were taken back, or changed again.

        :param but: keys of those that still wait.
        """
        for item in self.every():
            if item.policy == ON_RULE_CHANGE and item.answer == Answer.OPEN and item.key not in but:
                self._items[item.key] = replace(item, answer=Answer.WITHDRAWN, at=self._at)

    def settle(self) -> None:
        """Let changes that wait be decided by policies that do not ask about them any more, except ``fail``."""
        for item in list(self._items.values()):
            value = self._value_of(item.name, item.policy)
            if item.answer == Answer.OPEN and value not in ("", "fail", *_WAITING):
                self.decide(self._by_policy(item, value))

    def refused(self) -> list[AskedChange]:
        """Return the changes that wait although the policy of their table is ``fail`` by now, by position."""
        waiting = [item for item in self.every() if item.answer == Answer.OPEN]
        return [item for item in waiting if self._value_of(item.name, item.policy) == "fail"]

    def _by_policy(self, item: AskedChange, value: str) -> AskedChange:
        answer = Answer.DENY if LEFT_OUT_BY.get(item.policy) == value else Answer.APPLY
        return replace(item, answer=answer, by=f"policy {item.policy}: {value}", at=self._at)

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
