# SPDX-License-Identifier: Apache-2.0
"""Find the names whose rows, unreadable records or statements have no table."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import cached_property

from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.model.clock_position import one_instant
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from spark_jobs.driver.apply_plan import ApplyPlan, Unowned, is_waiting_name, unowned_id
from spark_jobs.driver.planning import NEWEST, Planning
from spark_jobs.driver.unsettled import REPLACED, set_aside
from spark_jobs.lake.manifest import RowGroup


class UnownedNames:
    """The names that no table has, or may have."""

    def __init__(self, planning: Planning) -> None:
        self._p = planning

    def doubtful(self) -> dict[str, TableState]:
        """Return states for names that a table of the source may have and none of the pipeline's is known to have."""
        known = {timeline.name for timeline in self._p.tables.values()}
        states = {}
        for name, reason in self._p.now.doubtful.items():
            if name not in known and self._p.is_selected(name):
                table_id = unowned_id(name)
                state = self._p.states.get(table_id) or TableState(table_id, name.database, name.table, "")
                states[table_id] = set_aside(self._p.job, state, reason)
        return states

    def settle(self, plan: ApplyPlan, doubtful: Collection[str]) -> None:
        """Find the names whose rows or unreadable records have no table, and settle those that found theirs."""
        waiting = {TableName(s.database, s.table): s for s in self._p.states.values() if is_waiting_name(s)}
        for name in dict.fromkeys([*self._p.by_name, *waiting, *self._p.quarantine.unowned()]):
            if unowned_id(name) in doubtful:
                continue
            state = waiting.get(name)
            groups = self._p.by_name.get(name, [])
            if state is not None:
                groups = [*self._p.groups.earlier_groups(name, state.rewind_to or ""), *groups]
            selected = self._p.is_selected(name)
            late = self._without_table(name, groups) if selected else []
            reason = self._unreadable(name) if selected else None
            if late or reason is not None:
                first = min((group.min_position for group in late), default=NEWEST)
                plan.unowned.append(Unowned(name, first, self._alike(name), reason))
            elif state is not None and state.state != TableStatus.DROPPED:
                plan.settled.append(
                    replace(
                        state, state=TableStatus.DROPPED, reason=REPLACED, code="", waiting_since=None, rewind_to=None
                    )
                )

    def state_before(self, name: TableName) -> TableState:
        """Return the state before the batch of a name whose rows have no table."""
        table_id = unowned_id(name)
        return self._p.states.get(table_id) or TableState(table_id, *name, "", applied_seq=self._p.job.seq - 1)

    def truncated_as(self, timeline: TableTimeline) -> str | None:
        """Return why a table is parked that a TRUNCATE may mean which names it in another case, None without one."""
        if self._p.case_is_known or timeline.dropped_at is not None:
            return None
        for name, groups in self._without_owner.items():
            alike = str(name).lower() == str(timeline.last_name) != str(name)
            if alike and any(group.clears for group in groups):
                reason = f"a TRUNCATE names {name}, which is this table if the server has lower_case_table_names=1"
                return f"{reason}: state source.options.lower_case_table_names"
        return None

    def _unreadable(self, name: TableName) -> str | None:
        """Return why a name that no table has ever had is parked, None where it is not."""
        unclear = self._p.unclear.get(name) if not any(owner for _, owner in self._p.now.spans(name)) else None
        error = self._p.quarantine.exceeded_by_name(name)
        return unclear or (None if error is None else str(error))

    def _without_table(self, name: TableName, groups: list[RowGroup]) -> list[RowGroup]:
        """Return the groups that begin or end where no table has the name.

        By a tool's clock, rows that are sent again after a DROP seem to come after it. Where only rows show a table, a
        TRUNCATE before the first of them empties a table that has none.
        """
        return [
            group
            for group in groups
            if any(
                self._is_free(name, position, group.max_source_time)
                for position in (group.min_position, group.max_position)
                if not (self._p.only_rows_show and position in group.clears)
            )
        ]

    def _is_free(self, name: TableName, position: str, source_time: int | None) -> bool:
        return not self._owned(name, position) and not self._p.now.sent_again(name, position, source_time)

    @cached_property
    def _without_owner(self) -> dict[TableName, list[RowGroup]]:
        """The groups of this batch and earlier ones under names that no table has."""
        waiting = {TableName(s.database, s.table): s for s in self._p.states.values() if is_waiting_name(s)}
        return {
            name: [
                *(self._p.groups.earlier_groups(name, waiting[name].rewind_to or "") if name in waiting else []),
                *self._p.by_name.get(name, []),
            ]
            for name in dict.fromkeys([*self._p.by_name, *waiting])
            if name not in self._p.now.names
        }

    def _alike(self, name: TableName) -> str:
        """Return the name of a known table that differs only in case, empty without one."""
        return next((str(other) for other in self._p.now.names if str(other).lower() == str(name).lower()), "")

    def _owned(self, name: TableName, position: str) -> bool:
        """Return whether a table has a name at a position, or in the instant of the tool's clock that it is in.

        Where it was not known which table had it, and that table is gone since, no row has to wait.
        """
        if self._p.now.owner(name, position) is not None:
            return True
        doubts = self._p.now.doubts.get(name, ())
        if any(start <= position < end or one_instant(start, position) for start, end in doubts):
            return True
        return any(one_instant(start, position) for start, _ in self._p.now.spans(name))
