# SPDX-License-Identifier: Apache-2.0
"""Removals of a table without key that have found no row: wait as long as a partition may still bring it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Self

import pyarrow as pa

from airflow_provider_cdc.core.apply.merge_plan import MergePlan
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.errors import REBUILD, DataError


@dataclass(slots=True)
class PendingDeletes:
    """The removals of one table that have found no row, earlier ones and those of the batch.

    :param rows: how many there are.
    :param bound: position of the newest of them; empty where that is not known, or where no position orders rows.
    :param open: earlier ones that the batch has not settled, where they are not among its own.
    """

    rows: int = 0
    bound: str = ""
    open: pa.Table | None = None

    @classmethod
    def of(cls, base: TableState | None, plan: MergePlan, *, exact: bool) -> Self:
        """Return those of a table's state, with the bound that those of a plan give."""
        if not exact:
            return cls()
        known = "" if base is None or base.debts_seq is None else base.pending_until or base.applied_position
        return cls(bound=max([known, *(step.removed_until for step in plan.steps)]))

    def demand_explained(self, marks: Mapping[str, str], topics: Collection[str], table: str) -> None:
        """Refuse removals whose row no partition can bring any more.

        :param marks: the newest position that each ``topic/partition`` has shown.
        :param topics: of the table's rows.
        :raises DataError: ``apply.row_not_found``.
        """
        read = [position for name, position in marks.items() if name.rpartition("/")[0] in topics]
        if not read or min(read) < self.bound:
            return
        raise DataError(
            "apply.row_not_found",
            f"a deleted row was not found: {self.rows} rows that were deleted or updated are not in the table, which "
            "has no key",
            where={"table": table, "position": self.bound},
            hint=f"the table differs from the source: {REBUILD}, or give it a key; the page of the format says which "
            "values a tool writes in several ways",
        )

    def noted(self, state: TableState) -> TableState:
        """Return a table's state with the removals that wait."""
        if not self.rows:
            return state
        note = f"{self.rows} deleted rows were not found yet: a partition that is read less far may have them"
        return replace(state, pending_until=self.bound, notes=[*state.notes, note])
