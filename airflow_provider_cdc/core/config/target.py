# SPDX-License-Identifier: Apache-2.0
"""Name the tables of a pipeline in the target: rules over the names that they have at the source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from airflow_provider_cdc.core.config.checks import Checks, kind_of
from airflow_provider_cdc.core.config.name_patterns import NamePattern
from airflow_provider_cdc.core.config.name_templates import NameTemplate
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.model.safe_names import safe_name
from airflow_provider_cdc.core.model.schema import TableName

_SECTION = "target"
_KEYS = ("from", "to")
_OF_ALL = ("database", "table")  # values of every template


@dataclass(frozen=True)
class TargetRule:
    """A rule that names tables in the target.

    :param pattern: regular expression, in RE2's syntax, that matches a whole ``database.table`` of the source; ``from``
        in YAML.
    :param to: template of ``namespace.table`` over the pattern's groups, ``{database}`` and ``{table}``.
    """

    pattern: str
    to: str

    def check(self, checks: Checks) -> None:
        """Note the problems of this rule."""
        right = [checks.text(key, value) for key, value in zip(_KEYS, (self.pattern, self.to), strict=True)]
        groups: tuple[str, ...] = ()
        if right[0]:
            try:
                groups = NamePattern(self.pattern).groups
            except ValueError as error:
                checks.problem("from", str(error))
                right[1] = False  # which groups there are is not known
        if right[1]:
            for problem in NameTemplate(self.to, {*groups, *_OF_ALL}).problems:
                checks.problem("to", problem)

    def document(self) -> dict[str, str]:
        """Return plain JSON data."""
        return {"from": self.pattern, "to": self.to}

    @classmethod
    def from_document(cls, data: Mapping[str, Any]) -> TargetRule:
        """Build from plain data that was checked."""
        return cls(data["from"], data["to"])


def target_rules(data: object) -> tuple[TargetRule, ...]:
    """Return the rules of ``target``, of rules or plain data of them.

    :raises ConfigurationError: names all problems at once.
    """
    if data is None:
        return ()
    if not isinstance(data, list | tuple):
        raise ConfigurationError([f"{_SECTION}: expected a list of rules, got {kind_of(data)}"])
    checks = Checks()
    rules = [_rule(Checks(f"{_SECTION}[{number}]", checks.problems), item) for number, item in enumerate(data)]
    checks.raise_any()
    return tuple(rule for rule in rules if rule is not None)


def _rule(checks: Checks, item: object) -> TargetRule | None:
    if isinstance(item, TargetRule):
        item.check(checks)
        return item
    if not isinstance(item, Mapping):
        checks.problems.append(f"{checks.section}: expected a mapping with from and to, got {kind_of(item)}")
        return None
    if "merge" in item:
        checks.problem("merge", "several tables cannot be merged into one so far; leave it out")
    checks.unknown([key for key in item if key != "merge"], _KEYS)
    for key in _KEYS:
        if key not in item:
            checks.problem(key, "is missing")
    if any(key not in item for key in _KEYS):
        return None
    rule = TargetRule(item["from"], item["to"])
    rule.check(checks)
    return rule


class TargetRules:
    """The rules of a pipeline, of which the first that matches a name counts.

    :param rules: without problems.
    """

    def __init__(self, rules: Sequence[TargetRule]) -> None:
        self._rules = tuple(rules)
        self._known: dict[TableName, TableName | None] = {}

    @cached_property
    def _compiled(self) -> list[tuple[NamePattern, NameTemplate]]:
        pairs = []
        for rule in self._rules:
            pattern = NamePattern(rule.pattern)
            pairs.append((pattern, NameTemplate(rule.to, {*pattern.groups, *_OF_ALL})))
        return pairs

    def learn(self, names: Iterable[TableName]) -> None:
        """Name many tables at once, which costs less than one by one."""
        left = list(dict.fromkeys(name for name in names if name not in self._known))
        for pattern, template in self._compiled:
            if not left:
                return
            for name, groups in zip(left, pattern.matches([str(name) for name in left]), strict=True):
                if groups is not None:
                    self._known[name] = template.fill({"database": name.database, "table": name.table, **groups})
            left = [name for name in left if name not in self._known]
        self._known.update(dict.fromkeys(left))

    def name_of(self, name: TableName) -> TableName:
        """Return the name that a table of the source has in the target, its own where no rule matches."""
        if name not in self._known:
            self.learn([name])
        return self._known[name] or name

    def matches(self, name: TableName) -> bool:
        """Return whether a rule names a table."""
        self.learn([name])
        return self._known[name] is not None


def taken_names(rules: Sequence[TargetRule], tables: Iterable[str], *, safe: bool) -> list[str]:
    """Return a sentence for each pair of tables that rules give one name.

    :param tables: ``database.table`` of those that are known.
    :param safe: names become safe ones (``sink.names``).
    """
    if not rules:
        return []
    named, problems = TargetRules(rules), []
    first: dict[TableName, TableName] = {}
    for text in sorted(tables):
        name = TableName(*text.split(".", 1))
        target = named.name_of(name)
        if safe:
            target = TableName(*map(safe_name, target))
        other = first.setdefault(target, name)
        if other is not name and (named.matches(name) or named.matches(other)):
            problems.append(
                f"{_SECTION}: {other} and {name}, which tables names, would have one name, {target}; "
                "several tables are not merged into one: let a rule name one of them otherwise, or exclude it"
            )
    return problems
