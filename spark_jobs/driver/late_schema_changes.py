# SPDX-License-Identifier: Apache-2.0
"""Find schema changes that came late: behind rows that a table holds, and that should have gone through them."""

from __future__ import annotations

from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.errors import SinkError
from airflow_provider_cdc.core.model.clock_position import earliest_unordered, reaches
from airflow_provider_cdc.core.timeline.timeline import TableTimeline, Timeline
from spark_jobs.driver.batch_history import History
from spark_jobs.driver.full_snapshots import later_snapshots
from spark_jobs.driver.table_groups import TableGroups


class LateSchemaChanges:
    """Compare the timelines before and after the batch's schema changes with what tables hold.

    :param was: the tables as they were known before the batch.
    :param now: the same with the batch's schema changes.
    :param groups: finds what batches hold of tables.
    """

    def __init__(self, was: Timeline, now: Timeline, groups: TableGroups, history: History) -> None:
        self._was, self._now, self._groups, self._history = was, now, groups, history

    def first_difference(self, table_id: str, state: TableState | None) -> str | None:
        """Return the oldest position at which a schema change arrived late for rows that came before it."""
        if state is None or state.version is None:
            return None
        was, now = self._was.tables.get(table_id), self._now.tables[table_id]
        if was is None:
            return now.versions[0].position
        known = [] if state.rewind_to is None else [state.rewind_to]
        events = [set(timeline.events()) for timeline in (was, now)]
        for position in sorted(position for position, _ in events[0] ^ events[1]):
            if reaches(state.applied_position, position) or self._came_before(now, position, state.applied_seq):
                known.append(position)
                break
        for position, sent in later_snapshots(now):
            if (position, sent) not in was.snapshots and self.had_rows(now, position, sent, state.applied_seq):
                known.append(position)
        return min(known, default=None)

    def oldest_difference(self, table_id: str, state: TableState | None) -> str | None:
        """Return :meth:`first_difference`, or what is certainly not behind it where the change log cannot decide."""
        try:
            return self.first_difference(table_id, state)
        except SinkError:
            was, now = self._was.tables.get(table_id), self._now.tables[table_id]
            events = [set(timeline.events()) if timeline else set() for timeline in (was, now)]
            snapshots = [set(later_snapshots(timeline)) if timeline else set() for timeline in (was, now)]
            positions = [p for p, _ in events[0] ^ events[1]] + [p for p, _ in snapshots[0] ^ snapshots[1]]
            known = [] if state is None or state.rewind_to is None else [state.rewind_to]
            return min([*known, *positions], default=None)

    def had_rows(self, timeline: TableTimeline, position: str, sent: int, applied_seq: int) -> bool:
        """Return whether an applied batch holds rows of a snapshot."""
        applied = [seq for seq in self._history.since(position) if seq <= applied_seq]
        snapshots = (
            item
            for span in self._groups.spans_of(timeline, applied)
            for group in span.groups
            for item in group.snapshots
        )
        return any(begin == position and newest >= sent for begin, newest in snapshots)

    def _came_before(self, timeline: TableTimeline, position: str, applied_seq: int) -> bool:
        """Return whether an applied batch holds rows of this table from a position on, maybe under an unknown name."""
        for seq in self._history.since(earliest_unordered(position)):
            if seq <= applied_seq:
                spans = self._groups.spans_of(timeline, [seq])
                if any(reaches(group.max_position, position) for span in spans for group in span.groups):
                    return True
        return False
