# SPDX-License-Identifier: Apache-2.0
"""Distinguish rows of one place that are all alike from those sent again (docs/design/positions-and-order.md).

Rows of one COPY share their place in PostgreSQL's log, and changes of one transaction in that of MariaDB 11.4. Without
a number in their transaction only the moment at which the tool built each record distinguishes two that are equal. What
a tool sends again it builds again, after it has started.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.apply.row_sets import group_numbers
from airflow_provider_cdc.core.arrays import BoolArray, IntArray

BUILT = "built"
_RESTART_US = 1_000_000  # a connector takes longer to start; rows of one place are built within milliseconds


def each_alike(numbers: IntArray, positions: pa.ChunkedArray, rows: pa.Table) -> IntArray:
    """Return numbers that only the same row sent again shares, where equal rows of one place share these.

    Records of one moment are copies, which a producer writes where it tries again. A pause begins another sending of a
    place: a row counts as often as one sending has it. So more records of it, which are read later, never make it less.

    :param numbers: of place and content.
    :param positions: of the rows in the source's log.
    :param rows: with :data:`BUILT`, null where a row has a place of its own; without the column all have one.
    """
    if BUILT not in rows.column_names or rows.column(BUILT).null_count == rows.num_rows:
        return numbers
    built, there = rows.column(BUILT), rows.column(BUILT).is_valid().to_numpy()
    candidates = np.flatnonzero((np.bincount(numbers)[numbers] > 1) & there)
    if not len(candidates):
        return numbers
    at = group_numbers([positions])
    concerned = np.flatnonzero(np.isin(at, at[candidates]) & there)
    times: IntArray = built.take(pa.array(concerned)).to_numpy()
    order = np.lexsort((times, at[concerned]))
    concerned, times = concerned[order], times[order]
    sending: IntArray = np.cumsum(_differs(at[concerned]) | (np.diff(times, prepend=times[:1]) > _RESTART_US))
    order = np.lexsort((times, numbers[concerned], sending))
    concerned, times, sending = concerned[order], times[order], sending[order]
    begins = _differs(numbers[concerned]) | _differs(sending)
    rank = np.cumsum(begins | _differs(times))
    nth: IntArray = np.zeros(rows.num_rows, np.int64)
    nth[concerned] = rank - rank[begins][np.cumsum(begins) - 1]
    return group_numbers([pa.array(numbers), pa.array(nth)])


def _differs(values: IntArray) -> BoolArray:
    """Return which values are another one than that before them; the first is."""
    differs: BoolArray = np.r_[True, values[1:] != values[:-1]]
    return differs
