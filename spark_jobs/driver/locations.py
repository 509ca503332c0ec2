# SPDX-License-Identifier: Apache-2.0
"""Know the locations that tables have, and those that they left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.model.status import TableStatus
from spark_jobs.driver.apply_plan import ApplyPlan
from spark_jobs.driver.planning import Planning


class Locations:
    """The places of tables below the root."""

    def __init__(self, planning: Planning) -> None:
        self._p = planning
        self._ids_at: dict[str, set[str]] = {}  # ids of the tables that are, or were, at a location
        for state in planning.job.states:
            self.note(state)

    def note(self, state: TableState) -> None:
        """Take that a table is, or was, at a location."""
        self._ids_at.setdefault(state.location, set()).add(state.table_id)

    def expected_version(self, location: str) -> int | None:
        """Return the newest version that a table of ours made at a location; a rebuild may have begun them again."""
        known = (self._p.states[table_id] for table_id in self._ids_at.get(location, ()))
        here = [state for state in known if state.location == location and state.version is not None]
        since = max((state.rebuilt_seq for state in here), default=0)
        return max(
            (state.version for state in here if state.applied_seq >= since and state.version is not None), default=None
        )

    def live(self) -> set[str]:
        """Return the locations whose name a table has now."""
        return {
            self._p.paths.of(timeline.table_id, name)
            for timeline in self._p.tables.values()
            if (name := timeline.name) is not None and self._p.is_selected(name)
        }

    def collect_left(self, plan: ApplyPlan) -> None:
        """Add the locations that tables moved away from, and keep only those whose name no live table has."""
        done = [(task.table_id, task.location) for task in plan.tasks]
        done += [(state.table_id, state.location) for state in plan.settled if state.state == TableStatus.DROPPED]
        for table_id, location in done:
            old = self._p.states.get(table_id)
            if old is not None and old.version is not None and old.location != location:
                plan.to_empty.append(old)
        plan.to_empty += [replace(s, location=s.to_empty) for s in self._p.states.values() if s.to_empty]
        live = self.live()
        plan.to_empty = [state for state in plan.to_empty if state.location not in live]
        plan.never_reached = [state for state in self._never_reached() if state.location not in live]

    def _never_reached(self) -> Iterator[TableState]:
        """Yield the states of parked and waiting tables, each at the location of its name, where no table is.

        Another table may have moved away from there: its rows were left for the table that had the name by then.
        """
        occupied = {state.location for state in self._p.states.values() if state.version is not None}
        for state in self._p.states.values():
            if state.state in (TableStatus.PARKED, TableStatus.WAITING) and state.location:
                location = self._p.paths.of(state.table_id, TableName(state.database, state.table))
                before = self._p.paths.before(TableName(state.database, state.table))
                for path in {location, before} - occupied:
                    yield replace(state, location=path)
