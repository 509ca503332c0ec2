# SPDX-License-Identifier: Apache-2.0
"""Distinguish rows of one place that are all alike from those sent again (docs/design/positions-and-order.md).

Rows of one COPY share their place in PostgreSQL's log. Without a number in their transaction only the moment at which
the tool built each record distinguishes two of them. What a tool sends again it builds again, after it has started.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.apply.row_sets import group_numbers
from airflow_provider_cdc.core.arrays import IntArray

BUILT = "built"
_RESTART_US = 1_000_000  # a connector takes longer to start; rows of one place are built within milliseconds


def each_alike(numbers: IntArray, positions: pa.ChunkedArray, rows: pa.Table) -> IntArray:
    """Return numbers that only the same row sent again shares, where equal rows of one place share these.

    Records of one moment are copies, which a producer writes where it tries again. Rows that were built after a pause
    are sent again, if one of the two stretches has all rows of the other: a tool sends a place from its first row on.

    :param numbers: of place and content.
    :param positions: of the rows in the source's log.
    :param rows: with :data:`BUILT`, null where a row has a place of its own; without the column all have one.
    """
    if BUILT not in rows.column_names or rows.column(BUILT).null_count == rows.num_rows:
        return numbers
    built = rows.column(BUILT)
    candidates = np.flatnonzero((np.bincount(numbers)[numbers] > 1) & built.is_valid().to_numpy())
    if not len(candidates):
        return numbers
    at = group_numbers([positions])
    concerned = np.flatnonzero(np.isin(at, at[candidates]) & built.is_valid().to_numpy())
    times = built.take(pa.array(concerned)).to_numpy()
    order = np.lexsort((times, at[concerned]))
    concerned, times = concerned[order], times[order]
    nth: IntArray = np.zeros(rows.num_rows, np.int64)
    for some in np.split(np.arange(len(concerned)), np.flatnonzero(np.diff(at[concerned])) + 1):
        records = list(zip(numbers[concerned[some]].tolist(), times[some].tolist(), strict=True))
        nth[concerned[some]] = [count for stretch in _stretches(records) for count in _counted(stretch)]
    return group_numbers([pa.array(numbers), pa.array(nth)])


def _stretches(records: Sequence[tuple[int, int]]) -> Iterable[list[tuple[int, int]]]:
    """Split the records of one place, in the order in which they were built, where they begin again."""
    stretches: list[list[tuple[int, int]]] = []
    pauses = [i for i in range(1, len(records)) if records[i][1] - records[i - 1][1] > _RESTART_US]
    for start, end in zip([0, *pauses], [*pauses, len(records)], strict=True):
        stretch = list(records[start:end])
        if stretches and not _one_has_all(stretches[-1], stretch):
            stretches[-1] += stretch
        else:
            stretches.append(stretch)
    return stretches


def _one_has_all(first: Sequence[tuple[int, int]], second: Sequence[tuple[int, int]]) -> bool:
    one, other = (Counter(number for number, _ in set(stretch)) for stretch in (first, second))
    return one <= other or other <= one


def _counted(stretch: Sequence[tuple[int, int]]) -> Iterable[int]:
    """Return per record how many others like it were built before it."""
    moments: dict[int, list[int]] = {}
    for number, moment in stretch:
        known = moments.setdefault(number, [])
        if not known or known[-1] != moment:
            known.append(moment)
        yield len(known) - 1
