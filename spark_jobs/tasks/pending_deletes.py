# SPDX-License-Identifier: Apache-2.0
"""Removals of a table without key that have found no row: wait as long as a partition may still bring it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.merge_plan import OpenRemovals
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.errors import REBUILD, DataError


def demand_explained(
    pending: OpenRemovals, marks: Mapping[str, str], topics: Collection[str], table: str, lacking: int
) -> None:
    """Refuse removals whose row no partition can bring any more, and which is of no record of the quarantine.

    :param marks: the newest position that each ``topic/partition`` has shown.
    :param topics: of the table's rows.
    :param lacking: records of the quarantine that the table is without: those that wait, and those that were discarded.
    :raises DataError: ``apply.row_not_found``.
    """
    if pending.rows.num_rows <= lacking:
        return
    read = [position for name, position in marks.items() if name.rpartition("/")[0] in topics]
    newest = newest_of(pending)
    if not read or min(read) < newest:
        return
    raise DataError(
        "apply.row_not_found",
        f"a deleted row was not found: {pending.rows.num_rows} rows that were deleted or updated are not in the table, "
        "which has no key",
        where={"table": table, "position": newest},
        hint=f"the table differs from the source: {REBUILD}, or give it a key; the page of the format says which "
        "values a tool writes in several ways",
    )


def newest_of(pending: OpenRemovals) -> str:
    """Return the position of the newest of some removals."""
    newest: str = pc.max(pending.positions).as_py()
    return newest


def noted(state: TableState, pending: OpenRemovals | None, *, exact: bool) -> TableState:
    """Return a table's state with the removals that wait.

    :param exact: whether positions order rows.
    """
    if pending is None:
        return state
    note = f"{pending.rows.num_rows} deleted rows were not found yet: a partition that is read less far may have them"
    note += ", or the quarantine has or had them"
    return replace(state, pending_until=newest_of(pending) if exact else "", notes=[*state.notes, note])
