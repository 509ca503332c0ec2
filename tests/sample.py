# SPDX-License-Identifier: Apache-2.0
"""Say how large the samples of the suite are: ``CDC_SEEDS=2`` takes twice as many seeds, and what else takes long."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest

TIMES = int(os.environ.get("CDC_SEEDS", "1"))
ALL = TIMES > 1
"""Whether to run what the suite leaves out for time."""


def left_out(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests that the suite leaves out of those that are marked ``sampled``.

    Of a test's products of parameters those run in which each value of each parameter occurs as often as its mark says,
    once unless it says more; each with other values of the other parameters where it can.
    """
    groups: dict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and item.get_closest_marker("sampled"):
            groups[item.nodeid.partition("[")[0]].append(item)
    return [item for group in groups.values() for item in _rest(group)]


def _rest(group: Sequence[pytest.Function]) -> list[pytest.Item]:
    mark = group[0].get_closest_marker("sampled")
    times = mark.args[0] if mark and mark.args else 1
    rest = {item: _values(item) for item in group}
    seen: Counter[tuple[int, ...]] = Counter()
    while rest:
        counts = {item: [seen[value] for value in values] for item, values in rest.items()}
        best = min(rest, key=lambda item: (-sum(count < times for count in counts[item]), sum(counts[item])))
        if min(counts[best]) >= times:
            break
        seen.update(rest.pop(best))
    return list(rest)


def _values(item: pytest.Function) -> list[tuple[int, ...]]:
    """Return what a test has of each of its lists of parameters; the values of a list are the same objects each time."""
    params = dict(item.callspec.params)
    lists = [mark.args[0] for mark in item.iter_markers("parametrize")]
    split = [names.replace(",", " ").split() if isinstance(names, str) else names for names in lists]
    together = [names for names in split if set(names) <= params.keys()]
    others = [[name] for name in params if name not in {name for names in together for name in names}]
    return [(number, *(id(params[name]) for name in names)) for number, names in enumerate([*together, *others])]
