# SPDX-License-Identifier: Apache-2.0
"""Follow the rows that tables lack because they do not fit: some fit once a late schema change is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from airflow_provider_cdc.core.documents import Result
from airflow_provider_cdc.core.model.status import TableStatus
from spark_jobs.driver.unsettled import REPLACED
from spark_jobs.lake.manifest import Settled
from spark_jobs.lake.stored_result import UnfitRow


def still_left_out(
    rows: Iterable[tuple[int, UnfitRow]], result: Result, unfit: Sequence[UnfitRow]
) -> list[tuple[int, UnfitRow]]:
    """Return the rows of earlier batches that are left out after a batch, too.

    A table that went back resolved all rows since again: those that fit now are in it.

    :param rows: batch and row.
    :param result: of the batch, with its tables' states; ``unfit`` the rows that did not fit in it.
    """
    since: dict[str, int] = {}
    for state in result.states:
        if state.state == TableStatus.DROPPED and state.reason == REPLACED:
            since[state.table_id] = 0  # its rows are of another table now
        elif state.resolved_since is not None and state.applied_seq == result.seq:
            since[state.table_id] = state.resolved_since
    again = {(row.table_id, row.record) for row in unfit}
    return [
        (seq, row) for seq, row in rows if seq <= since.get(row.table_id, seq) or (row.table_id, row.record) in again
    ]


def left_out_after(
    before: Iterable[tuple[int, UnfitRow]], result: Result, unfit: Sequence[UnfitRow], settled: Sequence[Settled]
) -> list[tuple[int, UnfitRow]]:
    """Return batch and row of all rows that tables lack after a batch, without those that operators settled.

    :param before: the same before the batch.
    """
    earlier = still_left_out(before, result, unfit)
    known = {(row.table_id, row.record) for _, row in earlier}
    fresh = [row for row in unfit if not row.parked and (row.table_id, row.record) not in known]
    return unsettled([*earlier, *((result.seq, row) for row in fresh)], settled)


def unsettled(rows: Iterable[tuple[int, UnfitRow]], settled: Sequence[Settled]) -> list[tuple[int, UnfitRow]]:
    """Return rows without those that operators settled since."""
    newest: dict[tuple[str, int, int], int] = {}
    for one in settled:
        if one.kind == "row":
            newest[one.record] = max(one.seq, newest.get(one.record, 0))
    return [(seq, row) for seq, row in rows if newest.get(row.record, 0) <= seq]
