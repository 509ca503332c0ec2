# SPDX-License-Identifier: Apache-2.0
"""Say how large the samples of the suite are: ``CDC_SEEDS=2`` takes twice as many seeds, and what else takes long."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations
from zlib import crc32

import pytest

TIMES = int(os.environ.get("CDC_SEEDS", "1"))
ALL = TIMES > 1
"""Whether to run what the suite leaves out for time."""


def amount(few: int, many: int) -> int:
    """Return how often the suite repeats something: ``few`` times, with ``CDC_SEEDS=2`` twice ``many`` times."""
    return many * TIMES if ALL else few


Value = tuple[int, ...]
_KINDS = ("sampled", "every")


def left_out(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests that the suite leaves out of those that are marked ``sampled`` or ``every``.

    Of a test's products of parameters those run in which each value of each parameter occurs as often as its mark says,
    once unless it says more; each with other values of the other parameters where it can. Of a test that is marked
    ``every`` each n-th of its list runs, of the next test of the file and of another file others.
    """
    sampled, thinned = _marked(items, "sampled"), _marked(items, "every")
    rest = [item for group in sampled.values() for item in _rest(group)]
    return rest + _passed_over(thinned)


def _marked(items: Sequence[pytest.Item], name: str) -> dict[str, list[pytest.Function]]:
    """Return the parametrized tests that are marked so, by the function."""
    groups: dict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and _first_of(item, *_KINDS) == name:
            groups[item.nodeid.partition("[")[0]].append(item)
    return groups


def _first_of(item: pytest.Function, *names: str) -> str:
    """Return which of these marks is the nearest: a test's own goes before that of its file."""
    return next((mark.name for mark in item.iter_markers() if mark.name in names), "")


def _passed_over(groups: dict[str, list[pytest.Function]]) -> list[pytest.Item]:
    passed: list[pytest.Item] = []
    before: Counter[str] = Counter()
    for name, group in groups.items():
        mark = group[0].get_closest_marker("every")
        step = mark.args[0] if mark else 1
        file = name.partition("::")[0]
        shift = before[file] + crc32(file.encode())  # files share lists, too
        passed += [item for number, item in enumerate(group) if (number + shift) % min(step, len(group))]
        before[file] += 1
    return passed


def _rest(group: Sequence[pytest.Function]) -> list[pytest.Item]:
    mark = group[0].get_closest_marker("sampled")
    times = mark.args[0] if mark and mark.args else 1
    rest = {item: _values(item) for item in group}
    seen: Counter[Value] = Counter()
    pairs: set[tuple[Value, Value]] = set()

    def price(item: pytest.Function) -> tuple[int, int, int]:
        """Return less for a test that has more which is asked for, then more that no other has."""
        counts = [seen[value] for value in rest[item]]
        known = sum(pair in pairs for pair in combinations(rest[item], 2))
        return -sum(count < times for count in counts), known, sum(counts)

    while rest and price(best := min(rest, key=price))[0]:
        values = rest.pop(best)
        seen.update(values)
        pairs.update(combinations(values, 2))
    return list(rest)


def _values(item: pytest.Function) -> list[Value]:
    """Return what a test has of each of its lists of parameters, by the objects: they are the same ones each time."""
    params = dict(item.callspec.params)
    lists = [mark.args[0] for mark in item.iter_markers("parametrize")]
    split = [names.replace(",", " ").split() if isinstance(names, str) else names for names in lists]
    together = [names for names in split if set(names) <= params.keys()]
    others = [[name] for name in params if name not in {name for names in together for name in names}]
    return [(number, *(id(params[name]) for name in names)) for number, names in enumerate([*together, *others])]
