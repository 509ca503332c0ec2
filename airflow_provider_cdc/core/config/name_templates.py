# SPDX-License-Identifier: Apache-2.0
"""Make names of tables from templates over parts of other names: ``raw_{db|lower}.{table|safe}``."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from airflow_provider_cdc.core.model.safe_names import safe_name
from airflow_provider_cdc.core.model.schema import TableName

_DIGEST = 4  # bytes


def _digest(name: str) -> str:
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).hexdigest()


FUNCTIONS: Mapping[str, Callable[[str], str]] = {
    "digest": _digest,
    "lower": str.lower,
    "safe": safe_name,
    "upper": str.upper,
}
"""Functions of templates by their names."""

_FIELD = re.compile(r"\{([^{}]*)\}")
_EXAMPLE = "raw_{database}.{table}"


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of a template.

    :param text: what is written there, or the name of the value that does.
    """

    text: str
    is_value: bool = False
    functions: tuple[str, ...] = ()

    def fill(self, values: Mapping[str, str]) -> str:
        if not self.is_value:
            return self.text
        value = values[self.text]
        for name in self.functions:
            value = FUNCTIONS[name](value)
        return value


class NameTemplate:
    """A template of a namespace and a table, with one dot between them.

    :param text: in braces the name of a value, and behind ``|`` functions of it.
    :param known: names of the values.
    :ivar problems: what is wrong with it, one sentence each.
    """

    def __init__(self, text: str, known: Collection[str]) -> None:
        self.problems: list[str] = []
        levels: list[list[_Part]] = [[]]
        for number, piece in enumerate(_FIELD.split(text)):
            if number % 2:
                levels[-1].append(self._value(piece, known))
                continue
            first, *others = self._literal(piece).split(".")
            levels[-1] += [_Part(first)] if first else []
            levels += [[_Part(other)] if other else [] for other in others]
        if len(levels) != 2:
            counted = "none" if len(levels) == 1 else len(levels) - 1
            self.problems.append(f"one dot stands outside of braces, as in {_EXAMPLE}; here there are {counted}")
        elif not all(levels):
            self.problems.append(f"nothing stands {'behind' if levels[0] else 'in front of'} the dot, as in {_EXAMPLE}")
        self._levels = levels

    def fill(self, values: Mapping[str, str]) -> TableName:
        """Return the name that the template makes of values; only of one without problems."""
        namespace, table = ("".join(part.fill(values) for part in level) for level in self._levels)
        return TableName(namespace, table)

    def _literal(self, text: str) -> str:
        if "{" in text or "}" in text:
            self.problems.append("a brace has no other half; names have none of their own here")
        return text

    def _value(self, text: str, known: Collection[str]) -> _Part:
        name, *functions = (word.strip() for word in text.split("|"))
        if name not in known:
            self.problems.append(_unknown("group", name, sorted(known)))
        self.problems += [_unknown("function", word, sorted(FUNCTIONS)) for word in functions if word not in FUNCTIONS]
        return _Part(name, True, tuple(functions))


def _unknown(what: str, word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    guess = f"did you mean {near[0]!r}? " if near else ""
    return f"{word!r} is not a {what}; {guess}known: {', '.join(known)}"
