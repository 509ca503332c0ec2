# SPDX-License-Identifier: Apache-2.0
"""Compare the rows of tables with rules and modes with those that plain Python says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tests.histories.comparison import stored_values
from tests.histories.kinds import Kind
from tests.histories.source import Content, Row


@dataclass(frozen=True)
class Shaped:
    """A column that a table must have.

    :param is_known: whether its values in the table are known, and not only which of the source's they are made of.
    """

    name: str
    type: pa.DataType
    kind: Kind
    value: Callable[[Row], Any]
    is_known: bool = True


def unlike(lake: pa.Table, columns: Sequence[Shaped], rows: Sequence[Row], *, often: bool = True) -> list[str]:
    """Return what differs between stored rows and those that must be there.

    :param often: whether it counts how often each is there.
    """
    stored = [stored_values(lake.column(i), column.kind) for i, column in enumerate(columns) if column.is_known]
    columns = [column for column in columns if column.is_known]
    actual = Counter(zip(*stored, strict=True)) if stored else Counter({(): lake.num_rows})
    expected = Counter(tuple(column.value(row) for column in columns) for row in rows)
    if not often:
        actual, expected = Counter({*actual}), Counter({*expected})
    wrong = [f"too much: {row}" for row in list(actual - expected)[:4]]
    return [*wrong, *(f"missing: {row}" for row in list(expected - actual)[:4])]


def unlike_before(lake: pa.Table, columns: Sequence[Shaped], operation: str, content: Content) -> list[str]:
    """Return what differs between the stored rows before changes of a kind and those that there were."""
    if operation not in ("update", "delete"):
        return ["a row before it"] * any(column.null_count < len(column) for column in lake.columns)
    if not content.has_first_key or any(op == "moved to" for op, _ in content.feed or ()):
        return []
    there: dict[tuple[Any, ...], Row] = {}
    rows: list[Row] = []
    for op, row in content.feed or ():
        if op == "missing":
            continue
        key = tuple(row[name] for name in content.structure.key) if row else ()
        if op == operation and (op == "delete" or content.structure.key):
            rows.append(row if op == "delete" else there[key])
        there = {} if op in ("truncate", "snapshot_begin") else {**there, key: row}
    return unlike(lake, columns, rows) if operation == "delete" or content.structure.key else []


def lasts(content: Content) -> list[Row]:
    """Return the rows that there were, each with its values before it went, or as it is now."""
    there: dict[tuple[Any, ...], Row] = {}
    gone: list[Row] = []
    for op, row in content.feed or ():
        if op == "truncate":
            gone, there = [*gone, *there.values()], {}
        if not row:
            continue
        key = tuple(row[name] for name in content.structure.key)
        if op in ("delete", "missing"):
            gone.append(there.pop(key))
        else:
            there[key] = row
    return [*gone, *there.values()]


def versions(content: Content, columns: Sequence[Shaped]) -> list[Row]:
    """Return the rows that there were, one for each change, but for those that a new snapshot read as they were."""
    there: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    every: list[Row] = []
    for op, row in content.feed or ():
        there = {} if op == "truncate" else there
        if not row:
            continue
        key, values = tuple(row[name] for name in content.structure.key), tuple(one.value(row) for one in columns)
        if op in ("delete", "moved from", "missing"):
            there.pop(key, None)
            continue
        every += [row] * (op != "snapshot" or there.get(key) != values)
        there[key] = values
    return every


def without(rows: Sequence[Row], taken: Sequence[Row], columns: Sequence[Shaped]) -> list[Row]:
    """Return the rows but for others, which look the same in some columns."""
    left = [(tuple(one.value(row) for one in columns), row) for row in rows]
    for row in taken:
        shown = tuple(one.value(row) for one in columns)
        left.pop(next(number for number, (values, _) in enumerate(left) if values == shown))
    return [row for _, row in left]


def wrong_spans(ended: pa.Table) -> list[str]:
    begins, ends = ended["_cdc_from_position"], ended["_cdc_to_position"]
    return ["a version that ends before it begins"] * bool(pc.any(pc.invert(pc.less(begins, ends))).as_py())
