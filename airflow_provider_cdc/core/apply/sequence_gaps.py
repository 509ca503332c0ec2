# SPDX-License-Identifier: Apache-2.0
"""Find the changes behind which one is missing that the source made: the tool numbers those of a transaction."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.row_sets import group_numbers
from airflow_provider_cdc.core.arrays import IntArray

TRANSACTION = "transaction_id"
NUMBERED_COLUMNS = (TRANSACTION, "transaction_order")
"""What finding gaps needs of changes, of formats that carry ``transaction_orders``."""


def changes_behind_gaps(rows: pa.Table, row_indexes: IntArray) -> IntArray:
    """Return the changes of one table whose predecessor in their transaction is missing.

    A log has one transaction behind the other. So only the one of the first change may have begun before these changes:
    what stands before its first one here is not missed. A number that comes again is a change that was sent again.

    :param rows: changes in source order; without :data:`NUMBERED_COLUMNS` nothing is known to be missing.
    :param row_indexes: those that the stored rows did not go through, ascending.
    """
    none: IntArray = np.empty(0, dtype=np.int64)
    if not {*NUMBERED_COLUMNS} <= {*rows.column_names}:
        return none
    numbered = rows.select(NUMBERED_COLUMNS).take(pa.array(row_indexes))
    known = pc.and_(*(pc.is_valid(column) for column in numbered.columns)).to_numpy()
    if not known.any():
        return none
    row_indexes, numbered = row_indexes[known], numbered.filter(pa.array(known))
    transactions = group_numbers([numbered.column("transaction_id")])
    numbers = numbered.column("transaction_order").to_numpy()
    order = np.lexsort((numbers, transactions))
    ordered, of = numbers[order], transactions[order]
    begins = np.r_[True, of[1:] != of[:-1]]
    before = np.where(begins, 0, np.r_[0, ordered[:-1]])
    before[begins & (of == transactions[0])] = ordered[begins & (of == transactions[0])]
    behind: IntArray = row_indexes[order[ordered > before + 1]]
    return np.sort(behind)
