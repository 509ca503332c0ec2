# SPDX-License-Identifier: Apache-2.0
"""Choose the rule of a table among rules for patterns of names: the most specific one counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from itertools import combinations

# pieces of a shell pattern: a set of characters, a star, or one character
_PIECES = re.compile(r"\[!?\]?[^\]]*\]|.", re.DOTALL)
_SPECIAL = re.compile(r"[*?\[]")


def is_pattern(key: str) -> bool:
    """Return whether a key of ``tables`` stands for every table that it matches."""
    return _SPECIAL.search(key) is not None


def literal_prefix(pattern: str) -> str:
    """Return what stands before the first special character."""
    special = _SPECIAL.search(pattern)
    return pattern if special is None else pattern[: special.start()]


def by_precedence(patterns: Iterable[str]) -> list[str]:
    """Return patterns, those with the longest literal prefix first."""
    return sorted(patterns, key=lambda pattern: (-len(literal_prefix(pattern)), pattern))


def most_specific(ordered: Sequence[str], name: str) -> str | None:
    """Return the first of the patterns that match a name, None without one.

    :param ordered: as of :func:`by_precedence`.
    """
    return next((pattern for pattern in ordered if fnmatchcase(name, pattern)), None)


def ambiguous(patterns: Iterable[str]) -> list[tuple[str, str]]:
    """Return the pairs of patterns with the same literal prefix that some name matches both of."""
    pairs = combinations(sorted(patterns), 2)
    return [(a, b) for a, b in pairs if literal_prefix(a) == literal_prefix(b) and overlap(a, b)]


def overlap(one: str, other: str) -> bool:
    """Return whether some name may match two patterns; sets of characters are taken to have one in common."""
    a, b = _PIECES.findall(one), _PIECES.findall(other)
    seen: set[tuple[int, int]] = set()
    left = [(0, 0)]
    while left:
        at = i, j = left.pop()
        if at in seen:
            continue
        seen.add(at)
        if i == len(a) and j == len(b):
            return True
        if i < len(a) and a[i] == "*":
            left += [(i + 1, j)] + ([(i, j + 1)] if j < len(b) else [])
        elif j < len(b) and b[j] == "*":
            left += [(i, j + 1)] + ([(i + 1, j)] if i < len(a) else [])
        elif i < len(a) and j < len(b) and _meet(a[i], b[j]):
            left.append((i + 1, j + 1))
    return False


def _meet(one: str, other: str) -> bool:
    if len(one) > 1 and len(other) > 1:
        return True
    return fnmatchcase(other, one) or fnmatchcase(one, other)
