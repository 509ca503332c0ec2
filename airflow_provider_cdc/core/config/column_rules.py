# SPDX-License-Identifier: Apache-2.0
"""State which columns a stored table has: left out, renamed, masked, of another type, computed, or about the change."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from fnmatch import fnmatchcase
from typing import Any

from airflow_provider_cdc.core.config.checks import Checks, kind_of
from airflow_provider_cdc.core.config.table_patterns import is_pattern, overlap

METADATA = ("op", "source_time", "position", "table", "batch")
"""What a column of a target may say of the change that made its row."""

_CALL = re.compile(r"\s*([a-z_]+)\s*(?:\(\s*(\w+)\s*\))?\s*")
_DATE_PARTS = ("year", "month", "day", "hour")


@dataclass(frozen=True, slots=True)
class MaskRule:
    """State how the values of a column are masked.

    :param kind: ``hash``, ``redact`` or ``truncate``.
    :param argument: of ``truncate``: the characters or digits, or the part of a date, that stay; else empty.
    """

    kind: str
    argument: str = ""

    def __str__(self) -> str:
        return f"{self.kind}({self.argument})" if self.argument else self.kind


_REDACT = MaskRule("redact")


def read_mask(text: str) -> MaskRule | str:
    """Return what an entry of ``mask`` says, or what is wrong with it."""
    known = "known: hash, redact, truncate(3), truncate(month)"
    call = _CALL.fullmatch(text)
    if call is None or call[1] not in ("hash", "redact", "truncate"):
        return f"{text!r} is not understood; {known}"
    kind, argument = call[1], call[2] or ""
    if kind != "truncate":
        return MaskRule(kind) if not argument else f"{kind} takes no argument; {known}"
    if not (argument in _DATE_PARTS or (argument.isdecimal() and int(argument) < 1_000)):
        return f"{text!r} lacks a number of characters or digits, or one of {', '.join(_DATE_PARTS)}; {known}"
    return MaskRule(kind, argument)


def check_expression(checks: Checks, name: str, text: str) -> None:
    """Note what is wrong with the text of an expression, with its place in it."""
    # the parser costs time that pipelines without expressions do not spend
    from airflow_provider_cdc.core.expressions.errors import ExpressionError
    from airflow_provider_cdc.core.expressions.syntax import read

    try:
        read(text)
    except ExpressionError as error:
        checks.problem(name, str(error))


@dataclass(frozen=True)
class ColumnRules:
    """Rules for the columns of one table. Columns are named as the source names them; a rule follows a RENAME.

    :param exclude: names or shell patterns, in any case, of columns that the target does not have.
    :param rename: name in the target by name in the source.
    :param mask: by name or shell pattern ``hash``, ``redact``, ``truncate(n)`` or ``truncate(month)``.
    :param type: SQL type in the target, by name: a wider one, or text.
    :param add: SQL expression over the source's columns, by name in the target.
    :param metadata: name in the target, by what it says of the change (:data:`METADATA`).
    :param unlogged: names or shell patterns of columns whose values stay out of the change log, too: those that
        ``mask`` redacts are constants in the target, it does not have the others.
    """

    exclude: str | list[str] | None = None
    rename: dict[str, str] | None = None
    mask: dict[str, str] | None = None
    type: dict[str, str] | None = None
    add: dict[str, str] | None = None
    metadata: dict[str, str] | None = None
    unlogged: str | list[str] | None = None

    def check(self, checks: Checks) -> None:
        """Note the problems of these rules."""
        if self.exclude is not None:
            checks.texts("exclude", self.excluded, least=1)
        if self.unlogged is not None:
            checks.texts("unlogged", self.unlogged_patterns, least=1)
        for name in ("rename", "mask", "type", "add", "metadata"):
            self._check_texts(checks, name, getattr(self, name))
        if checks.problems:
            return
        for column, text in (self.mask or {}).items():
            if isinstance(problem := read_mask(text), str):
                checks.problem(f"mask.{column}", problem)
        for name, text in (self.add or {}).items():
            check_expression(checks, f"add.{name}", text)
        for name in self.metadata or {}:
            checks.choice("metadata", name, METADATA)
        names = [*(self.rename or {}).values(), *(self.add or {}), *(self.metadata or {}).values()]
        for name, count in Counter(name.lower() for name in names).items():
            if count > 1:
                checks.problem("rename", f"several columns are to be named {name!r}")
        self._check_unlogged(checks)

    def _check_unlogged(self, checks: Checks) -> None:
        """Note rules that need the values of columns which stay out of the change log."""
        for pattern in self.unlogged_patterns:
            for name, text in ({} if self.redacts(pattern) else self.mask or {}).items():
                if read_mask(text) != _REDACT and overlap(pattern.lower(), name.lower()):
                    sentence = f"{text} is made of the value, which unlogged ({pattern}) keeps out of the change log"
                    checks.problem(f"mask.{name}", f"{sentence}; state redact, or take the column out of unlogged")
        for rule in ("rename", "type"):
            for name in getattr(self, rule) or {}:
                if (by := self.unlogged_by(name)) and not self.redacts(name):
                    checks.problem(f"{rule}.{name}", f"the table has no such column: unlogged names it ({by})")
        for name, text in (self.add or {}).items():
            self.check_reading(checks, f"add.{name}", text)

    def check_reading(self, checks: Checks, key: str, text: str) -> None:
        """Note that an expression reads columns whose values stay out of the change log."""
        if self.unlogged is None:
            return
        from airflow_provider_cdc.core.expressions.expression import parse

        for name in parse(text).columns:
            if pattern := self.unlogged_by(name):
                checks.problem(key, f"reads {name}, whose values unlogged ({pattern}) keeps out of the change log")

    def check_kept(self, checks: Checks, key: str, names: Iterable[str]) -> None:
        """Note columns that the target does not have, though another rule needs them."""
        for name in names:
            gone = [one for one in self.excluded if fnmatchcase(name.lower(), one.lower())]
            if gone and not is_pattern(name):
                checks.problem(key, f"names {name}, which columns.exclude ({gone[0]}) leaves out")

    @staticmethod
    def _check_texts(checks: Checks, name: str, value: object) -> None:
        if value is None:
            return
        if not isinstance(value, Mapping) or not value:
            checks.problem(name, f"expected a mapping, got {kind_of(value) if value else 'an empty one'}")
            return
        for key, text in value.items():
            checks.text(f"{name}.{key}", text)
            if not isinstance(key, str) or not key.strip():
                checks.problem(name, "a column's name is text")

    @property
    def excluded(self) -> list[str]:
        """The patterns of ``exclude``; none where it is not set."""
        return [self.exclude] if isinstance(self.exclude, str) else list(self.exclude or ())

    @property
    def unlogged_patterns(self) -> list[str]:
        """The patterns of ``unlogged``; none where it is not set."""
        return [self.unlogged] if isinstance(self.unlogged, str) else list(self.unlogged or ())

    def unlogged_by(self, name: str) -> str | None:
        """Return the pattern that keeps some column of a name, or shell pattern, out of the change log."""
        return next((one for one in self.unlogged_patterns if overlap(one.lower(), name.lower())), None)

    def redacts(self, name: str) -> bool:
        """Return whether a column is a constant in the target."""
        folded = name.lower()
        if any(fnmatchcase(folded, one.lower()) for one in self.excluded):
            return False
        masks = (text for pattern, text in (self.mask or {}).items() if fnmatchcase(folded, pattern.lower()))
        return read_mask(next(masks, "")) == _REDACT

    @property
    def exact_names(self) -> list[str]:
        """The columns that the rules name without a pattern, and that the table has in the change log."""
        stated = [*self.excluded, *(self.rename or ()), *(self.mask or ()), *(self.type or ())]
        return [name for name in stated if not is_pattern(name) and not self.unlogged_by(name)]

    @property
    def needs_salt(self) -> bool:
        """Return whether a column is masked by a hash."""
        return any(read_mask(text) == MaskRule("hash") for text in (self.mask or {}).values())

    def document(self) -> dict[str, Any]:
        """Return plain JSON data: only what is set."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @staticmethod
    def of(data: object, checks: Checks) -> ColumnRules | None:
        """Return the rules that plain data states; problems are noted, and there are none then."""
        if data is None or isinstance(data, ColumnRules):
            rules = data
        elif isinstance(data, Mapping):
            known = [one.name for one in fields(ColumnRules)]
            checks.unknown(data, known)
            rules = ColumnRules(**{name: value for name, value in data.items() if name in known})
        else:
            checks.problems.append(f"{checks.section}: expected a mapping, got {kind_of(data)}")
            return None
        return rules
