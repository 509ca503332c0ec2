# SPDX-License-Identifier: Apache-2.0
"""Read how a table is partitioned: a column, or a transform of one, as Iceberg names them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_TIMES = ("year", "month", "day", "hour")
_WIDTHS = ("bucket", "truncate")
_CALL = re.compile(r"\s*([A-Za-z_]+)\s*\(\s*(?:(\d+)\s*,\s*)?(.*?)\s*\)\s*", re.DOTALL)
_LARGEST = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class PartitionRule:
    """State one part of how a table is partitioned.

    :param transform: as Iceberg spells it: ``identity``, ``month``, ``bucket[16]``.
    """

    transform: str
    column: str

    @property
    def name(self) -> str:
        """Return a name for the partition's field that Avro has: readers refuse files with others."""
        kind, _, width = self.transform.rstrip("]").partition("[")
        further = {"identity": [], "truncate": ["trunc", width]}.get(kind, [kind, *([width] if width else [])])
        name = re.sub(r"[^A-Za-z0-9_]", "_", "_".join([self.column, *further]))
        return f"_{name}" if name[:1].isdigit() or not name else name


def read_partition(text: str) -> PartitionRule | str:
    """Return what one entry of ``partition_by`` says, or what is wrong with it."""
    if "(" not in text:
        return PartitionRule("identity", text.strip())
    call = _CALL.fullmatch(text)
    known = "column, year(column), month(column), day(column), hour(column), bucket(16, column), truncate(4, column)"
    if call is None or not call[3]:
        return f"{text!r} is not understood; known: {known}"
    kind, width, column = call[1].lower(), call[2], call[3]
    if kind in _WIDTHS:
        if width is None or not 1 <= int(width) <= _LARGEST:
            return f"{text!r} lacks a number from 1, as in {kind}(16, {column})"
        return PartitionRule(f"{kind}[{int(width)}]", column)
    if kind not in (*_TIMES, "identity"):
        return f"{text!r} names no transform; known: {known}"
    return f"{text!r} takes no number" if width is not None else PartitionRule(kind, column)


def partition_rules(entries: Sequence[str]) -> tuple[PartitionRule, ...]:
    """Return what the entries of ``partition_by`` say, without those that are wrong."""
    return tuple(rule for entry in entries if isinstance(rule := read_partition(entry), PartitionRule))


def partition_problems(entries: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with ``partition_by``."""
    yield from (problem for entry in entries if isinstance(problem := read_partition(entry), str))
    rules = partition_rules(entries)
    twice = Counter(rules)
    yield from (f"{rule.transform} of {rule.column} is there twice" for rule, count in twice.items() if count > 1)
    times = Counter(rule.column for rule in twice if rule.transform in _TIMES)
    yield from (f"state one time of {column}, the finest" for column, count in times.items() if count > 1)
